/* A last change of a profile before it is compressed, so that it need not be inflated and
 * compressed again. */
#ifndef PROFPULL_PPROF_REWRITE_H
#define PROFPULL_PPROF_REWRITE_H

#include "base/buf.h"
#include "pprof/gzip.h"

/* The largest profile that a rewrite may make. */
#define PPROF_REWRITTEN_MAX ((size_t)64 * 1024 * 1024)

struct pprof_rewrite {
    /* Appends the changed profile to out. Returns false to leave it as it is. On the thread of the
     * caller; memory of the scratch. */
    bool (*run)(void *arg, struct scratch *s, struct sv plain, struct buf *out);
    void *arg;
};

/* Changes (rewrite may be NULL) and compresses a plain profile. A changed one is compressed at
 * GZIP_QUICK instead of GZIP_FAST, since names make it several times as large. The result is memory
 * from malloc(). Returns false if out of memory. */
bool pprof_rewrite_pack(const struct pprof_rewrite *rewrite, struct scratch *s, struct sv plain,
                        enum gzip_level level, char **ret_data, size_t *ret_size);

#endif
