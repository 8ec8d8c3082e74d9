#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/str.h"

/* The most bytes of a wrong text that an error message repeats. */
#define SHOWN_MAX 100

#define SHOWN_ARG(v) ((v).n > SHOWN_MAX ? SHOWN_MAX : (int)(v).n), (v).p

static size_t count_digits(struct sv v)
{
    size_t n = 0;
    while (n < v.n && ascii_is_digit(v.p[n])) {
        n++;
    }
    return n;
}

bool parse_u64(struct sv v, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (v.n == 0 || count_digits(v) != v.n) {
        return false;
    }
    for (size_t i = 0; i < v.n; i++) {
        uint64_t digit = (uint64_t)(v.p[i] - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (value > max) {
        return false;
    }
    *ret_value = value;
    return true;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* A year is 365 days, as Prometheus has it. */
static const struct unit duration_units[] = {
    {"y", UINT64_C(365) * 24 * 3600 * 1000},
    {"w", UINT64_C(7) * 24 * 3600 * 1000},
    {"d", UINT64_C(24) * 3600 * 1000},
    {"h", UINT64_C(3600) * 1000},
    {"m", UINT64_C(60) * 1000},
    {"s", 1000},
    {"ms", 1},
};
#define N_DURATION_UNITS (sizeof(duration_units) / sizeof(duration_units[0]))

/* The longest duration in ms: it must fit an int64_t in nanoseconds, which is Prometheus' limit
 * too. */
#define DURATION_MAX_MS ((uint64_t)(INT64_MAX / NS_PER_MS))

static bool bad_duration(struct sv v, struct err *err)
{
    return err_set(err, ERR_INPUT, "expected a duration such as \"15s\", got \"%.*s\"",
                   SHOWN_ARG(v));
}

/* Returns the index of the unit, or n if there is none. */
static size_t find_unit(const struct unit *units, size_t n, struct sv name)
{
    size_t i = 0;
    while (i < n && !sv_eq_str(name, units[i].name)) {
        i++;
    }
    return i;
}

/* Adds factor * value to *sum. Returns false if the result is above max. */
static bool add_scaled(uint64_t *sum, uint64_t value, uint64_t factor, uint64_t max)
{
    if (value > max / factor || value * factor > max - *sum) {
        return false;
    }
    *sum += value * factor;
    return true;
}

bool parse_duration_ms(struct sv v, int64_t *ret_ms, struct err *err)
{
    uint64_t ms = 0;
    bool too_long = false;
    size_t next_unit = 0; /* the largest unit that may still follow */
    if (sv_eq_str(v, "0")) {
        *ret_ms = 0;
        return true;
    }
    struct sv rest = v;
    do {
        size_t digits = count_digits(rest);
        struct sv name = sv_skip(rest, digits);
        size_t letters = 0;
        while (letters < name.n && ascii_is_lower(name.p[letters])) {
            letters++;
        }
        name.n = letters;
        size_t unit = find_unit(duration_units, N_DURATION_UNITS, name);
        if (digits == 0 || unit == N_DURATION_UNITS || unit < next_unit) {
            return bad_duration(v, err);
        }
        uint64_t value = 0;
        if (!parse_u64((struct sv){.p = rest.p, .n = digits}, UINT64_MAX, &value) ||
            !add_scaled(&ms, value, duration_units[unit].factor, DURATION_MAX_MS)) {
            too_long = true; /* reported at the end: an error in the form further on is the better
                                message */
        }
        next_unit = unit + 1;
        rest = sv_skip(rest, digits + letters);
    } while (rest.n > 0);
    if (too_long) {
        return err_set(err, ERR_INPUT, "duration \"%.*s\" is longer than 292 years", SHOWN_ARG(v));
    }
    *ret_ms = (int64_t)ms;
    return true;
}

void format_duration_ms(int64_t ms, char *out, size_t size)
{
    /* Room for seven units with 20 digits each, which is more than can occur together. */
    char text[200];
    size_t len = 0;
    uint64_t rest = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    if (ms < 0) {
        text[len++] = '-';
    }
    for (size_t i = 0; i < N_DURATION_UNITS; i++) {
        uint64_t factor = duration_units[i].factor;
        assert(factor > 0);
        /* Prometheus writes years and weeks (the first two) only if nothing is left over. */
        if (rest >= factor && (i >= 2 || rest % factor == 0)) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%" PRIu64 "%s", rest / factor,
                                    duration_units[i].name);
            rest %= factor;
        }
    }
    text[len] = '\0';
    (void)snprintf(out, size, "%s", ms == 0 ? "0s" : text);
}

static const struct unit size_units[] = {
    {"TiB", UINT64_C(1) << 40},
    {"GiB", UINT64_C(1) << 30},
    {"MiB", UINT64_C(1) << 20},
    {"KiB", UINT64_C(1) << 10},
    {"B", 1},
    {"TB", UINT64_C(1000000000000)},
    {"GB", UINT64_C(1000000000)},
    {"MB", UINT64_C(1000000)},
    {"KB", UINT64_C(1000)},
    {"", 1},
};
#define N_SIZE_UNITS (sizeof(size_units) / sizeof(size_units[0]))

bool parse_size(struct sv v, uint64_t *ret_bytes, struct err *err)
{
    size_t digits = count_digits(v);
    size_t unit = find_unit(size_units, N_SIZE_UNITS, sv_skip(v, digits));
    if (digits == 0 || unit == N_SIZE_UNITS) {
        return err_set(err, ERR_INPUT, "expected a size such as \"16MiB\", got \"%.*s\"",
                       SHOWN_ARG(v));
    }
    uint64_t value = 0;
    uint64_t bytes = 0;
    if (!parse_u64((struct sv){.p = v.p, .n = digits}, UINT64_MAX, &value) ||
        !add_scaled(&bytes, value, size_units[unit].factor, UINT64_MAX)) {
        return err_set(err, ERR_INPUT, "size \"%.*s\" is above 16777215TiB", SHOWN_ARG(v));
    }
    *ret_bytes = bytes;
    return true;
}

void format_size(uint64_t bytes, char *out, size_t size)
{
    size_t unit = 0;
    /* The binary units come first and end with "B", which always fits. */
    while (bytes == 0 ? size_units[unit].factor != 1 : bytes % size_units[unit].factor != 0) {
        unit++;
    }
    (void)snprintf(out, size, "%" PRIu64 "%s", bytes / size_units[unit].factor,
                   size_units[unit].name);
}

/* Returns true for an IPv6 address, with or without a zone after "%". */
static bool is_ipv6(struct sv v)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr addr;
    struct sv address = v;
    struct sv zone;
    if (sv_cut(v, '%', &address, &zone) && zone.n == 0) {
        return false;
    }
    if (address.n >= sizeof(text) || memchr(address.p, '\0', address.n) != NULL) {
        return false;
    }
    memcpy(text, address.p, address.n);
    text[address.n] = '\0';
    return inet_pton(AF_INET6, text, &addr) == 1;
}

