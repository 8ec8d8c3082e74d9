#include <limits.h>
#include <string.h>

#include "pprof/otlp/private.h"

#define FIRST_ELEMENTS 512

/* ---- parts that the whole reader uses -------------------------------------------------------- */

bool otlp_grow(struct otlp_reader *r, void **array, size_t *cap, size_t n, size_t size,
               struct err *err)
{
    /* Most arrays of a profile get some hundred elements, so that an array which grows begins with
     * that many. budget_grow() returns NULL for an array without elements. */
    size_t least = *array == NULL && n == 1 ? FIRST_ELEMENTS : 1;
    void *grown = budget_grow(&r->budget, *array, cap, n > least ? n : least, size, err);
    if (grown != NULL) {
        *array = grown;
    }
    return grown != NULL;
}

bool otlp_is_whole(const struct otlp_reader *r, const struct wire_reader *at, struct err *err)
{
    return at->problem == NULL ||
           err_set(err, ERR_INPUT, "byte %zu: %s",
                   (size_t)(at->in.p - r->message.p) + at->field_start, at->problem);
}

/* Fails because a field has a wire type that it cannot have. */
static bool bad_type(const struct otlp_reader *r, const struct wire_reader *at,
                     const struct wire_field *f, struct err *err)
{
    return err_set(err, ERR_INPUT, "byte %zu: field %llu has the wire type %u",
                   (size_t)(at->in.p - r->message.p) + at->field_start,
                   (unsigned long long)f->number, f->type);
}

bool otlp_no_entry(const struct otlp_reader *r, unsigned table, uint64_t index, struct sv *ret,
                   struct err *err)
{
    static const char *const names[OTLP_TABLES] = {
        [OTLP_DICTIONARY_MAPPING_TABLE] = "mapping",
        [OTLP_DICTIONARY_LOCATION_TABLE] = "location",
        [OTLP_DICTIONARY_FUNCTION_TABLE] = "function",
        [OTLP_DICTIONARY_LINK_TABLE] = "link",
        [OTLP_DICTIONARY_STRING_TABLE] = "string",
        [OTLP_DICTIONARY_ATTRIBUTE_TABLE] = "attribute",
        [OTLP_DICTIONARY_STACK_TABLE] = "stack",
    };
    *ret = SV("");
    return index == 0 || err_set(err, ERR_INPUT, "%s %llu does not exist: the dictionary has %zu",
                                 names[table], (unsigned long long)index, r->tables[table].n);
}

/* ---- the frame of a request ------------------------------------------------------------------ */

/* Reads the next field that is a message with this number. False at the end, or with err. */
static bool next_message(const struct otlp_reader *r, struct wire_reader *at, uint64_t number,
                         struct sv *ret, struct err *err)
{
    struct wire_field f = {.number = 0};
    while (wire_next(at, &f)) {
        if (f.number == number) {
            *ret = f.bytes;
            return f.type == WIRE_BYTES || bad_type(r, at, &f, err);
        }
    }
    (void)otlp_is_whole(r, at, err);
    return false;
}

enum numbering { NUMBERING_UNKNOWN, NUMBERING_OLD, NUMBERING_NEW };

/* Says by which version a sample may be numbered. Today it is {stack 1, attributes 2, link 3,
 * values 4, timestamps 5}; in versions 1.8 and 1.9 it was {stack 1, values 2, attributes 3, link 4,
 * timestamps 5}. Lists are packed, and a link is a number. */
static enum numbering numbering_of(struct sv sample)
{
    struct wire_reader at = wire_reader_of(sample);
    struct wire_field f = {.number = 0};
    bool has_second = false;
    while (wire_next(&at, &f)) {
        bool list = f.type == WIRE_BYTES;
        if (f.number == OTLP_SAMPLE_TIMESTAMPS_UNIX_NANO ||
            (f.number == OTLP_SAMPLE_VALUES && list) ||
            (f.number == OTLP_SAMPLE_LINK_INDEX && !list)) {
            return NUMBERING_NEW;
        }
        has_second = has_second || (f.number == 2 && f.bytes.n > 0);
    }
    return has_second ? NUMBERING_OLD : NUMBERING_NEW;
}

/* Counts the messages Profile of a scope, and looks at their samples until the numbering is known.
 */
