/* Files of speedscope. Each profile that is made is a good one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/receive/speedscope.h"
#include "pprof/check.h"
#include "pprof/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void check_profile(const struct buf *out, size_t samples)
{
    struct err err = ERR_INIT;
    struct pprof_summary summary;
    struct pprof_index index;
    struct sv plain = {out->data, out->len};
    struct scratch *scratch = scratch_new();
    REQUIRE(pprof_check(plain, &summary, &err));
    REQUIRE(summary.n[PROFILE_SAMPLE] == samples);
    REQUIRE(pprof_index(&index, scratch, plain, &summary, 1, &err));
    scratch_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv service;
    struct err err = ERR_INIT;
    struct speedscope_profile p;
    const struct frames_options o = {.type = frames_type_of(SV("a"), &service), .sample_rate = 100};
    struct speedscope *s = speedscope_new((struct sv){(const char *)data, size}, &err);
    REQUIRE((s != NULL) == (err.kind == ERR_NONE));
    while (s != NULL && err.kind == ERR_NONE && speedscope_next(s, &p)) {
        struct buf out;
        buf_init(&out, (size_t)1 << 20);
        bool ok = speedscope_convert(s, &o, &out, &p, &err);
        REQUIRE(ok == (err.kind == ERR_NONE));
        if (ok) {
            check_profile(&out, p.samples);
        }
        buf_done(&out);
    }
    speedscope_free(s);
    return 0;
}
