#include <string.h>

#include "pprof/otlp/private.h"

/* The attribute of a scope, by which profpull names the type of a profile (OTLP_TYPE_ATTRIBUTE of
 * its writer). */
#define NAME_ATTRIBUTE SV("pprof.profile.name")
/* Attributes of a profile that are fields of pprof (making.c). */
#define PPROF_PREFIX SV("pprof.profile.")
#define SERVICE SV("service.name")
/* A value may be in a list, and that in another. */
#define NESTING_MAX 4

/* ---- values ---------------------------------------------------------------------------------- */

static bool read_any(struct otlp_reader *r, struct sv message, unsigned depth,
                     struct otlp_value *ret, struct err *err);

/* Reads a list: as its value if it has one. */
static bool read_array(struct otlp_reader *r, struct sv message, unsigned depth,
                       struct otlp_value *ret, struct err *err)
{
    struct wire_reader at = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    struct sv only = SV("");
    size_t n = 0;
    while (wire_next(&at, &f)) {
        if (f.number == OTLP_ARRAY_VALUE_VALUES && f.type == WIRE_BYTES) {
            only = f.bytes;
            n++;
        }
    }
    return otlp_is_whole(r, &at, err) &&
           (n != 1 || depth == NESTING_MAX || read_any(r, only, depth + 1, ret, err));
}

static bool read_any(struct otlp_reader *r, struct sv message, unsigned depth,
                     struct otlp_value *ret, struct err *err)
{
    struct wire_reader at = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    *ret = (struct otlp_value){.kind = OTLP_VALUE_OTHER, .text = SV("")};
    bool ok = true;
    while (ok && wire_next(&at, &f)) {
        bool number = f.type == WIRE_VARINT;
        if (f.number == OTLP_ANY_VALUE_STRING_VALUE && f.type == WIRE_BYTES) {
            *ret = (struct otlp_value){.kind = OTLP_VALUE_TEXT, .text = f.bytes};
        } else if (f.number == OTLP_ANY_VALUE_STRING_VALUE_STRINDEX && number) {
            ret->kind = OTLP_VALUE_TEXT;
            ok = otlp_entry(r, OTLP_DICTIONARY_STRING_TABLE, f.value, &ret->text, err);
        } else if (f.number == OTLP_ANY_VALUE_INT_VALUE && number) {
            *ret = (struct otlp_value){OTLP_VALUE_NUMBER, SV(""), (int64_t)f.value};
        } else if (f.number == OTLP_ANY_VALUE_BOOL_VALUE && number) {
            *ret = (struct otlp_value){OTLP_VALUE_BOOL, SV(""), f.value != 0};
        } else if (f.number == OTLP_ANY_VALUE_ARRAY_VALUE && f.type == WIRE_BYTES) {
            ok = read_array(r, f.bytes, depth, ret, err);
        }
    }
    return ok && otlp_is_whole(r, &at, err);
}

/* Reads a message KeyValue, whose texts may be in the dictionary. */
static bool read_pair(struct otlp_reader *r, struct sv message, struct sv *ret_key,
                      struct otlp_value *ret, struct err *err)
{
    struct wire_reader at = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    *ret_key = SV("");
    *ret = (struct otlp_value){.kind = OTLP_VALUE_OTHER, .text = SV("")};
    bool ok = true;
    while (ok && wire_next(&at, &f)) {
        if (f.number == OTLP_KEY_VALUE_KEY && f.type == WIRE_BYTES) {
            *ret_key = f.bytes;
        } else if (f.number == OTLP_KEY_VALUE_KEY_STRINDEX && f.type == WIRE_VARINT) {
            ok = otlp_entry(r, OTLP_DICTIONARY_STRING_TABLE, f.value, ret_key, err);
        } else if (f.number == OTLP_KEY_VALUE_VALUE && f.type == WIRE_BYTES) {
            ok = read_any(r, f.bytes, 0, ret, err);
        }
    }
    return ok && otlp_is_whole(r, &at, err);
}

/* ---- the table of attributes ----------------------------------------------------------------- */

/* Attributes that separate the profiles of a message: the service, and what discovered targets
 * are found by. */
static bool splits(struct sv key)
{
    static const char *const keys[] = {"service.name", "container.id", "k8s.pod.uid"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (sv_eq_str(key, keys[i])) {
            return true;
        }
    }
    return false;
}

