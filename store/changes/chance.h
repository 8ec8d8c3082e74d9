/* Private to the comparison: how far apart the means of two sides may be by chance.
 *
 * Three instances say little about how much instances differ. But a program has many functions, and
 * most of them differ alike. So the distribution of the variance between instances is estimated
 * from all functions together, without assuming its shape; then each function has a distribution of
 * its own variance: that of all functions, weighed by how well it explains its own few instances
 * (empirical Bayes). A function that differs unusually much between instances, such as one that
 * only a leader runs, is recognised by that, and needs a larger difference. Pure; any thread.
 */
#ifndef PROFPULL_STORE_CHANGES_CHANCE_H
#define PROFPULL_STORE_CHANGES_CHANCE_H

#include "store/changes/moments.h"

/* Steps of the variance between instances. */
#define CHANCE_STEPS 21

/* The part of functions that has each variance. */
struct chance_prior {
    double weight[CHANCE_STEPS];
    double drift;   /* variance of the mean of a side because its instances change together */
    double df;      /* degrees of freedom of the spread of one function */
    double between; /* 1 / instances of the base + 1 / instances of the new side */
};

/* Estimates the prior from n functions; n may be 0. instances: of each side, at least 2. room: for
 * SIDES * n numbers. */
void chance_prior_make(const struct moments *const *all, size_t n, const size_t instances[SIDES],
                       double *room, struct chance_prior *ret);

/* The distribution of the difference of the means of a function, relative to its mean, if it has
 * not changed: a mixture. */
struct chance {
    double weight[CHANCE_STEPS];
    double sd[CHANCE_STEPS];
    double df[CHANCE_STEPS];
};

/* Makes the distribution for the function with these moments. */
void chance_make(const struct chance_prior *prior, const struct moments *m, struct chance *ret);
/* Returns the probability of a difference at least as far from 0. */
double chance_p(const struct chance *c, double difference);
/* Returns the difference that is exceeded, in either direction, with the probability p. */
double chance_difference(const struct chance *c, double p);

#endif
