/* Moves the files of a store's directory into an archive, once, without a running process: for
 * `profpull store push`.
 *
 * The files are sealed, marked and uploaded as the archive of a running store does it (upload.c),
 * so the same holds: a crash leaves nothing that is read half, and a repetition uploads only what
 * is missing. Nothing is removed, on the disk or in the bucket. Blocking; any thread.
 */
#ifndef PROFPULL_STORE_ARCHIVE_PUSH_H
#define PROFPULL_STORE_ARCHIVE_PUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "store/archive/backend.h"

struct archive_push {
    const char *directory;
    const char *writer;             /* the name under which the objects are stored */
    struct archive_backend backend; /* taken over: freed in any case */
    struct log *log;                /* may be NULL */
    /* Called with the files that are left, when it changes. NULL: nobody. */
    void (*on_progress)(void *arg, uint64_t files, uint64_t bytes);
    void *arg;
};

struct archive_pushed {
    uint64_t files;        /* in the directory that the archive has now */
    uint64_t profiles;     /* in these */
    uint64_t bytes;        /* of these */
    uint64_t uploaded;     /* files that it did not have before */
    uint64_t left;         /* files that could not be uploaded, because of the file or the bucket */
    char why[ERR_MSG_MAX]; /* the first reason for one of these */
};

/* Refuses a directory that another process uses, and the name of a writer that lives. False with
 * err if nothing could be done, or the bucket has failed; a damaged file is no failure: see `left`.
 */
bool archive_push(const struct archive_push *p, struct archive_pushed *ret, struct err *err);

#endif
