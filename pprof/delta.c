#include "pprof/delta.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/columns.h"
#include "pprof/delta_private.h"
#include "pprof/gzip.h"

/* Odd multipliers, 3 modulo 4, that keep the order of frames in a key. */
#define ORDER_0 UINT64_C(0x9e3779b97f4a7c17)
#define ORDER_1 UINT64_C(0xc2b2ae3d27d4eb4f)

/* Which columns are counters. */
struct columns {
    size_t types;
    size_t n;                    /* counters */
    uint8_t at[DELTA_TYPES_MAX]; /* their columns */
    uint64_t key;                /* of their names in order */
};

struct making {
    const struct delta_input *in;
    const struct delta_state *old; /* NULL: none */
    struct scratch *scratch;       /* all memory except the result */
    struct pprof_index x;
    struct columns columns;
    struct delta_stack *stacks;
    int64_t *values; /* rows of columns.types */
    size_t n;
    uint32_t *slots; /* stack + 1 by key, 0 where free */
    size_t mask;
    bool *seen; /* slots of the baseline whose stacks are in this profile */
    struct err *err;
};

/* ---- columns --------------------------------------------------------------------------------- */

static void choose_columns(const struct pprof_index *x, bool any_counter, struct columns *ret)
{
    const struct pprof_value_type *types = x->summary.types;
    bool is_counter[SUMMARY_TYPES_MAX];
    *ret = (struct columns){.types = x->summary.n[PROFILE_SAMPLE_TYPE]};
    pprof_counters(x, any_counter, is_counter);
    for (size_t i = 0; i < ret->types; i++) {
        struct sv type = pprof_string(x, types[i].type);
        struct sv unit = pprof_string(x, types[i].unit);
        if (is_counter[i]) {
            ret->at[ret->n++] = (uint8_t)i;
            ret->key = hash_bytes(type.p, type.n, ret->key);
            ret->key = hash_bytes(unit.p, unit.n, ret->key);
        }
    }
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* A sample that is being read. */
struct reading {
    struct pprof_key frames;
    struct pprof_key labels; /* a sum, since their order does not matter */
    uint64_t n_frames;
    uint64_t n_labels;
    int64_t values[DELTA_TYPES_MAX];
    size_t n_values;
};

static bool read_frames(const struct making *m, const struct wire_field *f, size_t at,
                        struct reading *s)
{
    const struct pprof_ids *known = &m->x.entries[PROFILE_LOCATION].ids;
    struct wire_numbers ids = wire_numbers_of(f);
    uint64_t id;
    size_t place;
    while (wire_numbers_next(&ids, &id)) {
        if (!pprof_ids_find(known, id, &place)) {
            return err_set(m->err, ERR_INPUT, "sample at byte %zu: location %llu is not there", at,
                           (unsigned long long)id);
        }
        const struct pprof_key *key = &m->x.location_keys[place];
        s->frames.half[0] = s->frames.half[0] * ORDER_0 + key->half[0];
        s->frames.half[1] = s->frames.half[1] * ORDER_1 + key->half[1];
        s->n_frames++;
    }
    return true;
}

static uint64_t hash_string(const struct pprof_index *x, uint64_t i)
{
    struct sv text = pprof_string(x, i);
    return hash_bytes(text.p, text.n, x->seed);
}

static void read_label(const struct making *m, struct sv message, struct reading *s)
{
    uint64_t v[LABEL_NUM_UNIT + 1] = {0};
    wire_read_numbers(message, v, LABEL_NUM_UNIT + 1);
    const uint64_t parts[] = {
        hash_string(&m->x, v[LABEL_KEY]),
        hash_string(&m->x, v[LABEL_STR]),
        v[LABEL_NUM],
        hash_string(&m->x, v[LABEL_NUM_UNIT]),
    };
    struct pprof_key key = pprof_key_of(m->x.seed, parts, 4);
    s->labels.half[0] += key.half[0];
    s->labels.half[1] += key.half[1];
    s->n_labels++;
}

static bool read_sample(const struct making *m, struct sv message, struct reading *s)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t at = (size_t)(message.p - m->x.plain.p);
    uint64_t value;
    s->frames = s->labels = (struct pprof_key){{0, 0}};
    s->n_frames = s->n_labels = 0;
    s->n_values = 0;
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        switch (f.number) {
        case SAMPLE_LOCATION_ID:
            if (!read_frames(m, &f, at, s)) {
                return false;
            }
            break;
        case SAMPLE_VALUE:
            while (wire_numbers_next(&numbers, &value)) {
                s->values[s->n_values++] = (int64_t)value;
            }
            break;
        case SAMPLE_LABEL:
            read_label(m, f.bytes, s);
            break;
        default:
            break;
        }
    }
    for (size_t i = 0; i < m->columns.n; i++) {
        int64_t counter = s->values[m->columns.at[i]];
        if (counter < 0) {
            return err_set(m->err, ERR_INPUT, "sample at byte %zu: a counter of %lld", at,
                           (long long)counter);
        }
    }
    return true;
}

