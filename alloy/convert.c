#include "alloy/convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The longest duration, as in Go: about 292 years. */
#define DURATION_MAX ((double)INT64_MAX)
#define SHOWN_MAX 60

static const struct alloy_value empty_string = {.kind = VALUE_STRING, .text = {.p = "", .n = 0}};
static const struct alloy_value empty_array = {.kind = VALUE_ARRAY};
static const struct alloy_value empty_object = {.kind = VALUE_OBJECT};

static bool mismatch(struct alloy_eval *ev, struct config_place place, const char *what,
                     const struct alloy_value *v)
{
    (void)alloy_mismatch(ev, place, what, v);
    return false;
}

/* A text, quoted for a message. */
#define SHOWN(text) (int)((text).n < SHOWN_MAX ? (text).n : SHOWN_MAX), (text).p

static const struct alloy_value *number_text(struct alloy_eval *ev, struct config_place place,
                                             struct alloy_number n)
{
    struct buf text;
    buf_init(&text, ALLOY_STRING_MAX);
    const char *copy =
        alloy_number_put(n, &text) ? arena_strndup(ev->arena, text.data, text.len) : NULL;
    size_t len = text.len;
    buf_done(&text);
    return alloy_made(ev, place,
                      copy != NULL ? alloy_string(ev->arena, (struct sv){copy, len}) : NULL);
}

bool alloy_as_string(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                     const struct alloy_value **ret_string)
{
    switch (v->kind) {
    case VALUE_STRING:
        *ret_string = v;
        return true;
    case VALUE_BYTES:
        *ret_string = alloy_made(ev, place, alloy_string(ev->arena, v->text));
        return (*ret_string)->kind == VALUE_STRING;
    case VALUE_NUMBER:
        *ret_string = number_text(ev, place, v->number);
        return (*ret_string)->kind == VALUE_STRING;
    case VALUE_NULL:
        *ret_string = &empty_string;
        return true;
    case VALUE_SECRET:
        (void)alloy_fail(ev, place,
                         "expected a string, got a secret; convert.nonsensitive() makes "
                         "a string of it");
        return false;
    default:
        return mismatch(ev, place, "a string", v);
    }
}

bool alloy_as_secret(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                     const struct alloy_value **ret_string)
{
    if (v->kind == VALUE_STRING || v->kind == VALUE_SECRET) {
        *ret_string = v;
        return true;
    }
    *ret_string = &empty_string;
    return v->kind == VALUE_NULL || mismatch(ev, place, "a string or a secret", v);
}

bool alloy_as_int(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                  int64_t *ret_value)
{
    struct alloy_number n;
    if (v->kind == VALUE_NUMBER) {
        n = v->number;
    } else if (v->kind != VALUE_STRING) {
        return mismatch(ev, place, "a number", v);
    } else if (!alloy_number_parse(v->text, &n)) {
        (void)alloy_fail(ev, place, "expected a number, got \"%.*s\"", SHOWN(v->text));
        return false;
    }
    double whole = trunc(alloy_number_float(n));
    if (n.kind == NUMBER_UINT || (n.kind == NUMBER_FLOAT && !(fabs(whole) < DURATION_MAX))) {
        (void)alloy_fail(ev, place, "expected a number of 64 bits, got %.17g", whole);
        return false;
    }
    *ret_value = n.kind == NUMBER_INT ? n.i : (int64_t)whole;
    return true;
}

bool alloy_as_bool(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                   bool *ret_value)
{
    *ret_value = v->kind == VALUE_BOOL && v->truth;
    if (v->kind == VALUE_STRING) {
        (void)alloy_fail(ev, place, "expected true or false, got \"%.*s\"", SHOWN(v->text));
        return false;
    }
    return v->kind == VALUE_BOOL || v->kind == VALUE_NULL ||
           mismatch(ev, place, "true or false", v);
}

/* ---- durations ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    double ns;
} units[] = {
    {"ns", 1},          {"us", 1e3}, {"\xc2\xb5s", 1e3}, /* the micro sign */
    {"\xce\xbcs", 1e3},                                  /* the Greek letter */
    {"ms", 1e6},        {"s", 1e9},  {"m", 60e9},        {"h", 3600e9},
};

#define N_UNITS (sizeof(units) / sizeof(units[0]))

/* Returns the length of the number (digits and a point) at the start of v; 0 if there is no
 * digit. */