static bool fill_attribute(struct otlp_reader *r, struct sv message, struct otlp_attribute *ret,
                           struct err *err)
{
    uint64_t v[OTLP_KEY_VALUE_AND_UNIT_UNIT_STRINDEX + 1] = {0};
    struct wire_reader at = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    struct sv unit;
    wire_read_numbers(message, v, OTLP_KEY_VALUE_AND_UNIT_UNIT_STRINDEX + 1);
    while (wire_next(&at, &f)) {
        if (f.number == OTLP_KEY_VALUE_AND_UNIT_VALUE && f.type == WIRE_BYTES &&
            !read_any(r, f.bytes, 0, &ret->value, err)) {
            return false;
        }
    }
    uint64_t key = v[OTLP_KEY_VALUE_AND_UNIT_KEY_STRINDEX];
    if (!otlp_is_whole(r, &at, err) ||
        !otlp_entry(r, OTLP_DICTIONARY_STRING_TABLE, key, &ret->key_text, err) ||
        !otlp_entry(r, OTLP_DICTIONARY_STRING_TABLE, v[OTLP_KEY_VALUE_AND_UNIT_UNIT_STRINDEX],
                    &unit, err)) {
        return false;
    }
    ret->key = (uint32_t)key;
    ret->unit = (uint32_t)v[OTLP_KEY_VALUE_AND_UNIT_UNIT_STRINDEX];
    ret->splits = ret->value.kind == OTLP_VALUE_TEXT && splits(ret->key_text);
    ret->is_read = true;
    return true;
}

bool otlp_read_attribute(struct otlp_reader *r, uint64_t index, const struct otlp_attribute **ret,
                         struct err *err)
{
    struct sv message;
    /* There is a struct for index 0, even if the table is empty. */
    struct otlp_attribute *a = &r->attributes[0];
    if (!otlp_entry(r, OTLP_DICTIONARY_ATTRIBUTE_TABLE, index, &message, err)) {
        return false;
    }
    a += index;
    *ret = a;
    return a->is_read || fill_attribute(r, message, a, err);
}

/* ---- labels ---------------------------------------------------------------------------------- */

static struct sv label_of(const struct otlp_labels *l, struct sv name)
{
    for (size_t i = 0; i < l->n; i++) {
        if (sv_eq(l->at[i].name, name)) {
            return l->at[i].value;
        }
    }
    return SV("");
}

/* Fails for more attributes than are read, equal ones included: each is compared with the others.
 */
static bool too_many(struct err *err)
{
    return err_set(err, ERR_INPUT, "more than %d attributes", OTLP_LABELS_MAX);
}

/* Adds a label, unless it is empty or there is one with this name. */
static bool add(struct otlp_reader *r, struct otlp_labels *l, struct sv name, struct sv value,
                struct err *err)
{
    if (name.n == 0 || value.n == 0 || label_of(l, name).n > 0) {
        return true;
    }
    if (l->n == OTLP_LABELS_MAX) {
        return too_many(err);
    }
    if (!OTLP_GROW(r, l->at, l->cap, l->n + 1, err)) {
        return false;
    }
    l->at[l->n++] = (struct label){name, value};
    return true;
}

/* Adds an attribute, if it is a text or a number. Names with two underscores in front are ours. */
static bool add_value(struct otlp_reader *r, struct otlp_labels *l, struct sv key,
                      const struct otlp_value *v, struct err *err)
{
    if (sv_starts_with(key, SV("__")) ||
        (v->kind != OTLP_VALUE_TEXT && v->kind != OTLP_VALUE_NUMBER)) {
        return true;
    }
    if (v->kind == OTLP_VALUE_TEXT) {
        return add(r, l, key, v->text, err);
    }
    char *text = arena_printf(r->texts, "%lld", (long long)v->number);
    return text != NULL ? add(r, l, key, sv_from(text), err)
                        : err_set(err, ERR_LIMIT, "too many attributes");
}

/* Adds the attributes of a message that has them as KeyValue: of a resource or a scope. */
static bool add_pairs(struct otlp_reader *r, struct sv message, uint64_t field, struct err *err)
{
    struct wire_reader at = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t n = 0;
    while (wire_next(&at, &f)) {
        struct sv key;
        struct otlp_value value;
        if (f.number != field || f.type != WIRE_BYTES) {
            continue;
        }
        if (++n > OTLP_LABELS_MAX) {
            return too_many(err);
        }
        if (!read_pair(r, f.bytes, &key, &value, err) ||
            (!sv_eq(key, NAME_ATTRIBUTE) && !add_value(r, &r->common, key, &value, err))) {
            return false;
        }
    }
    return otlp_is_whole(r, &at, err);
}

