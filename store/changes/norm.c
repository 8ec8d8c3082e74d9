#include "store/changes/norm.h"

#include <math.h>
#include <stdlib.h>

#include "store/changes/moments.h"

/* Relative variance of the share of a function between instances of one version, beside that of its
 * samples: 3 %. It only limits how much one function weighs. */
#define VARIANCE_USUAL (0.03 * 0.03)

struct weighed {
    double value;
    double weight;
};

/* A function that counts: its mean share over all instances of both sides. */
struct typical {
    const double *values;
    double mean;
    double samples; /* in an instance */
};

static int compare_weighed(const void *a, const void *b)
{
    double x = ((const struct weighed *)a)->value;
    double y = ((const struct weighed *)b)->value;
    return x < y ? -1 : x > y;
}

static double weighted_median(struct weighed *all, size_t n)
{
    double sum = 0;
    double below = 0;
    size_t i = 0;
    qsort(all, n, sizeof(all[0]), compare_weighed);
    for (size_t k = 0; k < n; k++) {
        sum += all[k].weight;
    }
    while (i + 1 < n && (below += all[i].weight) < sum / 2) {
        i++;
    }
    return all[i].value;
}

/* Lists the functions that count. Returns their number. */
static size_t list_typical(const struct observations *o, const double *ones, struct typical *ret)
{
    size_t n = 0;
    double instances = (double)(moments_instances(o, SIDE_BASE) + moments_instances(o, SIDE_NEW));
    for (size_t f = 0; f < o->n_functions; f++) {
        struct moments m;
        moments_make(o, ones, f, COST_SELF, &m);
        if (m.mean >= SHARE_TESTED_MIN && m.samples >= SAMPLES_TESTED_MIN) {
            ret[n++] = (struct typical){o->cells[f], m.mean, m.samples / instances};
        }
    }
    return n;
}

/* Returns the mean factor of the instances of a side that have profiles. */
static double mean_factor(const struct observations *o, const double *factors, int side)
{
    size_t first = side == SIDE_BASE ? 0 : o->n[SIDE_BASE];
    double sum = 0;
    for (size_t i = 0; i < o->n[side]; i++) {
        sum += factors[first + i];
    }
    return o->n[side] > 0 ? sum / (double)o->n[side] : 1;
}

double *norm_factors(const struct observations *o, struct arena *arena, double *ret_shift,
                     struct err *err)
{
    size_t instances = o->n[SIDE_BASE] + o->n[SIDE_NEW];
    double *factors = arena_array(arena, instances + 1, sizeof(*factors));
    struct typical *typical = arena_array(arena, o->n_functions + 1, sizeof(*typical));
    struct weighed *all = arena_array(arena, o->n_functions + 1, sizeof(*all));
    *ret_shift = 0;
    if (factors == NULL || typical == NULL || all == NULL) {
        err_memory(err);
        return NULL;
    }
    for (size_t i = 0; i < instances; i++) {
        factors[i] = 1;
    }
    size_t n = list_typical(o, factors, typical);
    for (size_t i = 0; n >= TYPICAL_MIN && i < instances; i++) {
        for (size_t k = 0; k < n; k++) {
            const struct typical *t = &typical[k];
            all[k].value = moments_share(o, t->values, i) / t->mean;
            all[k].weight = 1 / (VARIANCE_USUAL + 1 / t->samples);
        }
        double median = weighted_median(all, n);
        factors[i] = median > 0 ? median : 1;
    }
    double base = mean_factor(o, factors, SIDE_BASE);
    *ret_shift = mean_factor(o, factors, SIDE_NEW) / base - 1;
    for (size_t i = 0; i < instances; i++) {
        factors[i] /= base;
    }
    return factors;
}
