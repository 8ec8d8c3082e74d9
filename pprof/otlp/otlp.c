#include "pprof/otlp/otlp.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pprof/otlp/private.h"

/* The memory for texts of labels: hexadecimal ids of links, and numbers. */
#define TEXTS_MAX ((size_t)64 * 1024 * 1024)

/* ---- making and freeing ---------------------------------------------------------------------- */

struct otlp_reader *otlp_reader_new(struct sv message, const struct otlp_limits *limits,
                                    struct err *err)
{
    struct otlp_reader *r = calloc(1, sizeof(*r));
    struct rng rng;
    if (r == NULL) {
        err_memory(err);
        return NULL;
    }
    rng_seed_random(&rng);
    r->message = message;
    r->limits = *limits;
    bool less = limits->work_max > 0 && limits->work_max < OTLP_READ_WORK_MAX;
    r->budget.max = less ? limits->work_max : OTLP_READ_WORK_MAX;
    r->resources = wire_reader_of(message);
    r->scopes = wire_reader_of(SV(""));
    r->profiles = wire_reader_of(SV(""));
    merge_table_init(&r->parts, rng_next(&rng));
    buf_init(&r->out, limits->profile_max);
    r->texts = arena_new(TEXTS_MAX);
    if (r->texts == NULL) {
        err_memory(err);
        return otlp_reader_free(r);
    }
    return otlp_read_request(r, err) ? r : otlp_reader_free(r);
}

static void free_samples(struct otlp_samples *s)
{
    free(s->at);
    free(s->attributes);
    for (size_t i = 0; i < OTLP_TYPES_MAX; i++) {
        free(s->values[i]);
    }
}

struct otlp_reader *otlp_reader_free(struct otlp_reader *r)
{
    if (r != NULL) {
        for (size_t i = 0; i < OTLP_TABLES; i++) {
            free(r->tables[i].at);
            free(r->tables[i].local);
            free(r->tables[i].used);
        }
        free(r->attributes);
        free_samples(&r->samples);
        free_samples(&r->more);
        merge_table_done(&r->parts);
        arena_free(r->texts);
        free(r->common.at);
        free(r->labels.at);
        buf_done(&r->out);
        free(r->strings);
        free(r->sample);
        free(r->mappings);
        free(r);
    }
    return NULL;
}

const struct otlp_facts *otlp_reader_facts(const struct otlp_reader *r)
{
    return &r->facts;
}

/* ---- from message to message ----------------------------------------------------------------- */

/* Moves to the next field that is a message with this number. The frame was checked before. */
static bool next(struct wire_reader *at, uint64_t number, struct sv *ret)
{
    struct wire_field f = {.number = 0};
    while (wire_next(at, &f)) {
        if (f.number == number) {
            *ret = f.bytes;
            return true;
        }
    }
    return false;
}

/* Returns the last message in a field; empty if there is none. */
static struct sv last(struct sv message, uint64_t number)
{
    struct wire_reader at = wire_reader_of(message);
    struct sv found = SV("");
    struct sv m;
    while (next(&at, number, &m)) {
        found = m;
    }
    return found;
}

