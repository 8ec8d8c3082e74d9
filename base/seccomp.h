/* Limits the system calls of this process, and of the programs that it starts, to those that
 * profpull makes: for files, sockets of TCP, UDP and Unix streams, threads, memory that is not both
 * writable and executable, and time. Any other call fails with ENOSYS, as if the kernel did not
 * have it. The kernel remembers which calls the filter allows whatever their arguments are, so
 * these calls are hardly slower than without a filter.
 *
 * Code that makes a new kind of call needs a row in seccomp.c.
 */
#ifndef PROFPULL_BASE_SECCOMP_H
#define PROFPULL_BASE_SECCOMP_H

#include <stdbool.h>

#include "base/err.h"

/* Restricts all threads. This cannot be undone, and needs no_new_privs or CAP_SYS_ADMIN. programs:
 * also allows starting other programs, and the system calls that these may need. Returns false with
 * a reason, and restricts nothing, if the kernel or the architecture cannot do it. */
bool seccomp_restrict(bool programs, struct err *err);

#endif
