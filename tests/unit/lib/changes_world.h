/* Makes observations of a program whose truth is known: which function costs more in the new
 * version, and how much.
 *
 * The program has a tree of functions of which few take most of the time. Its instances are sampled
 * a hundred times in each second of CPU. The noise is that of a service with a load balancer:
 *
 *   load       differs between instances by 10 %, goes up and down by 20 % over the time of a side,
 *              and wanders by 10 % from minute to minute
 *   functions  the cost of one differs between instances by 0.3 to 1.2 %, and wanders from minute
 * to minute by 0.5 % in all instances together and by 1.5 % in each unusual    one of twenty
 * functions differs between instances by 30 %; one runs in a single instance of each side only (a
 * leader); one runs in one of ten minutes only samples    are Poisson distributed
 *
 * Equal seeds make equal observations.
 */
#ifndef PROFPULL_TESTS_CHANGES_WORLD_H
#define PROFPULL_TESTS_CHANGES_WORLD_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/changes/verdicts.h"

#define WORLD_FUNCTIONS 150
#define WORLD_PLANTED 38 /* the function that the new version may make more expensive */
#define WORLD_LEADER 20
#define WORLD_BURSTS 30
#define WORLD_MINUTES_MAX 60
#define WORLD_HZ 100

struct world_options {
    uint64_t seed;
    size_t instances[SIDES];
    size_t minutes;
    double load[SIDES]; /* cores that an instance uses on average */
    double growth;      /* of the planted function: 0.1 is a tenth more */
    double share;       /* of the planted function in the base */
    double noise;       /* 1: the noise of functions that is described above */
};

struct changes_world {
    struct observations o;
    double weight[WORLD_FUNCTIONS]; /* cost of each function itself; the sum is 1 */
    size_t parent[WORLD_FUNCTIONS];
    struct rng rng;
};

/* ---- numbers --------------------------------------------------------------------------------- */

static inline double world_uniform(struct rng *r)
{
    return ((double)(rng_next(r) >> 11) + 0.5) / 9007199254740992.0;
}

static inline double world_normal(struct rng *r)
{
    return sqrt(-2 * log(world_uniform(r))) * cos(2 * M_PI * world_uniform(r));
}

/* Returns how often something happens that happens `mean` times on average. */
static inline double world_poisson(struct rng *r, double mean)
{
    double n = 0;
    if (mean > 60) {
        return fmax(0, floor(mean + sqrt(mean) * world_normal(r) + 0.5));
    }
    for (double p = world_uniform(r), end = exp(-mean); p > end; p *= world_uniform(r)) {
        n++;
    }
    return n;
}

/* A value that wanders from minute to minute with a standard deviation; minutes resemble the one
 * before by 0.8. */
static inline void world_wander(struct rng *r, double sd, size_t minutes, double *ret)
{
    double at = world_normal(r);
    for (size_t m = 0; m < minutes; m++) {
        ret[m] = sd * at;
        at = 0.8 * at + 0.6 * world_normal(r);
    }
}

/* ---- the program ----------------------------------------------------------------------------- */

static inline void world_program(struct changes_world *w, const struct world_options *opt)
{
    double sum = 0;
    for (size_t f = 0; f < WORLD_FUNCTIONS; f++) {
        w->parent[f] = f == 0 ? 0 : (size_t)rng_range(&w->rng, 0, (int64_t)(f - 1) / 2);
        w->weight[f] = f == 0 || f == WORLD_PLANTED ? 0 : exp(1.2 * world_normal(&w->rng));
        sum += w->weight[f];
    }
    for (size_t f = 0; f < WORLD_FUNCTIONS; f++) {
        w->weight[f] *= (1 - opt->share) / sum;
    }
    w->weight[WORLD_PLANTED] = opt->share;
}

static inline double world_spread(size_t f)
{
    return f % 20 == 7 ? 0.3 : 0.003 + 0.009 * (double)(f % 11) / 10;
}

