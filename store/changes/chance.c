#include "store/changes/chance.h"

#include <math.h>
#include <stdlib.h>

#include "store/changes/student.h"

/* Standard deviations between instances, relative to the mean: none, then 0.2 %, each further one
 * by this factor, up to 169 %. */
#define SD_FIRST 0.002
#define SD_FACTOR 1.4262
#define ROUNDS 50
/* Functions that are assumed in addition to those that are there: one with each variance, all
 * together as many as this. So no variance is impossible. */
#define ASSUMED 1.0
/* The degrees of freedom of a variance that counts as known. */
#define DF_KNOWN 200.0
/* A slot resembles the one before it, so that the mean of slots varies more than that of
 * independent ones: twice as much if neighbours are correlated by a third. */
#define ALIKE 2.0
/* A function whose slots vary by this factor more than those of others changes in time in its own
 * way. */
#define UNUSUAL 3.0

static double variance_of(size_t step)
{
    double sd = step == 0 ? 0 : SD_FIRST * pow(SD_FACTOR, (double)step - 1);
    return sd * sd;
}

/* Fills in how well each variance explains a spread: the density of chi squared, without factors
 * that all steps share. The largest one is 1. */
static void explain(double df, const struct moments *m, double ret[CHANCE_STEPS])
{
    double best = -HUGE_VAL;
    for (size_t k = 0; k < CHANCE_STEPS; k++) {
        double v = m->floor + variance_of(k);
        ret[k] = -df / 2 * (log(v) + m->spread / v);
        best = fmax(best, ret[k]);
    }
    for (size_t k = 0; k < CHANCE_STEPS; k++) {
        ret[k] = exp(ret[k] - best);
    }
}

/* Weighs the steps for one function: prior times likelihood. */
static void weigh(const struct chance_prior *prior, const struct moments *m,
                  double ret[CHANCE_STEPS])
{
    double sum = 0;
    explain(prior->df, m, ret);
    for (size_t k = 0; k < CHANCE_STEPS; k++) {
        ret[k] *= prior->weight[k];
        sum += ret[k];
    }
    for (size_t k = 0; k < CHANCE_STEPS; k++) {
        ret[k] /= sum;
    }
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Returns the usual variance of a side because its instances change together: the mean of the
 * functions, without the few that differ most. */
static double usual_drift(const struct moments *const *all, size_t n, double *room)
{
    for (size_t i = 0; i < n; i++) {
        for (int side = 0; side < SIDES; side++) {
            room[i * SIDES + (size_t)side] = all[i]->shared[side] - all[i]->own[side];
        }
    }
    qsort(room, n * SIDES, sizeof(room[0]), compare_numbers);
    size_t first = n * SIDES / 20;
    size_t end = n * SIDES - n * SIDES / 10;
    double sum = 0;
    for (size_t i = first; i < end; i++) {
        sum += room[i];
    }
    return end > first ? fmax(0, sum / (double)(end - first)) : 0;
}

void chance_prior_make(const struct moments *const *all, size_t n, const size_t instances[SIDES],
                       double *room, struct chance_prior *ret)
{
    ret->drift = usual_drift(all, n, room);
    ret->df = (double)(instances[SIDE_BASE] + instances[SIDE_NEW]) - SIDES;
    ret->between = 1 / (double)instances[SIDE_BASE] + 1 / (double)instances[SIDE_NEW];
    for (size_t k = 0; k < CHANCE_STEPS; k++) {
        ret->weight[k] = 1.0 / CHANCE_STEPS;
    }
    /* Expectation and maximization. */
    for (int round = 0; round < ROUNDS; round++) {
        double sum[CHANCE_STEPS];
        double own[CHANCE_STEPS];
        for (size_t k = 0; k < CHANCE_STEPS; k++) {
            sum[k] = ASSUMED / CHANCE_STEPS;
        }
        for (size_t i = 0; i < n; i++) {
            weigh(ret, all[i], own);
            for (size_t k = 0; k < CHANCE_STEPS; k++) {
                sum[k] += own[k];
            }
        }
        for (size_t k = 0; k < CHANCE_STEPS; k++) {
            ret->weight[k] = sum[k] / ((double)n + ASSUMED);
        }
    }
}

/* Returns the variance of a side because its instances change together; adds its square, divided by
 * its degrees of freedom, to *squares. */
static double drift_of(const struct chance_prior *prior, const struct moments *m, int side,
                       double *squares)
{
    double drift = ALIKE * prior->drift;
    double df = DF_KNOWN;
    if (m->slots[side] > 1 && m->shared[side] > UNUSUAL * (m->own[side] + prior->drift)) {
        drift = ALIKE * (m->shared[side] - m->own[side]);
        df = (double)(m->slots[side] - 1);
    }
    *squares += drift * drift / df;
    return drift;
}

void chance_make(const struct chance_prior *prior, const struct moments *m, struct chance *ret)
{
    double drift = 0;
    double drift_squares = 0;
    for (int side = 0; side < SIDES; side++) {
        drift += drift_of(prior, m, side, &drift_squares);
    }
    weigh(prior, m, ret->weight);
    for (size_t k = 0; k < CHANCE_STEPS; k++) {
        double v = (m->floor + variance_of(k)) * prior->between;
        double squares = v * v / DF_KNOWN + drift_squares;
        ret->sd[k] = sqrt(v + drift);
        /* Satterthwaite. */
        ret->df[k] = (v + drift) * (v + drift) / squares;
    }
}

double chance_p(const struct chance *c, double difference)
{
    double p = 0;
    for (size_t k = 0; k < CHANCE_STEPS; k++) {
        if (c->weight[k] > 1e-9) {
            p += c->weight[k] * student_p(difference / c->sd[k], c->df[k]);
        }
    }
    return fmin(p, 1);
}

double chance_difference(const struct chance *c, double p)
{
    double low = 0;
    double high = 1e-3;
    while (high < 1e6 && chance_p(c, high) > p) {
        high *= 2;
    }
    for (int i = 0; i < 20; i++) {
        double middle = (low + high) / 2;
        bool above = chance_p(c, middle) > p;
        low = above ? middle : low;
        high = above ? high : middle;
    }
    return (low + high) / 2;
}
