/* Checks that a profile that profpull has made is a good one. */
#ifndef PROFPULL_TESTS_GOOD_PROFILE_H
#define PROFPULL_TESTS_GOOD_PROFILE_H

#include "base/buf.h"
#include "pprof/check.h"
#include "pprof/index.h"
#include "tests/fuzz/fuzz.h"

static inline void require_good_profile(const struct buf *out, size_t samples)
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

#endif
