/* Retention of a directory of profiles: the oldest files beyond an age, or beyond bytes, are
 * removed.
 *
 * index.jsonl lists the files. It is written again without those that were removed, under a
 * temporary name that replaces it when complete. Its lines come from a disk that others may write
 * to: a line whose file is not of the form service/type/name is kept, and no file is touched for
 * it. Files are removed before the index is written, so a crash leaves lines without files, which
 * the next round removes. Blocking; one thread at a time. */
#ifndef PROFPULL_WRITE_PROTOCOLS_FILE_RETENTION_H
#define PROFPULL_WRITE_PROTOCOLS_FILE_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct file_retention {
    int root; /* the directory */
    const char *index;
    int64_t oldest_ns;  /* files that end before are removed */
    uint64_t max_bytes; /* of all; 0: any number */
};
struct file_retention_result {
    uint64_t removed; /* files */
    uint64_t bytes;   /* of those that are left, as the index says */
};

/* One round. An index that is not there is empty. False if a file cannot be removed or the index
 * not be replaced. */
bool file_retention_run(const struct file_retention *r, struct file_retention_result *ret,
                        struct err *err);

#endif
