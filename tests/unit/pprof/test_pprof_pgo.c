/* Profiles that the Go compiler would refuse. */
#include "tests/unit/lib/testing.h"

#include "pprof/pgo.h"
#include "tests/unit/lib/pprof_writer.h"

#define PROFILE_MAX ((size_t)64 * 1024)

/* A profile with one sample type, perhaps a sample, and a function. */
static struct buf make(const char *type, const char *unit, bool sample, uint64_t start_line)
{
    struct buf out = testing_buf(PROFILE_MAX);
    SCOPED(buf) m = testing_buf(PROFILE_MAX);
    put_num(&m, 1, 1);
    put_num(&m, 2, 2);
    put_sub(&out, 1, &m);
    if (sample) {
        put_num(&m, 2, 7);
        put_sub(&out, 2, &m);
    }
    put_num(&m, 1, 1);
    put_num(&m, 2, 3);
    if (start_line > 0) {
        put_num(&m, 5, start_line);
    }
    put_sub(&out, 5, &m);
    const char *const strings[] = {"", type, unit, "main.main"};
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        put_msg(&out, 6, strings[i], strlen(strings[i]));
    }
    assert_true(buf_ok(&out));
    return out;
}

TEST(only_what_the_compiler_takes_passes)
{
    static const struct {
        const char *type, *unit;
        bool sample;
        uint64_t start_line;
        const char *problem;
    } cases[] = {
        {"cpu", "nanoseconds", true, 5, ""},
        {"samples", "count", true, 5, ""},
        {"cpu", "nanoseconds", true, 0, "no function of the profile says at which line it starts"},
        {"cpu", "nanoseconds", false, 5, "the profile has no samples"},
        {"inuse_space", "bytes", true, 5,
         "expected samples/count or cpu/nanoseconds, got inuse_space/bytes"},
        {"cpu", "count", true, 5, "got cpu/count"},
    };
    SCOPED(scratch) *scratch = scratch_new();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        size_t samples = 99;
        SCOPED(buf) body = make(cases[i].type, cases[i].unit, cases[i].sample, cases[i].start_line);
        bool ok = pgo_check(scratch, (struct sv){body.data, body.len}, PROFILE_MAX, &samples, &err);
        CHECK_INT(ok, cases[i].problem[0] == '\0', cases[i].problem);
        CHECK_CONTAINS(err.msg, cases[i].problem, cases[i].problem);
        CHECK_INT(samples, cases[i].sample, cases[i].problem);
        CHECK_INT(err.kind, ok ? ERR_NONE : ERR_INPUT, cases[i].problem);
    }
}

TEST(what_is_no_profile_is_an_error)
{
    struct err err = ERR_INIT;
    SCOPED(scratch) *scratch = scratch_new();
    assert_false(pgo_check(scratch, SV("hello"), PROFILE_MAX, NULL, &err));
    assert_int_equal(err.kind, ERR_INPUT);
    assert_false(pgo_check(scratch,
                           SV("\x1f\x8b"
                              "broken"),
                           PROFILE_MAX, NULL, &err));
}
