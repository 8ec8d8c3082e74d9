/* Counters, gauges and histograms in the text format of Prometheus.
 *
 * The registry belongs to the program. Families are registered at start; any thread may make cells
 * (one for each combination of label values) at any time, and they live as long as the registry. An
 * update of a cell is one relaxed atomic operation. Label values must come from the configuration
 * or a fixed set, never from pods: a family shows at most METRIC_CELLS_MAX cells, and all further
 * combinations share one whose label values are "other". A job or destination may be missing from
 * the next configuration: metrics_use() and metrics_release() hide its cells until it is back.
 *
 * Numbers that must be consistent with each other (a ledger) are rendered by a collector, a
 * callback that takes a snapshot of its own.
 */
#ifndef PROFPULL_BASE_METRICS_H
#define PROFPULL_BASE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define METRIC_LABELS_MAX 4
#define METRIC_CELLS_MAX 512
/* The limit of a family's cells, the hidden ones included. */
#define METRIC_CELLS_EVER_MAX (8 * METRIC_CELLS_MAX)

struct metrics;
struct metric;
struct metric_cell;

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_desc {
    const char *name; /* static storage, as is all that follows */
    const char *help;
    enum metric_type type;
    const char *labels[METRIC_LABELS_MAX]; /* NULL after the last */
    const double *buckets;                 /* histogram: rising upper bounds; +Inf is added */
    size_t n_buckets;
};

struct metrics *metrics_new(void);
struct metrics *metrics_free(struct metrics *m);

/* Registers a family, or returns the family that has this name. Returns NULL for a NULL registry or
 * if out of memory. All functions below accept NULL and ignore it. */
struct metric *metrics_register(struct metrics *m, const struct metric_desc *desc);
/* Registers a counter or gauge like metrics_register(). label2, or both labels, may be NULL. All
 * strings are static. */
struct metric *metrics_family(struct metrics *m, enum metric_type type, const char *name,
                              const char *help, const char *label1, const char *label2);
/* Registers a counter or gauge without labels and returns its only cell. */
struct metric_cell *metrics_single(struct metrics *m, enum metric_type type, const char *name,
                                   const char *help);
/* Returns the cell for these label values, one for each label of the family. The values are copied.
 * Any thread may call it. */
struct metric_cell *metric_cell(struct metric *m, const char *const *values);
/* Returns the cell for the value of the only label of a family. */
struct metric_cell *metric_cell_of(struct metric *m, const char *value);
/* Returns the cell of a family without labels. */
struct metric_cell *metric_only(struct metric *m);

/* metrics_use() says that something with this label value exists, such as a job, until
 * metrics_release() takes that back. Uses are counted. While the count is 0, all cells whose first
 * label has this name and value are hidden. Hidden cells still count, and show their values when
 * they are visible again. Cells of label values that were never used are shown. If memory runs out,
 * nothing is hidden. Any thread may call these functions. */
void metrics_use(struct metrics *m, const char *label, const char *value);
void metrics_release(struct metrics *m, const char *label, const char *value);

void metric_add(struct metric_cell *c, uint64_t n);
void metric_inc(struct metric_cell *c);
void metric_set(struct metric_cell *c, int64_t value); /* gauges */
void metric_gauge_add(struct metric_cell *c, int64_t delta);
void metric_observe(struct metric_cell *c, double value); /* histograms */
uint64_t metric_value(const struct metric_cell *c);       /* counters and gauges */

/* Writes lines of one family during metrics_render(). */
struct metrics_out;
void metrics_out_family(struct metrics_out *o, const char *name, const char *help,
                        enum metric_type type);
/* Writes a sample of the last family. labels: n pairs of name and value. */
void metrics_out_sample(struct metrics_out *o, const char *const (*labels)[2], size_t n,
                        double value);
/* Registers a collector: each metrics_render() calls fn on the thread that renders. Returns false
 * if out of memory. */
bool metrics_collector(struct metrics *m, void (*fn)(struct metrics_out *o, void *arg), void *arg);

/* Appends the text format 0.0.4, families in order of registration. */
bool metrics_render(struct metrics *m, struct buf *out);

#endif
