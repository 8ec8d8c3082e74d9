/* Stacks as text: "application\ntext", where the first byte of the application chooses whether the
 * lines have counts. What is converted is a good profile. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/receive/folded.h"
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
    struct sv in = {(const char *)data, size};
    struct sv app;
    struct sv text;
    struct sv service;
    struct err err = ERR_INIT;
    struct buf out;
    size_t samples;
    if (!sv_cut(in, '\n', &app, &text) || app.n == 0) {
        return 0;
    }
    const struct folded_input input = {
        .text = text,
        .counted = app.p[0] != 'l',
        .o = {.type = frames_type_of(sv_skip(app, 1), &service),
              .sample_rate = app.p[0] == 'l' ? 1 : 100},
    };
    if (input.o.type == NULL) {
        return 0;
    }
    buf_init(&out, (size_t)1 << 20);
    if (folded_convert(&input, &out, &samples, &err)) {
        check_profile(&out, samples);
    } else {
        REQUIRE(err.kind != ERR_NONE);
    }
    buf_done(&out);
    return 0;
}
