/* Clocks, RFC 3339 and the random generator. */
#include "tests/unit/lib/testing.h"

#include "base/clock.h"

TEST(formats_times)
{
    static const struct {
        int64_t ns;
        const char *want;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {INT64_C(999999), "1970-01-01T00:00:00.000Z"},
        {INT64_C(1000000), "1970-01-01T00:00:00.001Z"},
        {INT64_C(-1), "1969-12-31T23:59:59.999Z"},
        {INT64_C(-1000000), "1969-12-31T23:59:59.999Z"},
        {INT64_C(-1000000001), "1969-12-31T23:59:58.999Z"},
        {INT64_C(951827696000000000), "2000-02-29T12:34:56.000Z"},
        {INT64_C(1795231414123999999), "2026-11-21T03:23:34.123Z"},
        {INT64_MAX, "2262-04-11T23:47:16.854Z"},
        {INT64_MIN, "1677-09-21T00:12:43.145Z"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[25];
        clock_format_rfc3339(cases[i].ns, text, sizeof(text));
        CHECK_STR(text, cases[i].want, cases[i].want);
    }
}

TEST(takes_times)
{
    static const struct {
        const char *text;
        size_t fraction_max;
        bool ok;
        int64_t ns;
        const char *rest;
    } cases[] = {
        {"2026-11-21T03:23:34Z", 9, true, 1795231414 * NS_PER_S, ""},
        {"2026-11-21t04:23:34.25+01:00, or so", 9, true, 1795231414 * NS_PER_S + NS_PER_S / 4,
         ", or so"},
        {"2026-11-20 22:53:34-0430", 9, true, 1795231414 * NS_PER_S, ""},
        {"1970-01-01T00:00:00+00:01", 9, true, -60 * NS_PER_S, ""},
        {"9999-12-31T23:59:59Z", 9, true, INT64_MAX, ""},
        {"2026-11-21T03:23:34.12345678987z", SIZE_MAX, true, 1795231414 * NS_PER_S + 123456789, ""},
        {"2026-11-21T03:23:34.12345678987Z", 9, false, 0, ""},
        {"2026-11-21T03:23:34.Z", 9, false, 0, ""},
        {"2026-11-21T03:23:34", 9, false, 0, ""},
        {"2026-11-21_03:23:34Z", 9, false, 0, ""},
        {"2026-11- 1T03:23:34Z", 9, false, 0, ""},
        {"2026-11-1T03:23:34ZZ", 9, false, 0, ""},
        {"2026-11-21T03:23:34+24:00", 9, false, 0, ""},
        {"2026-11-21T03:23:34+01:60", 9, false, 0, ""},
        {"2026-11-21T03:23:34+01", 9, false, 0, ""},
        {"1969-12-31T23:59:59Z", 9, false, 0, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sv v = sv_from(cases[i].text);
        int64_t ns = 0;
        CHECK_INT(clock_take_rfc3339(&v, cases[i].fraction_max, &ns), cases[i].ok, cases[i].text);
        if (cases[i].ok) {
            CHECK_INT(ns, cases[i].ns, cases[i].text);
            CHECK_STR(v.p, cases[i].rest, cases[i].text);
        }
    }
}

TEST(clocks_agree)
{
    int64_t a = clock_mono_ns();
    int64_t b = clock_mono_ns();
    assert_true(a > 0 && b >= a);
    assert_true(clock_mono_ms() >= b / NS_PER_MS);
    /* Later than this file, and far from overflow. */
    assert_true(clock_wall_ns() > INT64_C(1700000000) * NS_PER_S);
    int64_t before = clock_wall_ns() - clock_mono_ns();
    int64_t offset = clock_wall_offset_ns();
    /* Apart by what passed between the readings, and by steps of the wall clock: minutes at most.
     */
    assert_true(offset - before < 600 * NS_PER_S && before - offset < 600 * NS_PER_S);
}

TEST(random_repeats_by_seed)
{
    struct rng a;
    struct rng b;
    struct rng c;
    rng_seed(&a, 42);
    rng_seed(&b, 42);
    rng_seed(&c, 43);
    for (int i = 0; i < 100; i++) {
        uint64_t x = rng_next(&a);
        assert_true(x == rng_next(&b));
        assert_true(x != rng_next(&c));
    }
    rng_seed_random(&a);
    rng_seed_random(&b);
    assert_true(rng_next(&a) != rng_next(&b));
}

TEST(ranges_hold)
{
    struct rng r;
    rng_seed(&r, 7);
    CHECK_INT(rng_range(&r, 5, 5), 5, "");
    CHECK_INT(rng_range(&r, 5, 4), 5, "");
    CHECK_INT(rng_range(&r, 5, 6), 5, "");
    CHECK_INT(rng_range(&r, INT64_MIN, INT64_MIN + 1), INT64_MIN, "");
    bool negative = false;
    bool positive = false;
    for (int i = 0; i < 100; i++) {
        int64_t x = rng_range(&r, INT64_MIN, INT64_MAX);
        assert_true(x < INT64_MAX);
        negative = negative || x < 0;
        positive = positive || x > 0;
    }
    assert_true(negative && positive);
}

TEST(ranges_are_uniform)
{
    enum { DRAWS = 70000, SIDES = 7 };
    unsigned seen[SIDES] = {0};
    struct rng r;
    rng_seed(&r, 7);
    for (int i = 0; i < DRAWS; i++) {
        int64_t x = rng_range(&r, -3, 4);
        assert_true(x >= -3 && x < 4);
        seen[x + 3]++;
    }
    for (int i = 0; i < SIDES; i++) {
        assert_in_range(seen[i], DRAWS / SIDES - 470, DRAWS / SIDES + 470);
    }
}