static bool scan_scope(struct otlp_reader *r, struct sv scope, enum numbering *numbering,
                       struct err *err)
{
    struct wire_reader at = wire_reader_of(scope);
    struct sv profile;
    while (next_message(r, &at, OTLP_SCOPE_PROFILES_PROFILES, &profile, err)) {
        struct wire_reader in = wire_reader_of(profile);
        struct sv sample;
        struct err ignored = ERR_INIT; /* the messages are checked when they are read */
        r->facts.messages++;
        while (*numbering != NUMBERING_NEW &&
               next_message(r, &in, OTLP_PROFILE_SAMPLES, &sample, &ignored)) {
            *numbering = numbering_of(sample);
        }
    }
    return err->kind == ERR_NONE;
}

static bool scan_resource(struct otlp_reader *r, struct sv resource, enum numbering *numbering,
                          struct err *err)
{
    struct wire_reader at = wire_reader_of(resource);
    struct sv scope;
    while (next_message(r, &at, OTLP_RESOURCE_PROFILES_SCOPE_PROFILES, &scope, err)) {
        if (!scan_scope(r, scope, numbering, err)) {
            return false;
        }
    }
    return err->kind == ERR_NONE;
}

/* ---- the dictionary -------------------------------------------------------------------------- */

/* Returns the table of a field of the dictionary; NULL: it has none. */
static struct otlp_table *table_of(struct otlp_reader *r, const struct wire_field *f)
{
    return f->number >= 1 && f->number < OTLP_TABLES && f->type == WIRE_BYTES
               ? &r->tables[f->number]
               : NULL;
}

/* Notes the places of the entries of a dictionary. */
static bool read_dictionary(struct otlp_reader *r, struct sv dictionary, struct err *err)
{
    struct wire_reader at = wire_reader_of(dictionary);
    struct wire_field f = {.number = 0};
    while (wire_next(&at, &f)) {
        struct otlp_table *t = table_of(r, &f);
        if (t == NULL) {
            continue;
        }
        if (r->n_entries++ == OTLP_ENTRIES_MAX) {
            return err_set(err, ERR_LIMIT, "the dictionary has more than %d entries",
                           OTLP_ENTRIES_MAX);
        }
        if (!OTLP_GROW(r, t->at, t->cap, t->n + 1, err)) {
            return false;
        }
        t->at[t->n++] = (struct otlp_span){.at = (uint32_t)(f.bytes.p - r->message.p),
                                           .n = (uint32_t)f.bytes.n};
    }
    return otlp_is_whole(r, &at, err);
}

/* Makes the tables of numbers; no entry has one yet. */
static bool make_numbers(struct otlp_reader *r, struct err *err)
{
    for (size_t i = 1; i < OTLP_TABLES; i++) {
        struct otlp_table *t = &r->tables[i];
        size_t cap = 0;
        if (!otlp_grow(r, (void **)&t->local, &cap, t->n, sizeof(*t->local), err)) {
            return false;
        }
        memset(t->local, 0, cap * sizeof(*t->local));
    }
    return true;
}

static bool make_attributes(struct otlp_reader *r, struct err *err)
{
    size_t cap = 0;
    if (!otlp_grow(r, (void **)&r->attributes, &cap, r->tables[OTLP_DICTIONARY_ATTRIBUTE_TABLE].n,
                   sizeof(*r->attributes), err)) {
        return false;
    }
    memset(r->attributes, 0, cap * sizeof(*r->attributes));
    return true;
}

/* Reads the dictionary, which is one message, or several that count as one. *ret_any: there is one.
 */
static bool read_dictionaries(struct otlp_reader *r, bool *ret_any, struct err *err)
{
    struct wire_reader at = wire_reader_of(r->message);
    struct sv dictionary;
    *ret_any = false;
    while (next_message(r, &at, OTLP_EXPORT_REQUEST_DICTIONARY, &dictionary, err)) {
        *ret_any = true;
        if (!read_dictionary(r, dictionary, err)) {
            return false;
        }
    }
    return err->kind == ERR_NONE;
}

