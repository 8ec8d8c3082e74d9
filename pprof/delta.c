#include "pprof/delta.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/columns.h"
#include "pprof/delta_private.h"

/* The most bytes of a delta that is compressed at GZIP_QUICK instead of GZIP_FAST. */
#define QUICK_MAX ((size_t)256 * 1024)

struct making {
    const struct delta_input *in;
    const struct delta_state *old; /* NULL: none */
    struct scratch *scratch;       /* all memory except the result */
    struct pprof_index x;
    struct delta_columns columns;
    struct delta_stacks s;
    const struct delta_state *base; /* the baseline if it has the same columns, or NULL */
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

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum = a + b;
    return sum < a ? UINT64_MAX : sum;
}

/* Facts about the counters, by column, that a walk over the stacks collects. */
struct comparison {
    uint64_t bits[DELTA_TYPES_MAX];   /* all values joined by OR, which gives their width */
    uint64_t totals[DELTA_TYPES_MAX]; /* now */
    uint64_t before[DELTA_TYPES_MAX]; /* earlier totals of the stacks of the last profile */
    uint64_t gone[DELTA_TYPES_MAX];   /* the part of these that this profile lacks */
    size_t counted;                   /* stacks with a counter that is not 0 */
    bool fell;                        /* a counter of a stack is smaller than it was */
};

/* Compares the counters of each stack with those in the baseline. */
static void compare_stacks(const struct making *m, struct comparison *r)
{
    const struct delta_columns *c = &m->columns;
    const struct delta_state *base = m->base;
    for (size_t i = 0; i < m->s.n; i++) {
        const int64_t *row = m->s.values + i * c->types;
        size_t old = m->s.rows[i].old;
        bool known = base != NULL && old > 0;
        bool fresh = known && base->ages[old - 1] == 0;
        uint64_t any = 0;
        for (size_t j = 0; j < c->n; j++) {
            uint64_t now = (uint64_t)row[c->at[j]];
            uint64_t before = known ? delta_state_value(base, old - 1, j) : 0;
            any |= now;
            r->bits[j] |= now;
            r->totals[j] = add_capped(r->totals[j], now);
            r->before[j] = add_capped(r->before[j], fresh ? before : 0);
            r->fell = r->fell || now < before;
        }
        r->counted += any != 0;
    }
}

/* Returns the number of stacks of the baseline to search for stacks that are gone: all or, nearly
 * always, none. */
static size_t n_maybe_gone(const struct making *m)
{
    return m->s.n_found < m->s.n_old ? m->s.n_old : 0;
}

/* Returns true if this profile does not have the i-th stack of the baseline. */
static bool is_gone(const struct making *m, size_t i)
{
    return m->s.row_of[i] == 0;
}

/* Returns false if a total fell, or if the stacks that made up most of a total are gone. Then it is
 * another process, whose frames have other addresses. */
static bool none_gone(const struct making *m, struct comparison *r)
{
    for (size_t i = 0; i < n_maybe_gone(m); i++) {
        for (size_t j = 0; j < m->old->columns && is_gone(m, i) && m->old->ages[i] == 0; j++) {
            r->gone[j] = add_capped(r->gone[j], delta_state_value(m->old, i, j));
        }
    }
    for (size_t j = 0; j < m->old->columns; j++) {
        uint64_t before = add_capped(r->before[j], r->gone[j]);
        if (r->totals[j] < before || r->gone[j] > before / 2) {
            return false;
        }
    }
    return true;
}

/* Decides what is made of the profile: DELTA_MADE, DELTA_FIRST or DELTA_REBASED. */
static enum delta_result compare(const struct making *m, struct comparison *r)
{
    compare_stacks(m, r);
    if (m->base != NULL && !r->fell && none_gone(m, r)) {
        return DELTA_MADE;
    }
    return m->old == NULL ? DELTA_FIRST : DELTA_REBASED;
}

/* ---- the new baseline ------------------------------------------------------------------------ */

/* Returns true if this profile does not have the i-th stack of the baseline, and it is not to be
 * forgotten yet. */
static bool is_kept(const struct making *m, size_t i)
{
    return is_gone(m, i) && m->old->ages[i] + 1 < DELTA_AGE_MAX;
}

/* Makes the new baseline, empty, with room for the stacks of this profile and, if keep is set, for
 * stacks of the old baseline that this profile does not have. Returns NULL if out of memory. */
static struct delta_state *new_baseline(const struct making *m, struct comparison *r, bool keep)
{
    size_t kept = 0;
    for (size_t i = 0; keep && i < n_maybe_gone(m); i++) {
        kept += is_kept(m, i);
    }
    for (size_t j = 0; kept > 0 && j < m->columns.n; j++) {
        r->bits[j] |= m->old->column[j].mask;
    }
    struct delta_state *next =
        delta_state_new(m->scratch, r->counted + kept, r->bits, m->columns.n);
    if (next != NULL) {
        next->columns_key = m->columns.key;
        next->time_nanos = m->x.summary.time_ns;
        next->plain_size = m->x.plain.n;
    }
    return next;
}

