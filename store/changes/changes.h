/* Says which functions of a service changed from one version to the next, or from one range of time
 * to another.
 *
 * Reads the profiles of both sides from the store, one after the other, into observations: the self
 * and total of each function, by instance and piece of time; verdicts.h compares them. Runs on the
 * caller's thread, with the limits of a query (store/query/query.h).
 */
#ifndef PROFPULL_STORE_CHANGES_CHANGES_H
#define PROFPULL_STORE_CHANGES_CHANGES_H

#include "store/changes/verdicts.h"
#include "store/query/query.h"

/* Only this last part of each side is read, because older profiles say little about now. */
#define CHANGES_SIDE_MS (INT64_C(6) * 3600 * 1000)
/* The most profiles of a side that are read. If there are more, each second, third, ... is. */
#define CHANGES_PROFILES_MAX 4000

struct changes_question {
    struct sv service;
    struct profile_type type;
    int64_t from_ms;
    int64_t until_ms;
    /* The versions to compare. Empty: the last two that began in the range; if only the base is
     * given, the new one is the last that is not the base. */
    struct sv version[SIDES];
    /* Two ranges of all versions are compared: base_from_ms to base_until_ms with from_ms to
     * until_ms. */
    bool ranges;
    int64_t base_from_ms;
    int64_t base_until_ms;
    const struct selector *selector; /* further labels; NULL: none */
};

struct changes_side {
    struct sv label;   /* the label that has the version; "" if ranges are compared */
    struct sv version; /* "" if ranges are compared */
    int64_t from_ms;   /* the profiles that were read; 0 if there are none */
    int64_t until_ms;
    size_t instances;      /* with profiles that were read */
    size_t instances_seen; /* with profiles */
    size_t profiles;       /* that were read */
};

enum changes_state {
    CHANGES_COMPARED,
    CHANGES_NO_VERSION,  /* no profile of the service has a version */
    CHANGES_ONE_VERSION, /* there is no second version to compare with */
    CHANGES_NO_PROFILES, /* a side has no profiles of the type */
};

struct changes {
    enum changes_state state;
    struct changes_side side[SIDES];
    struct sv *names; /* by index of a function; in the arena of the query, as everything */
    struct verdicts verdicts;
    bool is_level; /* values are levels, such as bytes in use: a rate is the mean of the profiles */
};

/* Answers a question. False with err. */
bool changes_find(const struct query *q, const struct changes_question *question,
                  struct changes *ret, struct err *err);
/* Returns one sentence about the result without the names of functions, in memory of the arena;
 * NULL if out of memory. */
const char *changes_sentence(const struct changes *c, struct arena *arena);

/* A change of the version of a service. */
struct changes_rollout {
    struct sv service;
    struct sv version[SIDES];
    int64_t time_ms; /* of the first profile of the new version */
};
struct changes_rollouts {
    struct changes_rollout *at; /* the last of each service, newest first */
    size_t n;
};
/* Lists the services whose version changed in a range. */
bool changes_rollouts(const struct query *q, int64_t from_ms, int64_t until_ms,
                      struct changes_rollouts *ret, struct err *err);

#endif
