/* Files of speedscope. Each profile that is made is a good one. */
#include "api/receive/speedscope.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/good_profile.h"

FUZZ(in)
{
    struct sv service;
    struct err err = ERR_INIT;
    struct speedscope_profile p;
    const struct frames_options o = {.type = frames_type_of(SV("a"), &service), .sample_rate = 100};
    struct speedscope *s = speedscope_new(in, &err);
    REQUIRE((s != NULL) == (err.kind == ERR_NONE));
    while (s != NULL && err.kind == ERR_NONE && speedscope_next(s, &p)) {
        struct buf out;
        buf_init(&out, (size_t)1 << 20);
        bool ok = speedscope_convert(s, &o, &out, &p, &err);
        REQUIRE(ok == (err.kind == ERR_NONE));
        if (ok) {
            require_good_profile(&out, p.samples);
        }
        buf_done(&out);
    }
    speedscope_free(s);
}