/* Samples one function in one instance of a side. load: cores in each minute. */
static inline void world_sample(struct changes_world *w, const struct world_options *opt, int side,
                                size_t i, size_t f, const double *load, const double *shared)
{
    double own[WORLD_MINUTES_MAX];
    double weight = w->weight[f] * exp(opt->noise * world_spread(f) * world_normal(&w->rng));
    bool leads = i == 0 || i == opt->instances[SIDE_BASE];
    weight *= side == SIDE_NEW && f == WORLD_PLANTED ? 1 + opt->growth : 1;
    weight *= f != WORLD_LEADER || leads ? 1 : 0;
    world_wander(&w->rng, 0.015 * opt->noise, opt->minutes, own);
    double mean[SLOTS] = {0};
    for (size_t m = 0; m < opt->minutes; m++) {
        double busy = f != WORLD_BURSTS ? 1 : world_uniform(&w->rng) < 0.1 ? 10 : 0;
        mean[m * SLOTS / opt->minutes] +=
            load[m] * 60 * WORLD_HZ * weight * busy * exp(own[m] + shared[m]);
    }
    /* The sum of the samples of all profiles of a slot: a sum of Poisson numbers is one, too. */
    for (size_t s = 0; s < SLOTS; s++) {
        w->o.cells[f][i * SLOTS + s] = w->o.quantum * world_poisson(&w->rng, mean[s]);
    }
}

static inline void world_side(struct changes_world *w, const struct world_options *opt, int side)
{
    double load[INSTANCES_MAX][WORLD_MINUTES_MAX];
    double shared[WORLD_MINUTES_MAX];
    size_t first = side == SIDE_BASE ? 0 : opt->instances[SIDE_BASE];
    double phase = 2 * M_PI * world_uniform(&w->rng);
    for (size_t k = 0; k < opt->instances[side]; k++) {
        double own = opt->load[side] * exp(0.1 * world_normal(&w->rng));
        world_wander(&w->rng, 0.1, opt->minutes, load[k]);
        for (size_t m = 0; m < opt->minutes; m++) {
            double wave = 1 + 0.2 * sin(phase + 2 * M_PI * (double)m / (double)opt->minutes);
            load[k][m] = own * wave * exp(load[k][m]);
            w->o.seconds[(first + k) * SLOTS + m * SLOTS / opt->minutes] += 60;
        }
    }
    for (size_t f = 0; f < WORLD_FUNCTIONS; f++) {
        world_wander(&w->rng, 0.005 * opt->noise, opt->minutes, shared);
        for (size_t k = 0; k < opt->instances[side]; k++) {
            world_sample(w, opt, side, first + k, f, load[k], shared);
        }
    }
}

/* Adds up the totals of functions and instances. */
static inline void world_sum(struct changes_world *w, size_t instances)
{
    size_t n = instances * SLOTS;
    for (size_t f = 0; f < WORLD_FUNCTIONS; f++) {
        memcpy(w->o.cells[f] + n, w->o.cells[f], n * sizeof(double));
    }
    for (size_t f = WORLD_FUNCTIONS - 1; f > 0; f--) {
        for (size_t i = 0; i < n; i++) {
            w->o.cells[w->parent[f]][n + i] += w->o.cells[f][n + i];
        }
    }
    memcpy(w->o.totals, w->o.cells[0] + n, n * sizeof(double));
}

static inline void world_done(struct changes_world *w)
{
    for (size_t f = 0; f < w->o.n_functions; f++) {
        free(w->o.cells[f]);
    }
    free(w->o.cells);
    free(w->o.totals);
    free(w->o.seconds);
}

static inline void world_init(struct changes_world *w, const struct world_options *opt)
{
    size_t n = (opt->instances[SIDE_BASE] + opt->instances[SIDE_NEW]) * SLOTS;
    *w = (struct changes_world){.o = {.n = {opt->instances[SIDE_BASE], opt->instances[SIDE_NEW]},
                                      .quantum = 1e9 / WORLD_HZ}};
    rng_seed(&w->rng, opt->seed);
    w->o.totals = calloc(n, sizeof(double));
    w->o.seconds = calloc(n, sizeof(double));
    w->o.cells = calloc(WORLD_FUNCTIONS, sizeof(double *));
    if (w->o.totals == NULL || w->o.seconds == NULL || w->o.cells == NULL) {
        abort();
    }
    for (; w->o.n_functions < WORLD_FUNCTIONS; w->o.n_functions++) {
        w->o.cells[w->o.n_functions] = calloc(COSTS * n, sizeof(double));
        if (w->o.cells[w->o.n_functions] == NULL) {
            abort();
        }
    }
    world_program(w, opt);
    world_side(w, opt, SIDE_BASE);
    world_side(w, opt, SIDE_NEW);
    world_sum(w, n / SLOTS);
}

#endif
