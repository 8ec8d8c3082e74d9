/* A rule of recorded metrics: which profiles are counted, by which labels, under which name.
 *
 * The configuration and the API of recording rules make such rules; record/ counts by them. The
 * texts of a rule belong to its maker. The functions are pure; any thread may call them.
 */
#ifndef PROFPULL_MODEL_RECORD_RULE_H
#define PROFPULL_MODEL_RECORD_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/str.h"

/* Begins the name of each metric, as in Pyroscope. */
#define RECORD_PREFIX "profiles_recorded_"
/* The label that says which rule a series belongs to. */
#define RECORD_ID_LABEL "profiles_rule_id"
#define RECORD_TYPE_LABEL "__profile_type__"
/* The length of the ids that are made here, and the longest that is accepted. */
#define RECORD_ID_LENGTH 10
#define RECORD_ID_MAX 64
/* Limits of one rule: bytes of each text, and the number of matchers and of labels of each kind. */
#define RECORD_TEXT_MAX 4096
#define RECORD_LIST_MAX 64

struct record_rule {
    char id[RECORD_ID_MAX + 1]; /* "" until record_rule_name() or the caller sets it */
    const char *metric_name;
    const char *const *matchers; /* selectors; all must hold */
    size_t n_matchers;
    const char *const *group_by; /* names of labels */
    size_t n_group_by;
    const struct label *external; /* added to each series */
    size_t n_external;
    const char *function; /* samples whose stack has this function count; NULL or "": all do */
};

/* The parts of a profile type: the name of the profile, its sample type and its period type. They
 * are views of one text. */
struct record_type {
    struct sv name;
    struct sv type;
    struct sv unit;
    struct sv period_type;
    struct sv period_unit;
};

/* Splits "process_cpu:cpu:nanoseconds:cpu:nanoseconds". Returns false for another number of parts,
 * or if the name, type or unit is empty. */
bool record_type_split(struct sv text, struct record_type *ret);

/* Returns true if the values of a sample type are counted up: all but inuse_* and snapshots of
 * goroutines and threads, of which the last value counts. */
bool record_type_is_counter(const struct record_type *t);

/* Checks a rule: the name of its metric and its labels must be names in Prometheus' older sense
 * (letters, digits and "_"), and a matcher must require one value of `__profile_type__`. Returns
 * false with ERR_INPUT, or ERR_LIMIT; the message begins with the member that is wrong. */
bool record_rule_check(const struct record_rule *r, struct err *err);

/* Sets the id of a rule to letters that are made from all its members, so that a rule has the same
 * id in each process. */
void record_rule_name(struct record_rule *r);

#endif
