/* The object store of an archive: the calls of a bucket (bucket/bucket.h), as a table that
 * tests replace.
 */
#ifndef PROFPULL_STORE_ARCHIVE_BACKEND_H
#define PROFPULL_STORE_ARCHIVE_BACKEND_H

#include "bucket/bucket.h"

/* Each member is documented by the function of a bucket with its name. */
struct archive_backend {
    void *arg;
    const char *(*url)(void *arg);
    enum bucket_result (*list)(void *arg, const struct bucket_list *l,
                               bool (*fn)(void *fn_arg, const struct bucket_object *o),
                               void *fn_arg, int64_t deadline_ms, struct err *err);
    enum bucket_result (*head)(void *arg, const char *key, int64_t deadline_ms,
                               struct bucket_object *ret, struct err *err);
    enum bucket_result (*get)(void *arg, const char *key, const struct bucket_range *r,
                              int64_t deadline_ms, struct bucket_read *ret, struct err *err);
    enum bucket_result (*put)(void *arg, const char *key, const void *data, size_t len,
                              int64_t deadline_ms, struct err *err);
    enum bucket_result (*put_file)(void *arg, const char *key, int fd, uint64_t offset,
                                   uint64_t len, int64_t deadline_ms, struct err *err);
    enum bucket_result (*remove)(void *arg, const char *key, int64_t deadline_ms, struct err *err);
    enum bucket_result (*abort_uploads)(void *arg, const char *prefix, int64_t before_ns,
                                        int64_t deadline_ms, size_t *ret_n, struct err *err);
    void (*stop)(void *arg);
    void (*free)(void *arg);
};

/* Returns the table of a bucket, which takes over the bucket. */
struct archive_backend archive_backend_of(struct bucket *b);

#endif
