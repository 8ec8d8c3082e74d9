#include "pprof/delta.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/columns.h"
#include "pprof/delta_private.h"

struct making {
    const struct delta_input *in;
    const struct delta_state *old; /* NULL: none */
    struct scratch *scratch;       /* all memory except the result */
    struct pprof_index x;
    struct delta_columns columns;
    struct delta_stacks s;
    bool *seen; /* stacks of the baseline that are in this profile */
    struct err *err;
};

/* ---- columns --------------------------------------------------------------------------------- */

static void choose_columns(const struct pprof_index *x, bool any_counter, struct delta_columns *ret)
{
    const struct pprof_value_type *types = x->summary.types;
    bool is_counter[SUMMARY_TYPES_MAX];
    *ret = (struct delta_columns){.types = x->summary.n[PROFILE_SAMPLE_TYPE]};
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

/* ---- comparing ------------------------------------------------------------------------------- */

static uint64_t add_capped(uint64_t a, int64_t b)
{
    uint64_t sum = a + (uint64_t)b;
    return sum < a ? UINT64_MAX : sum;
}

/* Finds each stack in the baseline. False if a counter of one fell. */
static bool none_fell(struct making *m, struct delta_finder *finder, uint64_t *totals)
{
    const struct delta_columns *c = &m->columns;
    bool ok = true;
    for (size_t i = 0; i < m->s.n; i++) {
        const int64_t *row = m->s.values + i * c->types;
        size_t at;
        bool known = delta_find(finder, m->s.rows[i].key, &at);
        const int64_t *before = known ? delta_state_values(m->old, at) : NULL;
        if (known) {
            m->s.rows[i].old = (uint32_t)at + 1;
            m->seen[at] = true;
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
    for (size_t i = 0; i < m->old->n; i++) {
        const int64_t *values = delta_state_values(m->old, i);
        for (size_t j = 0; j < m->old->columns && m->old->ages[i] == 0; j++) {
            before[j] = add_capped(before[j], values[j]);
            gone[j] = add_capped(gone[j], m->seen[i] ? 0 : values[j]);
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
    struct delta_finder finder = {.state = m->old, .scratch = m->scratch};
    m->seen = scratch_zeroed(m->scratch, m->old->n, sizeof(*m->seen));
    if (m->seen == NULL) {
        return err_memory(m->err);
    }
    if (none_fell(m, &finder, totals) && none_gone(m, totals)) {
        *ret = DELTA_MADE;
    }
    return !finder.no_memory || err_memory(m->err);
}

/* ---- the new baseline ------------------------------------------------------------------------ */

static bool has_counts(const struct making *m, size_t row)
{
    for (size_t j = 0; j < m->columns.n; j++) {
        if (m->s.values[row * m->columns.types + m->columns.at[j]] != 0) {
            return true;
        }
    }
    return false;
}

/* Is it a stack that this profile does not have, and that is not to be forgotten yet? */
static bool is_kept(const struct making *m, size_t i)
{
    return !m->seen[i] && m->old->ages[i] + 1 < DELTA_AGE_MAX;
}

/* keep: stacks of the baseline that this profile does not have are kept for a while. */
static struct delta_state *make_next(const struct making *m, bool keep)
{
    const struct delta_columns *c = &m->columns;
    size_t n_old = keep ? m->old->n : 0;
    size_t n = 0;
    for (size_t i = 0; i < n_old; i++) {
        n += is_kept(m, i);
    }
    for (size_t i = 0; i < m->s.n; i++) {
        n += has_counts(m, i);
    }
    struct delta_state *next =
        scratch_charge(m->scratch, delta_state_bytes(n, c->n)) ? delta_state_new(n, c->n) : NULL;
    if (next == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < m->s.n; i++) {
        int64_t counts[DELTA_TYPES_MAX];
        for (size_t j = 0; j < c->n; j++) {
            counts[j] = m->s.values[i * c->types + c->at[j]];
        }
        if (has_counts(m, i)) {
            delta_state_add(next, m->s.rows[i].key, counts, 0);
        }
    }
    for (size_t i = 0; i < n_old; i++) {
        if (is_kept(m, i)) {
            delta_state_add(next, m->old->keys[i], delta_state_values(m->old, i),
                            (uint8_t)(m->old->ages[i] + 1));
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
    const struct delta_columns *c = &m->columns;
    for (size_t i = 0; i < m->s.n; i++) {
        int64_t *row = m->s.values + i * c->types;
        uint32_t old = m->s.rows[i].old;
        const int64_t *before = known && old != 0 ? delta_state_values(m->old, old - 1) : NULL;
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
    return delta_write(&m->x, &m->s, duration_of(m, known), m->scratch, plain, &ret->samples_out) &&
           (ret->samples_out == 0 || gzip_pack_at(m->scratch, (struct sv){plain->data, plain->len},
                                                  m->in->level, &ret->data, &ret->size));
}

static bool finish(struct making *m, struct delta_output *ret, enum delta_result *ret_result)
{
    if (!compare(m, ret_result)) {
        return false;
    }
    bool known = *ret_result == DELTA_MADE;
    ret->stacks_in = m->s.n;
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
    if (!pprof_check_frame(plain, &summary, m->err) ||
        !pprof_small_enough(summary.n, "delta", m->err) ||
        !pprof_index(&m->x, m->scratch, plain, &summary, m->in->seed, m->err)) {
        return false;
    }
    choose_columns(&m->x, m->in->any_counter, &m->columns);
    if (m->columns.n == 0) {
        *ret_result = DELTA_PASSED;
        return pprof_check(plain, &summary, m->err);
    }
    return delta_stacks_read(&m->s, &m->x, &m->columns, m->scratch, m->err) &&
           finish(m, ret, ret_result);
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
