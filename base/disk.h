/* Checks whether a disk answers, before a thread that is needed waits for it. A system call for a
 * path on a disk that hangs, such as a network disk whose server is gone, may never return.
 */
#ifndef PROFPULL_BASE_DISK_H
#define PROFPULL_BASE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Asks for a path in a child process, which is killed after `ms` milliseconds. Returns false if
 * there was no answer; an error counts as an answer. May be called only before threads are started
 * and the sandbox is entered. */
bool disk_answers_child(const char *path, int64_t ms);

/* Asks for a path on a new thread, which exists until its system call returns. Returns false if
 * there was no answer within `ms` milliseconds; an error counts as an answer, and so does
 * a thread that cannot be started. Any thread may call it. */
bool disk_answers(const char *path, int64_t ms);

/* Finds the nearest directory at or above a path, on the same disk that does not answer, that can
 * be opened without an answer, such as the mount point. Returns false if there is none. May be
 * called only before threads are started and the sandbox is entered. */
bool disk_hanging_root(const char *path, char *ret, size_t size, int64_t ms);

#endif
