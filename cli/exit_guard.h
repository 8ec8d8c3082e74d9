/* Ends the process even if one of its threads hangs.
 *
 * A clean end waits for all threads. A thread in a system call may never return, if the disk does
 * not answer.
 */
#ifndef PROFPULL_CLI_EXIT_GUARD_H
#define PROFPULL_CLI_EXIT_GUARD_H

#include <stdint.h>

/* Ends the process with this code in ms milliseconds, unless it has ended by then. It prints a
 * message to stderr and frees nothing. Several guards may run. If its thread cannot be started, the
 * guard has no effect. */
void exit_guard_start(int64_t ms, int code);

#endif