bool otlp_read_request(struct otlp_reader *r, struct err *err)
{
    struct wire_reader at = wire_reader_of(r->message);
    struct sv resource;
    enum numbering numbering = NUMBERING_UNKNOWN;
    bool any;
    if (r->message.n > UINT32_MAX) {
        return err_set(err, ERR_LIMIT, "larger than 4 GiB");
    }
    while (next_message(r, &at, OTLP_EXPORT_REQUEST_RESOURCE_PROFILES, &resource, err)) {
        if (!scan_resource(r, resource, &numbering, err)) {
            return false;
        }
    }
    if (err->kind != ERR_NONE || !read_dictionaries(r, &any, err)) {
        return false;
    }
    if (r->facts.messages > 0 && !any) {
        return err_set(err, ERR_INPUT, "missing profile metadata dictionary");
    }
    r->facts.old_numbers = numbering == NUMBERING_OLD;
    return make_numbers(r, err) && make_attributes(r, err);
}

/* ---- profiles -------------------------------------------------------------------------------- */

static bool read_value_type(const struct otlp_reader *r, struct sv message, uint32_t *ret_type,
                            uint32_t *ret_unit, struct err *err)
{
    uint64_t v[OTLP_VALUE_TYPE_UNIT_STRINDEX + 1] = {0};
    struct sv text;
    wire_read_numbers(message, v, OTLP_VALUE_TYPE_UNIT_STRINDEX + 1);
    if (!otlp_entry(r, OTLP_DICTIONARY_STRING_TABLE, v[OTLP_VALUE_TYPE_TYPE_STRINDEX], &text,
                    err) ||
        !otlp_entry(r, OTLP_DICTIONARY_STRING_TABLE, v[OTLP_VALUE_TYPE_UNIT_STRINDEX], &text,
                    err)) {
        return false;
    }
    *ret_type = (uint32_t)v[OTLP_VALUE_TYPE_TYPE_STRINDEX];
    *ret_unit = (uint32_t)v[OTLP_VALUE_TYPE_UNIT_STRINDEX];
    return true;
}

bool otlp_read_head(struct otlp_reader *r, struct sv message, struct otlp_head *ret,
                    struct err *err)
{
    struct wire_reader at = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    bool ok = true;
    *ret = (struct otlp_head){.type = 0};
    while (ok && wire_next(&at, &f)) {
        if (f.number == OTLP_PROFILE_SAMPLE_TYPE && f.type == WIRE_BYTES) {
            ok = read_value_type(r, f.bytes, &ret->type, &ret->unit, err);
        } else if (f.number == OTLP_PROFILE_PERIOD_TYPE && f.type == WIRE_BYTES) {
            ok = read_value_type(r, f.bytes, &ret->period_type, &ret->period_unit, err);
        } else if (f.number == OTLP_PROFILE_TIME_UNIX_NANO && f.type == WIRE_FIXED64) {
            ret->time_ns = wire_eight(f.bytes.p);
        } else if (f.number == OTLP_PROFILE_DURATION_NANO && f.type == WIRE_VARINT) {
            ret->duration_ns = f.value;
        } else if (f.number == OTLP_PROFILE_PERIOD && f.type == WIRE_VARINT) {
            ret->period = (int64_t)f.value;
        }
    }
    return ok && otlp_is_whole(r, &at, err);
}

/* A sample that is being read. */
struct reading {
    struct otlp_reader *r;
    struct otlp_samples *into;
    struct otlp_sample *sample;
    size_t n_values;
    size_t n_times;
    int64_t sum;
    bool splits; /* one of its attributes says that it belongs to a profile of its own */
    struct err *err;
};

static bool read_attributes(struct reading *in, const struct wire_field *f)
{
    struct otlp_samples *s = in->into;
    struct wire_numbers numbers = wire_numbers_of(f);
    uint64_t index;
    while (wire_numbers_next(&numbers, &index)) {
        if (s->n_attributes == OTLP_SAMPLE_ATTRIBUTES_MAX) {
            return err_set(in->err, ERR_LIMIT, "more than %d attributes of samples",
                           OTLP_SAMPLE_ATTRIBUTES_MAX);
        }
        const struct otlp_attribute *a;
        if (!otlp_read_attribute(in->r, index, &a, in->err) ||
            !OTLP_GROW(in->r, s->attributes, s->cap_attributes, s->n_attributes + 1, in->err)) {
            return false;
        }
        in->splits = in->splits || a->splits;
        s->attributes[s->n_attributes++] = (uint32_t)index;
        in->sample->n_attributes++;
    }
    return numbers.at != NULL || err_set(in->err, ERR_INPUT, "a bad number");
}