static struct pprof_key key_of(const struct making *m, const struct reading *s)
{
    const uint64_t parts[] = {
        s->frames.half[0], s->frames.half[1], s->n_frames,
        s->labels.half[0], s->labels.half[1], s->n_labels,
    };
    struct pprof_key key = pprof_key_of(m->x.seed, parts, 6);
    key.half[0] |= (key.half[0] | key.half[1]) == 0; /* 0 marks a free slot */
    return key;
}

/* The row of a stack, new or not. */
static size_t row_of(struct making *m, struct pprof_key key, struct sv sample)
{
    size_t i = (size_t)key.half[0] & m->mask;
    while (m->slots[i] != 0) {
        const struct pprof_key *other = &m->stacks[m->slots[i] - 1].key;
        if (memcmp(other, &key, sizeof(key)) == 0) {
            return m->slots[i] - 1;
        }
        i = (i + 1) & m->mask;
    }
    m->stacks[m->n] = (struct delta_stack){
        .key = key,
        .sample = {.at = (uint32_t)(sample.p - m->x.plain.p), .n = (uint32_t)sample.n},
    };
    memset(m->values + m->n * m->columns.types, 0, m->columns.types * sizeof(*m->values));
    m->slots[i] = (uint32_t)++m->n;
    return m->n - 1;
}

static bool add_sample(struct making *m, struct sv message)
{
    struct reading s;
    if (!read_sample(m, message, &s)) {
        return false;
    }
    int64_t *row = m->values + row_of(m, key_of(m, &s), message) * m->columns.types;
    for (size_t i = 0; i < m->columns.types; i++) {
        if (__builtin_add_overflow(row[i], s.values[i], &row[i])) {
            return err_set(m->err, ERR_INPUT,
                           "sample at byte %zu: the values of its stack are too large",
                           (size_t)(message.p - m->x.plain.p));
        }
    }
    return true;
}

static bool make_stacks(struct making *m)
{
    size_t n = m->x.summary.n[PROFILE_SAMPLE];
    m->slots = scratch_slots(m->scratch, n, &m->mask);
    m->stacks = scratch_array(m->scratch, n, sizeof(*m->stacks));
    m->values = scratch_array(m->scratch, n, m->columns.types * sizeof(*m->values));
    return m->slots != NULL && m->stacks != NULL && m->values != NULL;
}

static bool read_stacks(struct making *m)
{
    if (!make_stacks(m)) {
        return err_memory(m->err);
    }
    struct wire_reader r = wire_reader_of(m->x.plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE && !add_sample(m, f.bytes)) {
            return false;
        }
    }
    return true;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static uint64_t add_capped(uint64_t a, int64_t b)
{
    uint64_t sum = a + (uint64_t)b;
    return sum < a ? UINT64_MAX : sum;
}

/* Finds each stack in the baseline. False if a counter of one fell. */
static bool none_fell(struct making *m, uint64_t *totals)
{
    const struct columns *c = &m->columns;
    bool ok = true;
    for (size_t i = 0; i < m->n; i++) {
        const int64_t *row = m->values + i * c->types;
        size_t slot;
        bool known = delta_state_find(m->old, m->stacks[i].key, &slot);
        const int64_t *before = known ? delta_state_values(m->old, slot) : NULL;
        if (known) {
            m->stacks[i].old_slot = (uint32_t)slot + 1;
            m->seen[slot] = true;
        }
        for (size_t j = 0; j < c->n; j++) {
            ok = ok && (!known || row[c->at[j]] >= before[j]);
            totals[j] = add_capped(totals[j], row[c->at[j]]);
        }
    }
    return ok;
}

