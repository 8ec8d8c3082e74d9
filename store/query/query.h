/* Queries of the store: labels, merged stacks, timelines, heatmaps and merged profiles, with the
 * rules of Pyroscope's API. The endpoints are in api/.
 *
 * Times are milliseconds, both ends of a range are inclusive, and a profile is in a range if its
 * time is. A query runs on the caller's thread, with helpers if they are idle, and reads a
 * snapshot. It ends with ERR_LIMIT at its memory limit, and with ERR_TIMEOUT at its deadline or
 * when it is cancelled. Any thread.
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
#include "base/metrics.h"
#include "base/str.h"
#include "model/selector.h"
#include "store/query/tree.h"
#include "store/store.h"

/* Counts the threads that help large queries. All queries share them: a thread is started when a
 * query takes it, and ends with that. Any thread. */
struct query_helpers {
    atomic_uint max; /* may change at any time */
    atomic_uint busy;
    struct metric_cell *helped; /* counts the queries that had helpers; may be NULL */
};

/* The store that a query reads, and the limits of the query. */
struct query {
    struct store *store;
    int64_t deadline_ms;          /* in monotonic time; 0: no deadline */
    const atomic_bool *cancelled; /* may be NULL */
    /* Limit of the working memory: one half is for the merged tree or profile, the other half for
     * the profile that is being read. Results are in the arena, which has a limit of its own; the
     * caller frees it. */
    size_t bytes_max;
    struct arena *arena;
    atomic_size_t *damaged; /* counts profiles that cannot be read and were left out; may be NULL */
    struct partial
        *partial; /* notes the files that cannot be read and were left out; may be NULL */
    struct store_peers peers;      /* are asked as well */
    struct query_helpers *helpers; /* for flame graphs of many profiles; may be NULL */
};

struct query_range {
    int64_t start_ms;
    int64_t end_ms;
    const struct selector *selector; /* NULL: all series */
};

struct query_strings {
    struct sv *at; /* sorted bytewise, unique */
    size_t n;
};

/* ---- labels ---------------------------------------------------------------------------------- */

/* Lists the names of the labels of all series in a range. */
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
/* Finds the distinct projections of the series to some labels (n_names 0: to all labels). If no
 * series has any of these labels, there is no projection; if some series have none of them, but
 * others do, one projection is empty. */
bool query_series(const struct query *q, const struct query_range *r, const struct sv *names,
                  size_t n_names, struct query_label_sets *ret, struct err *err);

/* ---- profile types --------------------------------------------------------------------------- */

/* The id of a profile type: `name:sample_type:sample_unit:period_type:period_unit`. A sixth part is
 * ignored. */
struct profile_type {
    struct sv id; /* the first five parts */
    struct sv name;
    struct sv sample_type;
    struct sv sample_unit;
    struct sv period_type;
    struct sv period_unit;
};
/* Parses the id of a profile type. The views point into text. The error has the words of Pyroscope.
 */
bool profile_type_parse(struct sv text, struct profile_type *ret, struct err *err);

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Length of the id of a span, in hexadecimal digits. */
#define QUERY_SPAN_ID_LENGTH 16
#define QUERY_TRACE_ID_LENGTH 32

/* Selects stacks. An empty list selects all of them. */
struct query_stacks {
    const struct sv *call_site; /* names of functions from the root on */
    size_t n_call_site;
    const struct sv *profile_ids;
    size_t n_profile_ids;
    const struct sv *span_ids; /* 16 hex digits */
    size_t n_span_ids;
    const struct sv *trace_ids; /* 32 hex digits */
    size_t n_trace_ids;
    /* Trees have the stacks as they were recorded. If it is false, stacks that Go's runtime cut off
     * are repaired (repair.h). Profiles always have the stacks as they were recorded. */
    bool as_recorded;
};

/* Builds the tree of the selected stacks of a type. The caller frees it. NULL with err. */
struct tree *query_tree(const struct query *q, const struct query_range *r,
                        const struct profile_type *type, const struct query_stacks *stacks,
                        struct err *err);

struct query_profile_options {
    struct query_stacks stacks;
    int64_t max_nodes; /* 0: no limit */
    bool go_pgo;       /* keep_locations and aggregate_callees apply */
    uint32_t keep_locations;
    bool aggregate_callees;
};
/* Appends a merged pprof of one sample type to out, not compressed, with the content that
 * SelectMergeProfile returns. If there is no profile, appends nothing. */
bool query_profile(const struct query *q, const struct query_range *r,
                   const struct profile_type *type, const struct query_profile_options *o,
                   struct buf *out, struct err *err);
/* Merges the profiles that a scan visits, in its order and with all their sample types, as
 * google/pprof's Merge does. Appends the result as gzip, and sets *ret_n to the number of profiles.
 * ERR_INPUT if their types differ. */
bool query_merged(const struct query *q, const struct store_scan *scan, struct buf *out,
                  size_t *ret_n, struct err *err);

/* ---- time ------------------------------------------------------------------------------------ */

/* An average is that of the profiles of a step: the sum over the series of a group, divided by the
 * number of profiles. A profile whose samples belong to several series of a group counts as one. */
enum query_aggregation { QUERY_SUM, QUERY_AVERAGE };
enum query_exemplars { QUERY_NO_EXEMPLARS, QUERY_WITH_EXEMPLARS };

/* The profile or span with the greatest value in a point or a cell. */
struct query_exemplar {
    int64_t time_ms;
    const char *id;       /* id of the profile; "" for a span */
    const char *span_id;  /* QUERY_SPAN_ID_LENGTH digits; "" for a profile */
    const char *trace_id; /* QUERY_TRACE_ID_LENGTH digits; "" for a profile, or if it is unknown */
    int64_t value;
    struct query_labels labels; /* the labels that are not grouped by */
};
struct query_point {
    int64_t time_ms; /* the end of its step */
    double value;
    const struct query_exemplar *exemplar; /* NULL: no exemplar */
};
struct query_time_series {
    struct query_labels labels;
    struct query_point *points; /* only steps with profiles, in order of time */
    size_t n_points;
};
struct query_time_series_list {
    struct query_time_series *at; /* the largest total first, then in order of labels */
    size_t n;
};
struct query_steps {
    double step_s; /* length of a step in seconds, at least 0.001 */
    const struct sv *group_by;
    size_t n_group_by;
    enum query_aggregation aggregation;
    enum query_exemplars exemplars;
    size_t limit; /* 0: no limit */
};
/* Sums up profiles on the grid start, start + step, ... up to end. A profile counts at the first
 * instant of the grid that is not before the profile, so the first instant has the profiles of the
 * step that ends there. Of `stacks`, only the call site is used. */
bool query_time_series(const struct query *q, const struct query_range *r,
                       const struct profile_type *type, const struct query_steps *o,
                       const struct query_stacks *stacks, struct query_time_series_list *ret,
                       struct err *err);

#define QUERY_HEATMAP_ROWS 20
struct query_slot {
    int64_t time_ms;
    double y_min[QUERY_HEATMAP_ROWS];
    int32_t counts[QUERY_HEATMAP_ROWS];
    const struct query_exemplar *exemplars; /* the exemplar of each cell that is not empty */
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
/* Counts on the grid of a timeline. If there are profiles after the last instant of the grid, they
 * get one instant more. */
bool query_heatmap(const struct query *q, const struct query_range *r,
                   const struct profile_type *type, const struct query_steps *o,
                   enum query_counted counted, struct query_heatmap *ret, struct err *err);

#endif