/* Adds an attribute of a profile, unless it is a field of pprof. */
static bool add_index(struct otlp_reader *r, uint64_t index, struct err *err)
{
    const struct otlp_attribute *a;
    return otlp_read_attribute(r, index, &a, err) &&
           (sv_starts_with(a->key_text, PPROF_PREFIX) ||
            add_value(r, &r->common, a->key_text, &a->value, err));
}

/* Adds the attributes of a profile. */
static bool add_indices(struct otlp_reader *r, struct sv profile, struct err *err)
{
    struct wire_reader at = wire_reader_of(profile);
    struct wire_field f = {.number = 0};
    size_t n = 0;
    while (wire_next(&at, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t index;
        while (f.number == OTLP_PROFILE_ATTRIBUTE_INDICES && wire_numbers_next(&numbers, &index)) {
            if (++n > OTLP_LABELS_MAX) {
                return too_many(err);
            }
            if (!add_index(r, index, err)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- the name of the type -------------------------------------------------------------------- */

/* `__name__` by the sample type, and the period type if that is not NULL. These are the names that
 * the same profiles have when profpull scrapes them. */
static const struct {
    const char *type;
    const char *period_type;
    const char *name;
} names[] = {
    {"cpu", NULL, "process_cpu"},      {"samples", "cpu", "process_cpu"},
    {"alloc_objects", NULL, "memory"}, {"alloc_space", NULL, "memory"},
    {"inuse_objects", NULL, "memory"}, {"inuse_space", NULL, "memory"},
    {"contentions", NULL, "mutex"},    {"delay", NULL, "mutex"},
    {"goroutines", NULL, "goroutine"},
};

static struct sv string_of(const struct otlp_reader *r, uint32_t index)
{
    struct err ignored = ERR_INIT;
    struct sv text;
    (void)otlp_entry(r, OTLP_DICTIONARY_STRING_TABLE, index, &text, &ignored);
    return text;
}

static const char *known_name(const struct otlp_reader *r, const struct otlp_head *h)
{
    struct sv type = string_of(r, h->type);
    struct sv period_type = string_of(r, h->period_type);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (sv_eq_str(type, names[i].type) &&
            (names[i].period_type == NULL || sv_eq_str(period_type, names[i].period_type))) {
            return names[i].name;
        }
    }
    return NULL;
}

/* Returns true if the name of a scope ends in "block". Profiles of mutexes and of blocking have the
 * same sample types. */
static bool is_block(struct sv scope)
{
    struct wire_reader at = wire_reader_of(scope);
    struct wire_field f = {.number = 0};
    bool block = false;
    while (wire_next(&at, &f)) {
        if (f.number == OTLP_SCOPE_NAME && f.type == WIRE_BYTES) {
            block = sv_ends_with(f.bytes, SV("block"));
        }
    }
    return block;
}

/* Returns the name that the scope gives the type; empty if it gives none. */
static struct sv given_name(struct otlp_reader *r, struct err *err)
{
    struct wire_reader at = wire_reader_of(r->scope);
    struct wire_field f = {.number = 0};
    while (wire_next(&at, &f)) {
        struct sv key;
        struct otlp_value value;
        if (f.number == OTLP_SCOPE_ATTRIBUTES && f.type == WIRE_BYTES &&
            read_pair(r, f.bytes, &key, &value, err) && sv_eq(key, NAME_ATTRIBUTE) &&
            value.kind == OTLP_VALUE_TEXT) {
            return value.text;
        }
    }
    return SV("");
}

/* Returns the name of the group: that of its first type that is known, else its first type. */
static struct sv type_name(struct otlp_reader *r, struct err *err)
{
    struct sv given = given_name(r, err);
    if (given.n > 0) {
        return given;
    }
    for (size_t i = 0; i < r->n_types; i++) {
        const char *name = known_name(r, &r->heads[i]);
        if (name != NULL) {
            bool block = strcmp(name, "mutex") == 0 && is_block(r->scope);
            return sv_from(block ? "block" : name);
        }
    }
    return string_of(r, r->heads[0].type);
}

static bool is_type(const struct otlp_reader *r, uint32_t type, uint32_t unit, const char *want,
                    const char *want_unit)
{
    return sv_eq_str(string_of(r, type), want) && sv_eq_str(string_of(r, unit), want_unit);
}

/* Returns true if a message of the scope has the type cpu:nanoseconds. */
static bool has_cpu_time(struct otlp_reader *r)
{
    struct wire_reader at = wire_reader_of(r->scope_message);
    struct wire_field f = {.number = 0};
    while (r->scope_cpu != OTLP_CPU_MEASURED && wire_next(&at, &f)) {
        struct otlp_head h;
        struct err ignored = ERR_INIT;
        if (f.number == OTLP_SCOPE_PROFILES_PROFILES && f.type == WIRE_BYTES &&
            otlp_read_head(r, f.bytes, &h, &ignored) &&
            is_type(r, h.type, h.unit, "cpu", "nanoseconds")) {
            r->scope_cpu = OTLP_CPU_MEASURED;
        }
    }
    return r->scope_cpu == OTLP_CPU_MEASURED;
}

bool otlp_counts_are_time(struct otlp_reader *r)
{
    const struct otlp_head *h = &r->heads[0];
    if (r->n_types != 1 || h->period <= 0 || !is_type(r, h->type, h->unit, "samples", "count") ||
        !is_type(r, h->period_type, h->period_unit, "cpu", "nanoseconds")) {
        return false;
    }
    struct err ignored = ERR_INIT;
    /* A sender that names the type, as profpull does, sends counts that were counts. */
    if (given_name(r, &ignored).n > 0) {
        return false;
    }
    if (r->scope_cpu == OTLP_CPU_UNKNOWN && !has_cpu_time(r)) {
        r->scope_cpu = OTLP_CPU_NONE;
    }
    return r->scope_cpu == OTLP_CPU_NONE;
}

/* ---- the labels of a profile ----------------------------------------------------------------- */

bool otlp_common_labels(struct otlp_reader *r, struct err *err)
{
    arena_reset(r->texts);
    r->common.n = 0;
    struct sv name = type_name(r, err);
    if (err->kind != ERR_NONE) {
        return false;
    }
    if (name.n == 0) {
        return err_set(err, ERR_INPUT, "the profile has no sample type");
    }
    return add(r, &r->common, SV(LABEL_NAME), name, err) &&
           add(r, &r->common, SV(LABEL_DELTA), SV("false"), err) &&
           add(r, &r->common, SV("__otel__"), SV("true"), err) &&
           add_pairs(r, r->resource, OTLP_RESOURCE_ATTRIBUTES, err) &&
           add_pairs(r, r->scope, OTLP_SCOPE_ATTRIBUTES, err) && add_indices(r, r->first, err);
}

/* Adds the service: by OpenTelemetry's attribute, else the label that a profpull may have sent,
 * else "unknown_service:PROGRAM", as OpenTelemetry's SDKs name it. */
static bool add_service(struct otlp_reader *r, struct err *err)
{
    struct sv service = label_of(&r->labels, SERVICE);
    struct sv program = label_of(&r->common, SV("process.executable.name"));
    if (service.n == 0 && label_of(&r->common, SV(LABEL_SERVICE_NAME)).n == 0 && program.n > 0) {
        char *text = arena_printf(r->texts, "unknown_service:%.*s", SV_ARG(program));
        if (text == NULL) {
            return err_set(err, ERR_LIMIT, "too many attributes");
        }
        service = sv_from(text);
    }
    return add(r, &r->labels, SV(LABEL_SERVICE_NAME), service, err);
}

bool otlp_part_labels(struct otlp_reader *r, const uint32_t *attributes, size_t n, struct err *err)
{
    r->labels.n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct otlp_attribute *a = &r->attributes[attributes[i]];
        if (!add(r, &r->labels, a->key_text, a->value.text, err)) {
            return false;
        }
    }
    struct sv service = label_of(&r->labels, SERVICE);
    if (service.n == 0 && !add(r, &r->labels, SERVICE, label_of(&r->common, SERVICE), err)) {
        return false;
    }
    if (!add_service(r, err)) {
        return false;
    }
    for (size_t i = 0; i < r->common.n; i++) {
        if (!add(r, &r->labels, r->common.at[i].name, r->common.at[i].value, err)) {
            return false;
        }
    }
    return true;
}
