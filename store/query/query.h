/* Queries of the store: labels, merged stacks, timelines, heatmaps and merged profiles, with the
 * rules of Pyroscope's API. The endpoints are in api/.
 *
 * Times are milliseconds, both ends of a range are inclusive, and a profile is in a range if its
 * time is. A query runs on the caller's thread and reads a snapshot. It ends with ERR_LIMIT at its
 * memory limit, and with ERR_TIMEOUT at its deadline or when it is cancelled. Any thread.
 */
#ifndef PROFPULL_STORE_QUERY_QUERY_H
#define PROFPULL_STORE_QUERY_QUERY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/labels.h"
#include "base/str.h"
#include "store/query/tree.h"
#include "store/selector.h"
#include "store/store.h"

/* The store that a query reads, and the limits of the query. */
struct query {
    struct store *store;
    int64_t deadline_ms;          /* monotonic; 0: none */
    const atomic_bool *cancelled; /* may be NULL */
    /* Working memory: one half is for the merged tree or profile, one for the profile that is being
     * read. Results are in the arena, which has a limit of its own; the caller frees it. */
    size_t bytes_max;
    struct arena *arena;
    atomic_size_t *damaged; /* counts profiles that cannot be read and were left out; may be NULL */
};

struct query_range {
    int64_t start_ms;
    int64_t end_ms;
    const struct selector *selector; /* NULL: all */
};

struct query_strings {
    struct sv *at; /* sorted bytewise, unique */
    size_t n;
};

/* ---- labels ---------------------------------------------------------------------------------- */

bool query_label_names(const struct query *q, const struct query_range *r,
                       struct query_strings *ret, struct err *err);
/* Lists the values of a label; those of "__profile_type__" are the ids of types. */
bool query_label_values(const struct query *q, const struct query_range *r, struct sv name,
                        struct query_strings *ret, struct err *err);

struct query_labels {
    struct label *at;
    size_t n;
};
struct query_label_sets {
    struct query_labels *at; /* sorted, unique */
    size_t n;
};
/* Finds the distinct projections of the series on some labels (n_names 0: all of them): none if no
 * series has any of these labels, and an empty one for series that lack all of them beside others
 * that do not. */
bool query_series(const struct query *q, const struct query_range *r, const struct sv *names,
                  size_t n_names, struct query_label_sets *ret, struct err *err);

/* ---- profile types --------------------------------------------------------------------------- */

/* `name:sample_type:sample_unit:period_type:period_unit`, and a sixth part, which is ignored. */
struct profile_type {
    struct sv id; /* the first five parts */
    struct sv name;
    struct sv sample_type;
    struct sv sample_unit;
    struct sv period_type;
    struct sv period_unit;
};
/* The views point into text. The error is Pyroscope's. */
bool profile_type_parse(struct sv text, struct profile_type *ret, struct err *err);

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Hexadecimal digits. */
#define QUERY_SPAN_ID_LENGTH 16
#define QUERY_TRACE_ID_LENGTH 32

/* A selection of stacks. An empty list selects all. */
struct query_stacks {
    const struct sv *call_site; /* names of functions from the root on */
    size_t n_call_site;
    const struct sv *profile_ids;
    size_t n_profile_ids;
    const struct sv *span_ids; /* 16 hex digits */
    size_t n_span_ids;
    const struct sv *trace_ids; /* 32 hex digits */
    size_t n_trace_ids;
    /* Trees have the stacks as they were recorded; else those that Go's runtime cut off are
     * repaired (repair.h). Profiles have them as they were recorded in any case. */
    bool as_recorded;
};

/* Builds the tree of the selected stacks of a type. The caller frees it. NULL with err. */
struct tree *query_tree(const struct query *q, const struct query_range *r,
                        const struct profile_type *type, const struct query_stacks *stacks,
                        struct err *err);

struct query_profile_options {
    struct query_stacks stacks;
    int64_t max_nodes; /* 0: all */
    bool go_pgo;       /* with the next two */
    uint32_t keep_locations;
    bool aggregate_callees;
};
/* Appends a merged pprof of one sample type to out, plain, as SelectMergeProfile answers it.
 * Appends nothing if there is no profile. */
bool query_profile(const struct query *q, const struct query_range *r,
                   const struct profile_type *type, const struct query_profile_options *o,
                   struct buf *out, struct err *err);
/* Merges the profiles that a scan visits, in its order and with all their sample types, as
 * google/pprof's Merge does. Appends the result as gzip, and sets *ret_n to the number of profiles.
 * ERR_INPUT if their types differ. */
bool query_merged(const struct query *q, const struct store_scan *scan, struct buf *out,
                  size_t *ret_n, struct err *err);

/* ---- time ------------------------------------------------------------------------------------ */

/* An average is that of the profiles of a step, the sum over those of its series divided by their
 * number: a profile whose samples belong to several series of a group is one profile. */
enum query_aggregation { QUERY_SUM, QUERY_AVERAGE };
enum query_exemplars { QUERY_NO_EXEMPLARS, QUERY_WITH_EXEMPLARS };

/* The profile or span with the greatest value beside a point or a cell. */
struct query_exemplar {
    int64_t time_ms;
    const char *id;       /* of the profile; "" for a span */
    const char *span_id;  /* QUERY_SPAN_ID_LENGTH digits; "" for a profile */
    const char *trace_id; /* QUERY_TRACE_ID_LENGTH digits; "" for a profile, or if it is unknown */
    int64_t value;
    struct query_labels labels; /* those that are not grouped by */
};
struct query_point {
    int64_t time_ms; /* the right edge of its step */
    double value;
    const struct query_exemplar *exemplar; /* NULL: none */
};
struct query_time_series {
    struct query_labels labels;
    struct query_point *points; /* only those with profiles, in order of time */
    size_t n_points;
};
struct query_time_series_list {
    struct query_time_series *at; /* by total, descending, then by labels */
    size_t n;
};
struct query_steps {
    double step_s; /* at least 0.001 */
    const struct sv *group_by;
    size_t n_group_by;
    enum query_aggregation aggregation;
    enum query_exemplars exemplars;
    size_t limit; /* 0: all */
};
/* Sums up profiles on the grid start, start + step, ... up to end. A profile counts at the first
 * instant of the grid that is not before it; the first instant has the profiles of one step before
 * it. Of stacks, only the call site is used. */
bool query_time_series(const struct query *q, const struct query_range *r,
                       const struct profile_type *type, const struct query_steps *o,
                       const struct query_stacks *stacks, struct query_time_series_list *ret,
                       struct err *err);

#define QUERY_HEATMAP_ROWS 20
struct query_slot {
    int64_t time_ms;
    double y_min[QUERY_HEATMAP_ROWS];
    int32_t counts[QUERY_HEATMAP_ROWS];
    const struct query_exemplar *exemplars; /* the best of each cell */
    size_t n_exemplars;
};
struct query_heatmap_series {
    struct query_labels labels;
    struct query_slot *slots;
    size_t n_slots;
};
struct query_heatmap {
    struct query_heatmap_series *at;
    size_t n;
};
/* The things that a heatmap counts: profiles by their totals, or spans by the totals of their
 * samples in one profile. Counting spans takes longer, because the profiles themselves are read. */
enum query_counted { QUERY_PROFILES, QUERY_SPANS };
/* Counts on the grid of a timeline. Profiles after its last instant get one instant more. */
bool query_heatmap(const struct query *q, const struct query_range *r,
                   const struct profile_type *type, const struct query_steps *o,
                   enum query_counted counted, struct query_heatmap *ret, struct err *err);

#endif
