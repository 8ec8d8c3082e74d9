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
/* With those that are hidden. */
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

/* Registers a family, or returns the one with this name. NULL for a NULL registry or out of memory;
 * all functions below accept NULL and ignore it. */
struct metric *metrics_register(struct metrics *m, const struct metric_desc *desc);
/* metrics_register() of a counter or gauge. label2, or both labels, may be NULL; all strings are
 * static. */
struct metric *metrics_family(struct metrics *m, enum metric_type type, const char *name,
                              const char *help, const char *label1, const char *label2);
/* The only cell of a counter or gauge without labels. */
struct metric_cell *metrics_single(struct metrics *m, enum metric_type type, const char *name,
                                   const char *help);
/* The cell for these label values, one for each label of the family; copied. Any thread. */
struct metric_cell *metric_cell(struct metric *m, const char *const *values);
/* For a family with one label. */
struct metric_cell *metric_cell_of(struct metric *m, const char *value);
/* For a family without labels. */
struct metric_cell *metric_only(struct metric *m);

/* Says that something with this name exists, from now on until metrics_release() of it: as often as
 * it was said. Without anybody, all cells whose first label has this name and value are hidden;
 * they still count, and show it when they are seen again. Cells of values that nobody ever used are
 * shown. If memory runs out, nothing is hidden. Any thread. */
void metrics_use(struct metrics *m, const char *label, const char *value);
void metrics_release(struct metrics *m, const char *label, const char *value);

void metric_add(struct metric_cell *c, uint64_t n);
void metric_inc(struct metric_cell *c);
void metric_set(struct metric_cell *c, int64_t value); /* gauges */
void metric_gauge_add(struct metric_cell *c, int64_t delta);
void metric_observe(struct metric_cell *c, double value); /* histograms */
uint64_t metric_value(const struct metric_cell *c);       /* counters and gauges, for tests */

/* Writes lines of one family during metrics_render(). */
struct metrics_out;
void metrics_out_family(struct metrics_out *o, const char *name, const char *help,
                        enum metric_type type);
/* A sample of the last family. labels: n pairs of name and value. */
void metrics_out_sample(struct metrics_out *o, const char *const (*labels)[2], size_t n,
                        double value);
/* fn runs in each metrics_render(), on its thread. */
bool metrics_collector(struct metrics *m, void (*fn)(struct metrics_out *o, void *arg), void *arg);

/* Appends the text format 0.0.4, families in order of registration. */
bool metrics_render(struct metrics *m, struct buf *out);

#endif
