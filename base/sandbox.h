/* A sandbox for the whole process: no new privileges (setuid programs gain nothing), system calls
 * that the program needs (seccomp), the files and ports that are listed (Landlock). What the kernel
 * does not have is left out, and said.
 *
 * The paths are listed first; sandbox_enter() puts all in force for good, before threads are
 * started. The list is kept, so that a later configuration can be compared with it. One thread.
 */
#ifndef PROFPULL_BASE_SANDBOX_H
#define PROFPULL_BASE_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct sandbox;

struct sandbox *sandbox_new(void);               /* NULL if out of memory */
struct sandbox *sandbox_free(struct sandbox *s); /* accepts NULL, returns NULL */

/* Each of these lists nothing if memory runs out, and sandbox_enter() then fails. What does not
 * exist stands for the nearest directory above it that does, the root excepted: it is never listed,
 * except by name. */

/* The directory of a file that is read, and where symbolic links lead: files are replaced by others
 * with the same name. A file in the root directory is listed alone. */
void sandbox_read_file(struct sandbox *s, const char *path);
/* A file or a directory with all below it, to read or to change as well. */
void sandbox_read(struct sandbox *s, const char *path);
void sandbox_write(struct sandbox *s, const char *path);
/* A directory whose disk does not answer, as disk_hanging_root() finds it, to change: nothing is
 * asked of it. */
void sandbox_write_hanging(struct sandbox *s, const char *path);
/* Other programs will be started, whose files and ports nobody knows: Landlock is left out, and the
 * calls that start programs are allowed. */
void sandbox_start_programs(struct sandbox *s);
/* A port of TCP to listen on; 0: any that the kernel chooses. */
void sandbox_listen(struct sandbox *s, uint16_t port);

enum sandbox_part { SANDBOX_NO_NEW_PRIVS, SANDBOX_SECCOMP, SANDBOX_LANDLOCK, SANDBOX_PARTS };
/* "no_new_privs", "seccomp", "landlock". */
const char *sandbox_part_name(enum sandbox_part part);

struct sandbox_report {
    bool on[SANDBOX_PARTS];
    struct err why[SANDBOX_PARTS]; /* it is not on */
    int landlock_version;          /* of the kernel; 0: none */
};

/* Puts in force what the kernel has. False only if memory has run out; nothing is in force then. */
bool sandbox_enter(const struct sandbox *s, struct sandbox_report *ret, struct err *err);

/* Does `s` list all that `other` lists? The error names what is missing. */
bool sandbox_covers(const struct sandbox *s, const struct sandbox *other, struct err *err);

#endif
