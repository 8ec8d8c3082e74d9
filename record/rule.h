/* A compiled rule of recorded metrics with its series. Private to record/.
 *
 * A rule is shared by the sets of rules in which it stays unchanged, and by the profiles that wait
 * to be counted: it is reference-counted (atomic). Its series are guarded by the lock of struct
 * record; everything else of it is immutable.
 */
#ifndef PROFPULL_RECORD_RULE_H
#define PROFPULL_RECORD_RULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/labels.h"
#include "base/map.h"
#include "model/record_rule.h"
#include "model/selector.h"
#include "record/counting.h"

/* Series that have not been counted up for this long are removed when a new one needs their room.
 */
#define RECORD_IDLE_MS ((int64_t)60 * 60 * 1000)
/* The most instances whose latest values one rule remembers for its gauges. */
#define RECORD_INSTANCES_MAX 65536

/* The unit of a metric. */
enum record_unit {
    RECORD_UNIT_NONE, /* counts, and everything without a unit of Prometheus' own */
    RECORD_UNIT_SECONDS,
    RECORD_UNIT_BYTES,
};

struct rule {
    atomic_uint refs;
    struct arena *arena; /* memory for everything immutable */
    const char *key;     /* equal for rules that count the same into the same series */
    size_t key_size;
    char id[RECORD_ID_MAX + 1];
    const char *family; /* name of the metric with its unit, without "_total" */
    const char *help;
    struct record_type type;
    bool is_counter;
    enum record_unit unit;
    struct sv function; /* empty: all samples */
    const struct sv *group_by;
    size_t n_group_by;
    const struct label *external;
    size_t n_external;
    struct selector *selector; /* used under the lock of struct record */

    struct map *series; /* by their labels as text */
    size_t n_instances; /* of all series */
    /* Monotonic: no series is idle for RECORD_IDLE_MS before this time. */
    int64_t no_idle_before_ms;
};

/* One series. */
struct rule_series {
    char *labels;          /* as in the text format, without braces */
    record_sum sum;        /* of a counter; of a gauge, the sum of its instances */
    int64_t last_ms;       /* monotonic: when a profile was counted last */
    struct map *instances; /* of a gauge: by their labels; NULL for a counter */
};

enum rule_counted { RULE_COUNTED, RULE_NO_SERIES, RULE_OLD, RULE_NO_MEMORY };

/* Compiles a rule that record_rule_check() has accepted. Returns NULL with err. */
struct rule *rule_new(const struct record_rule *r, struct err *err);
struct rule *rule_ref(struct rule *r);
struct rule *rule_unref(struct rule *r); /* accepts NULL, returns NULL */

/* Returns true if a profile with these labels is counted, provided that it has the sample type. */
bool rule_matches(const struct rule *r, const struct labels *labels);
/* Returns true if both rules can share a metric name: its type and unit are the same. */
bool rule_fits(const struct rule *a, const struct rule *b);

struct rule_value {
    struct labels *labels; /* of the profile */
    record_sum sum;
    int64_t until_ns; /* the end of the profile's window */
    int64_t now_ms;   /* monotonic */
    size_t max_series;
};

/* Adds the sum of a profile to its series, or makes it the latest value of its instance. */
enum rule_counted rule_count(struct rule *r, const struct rule_value *v);
/* Removes instances, and gauges without instances, of which no profile came for stale_ms, or for
 * twice the time between their last two profiles if that is longer. */
void rule_expire(struct rule *r, int64_t now_ms, int64_t stale_ms);

#endif
