/* Private to the comparison: means and variances of one function over the instances of both sides.
 *
 * The cost of a function in an instance is its share of the instance's total, divided by the factor
 * of the instance: see norm.h. Variances are relative to the square of the mean cost, since in an
 * instance that does twice as much of something, all functions of it cost twice as much. Pure; any
 * thread.
 */
#ifndef PROFPULL_STORE_CHANGES_MOMENTS_H
#define PROFPULL_STORE_CHANGES_MOMENTS_H

#include "store/changes/verdicts.h"

struct moments {
    double share[SIDES]; /* mean share of the instances */
    double cost[SIDES];  /* mean cost of the instances */
    double mean;         /* of the costs of both sides */
    double samples;      /* of both sides; infinite if the quantum is unknown */
    double spread;       /* variance between the instances of a side, from both sides together */
    double floor; /* the part of it that the number of samples and the change in time explain */
    /* Variance of the mean of a side as its slots show it, and as they would show it if each
     * instance changed on its own. The first is larger if all instances change together. */
    double shared[SIDES];
    double own[SIDES];
    size_t slots[SIDES]; /* slots with profiles */
};

/* Returns the number of instances of a side that have profiles. */
size_t moments_instances(const struct observations *o, int side);
/* Returns the share of a function in an instance; 0 if the instance has no profiles. values: as for
 * moments_rate(). */
double moments_share(const struct observations *o, const double *values, size_t instance);
/* Computes the moments of the self or total cost of a function. factors: by instance. */
void moments_make(const struct observations *o, const double *factors, size_t function, int cost,
                  struct moments *ret);

/* Estimates the rate of a function on both sides by the means of the instances, with Welch's
 * interval. values: cells of one cost of a function, or the totals. */
struct estimate moments_rate(const struct observations *o, const double *values);

#endif