static bool read_values(struct reading *in, const struct wire_field *f)
{
    struct wire_numbers numbers = wire_numbers_of(f);
    uint64_t value;
    while (wire_numbers_next(&numbers, &value)) {
        if (__builtin_add_overflow(in->sum, (int64_t)value, &in->sum)) {
            return err_set(in->err, ERR_INPUT, "the sum of its values needs more than 64 bits");
        }
        in->n_values++;
    }
    return numbers.at != NULL || err_set(in->err, ERR_INPUT, "a bad number");
}

static bool read_index(struct reading *in, const struct wire_field *f, const char *what,
                       uint32_t *ret)
{
    *ret = (uint32_t)f->value;
    return f->value <= UINT32_MAX || err_set(in->err, ERR_INPUT, "%s %llu does not exist", what,
                                             (unsigned long long)f->value);
}

/* Returns the number that the field has today. */
static uint64_t number_today(uint64_t number, bool old)
{
    static const uint8_t today[] = {[2] = OTLP_SAMPLE_VALUES,
                                    [3] = OTLP_SAMPLE_ATTRIBUTE_INDICES,
                                    [4] = OTLP_SAMPLE_LINK_INDEX};
    return old && number >= 2 && number < sizeof(today) ? today[number] : number;
}

static bool read_field(struct reading *in, const struct wire_field *f)
{
    bool list = f->type == WIRE_BYTES;
    if (f->type == WIRE_FIXED32 ||
        (f->type == WIRE_FIXED64 && f->number != OTLP_SAMPLE_TIMESTAMPS_UNIX_NANO)) {
        return true;
    }
    switch (number_today(f->number, in->r->facts.old_numbers)) {
    case OTLP_SAMPLE_STACK_INDEX:
        return list || read_index(in, f, "stack", &in->sample->stack);
    case OTLP_SAMPLE_LINK_INDEX:
        return list || read_index(in, f, "link", &in->sample->link);
    case OTLP_SAMPLE_ATTRIBUTE_INDICES:
        return read_attributes(in, f);
    case OTLP_SAMPLE_VALUES:
        return read_values(in, f);
    case OTLP_SAMPLE_TIMESTAMPS_UNIX_NANO:
        in->n_times += f->bytes.n / sizeof(uint64_t);
        return true;
    default:
        return true;
    }
}

/* Reads a sample. A value without a time is a sum; values with times are events, whose sum counts;
 * and times alone are events that count 1 each. A sample with none of these is left out. */
static bool read_sample(struct otlp_reader *r, struct sv message, struct otlp_samples *into,
                        struct err *err)
{
    struct wire_reader at = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    if (into->n == OTLP_SAMPLES_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d samples", OTLP_SAMPLES_MAX);
    }
    if (!OTLP_GROW(r, into->at, into->cap, into->n + 1, err) ||
        !OTLP_GROW(r, into->values[0], into->cap_values[0], into->n + 1, err)) {
        return false;
    }
    struct reading in = {.r = r, .into = into, .sample = &into->at[into->n], .err = err};
    *in.sample = (struct otlp_sample){.attributes = (uint32_t)into->n_attributes};
    while (wire_next(&at, &f)) {
        if (!read_field(&in, &f)) {
            return err_wrap(err, "sample %zu", into->n);
        }
    }
    if (!otlp_is_whole(r, &at, err)) {
        return false;
    }
    r->facts.samples++;
    if (in.n_values == 0 && in.n_times == 0) {
        r->facts.samples_without_value++;
        into->n_attributes = in.sample->attributes;
        return true;
    }
    into->any_splits = into->any_splits || in.splits;
    into->values[0][into->n++] = in.n_values > 0 ? in.sum : (int64_t)in.n_times;
    return true;
}

bool otlp_read_samples(struct otlp_reader *r, struct sv message, struct otlp_samples *ret,
                       struct err *err)
{
    struct wire_reader at = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    ret->n = 0;
    ret->n_attributes = 0;
    ret->any_splits = false;
    while (wire_next(&at, &f)) {
        if (f.number == OTLP_PROFILE_SAMPLES && f.type == WIRE_BYTES &&
            !read_sample(r, f.bytes, ret, err)) {
            return false;
        }
    }
    return otlp_is_whole(r, &at, err);
}
