#include "pprof/rewrite.h"

bool pprof_rewrite_pack(const struct pprof_rewrite *rewrite, struct scratch *s, struct sv plain,
                        enum gzip_level level, char **ret_data, size_t *ret_size)
{
    struct buf out;
    if (rewrite == NULL) {
        return gzip_pack_at(s, plain, level, ret_data, ret_size);
    }
    buf_init(&out, PPROF_REWRITTEN_MAX);
    if (rewrite->run(rewrite->arg, s, plain, &out) && scratch_charge(s, out.len)) {
        plain = (struct sv){out.data, out.len};
        level = level == GZIP_FAST ? GZIP_QUICK : level;
    }
    bool ok = gzip_pack_at(s, plain, level, ret_data, ret_size);
    buf_done(&out);
    return ok;
}