/* False if a total fell, or if the stacks that made up most of one are gone: another process, whose
 * frames have other addresses. */
static bool none_gone(const struct making *m, const uint64_t *totals)
{
    uint64_t before[DELTA_TYPES_MAX] = {0};
    uint64_t gone[DELTA_TYPES_MAX] = {0};
    for (size_t slot = 0; slot < m->old->cap; slot++) {
        const int64_t *values = delta_state_values(m->old, slot);
        if (delta_state_is_free(m->old, slot) || m->old->ages[slot] > 0) {
            continue;
        }
        for (size_t j = 0; j < m->old->columns; j++) {
            before[j] = add_capped(before[j], values[j]);
            gone[j] = add_capped(gone[j], m->seen[slot] ? 0 : values[j]);
        }
    }
    for (size_t j = 0; j < m->old->columns; j++) {
        if (totals[j] < before[j] || gone[j] > before[j] / 2) {
            return false;
        }
    }
    return true;
}

/* Says what can be made of the profile: DELTA_MADE, DELTA_FIRST or DELTA_REBASED. False if out of
 * memory. */
static bool compare(struct making *m, enum delta_result *ret)
{
    uint64_t totals[DELTA_TYPES_MAX] = {0};
    *ret = m->old == NULL ? DELTA_FIRST : DELTA_REBASED;
    if (m->old == NULL || m->old->columns != m->columns.n ||
        m->old->columns_key != m->columns.key) {
        return true;
    }
    m->seen = scratch_zeroed(m->scratch, m->old->cap, sizeof(*m->seen));
    if (m->seen == NULL) {
        return err_memory(m->err);
    }
    if (none_fell(m, totals) && none_gone(m, totals)) {
        *ret = DELTA_MADE;
    }
    return true;
}

/* ---- the new baseline ------------------------------------------------------------------------ */

static bool has_counts(const struct making *m, size_t row)
{
    for (size_t j = 0; j < m->columns.n; j++) {
        if (m->values[row * m->columns.types + m->columns.at[j]] != 0) {
            return true;
        }
    }
    return false;
}

/* Is it a stack that this profile does not have, and that is not to be forgotten yet? */
static bool is_kept(const struct making *m, size_t slot)
{
    return !delta_state_is_free(m->old, slot) && !m->seen[slot] &&
           m->old->ages[slot] + 1 < DELTA_AGE_MAX;
}

