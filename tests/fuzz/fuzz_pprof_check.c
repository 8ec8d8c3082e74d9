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
    REQUIRE(frame_difference(plain) == NULL);
    if (!pprof_check(plain, &summary, &err)) {
        REQUIRE(err.msg[0] != '\0');
        return;
    }
    if (pprof_index(&x, s, plain, &summary, 1, &err)) {
        for (size_t i = 0; i < summary.n[PROFILE_STRING]; i++) {
            struct sv text = pprof_string(&x, i);
            REQUIRE(text.n <= plain.n);
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
    REQUIRE(gzip_deflate(s, plain, &packed) && gzip_inflate(s, packed, plain.n, 0, &again, &err) &&
            again.n == plain.n && memcmp(again.p, plain.p, plain.n) == 0);
}

FUZZ(body)
{
    struct err err = ERR_INIT;
    struct sv plain;
    if (body.n == 0) {
        return;
    }
    struct scratch *s = scratch_new();
    REQUIRE(s != NULL);
    if (!gzip_is(body)) {
        there_and_back(s, body);
        look(s, body);
    } else if (gzip_inflate(s, body, PLAIN_MAX, 0, &plain, &err)) {
        look(s, plain);
    }
    scratch_free(s);
}
