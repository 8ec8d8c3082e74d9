#include "write/protocols/sample_types.h"

#include <string.h>

#include "base/utf8.h"
#include "config/config.h"

/* A sample type that a server stores under another name and unit; all other types keep theirs. */
struct known {
    const char *type;
    const char *name;    /* the `__name__` that it is for; NULL: any */
    const char *display; /* NULL: the type's own name */
    const char *units;   /* NULL: the profile's */
    bool average;
};

static const struct known known_types[] = {
    {"alloc_objects", .units = "objects"},
    {"alloc_space", .units = "bytes"},
    {"inuse_objects", .units = "objects", .average = true},
    {"inuse_space", .units = "bytes", .average = true},
    {"objects", .units = "objects"},
    {"goroutine", .display = "goroutines", .units = "goroutines", .average = true},
    {"contentions", .name = "block", .display = "block_count", .units = "lock_samples"},
    {"contentions", .display = "mutex_count", .units = "lock_samples"},
    {"delay", .name = "block", .display = "block_duration", .units = "lock_nanoseconds"},
    {"delay", .display = "mutex_duration", .units = "lock_nanoseconds"},
    {"time", .name = "fgprof", .display = "fgprof"},
};

/* Facts about the whole profile that the descriptions of its types need. */
struct profile_types {
    struct sv name;
    size_t n;
    bool is_cpu;
    bool has_samples;
};

static const struct known *find_known(struct sv type, struct sv name)
{
    for (size_t i = 0; i < sizeof(known_types) / sizeof(known_types[0]); i++) {
        const struct known *k = &known_types[i];
        if (sv_eq_str(type, k->type) && (k->name == NULL || sv_eq_str(name, k->name))) {
            return k;
        }
    }
    return NULL;
}

/* Returns true for the number of samples, which Go calls "samples" and Node "sample". */
static bool is_samples(struct sv type)
{
    return sv_eq_str(type, "samples") || sv_eq_str(type, "sample");
}

/* Returns true if a type can be a key of the JSON: keys are text, each may occur once, and not all
 * readers accept a NUL in a key. */
static bool can_be_described(const struct pprof_value_type *types, size_t i)
{
    struct sv type = types[i].type_text;
    for (size_t k = 0; k < i; k++) {
        if (sv_cmp(types[k].type_text, type) == 0) {
            return false;
        }
    }
    return type.n > 0 && type.n <= SAMPLE_TYPE_MAX && utf8_valid(type) &&
           memchr(type.p, 0, type.n) == NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_known(struct buf *out, const struct known *k)
{
    if (k->display != NULL) {
        json_member("display-name", sv_from(k->display), out);
    }
    if (k->units != NULL) {
        json_member("units", sv_from(k->units), out);
    }
    if (k->average) {
        json_member("aggregation", SV("average"), out);
    }
}

/* Describes the number of samples. It is called "cpu" in a CPU profile. In other profiles it has
 * the name of the profile, with "_samples" if there are further types, so that it is not taken for
 * CPU. */
static void put_samples(struct buf *out, const struct profile_types *p)
{
    if (p->is_cpu) {
        json_member("display-name", SV("cpu"), out);
        json_member("units", SV("samples"), out);
        buf_puts(out, ",\"sampled\":true");
        return;
    }
    struct buf display;
    buf_init(&display, 4096);
    buf_append(&display, p->name.p, p->name.n);
    buf_puts(&display, p->n > 1 ? "_samples" : "");
    json_member("display-name", (struct sv){.p = display.data, .n = display.len}, out);
    buf_done(&display);
}

static void put_entry(struct buf *out, struct sv type, const struct profile_types *p)
{
    const struct known *k = find_known(type, p->name);
    json_quote(type, out);
    buf_puts(out, ":{");
    if (is_samples(type)) {
        put_samples(out, p);
    } else if (k != NULL) {
        put_known(out, k);
    }
    buf_putc(out, '}');
}

/* ---- profiles -------------------------------------------------------------------------------- */

/* Returns true if the default mapping is right: the profile has only samples, and perhaps cpu,
 * which is the same number as a time. */
static bool default_is_right(const struct profile_types *p, const struct pprof_value_type *types)
{
    bool right = p->is_cpu && p->n > 0;
    bool samples = false;
    for (size_t i = 0; i < p->n; i++) {
        samples = samples || sv_eq_str(types[i].type_text, "samples");
        right = right &&
                (sv_eq_str(types[i].type_text, "samples") || sv_eq_str(types[i].type_text, "cpu"));
    }
    return right && samples;
}

size_t sample_types_config(struct sv name, const struct pprof_value_type *types, size_t n,
                           struct buf *out)
{
    struct profile_types p = {
        .name = name, .n = n, .is_cpu = name.n == 0 || sv_eq_str(name, "process_cpu")};
    for (size_t i = 0; i < n; i++) {
        p.has_samples = p.has_samples || is_samples(types[i].type_text);
    }
    if (default_is_right(&p, types)) {
        return n;
    }
    size_t stored = 0;
    for (size_t i = 0; i < n; i++) {
        /* Both would be called "cpu". */
        bool twice = p.is_cpu && p.has_samples && sv_eq_str(types[i].type_text, "cpu");
        if (!twice && can_be_described(types, i)) {
            buf_putc(out, stored == 0 ? '{' : ',');
            put_entry(out, types[i].type_text, &p);
            stored++;
        }
    }
    if (stored > 0) {
        buf_putc(out, '}');
    }
    return stored;
}

/* Returns the row of Go's profile with that name, among all that the table has. */
static const struct config_builtin_type *find_builtin(struct sv name)
{
    const struct config_builtin_type *t;
    for (size_t i = 0; (t = config_builtin_type(i)) != NULL; i++) {
        if (sv_eq_str(name, t->type.name)) {
            return t;
        }
    }
    return NULL;
}

bool sample_types_builtin(struct sv name, struct buf *out)
{
    const struct config_builtin_type *t = find_builtin(name);
    if (t == NULL) {
        return false;
    }
    struct pprof_value_type types[SUMMARY_TYPES_MAX];
    size_t n = 0;
    for (; n < SUMMARY_TYPES_MAX && t->values[n].type != NULL; n++) {
        types[n] = (struct pprof_value_type){.type_text = sv_from(t->values[n].type),
                                             .unit_text = sv_from(t->values[n].unit)};
    }
    sample_types_config(name, types, n, out);
    return true;
}
