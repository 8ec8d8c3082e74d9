/* Ends the process although a thread of it hangs.
 *
 * Whoever frees what threads use waits for them, and a thread that is in a system call of a disk
 * that does not answer may never come back.
 */
#ifndef PROFPULL_CLI_EXIT_GUARD_H
#define PROFPULL_CLI_EXIT_GUARD_H

#include <stdint.h>

/* Ends the process in ms from now with this code, unless it has ended by then: says so on stderr
 * and frees nothing. Several may run. If the thread for it cannot be started, nothing happens. */
void exit_guard_start(int64_t ms, int code);

#endif