/* Moves to the next message Profile. Returns false at the end. */
static bool next_profile(struct otlp_reader *r, struct sv *ret)
{
    while (!next(&r->profiles, OTLP_SCOPE_PROFILES_PROFILES, ret)) {
        struct sv message;
        while (!next(&r->scopes, OTLP_RESOURCE_PROFILES_SCOPE_PROFILES, &message)) {
            if (!next(&r->resources, OTLP_EXPORT_REQUEST_RESOURCE_PROFILES, &message)) {
                return false;
            }
            r->resource = last(message, OTLP_RESOURCE_PROFILES_RESOURCE);
            r->scopes = wire_reader_of(message);
        }
        r->scope = last(message, OTLP_SCOPE_PROFILES_SCOPE);
        r->profiles = wire_reader_of(message);
        r->scope_message = message;
        r->scope_cpu = OTLP_CPU_UNKNOWN;
    }
    return true;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Returns true if a message can have been made of the same profile as the group: all but the type
 * is equal. */
static bool heads_fit(const struct otlp_reader *r, const struct otlp_head *h)
{
    const struct otlp_head *first = &r->heads[0];
    for (size_t i = 0; i < r->n_types; i++) {
        if (r->heads[i].type == h->type) {
            return false;
        }
    }
    return h->time_ns == first->time_ns && h->duration_ns == first->duration_ns &&
           h->period == first->period && h->period_type == first->period_type &&
           h->period_unit == first->period_unit;
}

static bool samples_fit(const struct otlp_samples *a, const struct otlp_samples *b)
{
    if (a->n != b->n || a->n_attributes != b->n_attributes ||
        (a->n_attributes > 0 &&
         memcmp(a->attributes, b->attributes, a->n_attributes * sizeof(*a->attributes)) != 0)) {
        return false;
    }
    for (size_t i = 0; i < a->n; i++) {
        const struct otlp_sample *x = &a->at[i];
        const struct otlp_sample *y = &b->at[i];
        if (x->stack != y->stack || x->link != y->link || x->attributes != y->attributes) {
            return false;
        }
    }
    return true;
}

/* Adds the values of r->more to the group, as one more type. */
static void join(struct otlp_reader *r, const struct otlp_head *h)
{
    struct otlp_samples *to = &r->samples;
    size_t i = r->n_types++;
    int64_t *values = to->values[i];
    size_t cap = to->cap_values[i];
    to->values[i] = r->more.values[0];
    to->cap_values[i] = r->more.cap_values[0];
    r->more.values[0] = values;
    r->more.cap_values[0] = cap;
    r->heads[i] = *h;
}

/* Adds messages of the scope that follow to the group, as far as they fit. */
static void gather(struct otlp_reader *r)
{
    struct sv message;
    while (r->n_types < OTLP_TYPES_MAX && r->pending.p == NULL &&
           next(&r->profiles, OTLP_SCOPE_PROFILES_PROFILES, &message)) {
        struct otlp_head h;
        struct err ignored =
            ERR_INIT; /* the message is read once more, as the first of its group */
        struct otlp_facts facts = r->facts;
        if (otlp_read_head(r, message, &h, &ignored) && heads_fit(r, &h) &&
            otlp_read_samples(r, message, &r->more, &ignored) &&
            samples_fit(&r->samples, &r->more)) {
            join(r, &h);
        } else {
            r->facts = facts;
            r->pending = message;
        }
    }
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Gives each sample the number of its part: the combination of its attributes that split. */
static bool split(struct otlp_reader *r, struct err *err)
{
    struct otlp_samples *s = &r->samples;
    struct budget *b = &r->budget;
    r->n_parts = 1;
    merge_table_truncate(&r->parts, 0);
    for (size_t i = 0; s->any_splits && i < s->n; i++) {
        uint32_t key[OTLP_SPLITS_MAX];
        size_t n = 0;
        for (uint32_t k = 0; k < s->at[i].n_attributes && n < OTLP_SPLITS_MAX; k++) {
            uint32_t index = s->attributes[s->at[i].attributes + k];
            if (r->attributes[index].splits) {
                key[n++] = index;
            }
        }
        n *= sizeof(key[0]);
        if (!merge_table_add(&r->parts, b, key, n, n, &s->at[i].part, err)) {
            return false;
        }
        r->n_parts = (uint32_t)r->parts.n;
        if (r->n_parts > OTLP_PARTS_MAX) {
            return err_set(err, ERR_LIMIT, "samples of more than %d services and containers",
                           OTLP_PARTS_MAX);
        }
    }
    return true;
}

/* Reads a message and those that belong to it. False with err; r->n_types then is the number of
 * messages that are lost. */
static bool begin_group(struct otlp_reader *r, struct sv message, struct err *err)
{
    r->group++;
    r->first = message;
    r->n_types = 1;
    r->n_parts = 0;
    r->next_part = 0;
    if (!otlp_read_head(r, message, &r->heads[0], err) ||
        !otlp_read_samples(r, message, &r->samples, err)) {
        return false;
    }
    gather(r);
    return otlp_common_labels(r, err) && split(r, err);
}

/* ---- profiles -------------------------------------------------------------------------------- */

/* Makes the next part of the group. */
static bool make_part(struct otlp_reader *r, struct otlp_profile *ret, struct err *err)
{
    uint32_t part = r->next_part++;
    const void *key = NULL;
    size_t n = 0;
    if (r->samples.any_splits) {
        key = merge_table_get(&r->parts, part, &n);
    }
    if (!otlp_part_labels(r, key, n / sizeof(uint32_t), err) ||
        !otlp_make(r, part, &ret->summary, err)) {
        return false;
    }
    r->made += r->out.len;
    if (r->made > r->limits.total_max) {
        return err_set(err, ERR_LIMIT, "the profiles of the request have more than %zu bytes",
                       r->limits.total_max);
    }
    ret->pprof = (struct sv){r->out.data, r->out.len};
    ret->labels = r->labels.at;
    ret->n_labels = r->labels.n;
    return true;
}

/* Fails because no sample of a message has a value: it is of a version with other numbers. */
static enum otlp_step without_values(struct err *err)
{
    err_set(err, ERR_INPUT,
            "no sample has a value: the message is not one of opentelemetry-proto 1.8 or later");
    return OTLP_STEP_BAD;
}

enum otlp_step otlp_reader_next(struct otlp_reader *r, struct otlp_profile *ret, struct err *err)
{
    *ret = (struct otlp_profile){.n_messages = 0};
    if (r->next_part == r->n_parts) {
        struct sv message = r->pending;
        uint64_t empty = r->facts.samples_without_value;
        r->pending = (struct sv){NULL, 0};
        if (message.p == NULL && !next_profile(r, &message)) {
            return OTLP_STEP_END;
        }
        bool ok = begin_group(r, message, err);
        ret->n_messages = r->n_types;
        ret->group = r->group;
        if (!ok || r->samples.n == 0) {
            r->n_parts = r->next_part = 0;
            return !ok                                       ? OTLP_STEP_BAD
                   : r->facts.samples_without_value == empty ? OTLP_STEP_EMPTY
                                                             : without_values(err);
        }
    }
    ret->n_messages = r->n_types;
    ret->group = r->group;
    if (!make_part(r, ret, err)) {
        r->next_part = r->n_parts;
        return OTLP_STEP_BAD;
    }
    return OTLP_STEP_PROFILE;
}
