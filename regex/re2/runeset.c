/* Sets of runes: see runeset.h. */
#include "regex/re2/runeset.h"

#include <stdlib.h>

#include "base/unicode.h"

void runeset_done(struct runeset *s)
{
    free(s->at);
    *s = (struct runeset){0};
}

void runeset_add(struct runeset *s, uint32_t lo, uint32_t hi)
{
    if (s->failed) {
        return;
    }
    if (s->n == s->cap) {
        size_t cap = s->cap == 0 ? 16 : 2 * s->cap;
        struct rune_range *at = realloc(s->at, cap * sizeof(*at));
        if (at == NULL) {
            s->failed = true;
            return;
        }
        s->at = at;
        s->cap = cap;
    }
    s->at[s->n++] = (struct rune_range){lo, hi};
}

/* Adds the other runes of the cycle that a rune belongs to. */
static void add_cycle(struct runeset *s, uint32_t rune)
{
    for (uint32_t r = rune_fold(rune); r != rune; r = rune_fold(r)) {
        runeset_add(s, r, r);
    }
}

void runeset_add_folded(struct runeset *s, uint32_t lo, uint32_t hi)
{
    runeset_add(s, lo, hi);
    for (size_t i = 0; i < unicode_n_case_ranges; i++) {
        const struct case_range *r = &unicode_case_ranges[i];
        uint32_t from = r->lo > lo ? r->lo : lo;
        uint32_t to = r->hi < hi ? r->hi : hi;
        for (uint32_t rune = from; rune <= to; rune++) {
            add_cycle(s, rune);
        }
    }
    /* Some runes have a cycle but no case of their own, such as U+00DF. */
    for (size_t i = 0; i < unicode_n_orbits; i++) {
        uint32_t rune = unicode_orbits[i].rune;
        if (lo <= rune && rune <= hi) {
            add_cycle(s, rune);
        }
    }
}

void runeset_add_all(struct runeset *s, const struct runeset *other)
{
    for (size_t i = 0; i < other->n; i++) {
        runeset_add(s, other->at[i].lo, other->at[i].hi);
    }
    s->failed = s->failed || other->failed;
}

static int range_cmp(const void *a, const void *b)
{
    const struct rune_range *x = a;
    const struct rune_range *y = b;
    if (x->lo != y->lo) {
        return x->lo < y->lo ? -1 : 1;
    }
    return x->hi < y->hi ? -1 : x->hi > y->hi;
}

void runeset_clean(struct runeset *s)
{
    if (s->n < 2) {
        return;
    }
    qsort(s->at, s->n, sizeof(s->at[0]), range_cmp);
    size_t last = 0;
    for (size_t i = 1; i < s->n; i++) {
        if (s->at[i].lo <= s->at[last].hi + 1) {
            if (s->at[i].hi > s->at[last].hi) {
                s->at[last].hi = s->at[i].hi;
            }
        } else {
            s->at[++last] = s->at[i];
        }
    }
    s->n = last + 1;
}

void runeset_negate(struct runeset *s)
{
    uint32_t next = 0; /* the first rune after the ranges so far */
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct rune_range r = s->at[i];
        if (next < r.lo) {
            s->at[n++] = (struct rune_range){next, r.lo - 1};
        }
        next = r.hi + 1;
    }
    s->n = n;
    if (next <= RUNE_MAX) {
        runeset_add(s, next, RUNE_MAX);
    }
}
