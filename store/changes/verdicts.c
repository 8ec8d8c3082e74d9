#include "store/changes/verdicts.h"

#include <math.h>
#include <stdlib.h>

#include "store/changes/chance.h"
#include "store/changes/moments.h"
#include "store/changes/norm.h"

#define INTERVAL_OUTSIDE 0.05
/* A total that is less than this times the self of the function would be the same test again. */
#define TOTAL_WORTH 1.05

/* One test: a cost of a function. */
struct test {
    struct cost_change *change;
    struct moments m;
    int cost;
};

struct comparison {
    const struct observations *o;
    struct arena *arena;
    const double *factors;
    struct test *tests;
    size_t n_tests;
    size_t instances[SIDES];
    struct verdicts *v;
};

/* ---- measuring ------------------------------------------------------------------------------- */

static bool is_worth(const struct cost_change *self, const struct test *t)
{
    double own = (self->share.base + self->share.now) / SIDES;
    double share = (t->m.share[SIDE_BASE] + t->m.share[SIDE_NEW]) / SIDES;
    return share >= SHARE_TESTED_MIN && t->m.samples >= SAMPLES_TESTED_MIN &&
           (t->cost == COST_SELF || share > TOTAL_WORTH * own);
}

static void measure_cost(struct comparison *c, struct function_change *f, int cost)
{
    struct test *t = &c->tests[c->n_tests];
    struct cost_change *change = &f->cost[cost];
    size_t cells = (c->o->n[SIDE_BASE] + c->o->n[SIDE_NEW]) * SLOTS;
    t->change = change;
    t->cost = cost;
    moments_make(c->o, c->factors, f->index, cost, &t->m);
    change->rate = moments_rate(c->o, c->o->cells[f->index] + (size_t)cost * cells);
    change->share = (struct estimate){.base = t->m.share[SIDE_BASE],
                                      .now = t->m.share[SIDE_NEW],
                                      .low = -HUGE_VAL,
                                      .high = HUGE_VAL};
    change->share.difference = change->share.now - change->share.base;
    change->effect = t->m.cost[SIDE_NEW] - t->m.cost[SIDE_BASE];
    change->effect_low = -HUGE_VAL;
    change->effect_high = HUGE_VAL;
    change->p = 1;
    if (c->v->can_tell && is_worth(&f->cost[COST_SELF], t)) {
        change->tested = true;
        c->n_tests++;
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

static bool test_all(struct comparison *c, struct err *err)
{
    struct chance_prior prior;
    const struct moments **all = arena_array(c->arena, c->n_tests + 1, sizeof(struct moments *));
    double *room = arena_array(c->arena, SIDES * c->n_tests + 1, sizeof(*room));
    if (all == NULL || room == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < c->n_tests; i++) {
        all[i] = &c->tests[i].m;
    }
    chance_prior_make(all, c->n_tests, c->instances, room, &prior);
    for (size_t i = 0; i < c->n_tests; i++) {
        const struct test *t = &c->tests[i];
        struct cost_change *change = t->change;
        struct chance chance;
        chance_make(&prior, &t->m, &chance);
        double half = chance_difference(&chance, INTERVAL_OUTSIDE) * t->m.mean;
        change->p = chance_p(&chance, change->effect / t->m.mean);
        change->effect_low = change->effect - half;
        change->effect_high = change->effect + half;
        change->share.low = change->share.difference - half;
        change->share.high = change->share.difference + half;
    }
    return true;
}

static int compare_numbers(double x, double y)
{
    return x < y ? -1 : x > y;
}

static int compare_tests(const void *a, const void *b)
{
    const struct test *x = a;
    const struct test *y = b;
    return compare_numbers(x->change->p, y->change->p);
}

/* Benjamini and Hochberg: the verdict holds for all tests up to the last one whose p is at most its
 * part of FALSE_RATE, unless the effect is too small to matter. */
static void decide(struct comparison *c)
{
    size_t n = c->n_tests;
    size_t accepted = 0;
    qsort(c->tests, n, sizeof(c->tests[0]), compare_tests);
    for (size_t i = 0; i < n; i++) {
        if (c->tests[i].change->p <= FALSE_RATE * (double)(i + 1) / (double)n) {
            accepted = i + 1;
        }
    }
    for (size_t i = 0; i < accepted; i++) {
        struct cost_change *change = c->tests[i].change;
        change->changed = fabs(change->effect) >= EFFECT_MIN;
    }
    c->v->n_tested = n;
}

/* ---- the result ------------------------------------------------------------------------------ */

bool verdicts_changed(const struct function_change *f)
{
    return f->cost[COST_SELF].changed || f->cost[COST_TOTAL].changed;
}

/* Verdicts about self come before those about total alone, which are mostly callers. */
static int rank(const struct function_change *f)
{
    return f->cost[COST_SELF].changed ? 2 : f->cost[COST_TOTAL].changed;
}

static int compare_functions(const void *a, const void *b)
{
    const struct function_change *x = a;
    const struct function_change *y = b;
    int cost = rank(x) == 1 ? COST_TOTAL : COST_SELF;
    if (rank(x) != rank(y)) {
        return rank(y) - rank(x);
    }
    double left = fabs(x->cost[cost].effect);
    double right = fabs(y->cost[cost].effect);
    return left != right ? compare_numbers(right, left)
                         : (x->index < y->index ? -1 : x->index > y->index);
}

/* Sets the ratio: the sum of the effects of all functions whose self has changed or, if it is
 * larger, the effect of the total of one function. A change that is spread over many callees shows
 * in the total of their caller alone. */
static void conclude(struct verdicts *v)
{
    double sum = 0;
    double total = 0;
    for (size_t i = 0; i < v->n; i++) {
        const struct cost_change *cost = v->at[i].cost;
        bool more = fabs(cost[COST_TOTAL].effect) > fabs(total);
        v->n_changed += verdicts_changed(&v->at[i]);
        sum += cost[COST_SELF].changed ? cost[COST_SELF].effect : 0;
        total = cost[COST_TOTAL].changed && more ? cost[COST_TOTAL].effect : total;
    }
    v->ratio = 1 + (fabs(total) > fabs(sum) ? total : sum);
    qsort(v->at, v->n, sizeof(v->at[0]), compare_functions);
}

bool verdicts_make(const struct observations *o, struct arena *arena, struct verdicts *ret,
                   struct err *err)
{
    struct comparison c = {.o = o, .arena = arena, .v = ret};
    *ret = (struct verdicts){.n = o->n_functions, .total = moments_rate(o, o->totals)};
    ret->can_tell = true;
    for (int side = 0; side < SIDES; side++) {
        c.instances[side] = moments_instances(o, side);
        ret->can_tell = ret->can_tell && c.instances[side] >= INSTANCES_MIN;
    }
    ret->at = arena_array(arena, o->n_functions + 1, sizeof(ret->at[0]));
    c.tests = arena_array(arena, COSTS * o->n_functions + 1, sizeof(c.tests[0]));
    c.factors = norm_factors(o, arena, &ret->shift, err);
    if (ret->at == NULL || c.tests == NULL || c.factors == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < o->n_functions; i++) {
        ret->at[i].index = i;
        measure_cost(&c, &ret->at[i], COST_SELF);
        measure_cost(&c, &ret->at[i], COST_TOTAL);
    }
    if (ret->can_tell && !test_all(&c, err)) {
        return false;
    }
    decide(&c);
    conclude(ret);
    return true;
}
