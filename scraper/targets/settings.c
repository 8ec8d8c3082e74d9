#include "scraper/targets/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"

#define TYPE_PREFIX SV("__profile_")
#define SCRAPE_INTERVAL SV("__scrape_interval__")
#define SCRAPE_TIMEOUT SV("__scrape_timeout__")
#define PARAM_SECONDS SV(LABEL_PARAM_PREFIX "seconds")
/* Bytes of a value, and of a type's name, shown in a message. */
#define SHOWN_MAX 64

static const char *const names[SETTINGS] = {
    "enabled", "path", "port", "scheme", "interval", "timeout", "seconds",
};

static int shown(struct sv v)
{
    return (int)(v.n < SHOWN_MAX ? v.n : SHOWN_MAX);
}

/* ---- labels to rows -------------------------------------------------------------------------- */

/* Splits "__profile_memory_port__" into type and setting. Returns false if it has another form. */
static bool split_label(struct sv label, struct sv *ret_type, enum setting *ret_setting)
{
    if (!sv_starts_with(label, TYPE_PREFIX)) {
        return false;
    }
    struct sv rest = sv_skip(label, TYPE_PREFIX.n);
    if (!sv_ends_with(rest, SV("__"))) {
        return false;
    }
    rest.n -= 2;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct sv name = sv_from(names[i]);
        if (rest.n > name.n + 1 && sv_ends_with(rest, name) && rest.p[rest.n - name.n - 1] == '_') {
            *ret_type = (struct sv){.p = rest.p, .n = rest.n - name.n - 1};
            *ret_setting = (enum setting)i;
            return true;
        }
    }
    return false;
}

bool settings_is_label(struct sv name)
{
    struct sv type;
    enum setting setting;
    return sv_eq(name, SCRAPE_INTERVAL) || sv_eq(name, SCRAPE_TIMEOUT) ||
           split_label(name, &type, &setting);
}

struct sv type_label(struct sv type, const char *setting, char out[TYPE_LABEL_MAX])
{
    /* Made some fifty times for each pod, so without snprintf(). */
    const struct sv parts[] = {TYPE_PREFIX, type, SV("_"), sv_from(setting), SV("__")};
    size_t n = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].n >= TYPE_LABEL_MAX - n) {
            return SV("");
        }
        memcpy(&out[n], parts[i].p, parts[i].n);
        n += parts[i].n;
    }
    out[n] = '\0';
    for (size_t i = TYPE_PREFIX.n; i < TYPE_PREFIX.n + type.n; i++) {
        out[i] = ascii_is_word(out[i]) ? out[i] : '_';
    }
    return (struct sv){.p = out, .n = n};
}

static bool names_type(struct sv name, const struct config_type *type)
{
    if (strlen(type->key) != name.n) {
        return false;
    }
    for (size_t i = 0; i < name.n; i++) {
        char c = ascii_is_word(type->key[i]) ? type->key[i] : '_';
        if (name.p[i] != c) {
            return false;
        }
    }
    return true;
}

