#include "api/attime.h"

#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"

/* Limit of a text that can be a time. */
#define TEXT_MAX 64
#define DAY_S (INT64_C(24) * 3600)

struct unit {
    const char *name;
    int64_t seconds;
};

static const struct unit units[] = {
    {"s", 1},         {"m", 60},           {"min", 60},       {"h", 3600},        {"d", DAY_S},
    {"w", 7 * DAY_S}, {"mon", 30 * DAY_S}, {"M", 30 * DAY_S}, {"y", 365 * DAY_S},
};

/* Copies a text without the characters that are ignored. Returns its length; 0 if the text is too
 * long. */
static size_t squeeze(struct sv text, char out[TEXT_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '_' && text.p[i] != ',' && text.p[i] != ' ') {
            if (n == TEXT_MAX) {
                return 0;
            }
            out[n++] = text.p[i];
        }
    }
    return n;
}

static bool read_date(struct sv v, int64_t *ret_ns)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%.4s-%.2s-%.2sT00:00:00Z", v.p, v.p + 4, v.p + 6);
    struct sv rest = sv_from(text);
    return memcmp(v.p, "1900", 4) > 0 && clock_take_rfc3339(&rest, 0, ret_ns) && rest.n == 0;
}

static bool read_digits(struct sv v, int64_t *ret_ns)
{
    uint64_t number;
    int64_t unit = v.n == 13 ? NS_PER_MS : v.n == 16 ? 1000 : v.n == 19 ? 1 : NS_PER_S;
    if (v.n == 8 && read_date(v, ret_ns)) {
        return true;
    }
    if (!parse_u64(v, (uint64_t)(INT64_MAX / unit), &number)) {
        return false;
    }
    *ret_ns = (int64_t)number * unit;
    return true;
}

static int64_t seconds_of(struct sv unit)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (sv_eq_str(unit, units[i].name)) {
            return units[i].seconds;
        }
    }
    return 0;
}

/* Reads the offset of a time: "-1h" of "now-1h". */
static bool read_offset(struct sv v, int64_t now_ns, int64_t *ret_ns)
{
    uint64_t number;
    size_t digits = 0;
    int64_t offset;
    bool minus = v.n > 0 && v.p[0] == '-';
    if (v.n < 2 || (!minus && v.p[0] != '+')) {
        return false;
    }
    v = sv_skip(v, 1);
    while (digits < v.n && ascii_is_digit(v.p[digits])) {
        digits++;
    }
    int64_t seconds = seconds_of(sv_skip(v, digits));
    return seconds > 0 && parse_u64((struct sv){v.p, digits}, INT64_MAX, &number) &&
           !__builtin_mul_overflow((int64_t)number, seconds * NS_PER_S, &offset) &&
           !__builtin_add_overflow(now_ns, minus ? -offset : offset, ret_ns);
}

static bool all_digits(struct sv v)
{
    size_t n = 0;
    while (n < v.n && ascii_is_digit(v.p[n])) {
        n++;
    }
    return n > 0 && n == v.n;
}

int64_t attime_read(struct sv text, int64_t now_ns)
{
    char squeezed[TEXT_MAX];
    struct sv v = {squeezed, squeeze(sv_trim(text), squeezed)};
    int64_t ns = now_ns;
    bool ok = all_digits(v)
                  ? read_digits(v, &ns)
                  : sv_starts_with(v, SV("now")) && read_offset(sv_skip(v, 3), now_ns, &ns);
    return ok ? ns : now_ns;
}
