#include "store/query/named.h"

#include <string.h>

#include "pprof/gzip.h"
#include "symbols/profile.h"

struct sv named_plain(const struct store_body *body, struct scratch *scratch, struct sv plain)
{
    const struct store_names *names = body->names;
    if (names == NULL || !symbol_profile_may_lack(plain)) {
        return plain;
    }
    struct buf out;
    struct sv ret = plain;
    buf_init(&out, SCRATCH_BUF_MAX);
    if (names->name(names->arg, plain, body->names_until_ms, &out)) {
        char *copy = scratch_array(scratch, out.len, 1);
        if (copy != NULL) {
            memcpy(copy, out.data, out.len);
            ret = (struct sv){copy, out.len};
        }
    }
    buf_done(&out);
    return ret;
}

struct sv named_data(const struct store_body *body, struct scratch *scratch)
{
    struct sv plain;
    if (body->names == NULL || body->format != PROFILE_PPROF ||
        !gzip_plain(scratch, body->data, SCRATCH_BUF_MAX, gzip_claim(body->data), &plain, NULL)) {
        return body->data;
    }
    struct sv named = named_plain(body, scratch, plain);
    return named.p == plain.p ? body->data : named;
}