bool settings_add(struct settings *s, struct label label, struct sv *ret_unknown)
{
    struct sv type;
    enum setting setting;
    *ret_unknown = SV("");
    if (!split_label(label.name, &type, &setting)) {
        return true;
    }
    *ret_unknown = type;
    for (size_t i = 0; i < s->job->n_types; i++) {
        if (!names_type(type, &s->job->types[i])) {
            continue;
        }
        if (s->of_type == NULL) {
            s->of_type = calloc(s->job->n_types, sizeof(*s->of_type));
        }
        if (s->of_type == NULL) {
            return false;
        }
        s->of_type[i][setting] = label.value;
        *ret_unknown = SV("");
    }
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Reads a duration from min to max; 0 if there is no value. label is for the message. */
static bool read_duration(const char *label, struct sv value, int64_t min, int64_t max,
                          int64_t *ret_ms, struct err *err)
{
    char from[32];
    char to[32];
    int64_t ms = 0;
    *ret_ms = 0;
    if (value.n == 0) {
        return true;
    }
    if (parse_duration_ms(value, &ms, NULL) && ms >= min && ms <= max) {
        *ret_ms = ms;
        return true;
    }
    format_duration_ms(min, from, sizeof(from));
    format_duration_ms(max, to, sizeof(to));
    return err_set(err, ERR_INPUT, "label %s: expected a duration from %s to %s, got \"%.*s\"",
                   label, from, to, shown(value), value.p);
}

bool settings_read(struct settings *s, const struct labels_builder *b, struct err *err)
{
    struct sv interval = labels_builder_get(b, SCRAPE_INTERVAL);
    struct sv timeout = labels_builder_get(b, SCRAPE_TIMEOUT);
    s->seconds = labels_builder_get(b, PARAM_SECONDS);
    if (!read_duration(SCRAPE_INTERVAL.p, interval, SETTING_INTERVAL_MIN_MS,
                       SETTING_INTERVAL_MAX_MS, &s->interval_ms, err)) {
        return false;
    }
    int64_t max = s->interval_ms > 0 ? s->interval_ms : s->job->interval_ms;
    return read_duration(SCRAPE_TIMEOUT.p, timeout, 1, max, &s->timeout_ms, err);
}

void settings_done(struct settings *s)
{
    free(s->of_type);
    s->of_type = NULL;
}

/* ---- one type -------------------------------------------------------------------------------- */

/* A type whose settings are being resolved. */
struct reading {
    const struct settings *s;
    const struct config_type *type;
    size_t index;
};

static struct sv own(const struct reading *r, enum setting setting)
{
    return r->s->of_type == NULL ? (struct sv){.p = "", .n = 0} : r->s->of_type[r->index][setting];
}

/* Returns the name of a label for a message, with a long type cut short. */
static const char *label_of(const struct reading *r, enum setting setting, char out[TYPE_LABEL_MAX])
{
    struct sv key = sv_from(r->type->key);
    return type_label((struct sv){key.p, (size_t)shown(key)}, names[setting], out).p;
}

/* Sets an error such as "label __profile_memory_port__: expected ..., got ...". Returns false. */
static bool refuse(const struct reading *r, enum setting setting, const char *expected,
                   struct err *err)
{
    char label[TYPE_LABEL_MAX];
    struct sv value = own(r, setting);
    return err_set(err, ERR_INPUT, "label %s: expected %s, got \"%.*s\"",
                   label_of(r, setting, label), expected, shown(value), value.p);
}

bool settings_has(const struct settings *s, size_t type, enum setting setting)
{
    return s->of_type != NULL && s->of_type[type][setting].n > 0;
}

bool settings_enabled(const struct settings *s, size_t type, bool *ret_enabled, struct err *err)
{
    const struct reading r = {.s = s, .type = &s->job->types[type], .index = type};
    struct sv value = own(&r, SETTING_ENABLED);
    if (value.n == 0) {
        *ret_enabled = r.type->enabled;
        return true;
    }
    *ret_enabled = sv_eq_str(value, "true");
    return *ret_enabled || sv_eq_str(value, "false") ||
           refuse(&r, SETTING_ENABLED, "\"true\" or \"false\"", err);
}

/* Returns the part of the interval, in seconds, that is left for the answer after the target has
 * sampled. */
static int64_t margin_s(const struct config_type *type)
{
    return type->continuous ? 0 : 1;
}

/* Checks the shortest interval of a type. The configuration has checked the types that it enables
 * itself. */
static bool check_shortest(const struct reading *r, int64_t interval_ms, int64_t min,
                           struct err *err)
{
    char label[TYPE_LABEL_MAX];
    char shortest[32];
    char got[32];
    bool common = r->s->interval_ms > 0;
    if (interval_ms >= min || (!common && r->type->enabled)) {
        return true;
    }
    format_duration_ms(min, shortest, sizeof(shortest));
    format_duration_ms(interval_ms, got, sizeof(got));
    return err_set(err, ERR_INPUT, "label %s: expected an interval of at least %s, got \"%s\"",
                   common ? SCRAPE_INTERVAL.p : label_of(r, SETTING_ENABLED, label), shortest, got);
}

static bool resolve_interval(const struct reading *r, struct type_settings *t, struct err *err)
{
    char label[TYPE_LABEL_MAX];
    struct sv value = own(r, SETTING_INTERVAL);
    int64_t min = SETTING_INTERVAL_MIN_MS;
    if (r->type->sampling) {
        int64_t seconds = r->type->seconds_given ? r->type->seconds : 1;
        min = (seconds + margin_s(r->type)) * MS_PER_S;
    }
    if (value.n > 0) {
        return read_duration(label_of(r, SETTING_INTERVAL, label), value, min,
                             SETTING_INTERVAL_MAX_MS, &t->interval_ms, err);
    }
    t->interval_ms = r->s->interval_ms > 0 ? r->s->interval_ms : r->type->interval_ms;
    return !r->type->sampling || check_shortest(r, t->interval_ms, min, err);
}

/* Sets the timeout. If it was not set for this type alone, it is limited to the interval. */
static bool resolve_timeout(const struct reading *r, struct type_settings *t, struct err *err)
{
    char label[TYPE_LABEL_MAX];
    struct sv value = own(r, SETTING_TIMEOUT);
    if (value.n > 0) {
        return read_duration(label_of(r, SETTING_TIMEOUT, label), value, 1, t->interval_ms,
                             &t->timeout_ms, err);
    }
    bool labelled = t->interval_ms != r->type->interval_ms || r->s->timeout_ms > 0;
    t->timeout_ms = r->s->timeout_ms > 0 ? r->s->timeout_ms : r->type->timeout_ms;
    if (labelled && t->timeout_ms > t->interval_ms) {
        t->timeout_ms = t->interval_ms;
    }
    return true;
}

/* Parses whole seconds, written as a bare number or as a duration. */
static bool parse_seconds(struct sv v, uint64_t max, uint32_t *ret_seconds)
{
    uint64_t seconds = 0;
    int64_t ms = 0;
    if (!parse_u64(v, max, &seconds)) {
        if (!parse_duration_ms(v, &ms, NULL) || ms % MS_PER_S != 0) {
            return false;
        }
        seconds = (uint64_t)(ms / MS_PER_S);
    }
    if (seconds == 0 || seconds > max) {
        return false;
    }
    *ret_seconds = (uint32_t)seconds;
    return true;
}

/* Applies `__param_seconds`, which is for all types that sample. It may be as long as the interval.
 */
static bool resolve_param_seconds(const struct reading *r, struct type_settings *t, struct err *err)
{
    struct sv value = r->s->seconds;
    uint64_t max = t->interval_ms < MS_PER_S ? 1 : (uint64_t)(t->interval_ms / MS_PER_S);
    uint64_t seconds = 0;
    if (!parse_u64(value, max, &seconds) || seconds == 0) {
        return err_set(err, ERR_INPUT,
                       "invalid __param_seconds: expected whole seconds from 1 to %llu, "
                       "got \"%.*s\"",
                       (unsigned long long)max, shown(value), value.p);
    }
    t->seconds = (uint32_t)seconds;
    return true;
}

static bool resolve_seconds(const struct reading *r, struct type_settings *t, struct err *err)
{
    const struct config_type *type = r->type;
    struct sv value = own(r, SETTING_SECONDS);
    int64_t longest = t->interval_ms / MS_PER_S - margin_s(type);
    char expected[96];
    if (!type->sampling) {
        return value.n == 0 ||
               refuse(r, SETTING_SECONDS, "no such label: the type does not sample", err);
    }
    if (value.n > 0) {
        snprintf(expected, sizeof(expected), "whole seconds from 1 to %lld (the interval%s)",
                 (long long)longest, type->continuous ? "" : " minus 1");
        return parse_seconds(value, longest < 1 ? 0 : (uint64_t)longest, &t->seconds) ||
               refuse(r, SETTING_SECONDS, expected, err);
    }
    if (r->s->seconds.n > 0) {
        return resolve_param_seconds(r, t, err);
    }
    bool follows = t->interval_ms != type->interval_ms && !type->seconds_given;
    int64_t seconds = follows ? longest : type->seconds;
    t->seconds = seconds < 1 ? 1 : (uint32_t)seconds;
    return true;
}

static bool resolve_port(const struct reading *r, struct type_settings *t, struct err *err)
{
    uint64_t port = 0;
    struct sv value = own(r, SETTING_PORT);
    if (value.n > 0 && (!parse_u64(value, UINT16_MAX, &port) || port == 0)) {
        return refuse(r, SETTING_PORT, "a port from 1 to 65535", err);
    }
    t->port = (uint16_t)port;
    return true;
}

bool scheme_parse(struct sv v, bool *ret_https)
{
    *ret_https = v.n == 5 && strncasecmp(v.p, "https", 5) == 0;
    return *ret_https || (v.n == 4 && strncasecmp(v.p, "http", 4) == 0);
}

bool settings_resolve(const struct settings *s, size_t type, struct type_settings *ret,
                      struct err *err)
{
    const struct reading r = {.s = s, .type = &s->job->types[type], .index = type};
    *ret = (struct type_settings){.path = own(&r, SETTING_PATH)};
    ret->own_scheme = settings_has(s, type, SETTING_SCHEME);
    if (ret->own_scheme && !scheme_parse(own(&r, SETTING_SCHEME), &ret->https)) {
        return refuse(&r, SETTING_SCHEME, "\"http\" or \"https\"", err);
    }
    return resolve_port(&r, ret, err) && resolve_interval(&r, ret, err) &&
           resolve_timeout(&r, ret, err) && resolve_seconds(&r, ret, err);
}
