/* Compares the functions of two sets of profiles, and says which of them have changed by more than
 * chance explains.
 *
 * A set is one side of a rollout. Its instances (processes) are the blocks of the comparison:
 * profiles of one process depend on each other, processes do not. An observation is the value of a
 * function in the profiles of one instance in one of SLOTS equal pieces of the time of its side.
 *
 * A verdict is about the share of a function in the CPU (or bytes, ...) of its instance, because a
 * rate moves with the load. If a function grows, the shares of all others fall; the comparison
 * therefore moves all shares so that the typical function has not changed. docs/changes.md explains
 * each step. Pure and deterministic; any thread.
 */
#ifndef PROFPULL_STORE_CHANGES_VERDICTS_H
#define PROFPULL_STORE_CHANGES_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

enum { SIDE_BASE, SIDE_NEW, SIDES };
enum { COST_SELF, COST_TOTAL, COSTS };

/* More instances of a side would take more memory and time, and add little certainty. */
#define INSTANCES_MAX 16
#define SLOTS 6
/* Fewer instances of a side than this allow no verdict. */
#define INSTANCES_MIN 2

/* The observations of two sets. Index of an instance: those of the base come first. */
struct observations {
    size_t n[SIDES]; /* instances of each side, at most INSTANCES_MAX */
    double quantum;  /* the value that one sample stands for; 0: unknown */
    /* For instance i in slot s, at [i * SLOTS + s]: the value of all functions, and the time of its
     * profiles in seconds (for a gauge: their number). 0: no profile. */
    double *totals;
    double *seconds;
    /* By function: its values, at [(cost * instances + i) * SLOTS + s]. */
    double **cells;
    size_t n_functions;
};

/* A value that was measured on both sides, with the difference new - base and its interval at 95 %.
 * If a side has fewer than INSTANCES_MIN instances, the interval is from -infinity to infinity. */
struct estimate {
    double base;
    double now;
    double difference;
    double low;
    double high;
};

/* The self or total cost of a function. */
struct cost_change {
    struct estimate rate;  /* value per second; for a gauge: the value */
    struct estimate share; /* part of the instance's total; 0 to 1 */
    /* The difference of the share, as far as the function has changed more than the typical
     * function; with its interval, as part of the total of the base. */
    double effect;
    double effect_low;
    double effect_high;
    double p;     /* probability of such an effect by chance; 1 if it was not tested */
    bool tested;  /* the function costs enough, and both sides have enough instances */
    bool changed; /* the verdict */
};

struct function_change {
    size_t index; /* of the function in the observations */
    struct cost_change cost[COSTS];
};

struct verdicts {
    struct function_change *at; /* those that have changed first, then by the size of the effect */
    size_t n;
    size_t n_changed;      /* functions whose self or total has changed */
    size_t n_tested;       /* tests that were made, of self and of total */
    bool can_tell;         /* both sides have INSTANCES_MIN instances with profiles */
    struct estimate total; /* rate of all functions together; it moves with the load */
    double shift;          /* change of the share of the typical function, relative to it */
    /* The cost of the new side at the same load: 1 plus the effects of all functions whose self has
     * changed, or the effect of one total that has changed, if that is larger. 1 without a verdict.
     */
    double ratio;
};

/* A function whose share is below this in the mean of both sides is not tested. */
#define SHARE_TESTED_MIN 0.01
/* A smaller effect, as part of the total of the base, is no change that anybody would act on, even
 * if it is more than chance. */
#define EFFECT_MIN 0.005
/* A function with fewer samples on both sides together is not tested. */
#define SAMPLES_TESTED_MIN 20
/* The rate of wrong verdicts among all verdicts of a comparison: Benjamini and Hochberg's q. */
#define FALSE_RATE 0.05

/* Compares. The result is in memory of the arena. False with ERR_LIMIT or ERR_MEMORY. */
bool verdicts_make(const struct observations *o, struct arena *arena, struct verdicts *ret,
                   struct err *err);

/* Returns true if any cost of the function has changed. */
bool verdicts_changed(const struct function_change *f);

#endif
