#include "cli/parse_time.h"

#include <string.h>
#include <time.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/str.h"

#define SECONDS_MAX UINT64_C(9223372036)

static bool two_digits(const char *p, int max, int *ret)
{
    uint64_t v = 0;
    bool ok = strlen(p) >= 2 && parse_u64((struct sv){.p = p, .n = 2}, (uint64_t)max, &v);
    *ret = (int)v;
    return ok;
}

/* "Z", "+01:00", "-0330"; in seconds. */
static bool parse_zone(const char *p, int64_t *ret_s)
{
    int hours;
    int minutes;
    *ret_s = 0;
    if (strcmp(p, "Z") == 0 || strcmp(p, "z") == 0) {
        return true;
    }
    if ((p[0] != '+' && p[0] != '-') || !two_digits(p + 1, 23, &hours)) {
        return false;
    }
    const char *rest = p + 3 + (p[3] == ':');
    if (!two_digits(rest, 59, &minutes) || rest[2] != '\0') {
        return false;
    }
    *ret_s = (p[0] == '-' ? -1 : 1) * (hours * INT64_C(3600) + minutes * INT64_C(60));
    return true;
}

/* ".123456": at most nine digits; moves *p past them. */
static bool parse_fraction(const char **p, int64_t *ret_ns)
{
    int64_t unit = NS_PER_S;
    *ret_ns = 0;
    if (**p != '.') {
        return true;
    }
    const char *first = ++*p;
    for (; ascii_is_digit(**p) && unit > 1; ++*p) {
        unit /= 10;
        *ret_ns += (**p - '0') * unit;
    }
    return *p != first;
}

static bool parse_rfc3339(const char *text, int64_t *ret_ns)
{
    struct tm tm = {0};
    int64_t fraction;
    int64_t zone;
    const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (p == NULL || tm.tm_year < 70 || tm.tm_year > 300 || !parse_fraction(&p, &fraction) ||
        !parse_zone(p, &zone)) {
        return false;
    }
    int64_t seconds = (int64_t)timegm(&tm) - zone;
    if (seconds < 0 || seconds > (int64_t)SECONDS_MAX) {
        return false;
    }
    *ret_ns = seconds * NS_PER_S + fraction;
    return true;
}

bool parse_time(const char *text, int64_t *ret_ns, struct err *err)
{
    uint64_t seconds;
    if (parse_u64(sv_from(text), SECONDS_MAX - 1, &seconds)) {
        *ret_ns = (int64_t)seconds * NS_PER_S;
        return true;
    }
    return parse_rfc3339(text, ret_ns) ||
           err_set(err, ERR_INPUT,
                   "expected a time such as \"2026-11-21T03:23:34Z\", or seconds since 1970, got "
                   "\"%s\"",
                   text);
}
