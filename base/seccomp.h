/* The system calls that this process, and whatever it starts, may make from now on: those that
 * reading and writing files, sockets, threads, memory and time need. Others fail with ENOSYS, as if
 * the kernel did not have them. The kernel keeps the filter's answers, so that an allowed call
 * costs nothing to speak of.
 */
#ifndef PROFPULL_BASE_SECCOMP_H
#define PROFPULL_BASE_SECCOMP_H

#include <stdbool.h>

#include "base/err.h"

/* Cannot be undone, holds for all threads, and needs no_new_privs or CAP_SYS_ADMIN. programs:
 * others may be started, too. False with a reason if the kernel or the architecture cannot; nothing
 * is restricted then. */
bool seccomp_restrict(bool programs, struct err *err);

#endif