static size_t number_length(struct sv v)
{
    size_t n = 0;
    size_t digits = 0;
    size_t points = 0;
    for (; n < v.n && points < 2; n++) {
        bool digit = v.p[n] >= '0' && v.p[n] <= '9';
        if (!digit && v.p[n] != '.') {
            break;
        }
        digits += digit;
        points += !digit;
    }
    return digits > 0 && points < 2 ? n : 0;
}

static double digits_value(struct sv v)
{
    double value = 0;
    double scale = 0;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] == '.') {
            scale = 1;
            continue;
        }
        value = value * 10 + (v.p[i] - '0');
        scale *= 10;
    }
    return scale > 0 ? value / scale : value;
}

/* Returns the index in units[] of the unit at the start of v, and its length; if v begins with no
 * unit, the number of units. */
static size_t find_unit(struct sv v, size_t *ret_len)
{
    size_t len = 0;
    size_t i = 0;
    while (len < v.n && v.p[len] != '.' && (v.p[len] < '0' || v.p[len] > '9')) {
        len++;
    }
    while (i < N_UNITS && !sv_eq_str((struct sv){v.p, len}, units[i].name)) {
        i++;
    }
    *ret_len = len;
    return i;
}

/* Parses a duration. Returns NULL and sets *ret_ns, or returns what is wrong. */
static const char *parse_parts(struct sv text, double *ret_ns)
{
    while (text.n > 0) {
        size_t n = number_length(text);
        size_t len;
        struct sv number = {text.p, n};
        text = sv_skip(text, n);
        size_t unit = find_unit(text, &len);
        if (n == 0 || len == 0) {
            return "such as \"15s\"";
        }
        if (unit == N_UNITS) {
            return "in h, m, s and ms";
        }
        *ret_ns += digits_value(number) * units[unit].ns;
        text = sv_skip(text, len);
    }
    return fabs(*ret_ns) < DURATION_MAX ? NULL : "of at most 292 years";
}

static const char *parse_duration(struct sv text, double *ret_ns)
{
    bool negative = text.n > 0 && text.p[0] == '-';
    *ret_ns = 0;
    if (text.n > 0 && (negative || text.p[0] == '+')) {
        text = sv_skip(text, 1);
    }
    if (text.n == 0) {
        return "such as \"15s\"";
    }
    const char *wrong = sv_eq_str(text, "0") ? NULL : parse_parts(text, ret_ns);
    *ret_ns = negative ? -*ret_ns : *ret_ns;
    return wrong;
}

/* Suggests the duration that was probably meant by a text without a unit, or in days or weeks; out
 * is "" if there is none. */
static void suggest_duration(struct sv text, char *out, size_t size)
{
    int64_t ms;
    uint64_t seconds;
    struct err err = ERR_INIT;
    char shown[32];
    out[0] = '\0';
    if (parse_u64(text, 1000000000, &seconds)) {
        ms = (int64_t)seconds * 1000;
    } else if (!parse_duration_ms(text, &ms, &err)) {
        return;
    }
    int64_t hours = ms / 3600000;
    if (ms % 3600000 == 0 && hours >= 24) {
        snprintf(shown, sizeof(shown), "%lldh", (long long)hours);
    } else {
        format_duration_ms(ms, shown, sizeof(shown));
    }
    snprintf(out, size, "; did you mean \"%s\"?", shown);
}

bool alloy_as_duration(struct alloy_eval *ev, struct config_place place,
                       const struct alloy_value *v, int64_t *ret_ns)
{
    double ns = 0;
    char meant[64];
    *ret_ns = 0;
    if (v->kind == VALUE_NULL) {
        return true;
    }
    if (v->kind != VALUE_STRING) {
        return mismatch(ev, place, "a duration such as \"15s\"", v);
    }
    const char *wrong = parse_duration(v->text, &ns);
    if (wrong != NULL) {
        suggest_duration(v->text, meant, sizeof(meant));
        (void)alloy_fail(ev, place, "expected a duration %s, got \"%.*s\"%s", wrong, SHOWN(v->text),
                         meant);
        return false;
    }
    *ret_ns = (int64_t)ns;
    return true;
}

/* ---- lists and maps -------------------------------------------------------------------------- */

bool alloy_as_array(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                    const struct alloy_value **ret_array)
{
    *ret_array = v->kind == VALUE_ARRAY ? v : &empty_array;
    return v->kind == VALUE_ARRAY || v->kind == VALUE_NULL || mismatch(ev, place, "a list", v);
}

bool alloy_as_object(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                     const struct alloy_value **ret_object)
{
    *ret_object = v->kind == VALUE_OBJECT ? v : &empty_object;
    return v->kind == VALUE_OBJECT || v->kind == VALUE_NULL || mismatch(ev, place, "an object", v);
}
