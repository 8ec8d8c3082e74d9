#include "store/archive/backend.h"

static const char *archive_bucket_url(void *arg)
{
    return bucket_url(arg);
}

static enum bucket_result archive_bucket_list(void *arg, const struct bucket_list *l,
                                              bool (*fn)(void *fn_arg,
                                                         const struct bucket_object *o),
                                              void *fn_arg, int64_t deadline_ms, struct err *err)
{
    return bucket_list(arg, l, fn, fn_arg, deadline_ms, err);
}

static enum bucket_result archive_bucket_head(void *arg, const char *key, int64_t deadline_ms,
                                              struct bucket_object *ret, struct err *err)
{
    return bucket_head(arg, key, deadline_ms, ret, err);
}

static enum bucket_result archive_bucket_get(void *arg, const char *key,
                                             const struct bucket_range *r, int64_t deadline_ms,
                                             struct bucket_read *ret, struct err *err)
{
    return bucket_get(arg, key, r, deadline_ms, ret, err);
}

static enum bucket_result archive_bucket_put(void *arg, const char *key, const void *data,
                                             size_t len, int64_t deadline_ms, struct err *err)
{
    return bucket_put(arg, key, data, len, deadline_ms, err);
}

static enum bucket_result archive_bucket_put_file(void *arg, const char *key, int fd,
                                                  uint64_t offset, uint64_t len,
                                                  int64_t deadline_ms, struct err *err)
{
    return bucket_put_file(arg, key, fd, offset, len, deadline_ms, err);
}

static enum bucket_result archive_bucket_remove(void *arg, const char *key, int64_t deadline_ms,
                                                struct err *err)
{
    return bucket_delete(arg, key, deadline_ms, err);
}

static enum bucket_result archive_bucket_abort(void *arg, const char *prefix, int64_t before_ns,
                                               int64_t deadline_ms, size_t *ret_n, struct err *err)
{
    return bucket_abort_uploads(arg, prefix, before_ns, deadline_ms, ret_n, err);
}

static void archive_bucket_stop(void *arg)
{
    bucket_stop(arg);
}

static void archive_bucket_free(void *arg)
{
    (void)bucket_free(arg);
}

struct archive_backend archive_backend_of(struct bucket *b)
{
    return (struct archive_backend){.arg = b,
                                    .url = archive_bucket_url,
                                    .list = archive_bucket_list,
                                    .head = archive_bucket_head,
                                    .get = archive_bucket_get,
                                    .put = archive_bucket_put,
                                    .put_file = archive_bucket_put_file,
                                    .remove = archive_bucket_remove,
                                    .abort_uploads = archive_bucket_abort,
                                    .stop = archive_bucket_stop,
                                    .free = archive_bucket_free};
}
