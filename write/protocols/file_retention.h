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
    int64_t oldest_ns;  /* files whose profiles end before this time are removed */
    uint64_t max_bytes; /* the limit of all files; 0: no limit */
};
struct file_retention_result {
    uint64_t removed; /* files */
    uint64_t bytes;   /* the bytes of the remaining files, by the index */
};

/* Does one round. If there is no index, there are no files. Returns false if a file cannot be
 * removed or the index cannot be replaced. */
bool file_retention_run(const struct file_retention *r, struct file_retention_result *ret,
                        struct err *err);

#endif
