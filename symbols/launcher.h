/* The launcher: a small process that starts the child that reads files, and another child after
 * each one that has ended. The agent cannot start processes itself, because its sandbox forbids it.
 * Private to symbols/.
 */
#ifndef PROFPULL_SYMBOLS_LAUNCHER_H
#define PROFPULL_SYMBOLS_LAUNCHER_H

/* Runs in the process that has been forked for it, and does not return: it ends, with its child,
 * when the agent has closed its end of the socket or is gone. All other descriptors are closed, and
 * /dev/null becomes the standard input and output. */
void launcher_main(int socket) __attribute__((noreturn));

#endif
