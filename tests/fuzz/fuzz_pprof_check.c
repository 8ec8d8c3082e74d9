/* Any bytes as a whole profile: the checker, the index, and gzip around it. The index must
 * walk every profile that passes the checker without a fault; check and index in one walk must give
 * the same; and what is compressed must come back. */
#include <string.h>

#include "pprof/gzip.h"
#include "pprof/index.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/pprof/pprof_frame.h"

#define PLAIN_MAX ((size_t)1 << 20)

static void look(struct scratch *s, struct sv plain)
{
    struct pprof_summary summary;
    struct pprof_index x;
    struct err err = ERR_INIT;
    if (frame_difference(plain) != NULL) {
        abort();
    }
    if (!pprof_check(plain, &summary, &err)) {
        if (err.msg[0] == '\0') {
            abort();
        }
        return;
    }
    if (pprof_index(&x, s, plain, &summary, 1, &err)) {
        for (size_t i = 0; i < summary.n[PROFILE_STRING]; i++) {
            struct sv text = pprof_string(&x, i);
            if (text.n > plain.n) {
                abort();
            }
        }
    } else if (err.msg[0] == '\0') {
        abort();
    }
}

static void there_and_back(struct scratch *s, struct sv plain)
{
    struct sv packed;
    struct sv again;
    struct err err = ERR_INIT;
    if (!gzip_deflate(s, plain, &packed) || !gzip_inflate(s, packed, plain.n, 0, &again, &err) ||
        again.n != plain.n || memcmp(again.p, plain.p, plain.n) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv body = {.p = (const char *)data, .n = size};
    struct err err = ERR_INIT;
    struct sv plain;
    if (size == 0) {
        return 0;
    }
    struct scratch *s = scratch_new();
    if (s == NULL) {
        abort();
    }
    if (!gzip_is(body)) {
        there_and_back(s, body);
        look(s, body);
    } else if (gzip_inflate(s, body, PLAIN_MAX, 0, &plain, &err)) {
        look(s, plain);
    }
    scratch_free(s);
    return 0;
}
