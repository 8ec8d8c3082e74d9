/* Numbers with units, axes and pictures of what profiles say over time. */
#include <math.h>

#include "pages/chart.h"
#include "pages/rate.h"
#include "tests/unit/lib/testing.h"

#define NONE ((double)NAN)

TEST(rates_are_read_by_people)
{
    static const struct {
        double value;
        enum rate_unit unit;
        const char *text;
    } rows[] = {
        {0, RATE_CORES, "0 cores"},
        {0.0004, RATE_CORES, "&lt;0.001 cores"},
        {0.0421, RATE_CORES, "0.042 cores"},
        {0.75, RATE_CORES, "0.75 cores"},
        {12.34, RATE_CORES, "12.3 cores"},
        {1234, RATE_CORES, "1234 cores"},
        {1.5, RATE_SECONDS, "1.50 s/s"},
        {0, RATE_BYTES, "0 B/s"},
        {1536, RATE_BYTES, "1.50 KiB/s"},
        {3e9, RATE_BYTES, "2.79 GiB/s"},
        {20 * 1048576.0, RATE_LEVEL_BYTES, "20 MiB"},
        {12, RATE_COUNT, "12/s"},
        {1234567, RATE_COUNT, "1.23 M/s"},
        {1060, RATE_LEVEL_COUNT, "1.06 k"},
        {7, RATE_LEVEL_COUNT, "7"},
        {NONE, RATE_CORES, "–"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) out = testing_buf(64);
        rate_put(&out, rows[i].value, rows[i].unit);
        CHECK_STR(out.data, rows[i].text, rows[i].text);
    }
}

TEST(types_have_units)
{
    static const struct {
        const char *id, *unit;
        double factor;
    } rows[] = {
        {"process_cpu:cpu:nanoseconds:cpu:nanoseconds", "cores", 1e-9},
        {"mutex:delay:nanoseconds:contentions:count", "s/s", 1e-9},
        {"memory:alloc_space:bytes:space:bytes", "bytes/s", 1},
        {"memory:inuse_space:bytes:space:bytes", "bytes", 1},
        {"memory:alloc_objects:count:space:bytes", "/s", 1},
        {"goroutine:goroutine:count:goroutine:count", "", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct profile_type type;
        assert_true(profile_type_parse(sv_from(rows[i].id), &type, NULL));
        CHECK_STR(rate_unit_name(rate_unit_of(&type)), rows[i].unit, rows[i].id);
        assert_true(rate_factor(&type) == rows[i].factor);
    }
}

TEST(axes_end_at_round_numbers)
{
    static const struct {
        double most;
        enum rate_unit unit;
        double end;
    } rows[] = {
        {0, RATE_CORES, 1},       {NONE, RATE_CORES, 1},    {0.3, RATE_CORES, 0.5},
        {1, RATE_CORES, 1},       {1.01, RATE_CORES, 2},    {5, RATE_CORES, 5},
        {5.1, RATE_CORES, 10},    {4200, RATE_COUNT, 5000}, {1024, RATE_BYTES, 1024},
        {1025, RATE_BYTES, 2048}, {3, RATE_LEVEL_BYTES, 4},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double end = rate_axis_end(rows[i].most, rows[i].unit);
        if (fabs(end - rows[i].end) > 1e-9 * rows[i].end) {
            fail_msg("row %zu: %g, expected %g", i, end, rows[i].end);
        }
    }
}

TEST(sparklines_have_gaps)
{
    const double values[] = {0, 5, NONE, 10, NONE};
    SCOPED(buf) out = testing_buf(4096);
    chart_spark(&out, values, 5, "CPU: 0 to 10");
    assert_string_equal(
        out.data,
        "<svg class=\"spark\" viewBox=\"0 0 120 28\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"CPU: 0 to 10\"><title>CPU: 0 to 10</title>"
        "<path d=\"M0.0 26.5L30.0 14.0M90.0 1.5h30.0\"/></svg>");
    buf_clear(&out);
    chart_spark(&out, values, 0, "nothing");
    CHECK_CONTAINS(out.data, "<path d=\"\"/>", "nothing");
    buf_clear(&out);
    chart_spark(&out, values + 3, 1, "one");
    CHECK_CONTAINS(out.data, "<path d=\"M0.0 1.5h120.0\"/>", "one");
}

TEST(bars_stand_on_the_axis)
{
    const double values[] = {0, 5, NONE, 20};
    const struct chart_mark marks[] = {{0.5}};
    SCOPED(buf) out = testing_buf(4096);
    chart_bars(&out, values, 4, 10, marks, 1, "over time");
    assert_string_equal(
        out.data,
        "<svg class=\"bars\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"over time\"><path class=\"grid\" d=\"M0 0.5H1000M0 50H1000\"/>"
        "<path class=\"bar\" d=\"M0.0 99.0h212.5v1.0h-212.5zM250.0 50.0h212.5v50.0h-212.5z"
        "M750.0 0.0h212.5v100.0h-212.5z\"/><path class=\"mark\" d=\"M500.0 0V100\"/></svg>");
}
