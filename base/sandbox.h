/* A sandbox for the whole process. It has three parts: no_new_privs, so that setuid programs gain
 * nothing; seccomp, which allows only the system calls that the program makes; and Landlock, which
 * allows only the listed files and ports. A part that the kernel does not have is left out, and the
 * report says so.
 *
 * First list the paths, then call sandbox_enter() before threads are started. The sandbox cannot be
 * left again. Keep the list to compare a later configuration with it. One thread at a time may use
 * a list.
 */
#ifndef PROFPULL_BASE_SANDBOX_H
#define PROFPULL_BASE_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct sandbox;

struct sandbox *sandbox_new(void);               /* NULL if out of memory */
struct sandbox *sandbox_free(struct sandbox *s); /* accepts NULL, returns NULL */

/* If memory runs out, these functions list nothing, and sandbox_enter() fails later. A path that
 * does not exist stands for the nearest directory above it that exists. The root directory is
 * listed only if it is named itself. */

/* Lists the directory of a file that is read, and the directories that its symbolic links lead to,
 * because a file may be replaced by another one with its name. A file in the root directory is
 * listed alone. */
void sandbox_read_file(struct sandbox *s, const char *path);
/* Lists a file, or a directory with all below it, for reading only or for writing as well. */
void sandbox_read(struct sandbox *s, const char *path);
void sandbox_write(struct sandbox *s, const char *path);
/* Lists a directory for writing whose disk does not answer, as disk_hanging_root() finds it. The
 * directory is not inspected, because the call would hang. */
void sandbox_write_hanging(struct sandbox *s, const char *path);
/* Allows starting other programs. Their files and ports are unknown, so that Landlock is left out.
 */
void sandbox_start_programs(struct sandbox *s);
/* Lists a TCP port to listen on; 0: any that the kernel chooses. */
void sandbox_listen(struct sandbox *s, uint16_t port);

enum sandbox_part { SANDBOX_NO_NEW_PRIVS, SANDBOX_SECCOMP, SANDBOX_LANDLOCK, SANDBOX_PARTS };
/* Returns the name of a part: "no_new_privs", "seccomp", "landlock". */
const char *sandbox_part_name(enum sandbox_part part);

struct sandbox_report {
    bool on[SANDBOX_PARTS];
    struct err why[SANDBOX_PARTS]; /* the reason if a part is not on */
    int landlock_version;          /* version of the kernel's Landlock; 0: none */
};

/* Enters the sandbox, with the parts that the kernel has. Returns false only if memory has run out;
 * nothing is restricted then. */
bool sandbox_enter(const struct sandbox *s, struct sandbox_report *ret, struct err *err);

/* Returns true if `s` lists all that `other` lists. The error names a missing entry. */
bool sandbox_covers(const struct sandbox *s, const struct sandbox *other, struct err *err);

#endif