/* Returns true if a text has only characters of host names, none of which has a meaning in a URL,
 * and the characters of `more`. */
static bool is_host_text(struct sv v, const char *more)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        if (!ascii_is_word(c) &&
            (c == '\0' || (strchr("-.", c) == NULL && strchr(more, c) == NULL))) {
            return false;
        }
    }
    return v.n > 0;
}

/* Cuts v into the host, without its brackets, and the rest. */
static bool cut_host(struct sv v, struct sv *ret_host, struct sv *ret_rest)
{
    struct sv head;
    struct sv tail;
    if (v.n > 0 && v.p[0] == '[') {
        if (!sv_cut(sv_skip(v, 1), ']', ret_host, ret_rest)) {
            return false;
        }
        return is_host_text(*ret_host, ":%") && is_ipv6(*ret_host);
    }
    *ret_host = v;
    *ret_rest = sv_skip(v, v.n);
    if (!sv_cut(v, ':', &head, &tail)) {
        return is_host_text(v, "");
    }
    if (memchr(tail.p, ':', tail.n) != NULL) {
        return is_host_text(v, ":%") && is_ipv6(v); /* more than one colon: all of it is the host */
    }
    *ret_host = head;
    *ret_rest = sv_skip(v, head.n);
    return is_host_text(head, "");
}

bool split_host_port(struct sv v, struct sv *ret_host, uint16_t *ret_port, struct err *err)
{
    struct sv host;
    struct sv rest;
    if (!cut_host(v, &host, &rest) || (rest.n > 0 && rest.p[0] != ':')) {
        return err_set(err, ERR_INPUT, "expected host or host:port, got \"%.*s\"", SHOWN_ARG(v));
    }
    uint64_t port = 0;
    if (rest.n > 0 && (rest.n > sizeof(":65535") - 1 ||
                       !parse_u64(sv_skip(rest, 1), UINT16_MAX, &port) || port == 0)) {
        return err_set(err, ERR_INPUT, "expected a port within 1-65535, got \"%.*s\"",
                       SHOWN_ARG(v));
    }
    *ret_host = host;
    *ret_port = (uint16_t)port;
    return true;
}

void num_format(double value, char out[NUM_TEXT_MAX])
{
    if (isnan(value)) {
        (void)snprintf(out, NUM_TEXT_MAX, "NaN");
        return;
    }
    if (isinf(value)) {
        (void)snprintf(out, NUM_TEXT_MAX, value > 0 ? "+Inf" : "-Inf");
        return;
    }
    /* 17 digits always give a text that reads back as the same value, 15 nearly always. */
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out, NUM_TEXT_MAX, "%.*g", digits, value);
        double again = strtod(out, NULL);
        if (again <= value && again >= value) {
            return;
        }
    }
}