/* Adds the stacks that this profile does not have. They come last, so that the next profile finds
 * its own without a table. */
static void keep_missing(const struct making *m, struct delta_state *next)
{
    uint64_t counts[DELTA_TYPES_MAX] = {0};
    for (size_t i = 0; i < n_maybe_gone(m); i++) {
        for (size_t j = 0; j < m->old->columns && is_kept(m, i); j++) {
            counts[j] = delta_state_value(m->old, i, j);
        }
        if (is_kept(m, i)) {
            delta_state_add(next, m->old->keys[i], counts, (uint8_t)(m->old->ages[i] + 1));
        }
    }
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Adds the counters of each stack to the new baseline, and replaces them by their growth, or by 0
 * if it is unknown. Notes the stacks that then have a value other than 0. */
static void subtract(struct making *m, bool known, struct delta_state *next)
{
    const struct delta_columns *c = &m->columns;
    uint64_t counts[DELTA_TYPES_MAX] = {0};
    for (size_t i = 0; i < m->s.n; i++) {
        int64_t *row = m->s.values + i * c->types;
        size_t old = known ? m->s.rows[i].old : 0;
        uint64_t any = 0;
        for (size_t j = 0; j < c->n; j++) {
            int64_t *value = &row[c->at[j]];
            uint64_t before = old == 0 ? 0 : delta_state_value(m->old, old - 1, j);
            counts[j] = (uint64_t)*value;
            any |= counts[j];
            *value = known ? (int64_t)(counts[j] - before) : 0;
        }
        if (any != 0) {
            delta_state_add(next, m->s.rows[i].key, counts, 0);
        }
        any = 0;
        for (size_t j = 0; j < c->types; j++) {
            any |= (uint64_t)row[j];
        }
        m->s.moved[m->s.n_moved] = (uint32_t)i;
        m->s.n_moved += any != 0;
    }
}

static int64_t duration_of(const struct making *m, bool known)
{
    int64_t now = m->x.summary.time_ns;
    bool measured = known && m->old->time_nanos > 0 && now > m->old->time_nanos;
    return measured ? now - m->old->time_nanos : m->x.summary.duration_ns;
}

/* Returns the level for a delta of this size. Up to QUICK_MAX, GZIP_QUICK takes three to seven
 * tenths of the time of GZIP_FAST; beyond, it would save a fifth. */
static enum gzip_level level_of(const struct making *m, size_t size)
{
    bool quick = m->in->level == GZIP_FAST && size <= QUICK_MAX;
    return quick ? GZIP_QUICK : m->in->level;
}

static bool write_out(struct making *m, bool known, struct delta_output *ret)
{
    struct buf *plain = scratch_buf(m->scratch);
    /* An upper estimate: a delta is usually smaller than the profile. */
    buf_reserve(plain, m->x.plain.n);
    ret->samples_out = m->s.n_moved;
    return m->s.n_moved == 0 ||
           (delta_write(&m->x, &m->s, duration_of(m, known), m->scratch, plain) &&
            pprof_rewrite_pack(m->in->rewrite, m->scratch, (struct sv){plain->data, plain->len},
                               level_of(m, plain->len), &ret->data, &ret->size));
}

static bool finish(struct making *m, struct delta_output *ret, enum delta_result *ret_result)
{
    struct comparison r = {.counted = 0};
    *ret_result = compare(m, &r);
    bool known = *ret_result == DELTA_MADE;
    ret->stacks_in = m->s.n;
    ret->has_texts = m->s.has_texts;
    ret->next = new_baseline(m, &r, known);
    if (ret->next == NULL) {
        return err_memory(m->err);
    }
    subtract(m, known, ret->next);
    if (known) {
        keep_missing(m, ret->next);
    }
    return write_out(m, known, ret) || err_memory(m->err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool make_of_plain(struct making *m, struct sv plain, struct delta_output *ret,
                          enum delta_result *ret_result)
{
    if (plain.n > DELTA_PLAIN_MAX) {
        return err_set(m->err, ERR_LIMIT, "larger than %zu bytes", DELTA_PLAIN_MAX);
    }
    if (!pprof_index_frame(&m->x, m->scratch, plain, "delta", m->in->seed, m->err)) {
        return false;
    }
    choose_columns(&m->x, m->in->any_counter, &m->columns);
    if (m->columns.n == 0) {
        *ret_result = DELTA_PASSED;
        struct pprof_summary summary;
        return pprof_check(plain, &summary, m->err);
    }
    bool same =
        m->old != NULL && m->old->columns == m->columns.n && m->old->columns_key == m->columns.key;
    m->base = same ? m->old : NULL;
    return (pprof_index_keys(&m->x, m->scratch) || err_memory(m->err)) &&
           delta_stacks_read(&m->s, &m->x, &m->columns, m->base, m->scratch, m->err) &&
           finish(m, ret, ret_result);
}

/* Returns the result of a failure. damaged: the result if the input is wrong. */
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
