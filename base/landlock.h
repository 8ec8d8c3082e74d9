/* Limits the files and ports that this process, and the programs that it starts, can use from now
 * on (Landlock).
 *
 * Uses system calls, since libc has no functions for Landlock and Debian 12's headers lack its
 * newer rights. The version of the kernel's Landlock, if it has any, is read at run time. Only the
 * calling thread is restricted, and the threads that it starts later: call this before threads are
 * started.
 */
#ifndef PROFPULL_BASE_LANDLOCK_H
#define PROFPULL_BASE_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A file, or a directory with all below it. The rule applies to what exists under the path now,
 * after symbolic links are resolved. A path that does not exist is ignored. */
struct landlock_path {
    const char *path;
    bool writable; /* files and directories may also be made, written and removed */
    bool hangs;    /* a directory whose disk does not answer: the path is not inspected, because the
                      call would hang */
};

struct landlock_rules {
    const struct landlock_path *paths; /* nothing else can be opened */
    size_t n_paths;
    /* TCP ports to listen on; 0 means any port that the kernel chooses */
    const uint16_t *ports;
    size_t n_ports;
};

/* Returns the version of the kernel's Landlock, or 0 if it has none. */
int landlock_version(void);
/* Restricts the process. This cannot be undone, and needs no_new_privs or CAP_SYS_ADMIN. Returns
 * false with a reason, and restricts nothing, if the kernel has no Landlock or refuses. */
bool landlock_restrict(const struct landlock_rules *rules, struct err *err);

#endif
