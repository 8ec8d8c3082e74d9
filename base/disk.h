/* Finds out if a disk answers, before somebody waits for it: a call of the system for a path on a
 * disk that hangs, as a network disk without its server does, may never return.
 */
#ifndef PROFPULL_BASE_DISK_H
#define PROFPULL_BASE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Asks for a path in a child process, which is killed when the time is over. Returns false if there
 * was no answer; an error is one. Only before threads are started and the sandbox is entered. */
bool disk_answers_child(const char *path, int64_t ms);

/* Asks for a path on a thread, which stays until its call returns. Returns false if there was no
 * answer; an error is one. Any thread. */
bool disk_answers(const char *path, int64_t ms);

/* Finds the nearest directory at or above a path, on the same disk that does not answer, that can
 * be opened without an answer, such as the mount point. Returns false if there is none. Only before
 * threads are started and the sandbox is entered. */
bool disk_hanging_root(const char *path, char *ret, size_t size, int64_t ms);

#endif
