/* Old profiles: whatever the input, the result is a whole pprof profile or an error. */
#include "pprof/gzip.h"
#include "pprof/index.h"
#include "pprof/legacy/legacy.h"
#include "pprof/sniff.h"
#include "tests/fuzz/fuzz.h"

static void check_output(const struct legacy_output *out)
{
    struct err err = ERR_INIT;
    struct sv plain;
    struct pprof_summary summary;
    struct pprof_index x;
    struct scratch *s = scratch_new();
    REQUIRE(s != NULL);
    REQUIRE(sniff_profile((struct sv){out->data, out->size}, &err) == SNIFF_PPROF_GZIP);
    struct sv zipped = {out->data, out->size};
    REQUIRE(gzip_inflate(s, zipped, (size_t)1 << 27, 0, &plain, &err));
    REQUIRE(pprof_check(plain, &summary, &err));
    REQUIRE(pprof_index(&x, s, plain, &summary, 1, &err));
    REQUIRE(summary.time_ns == 5 &&
            (summary.n[PROFILE_SAMPLE_TYPE] == 2 || summary.n[PROFILE_SAMPLE_TYPE] == 4));
    scratch_free(s);
}

FUZZ(input)
{
    struct err err = ERR_INIT;
    struct legacy_output out;
    struct legacy_input in = {
        .body = {input.p, input.n}, .time_ns = 5, .duration_ns = 7, .seed = 3};
    in.scratch = scratch_new();
    enum legacy_result r = legacy_convert(&in, &out, &err);
    scratch_free(in.scratch);
    REQUIRE((r == LEGACY_MADE) == (err.kind == ERR_NONE));
    REQUIRE((r == LEGACY_MADE) == (out.data != NULL));
    if (r == LEGACY_MADE) {
        /* A body that can be converted is recognised. (Of the header of a gzip the checker reads
         * more than what inflates it afterwards.) */
        REQUIRE(gzip_is(in.body) || sniff_profile(in.body, NULL) == SNIFF_LEGACY);
        check_output(&out);
    }
    free(out.data);
}
