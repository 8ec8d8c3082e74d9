#include "pages/rate.h"

#include <math.h>

struct scale {
    double least;
    const char *prefix;
};

static const struct {
    const char *name;   /* in JSON and beside axes */
    const char *suffix; /* after a number */
    bool is_binary;
} units[RATE_UNITS] = {
    [RATE_CORES] = {"cores", "cores", false},  [RATE_SECONDS] = {"s/s", "s/s", false},
    [RATE_BYTES] = {"bytes/s", "B/s", true},   [RATE_COUNT] = {"/s", "/s", false},
    [RATE_LEVEL_BYTES] = {"bytes", "B", true}, [RATE_LEVEL_COUNT] = {"", "", false},
};

enum rate_unit rate_unit_of(const struct profile_type *type)
{
    bool is_level = query_measure_of(type) == MEASURE_LEVEL;
    if (sv_eq_str(type->sample_unit, "bytes")) {
        return is_level ? RATE_LEVEL_BYTES : RATE_BYTES;
    }
    if (sv_eq_str(type->sample_unit, "nanoseconds") && !is_level) {
        return sv_eq_str(type->sample_type, "cpu") ? RATE_CORES : RATE_SECONDS;
    }
    return is_level ? RATE_LEVEL_COUNT : RATE_COUNT;
}

double rate_factor(const struct profile_type *type)
{
    enum rate_unit unit = rate_unit_of(type);
    return unit == RATE_CORES || unit == RATE_SECONDS ? 1e-9 : 1;
}

const char *rate_unit_name(enum rate_unit unit)
{
    return units[unit].name;
}

/* Appends a number with about three digits: "0.042", "1.25", "12.5", "125". */
static void put_digits(struct buf *out, double number)
{
    double size = fabs(number);
    int digits = size >= 100 || floor(size) == size ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3;
    buf_printf(out, "%.*f", digits, number);
}

static void put_scaled(struct buf *out, double value, const struct scale *scales, size_t n,
                       const char *suffix)
{
    size_t i = 0;
    while (i + 1 < n && fabs(value) < scales[i].least) {
        i++;
    }
    put_digits(out, value / scales[i].least);
    bool is_plain = suffix[0] == '\0' && scales[i].prefix[0] == '\0';
    /* "12 /s" would read as a division of nothing: "12/s". */
    bool is_joined = is_plain || (suffix[0] == '/' && scales[i].prefix[0] == '\0');
    buf_printf(out, "%s%s%s", is_joined ? "" : " ", scales[i].prefix, suffix);
}

void rate_put(struct buf *out, double value, enum rate_unit unit)
{
    static const struct scale bytes[] = {
        {1099511627776.0, "Ti"}, {1073741824, "Gi"}, {1048576, "Mi"}, {1024, "Ki"}, {1, ""}};
    static const struct scale counts[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
    static const struct scale ones[] = {{1, ""}};
    if (isnan(value)) {
        buf_puts(out, "–");
    } else if ((unit == RATE_CORES || unit == RATE_SECONDS) && value > 0 && value < 0.001) {
        buf_printf(out, "&lt;0.001 %s", units[unit].suffix);
    } else if (unit == RATE_CORES || unit == RATE_SECONDS) {
        put_scaled(out, value, ones, 1, units[unit].suffix);
    } else if (units[unit].is_binary) {
        put_scaled(out, value, bytes, sizeof(bytes) / sizeof(bytes[0]), units[unit].suffix);
    } else {
        put_scaled(out, value, counts, sizeof(counts) / sizeof(counts[0]), units[unit].suffix);
    }
}

double rate_axis_end(double most, enum rate_unit unit)
{
    static const double steps[] = {1, 2, 5, 10};
    if (!(most > 0) || !isfinite(most)) {
        return 1;
    }
    if (units[unit].is_binary) {
        return exp2(ceil(log2(most)));
    }
    double base = pow(10, floor(log10(most)));
    size_t i = 0;
    /* 3 * 0.1 is above 0.3. */
    while (i + 1 < sizeof(steps) / sizeof(steps[0]) && steps[i] * base < most * (1 - 1e-9)) {
        i++;
    }
    return steps[i] * base;
}
