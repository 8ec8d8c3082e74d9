/* Rates and levels over time: how many cores a service uses, how many bytes it allocates each
 * second, how many it holds. Computed from the sums that the store keeps; no profile is opened.
 *
 * A set of labels of profiles is an instance. In each step, the value of an instance is
 *
 *     MEASURE_WINDOW   the sum of its profiles / the time that their windows cover
 *     MEASURE_GROWTH   the sum of its profiles / the time since the profile before the step
 *     MEASURE_LEVEL    the sum of its profiles / their number
 *
 * and the value of a group is the sum over its instances, each by the part of the step between its
 * first profile and the end of its last one. A step without a profile of an instance has the value
 * of the step before if profiles follow within RATES_HOLE_MS; so an instance that is scraped less
 * often than once a step counts in each. Its last value stands for as many steps as the ones before
 * did. The first profile of an instance has the MEASURE_GROWTH of the second one. One thread.
 */
#ifndef PROFPULL_STORE_QUERY_RATES_H
#define PROFPULL_STORE_QUERY_RATES_H

#include "store/query/query.h"

#define QUERY_RATE_KINDS_MAX 8
#define QUERY_RATE_STEPS_MAX 1000
/* The most instances of all kinds together that are computed; the result says if there are more. */
#define QUERY_RATE_INSTANCES_MAX 20000
#define RATES_HOLE_MS (INT64_C(10) * 60 * 1000)

enum query_measure { MEASURE_WINDOW, MEASURE_GROWTH, MEASURE_LEVEL };

/* Returns the measure of a type: MEASURE_LEVEL if record_type_is_counter() (model/record_rule.h) is
 * false; MEASURE_GROWTH for allocations and contentions, which are deltas and cover the time since
 * the delta before; MEASURE_WINDOW for all others, which are sampled for a while. */
enum query_measure query_measure_of(const struct profile_type *type);

/* The series of a kind: those with this sample type and unit. */
struct query_rate_kind {
    struct sv type;
    struct sv unit;
    enum query_measure measure;
};

struct query_rate_options {
    const struct query_rate_kind *kinds; /* at most QUERY_RATE_KINDS_MAX, of different types */
    size_t n_kinds;
    int64_t step_ms;      /* at least 1 */
    size_t instances_max; /* 0: QUERY_RATE_INSTANCES_MAX */
    bool by_service;      /* a group for each service; otherwise one for all */
};

struct query_rate_group {
    struct sv service; /* "" unless by_service is set */
    /* For each kind n_steps values in units a second (levels: in units); NAN if there is none.
     * NULL: no profile in the range. */
    double *values[QUERY_RATE_KINDS_MAX];
};

struct query_rates {
    int64_t start_ms; /* of the first step; the i-th begins i * step_ms later */
    int64_t step_ms;
    size_t n_steps;
    struct query_rate_group *at; /* in no order; in memory of the query's arena */
    size_t n;
    bool is_cut; /* there are more instances than instances_max */
};

/* Computes the groups of a range, which has at most QUERY_RATE_STEPS_MAX steps (ERR_INPUT). */
bool query_rates(const struct query *q, const struct query_range *r,
                 const struct query_rate_options *o, struct query_rates *ret, struct err *err);

/* Returns the mean of the values that are not NAN; NAN if there is none. Accepts NULL. */
double query_rate_mean(const double *values, size_t n);

#endif
