#include "store/changes/moments.h"

#include <math.h>

#include "store/changes/student.h"

#define INTERVAL_OUTSIDE 0.05
/* Fewer slots than this say nothing about changes in time. */
#define SLOTS_MIN 3
/* Instances never agree better than in a thousandth of a share, whatever these few say. */
#define FLOOR_MIN 1e-6

/* ---- sums ------------------------------------------------------------------------------------ */

/* A running mean and sum of squares (Welford). */
struct running {
    size_t n;
    double mean;
    double squares;
};

static void add(struct running *r, double v)
{
    double before = v - r->mean;
    r->mean += before / (double)++r->n;
    r->squares += before * (v - r->mean);
}

/* Returns the variance of the mean; 0 if there are too few values. */
static double variance_of_mean(const struct running *r)
{
    return r->n < SLOTS_MIN ? 0 : r->squares / (double)(r->n - 1) / (double)r->n;
}

static double sum_slots(const double *values, size_t i)
{
    double sum = 0;
    for (size_t s = 0; s < SLOTS; s++) {
        sum += values[i * SLOTS + s];
    }
    return sum;
}

static size_t first_of(const struct observations *o, int side)
{
    return side == SIDE_BASE ? 0 : o->n[SIDE_BASE];
}

size_t moments_instances(const struct observations *o, int side)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n[side]; i++) {
        n += sum_slots(o->totals, first_of(o, side) + i) > 0;
    }
    return n;
}

/* ---- costs ----------------------------------------------------------------------------------- */

double moments_share(const struct observations *o, const double *values, size_t instance)
{
    double total = sum_slots(o->totals, instance);
    return total > 0 ? sum_slots(values, instance) / total : 0;
}

/* One cost of a function, as it is read. */
struct reading {
    const struct observations *o;
    const double *factors;
    const double *values;
};

/* Variance of the mean of the slots of an instance. */
static double slots_variance(const struct reading *r, size_t i)
{
    struct running slots = {.n = 0};
    for (size_t s = 0; s < SLOTS; s++) {
        double total = r->o->totals[i * SLOTS + s];
        if (total > 0) {
            add(&slots, r->values[i * SLOTS + s] / total / r->factors[i]);
        }
    }
    return variance_of_mean(&slots);
}

/* Variance of the mean of a side by its slots, all instances together. */
static double side_variance(const struct reading *r, int side, size_t *ret_slots)
{
    const struct observations *o = r->o;
    struct running slots = {.n = 0};
    for (size_t s = 0; s < SLOTS; s++) {
        double value = 0;
        double total = 0;
        for (size_t k = 0; k < o->n[side]; k++) {
            size_t i = first_of(o, side) + k;
            value += r->values[i * SLOTS + s] / r->factors[i];
            total += o->totals[i * SLOTS + s];
        }
        if (total > 0) {
            add(&slots, value / total);
        }
    }
    *ret_slots = slots.n;
    return variance_of_mean(&slots);
}

/* Sums over the instances of a side. */
struct side_sums {
    struct running costs;
    double share;
    double within;  /* sum of the variances by slots */
    double inverse; /* sum of 1 / total */
    double value;
};

static struct side_sums sum_side(const struct reading *r, int side)
{
    struct side_sums sums = {.within = 0};
    for (size_t k = 0; k < r->o->n[side]; k++) {
        size_t i = first_of(r->o, side) + k;
        double total = sum_slots(r->o->totals, i);
        if (total > 0) {
            double share = moments_share(r->o, r->values, i);
            add(&sums.costs, share / r->factors[i]);
            sums.share += share;
            sums.within += slots_variance(r, i);
            sums.inverse += 1 / total;
            sums.value += sum_slots(r->values, i);
        }
    }
    return sums;
}

/* Sets the variances. sums: by side. */
static void set_variances(const struct reading *r, const struct side_sums sums[SIDES],
                          struct moments *ret)
{
    double n = (double)(sums[SIDE_BASE].costs.n + sums[SIDE_NEW].costs.n);
    double unit = ret->mean * ret->mean;
    if (unit <= 0 || n <= SIDES) {
        return;
    }
    double inverse = sums[SIDE_BASE].inverse + sums[SIDE_NEW].inverse;
    double within = sums[SIDE_BASE].within + sums[SIDE_NEW].within;
    double squares = sums[SIDE_BASE].costs.squares + sums[SIDE_NEW].costs.squares;
    double counted = ret->mean * r->o->quantum * inverse / n;
    ret->spread = squares / (n - SIDES) / unit;
    ret->floor = fmax(fmax(counted, within / n) / unit, FLOOR_MIN);
    for (int side = 0; side < SIDES; side++) {
        double m = (double)sums[side].costs.n;
        ret->shared[side] = side_variance(r, side, &ret->slots[side]) / unit;
        ret->own[side] = m > 0 ? sums[side].within / m / m / unit : 0;
    }
}

void moments_make(const struct observations *o, const double *factors, size_t function, int cost,
                  struct moments *ret)
{
    size_t instances = o->n[SIDE_BASE] + o->n[SIDE_NEW];
    const struct reading r = {o, factors, o->cells[function] + (size_t)cost * instances * SLOTS};
    struct side_sums sums[SIDES];
    double value = 0;
    *ret = (struct moments){.mean = 0};
    for (int side = 0; side < SIDES; side++) {
        sums[side] = sum_side(&r, side);
        double n = (double)sums[side].costs.n;
        ret->share[side] = n > 0 ? sums[side].share / n : 0;
        ret->cost[side] = sums[side].costs.mean;
        ret->mean += ret->cost[side] / SIDES;
        value += sums[side].value;
    }
    ret->samples = o->quantum > 0 ? value / o->quantum : HUGE_VAL;
    set_variances(&r, sums, ret);
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* Mean of the rates of a side, the variance of this mean, and its degrees of freedom. */
static double side_rate(const struct observations *o, const double *values, int side,
                        double *ret_variance, double *ret_df)
{
    struct running r = {.n = 0};
    double value = 0;
    double seconds = 0;
    for (size_t k = 0; k < o->n[side]; k++) {
        size_t i = first_of(o, side) + k;
        double time = sum_slots(o->seconds, i);
        if (time > 0) {
            add(&r, sum_slots(values, i) / time);
            value += sum_slots(values, i);
            seconds += time;
        }
    }
    *ret_df = (double)r.n - 1;
    *ret_variance = r.n < INSTANCES_MIN ? HUGE_VAL : r.squares / *ret_df / (double)r.n;
    if (seconds > 0) {
        *ret_variance = fmax(*ret_variance, value * o->quantum / seconds / seconds);
    }
    return r.mean;
}

struct estimate moments_rate(const struct observations *o, const double *values)
{
    double v[SIDES];
    double df[SIDES];
    struct estimate e;
    e.base = side_rate(o, values, SIDE_BASE, &v[SIDE_BASE], &df[SIDE_BASE]);
    e.now = side_rate(o, values, SIDE_NEW, &v[SIDE_NEW], &df[SIDE_NEW]);
    e.difference = e.now - e.base;
    double sum = v[SIDE_BASE] + v[SIDE_NEW];
    double half = sum;
    if (isfinite(sum) && sum > 0) {
        /* Welch and Satterthwaite. */
        double freedom = sum * sum /
                         (v[SIDE_BASE] * v[SIDE_BASE] / df[SIDE_BASE] +
                          v[SIDE_NEW] * v[SIDE_NEW] / df[SIDE_NEW]);
        half = student_t(INTERVAL_OUTSIDE, freedom) * sqrt(sum);
    }
    e.low = e.difference - half;
    e.high = e.difference + half;
    return e;
}