/* keep: stacks of the baseline that this profile does not have are kept for a while. */
static struct delta_state *make_next(const struct making *m, bool keep)
{
    const struct columns *c = &m->columns;
    size_t n = 0;
    for (size_t slot = 0; keep && slot < m->old->cap; slot++) {
        n += is_kept(m, slot);
    }
    for (size_t i = 0; i < m->n; i++) {
        n += has_counts(m, i);
    }
    struct delta_state *next =
        scratch_charge(m->scratch, delta_state_bytes(n, c->n)) ? delta_state_new(n, c->n) : NULL;
    if (next == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < m->n; i++) {
        int64_t counts[DELTA_TYPES_MAX];
        for (size_t j = 0; j < c->n; j++) {
            counts[j] = m->values[i * c->types + c->at[j]];
        }
        if (has_counts(m, i)) {
            delta_state_add(next, m->stacks[i].key, counts, 0);
        }
    }
    for (size_t slot = 0; keep && slot < m->old->cap; slot++) {
        if (is_kept(m, slot)) {
            delta_state_add(next, m->old->keys[slot], delta_state_values(m->old, slot),
                            (uint8_t)(m->old->ages[slot] + 1));
        }
    }
    next->columns_key = c->key;
    next->time_nanos = m->x.summary.time_ns;
    next->plain_size = m->x.plain.n;
    return next;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Replaces the counters by their growth, or by 0 if it is unknown. */
static void subtract(struct making *m, bool known)
{
    const struct columns *c = &m->columns;
    for (size_t i = 0; i < m->n; i++) {
        int64_t *row = m->values + i * c->types;
        uint32_t slot = m->stacks[i].old_slot;
        const int64_t *before = known && slot != 0 ? delta_state_values(m->old, slot - 1) : NULL;
        for (size_t j = 0; j < c->n; j++) {
            int64_t *value = &row[c->at[j]];
            *value = !known ? 0 : *value - (before == NULL ? 0 : before[j]);
        }
    }
}

static int64_t duration_of(const struct making *m, bool known)
{
    int64_t now = m->x.summary.time_ns;
    bool measured = known && m->old->time_nanos > 0 && now > m->old->time_nanos;
    return measured ? now - m->old->time_nanos : m->x.summary.duration_ns;
}

static bool write_out(struct making *m, bool known, struct delta_output *ret)
{
    struct buf *plain = scratch_buf(m->scratch);
    buf_reserve(plain, m->x.plain.n); /* most of the time less is needed */
    ret->samples_out = delta_write(&m->x, m->stacks, m->values, m->n, duration_of(m, known), plain);
    return buf_ok(plain) &&
           (ret->samples_out == 0 ||
            gzip_pack(m->scratch, (struct sv){plain->data, plain->len}, &ret->data, &ret->size));
}

static bool finish(struct making *m, struct delta_output *ret, enum delta_result *ret_result)
{
    if (!compare(m, ret_result)) {
        return false;
    }
    bool known = *ret_result == DELTA_MADE;
    ret->stacks_in = m->n;
    ret->next = make_next(m, known);
    if (ret->next == NULL) {
        return err_memory(m->err);
    }
    subtract(m, known);
    return write_out(m, known, ret) || err_memory(m->err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool make_of_plain(struct making *m, struct sv plain, struct delta_output *ret,
                          enum delta_result *ret_result)
{
    struct pprof_summary summary;
    if (plain.n > DELTA_PLAIN_MAX) {
        return err_set(m->err, ERR_LIMIT, "larger than %zu bytes", DELTA_PLAIN_MAX);
    }
    if (!pprof_check(plain, &summary, m->err) || !pprof_small_enough(summary.n, "delta", m->err) ||
        !pprof_index(&m->x, m->scratch, plain, &summary, m->in->seed, m->err)) {
        return false;
    }
    choose_columns(&m->x, m->in->any_counter, &m->columns);
    if (m->columns.n == 0) {
        *ret_result = DELTA_PASSED;
        return true;
    }
    return read_stacks(m) && finish(m, ret, ret_result);
}

/* The result of a failure; damaged: the one to use if the input is wrong. */
static enum delta_result failure(const struct making *m, enum delta_result damaged)
{
    struct err *err = m->err;
    scratch_explain(m->scratch, err);
    if (err->kind == ERR_LIMIT) {
        return DELTA_TOO_LARGE;
    }
    return err->kind == ERR_MEMORY ? DELTA_NO_MEMORY : damaged;
}

enum delta_result delta_make(const struct delta_input *in, struct delta_output *ret,
                             struct err *err)
{
    struct making m = {.in = in, .old = in->baseline, .scratch = in->scratch, .err = err};
    struct sv plain;
    size_t last = m.old == NULL ? 0 : m.old->plain_size;
    enum delta_result r = DELTA_PASSED;
    *ret = (struct delta_output){.data = NULL};
    if (!gzip_plain(m.scratch, in->body, DELTA_PLAIN_MAX, last + last / 16, &plain, err)) {
        return failure(&m, DELTA_BAD_GZIP);
    }
    if (!make_of_plain(&m, plain, ret, &r)) {
        delta_output_done(ret);
        return failure(&m, DELTA_BAD_PPROF);
    }
    return r;
}

void delta_output_done(struct delta_output *o)
{
    free(o->data);
    delta_state_unref(o->next);
    *o = (struct delta_output){.data = NULL};
}

const char *delta_result_name(enum delta_result r)
{
    static const char *const names[] = {
        [DELTA_MADE] = "delta",          [DELTA_FIRST] = "first",
        [DELTA_REBASED] = "rebased",     [DELTA_PASSED] = "passed",
        [DELTA_BAD_GZIP] = "bad_gzip",   [DELTA_BAD_PPROF] = "bad_pprof",
        [DELTA_TOO_LARGE] = "too_large", [DELTA_NO_MEMORY] = "memory",
    };
    return names[r];
}
