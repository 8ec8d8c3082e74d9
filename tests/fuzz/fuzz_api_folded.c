/* Stacks as text: "application\ntext", where the first byte of the application chooses whether the
 * lines have counts. What is converted is a good profile. */
#include "api/receive/folded.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/good_profile.h"

FUZZ(in)
{
    struct sv app;
    struct sv text;
    struct sv service;
    struct err err = ERR_INIT;
    struct buf out;
    size_t samples;
    if (!sv_cut(in, '\n', &app, &text) || app.n == 0) {
        return;
    }
    const struct folded_input input = {
        .text = text,
        .counted = app.p[0] != 'l',
        .o = {.type = frames_type_of(sv_skip(app, 1), &service),
              .sample_rate = app.p[0] == 'l' ? 1 : 100},
    };
    if (input.o.type == NULL) {
        return;
    }
    buf_init(&out, (size_t)1 << 20);
    if (folded_convert(&input, &out, &samples, &err)) {
        require_good_profile(&out, samples);
    } else {
        REQUIRE(err.kind != ERR_NONE);
    }
    buf_done(&out);
}
