/* Counters, gauges and histograms in the Prometheus text format.
 *
 * A registry belongs to the program. Families are registered at start; cells (one combination of
 * label values) may be made by any thread at any time and live as long as the registry. Updating a
 * cell is one relaxed atomic operation. Label values must come from the configuration or a fixed
 * set, never from pods: a family holds at most METRIC_CELLS_MAX cells, further combinations share
 * one cell whose label values are "other".
 *
 * What must be consistent between several numbers (a ledger) is rendered by a collector, a callback
 * that takes its own snapshot.
 */
#ifndef PROFPULL_BASE_METRICS_H
#define PROFPULL_BASE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define METRIC_LABELS_MAX 4
#define METRIC_CELLS_MAX 512

struct metrics;
struct metric;
struct metric_cell;

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_desc {
    const char *name; /* static storage, as are help and labels */
    const char *help;
    enum metric_type type;
    const char *labels[METRIC_LABELS_MAX]; /* NULL from the first unused on */
    const double *buckets;                 /* histogram: upper bounds, rising; +Inf is added */
    size_t n_buckets;
};

struct metrics *metrics_new(void);
struct metrics *metrics_free(struct metrics *m);

/* Registers a family. Asking again with the same name gives the same one. A NULL registry, and out
 * of memory, give NULL, which all calls below accept and ignore. */
struct metric *metrics_register(struct metrics *m, const struct metric_desc *desc);
/* metrics_register() of a counter or gauge. label2, or both labels, may be NULL; all strings are
 * static. */
struct metric *metrics_family(struct metrics *m, enum metric_type type, const char *name,
                              const char *help, const char *label1, const char *label2);
/* The only cell of a counter or gauge without labels. */
struct metric_cell *metrics_single(struct metrics *m, enum metric_type type, const char *name,
                                   const char *help);
/* The cell for these label values (as many as the family has labels; copied). Any thread. */
struct metric_cell *metric_cell(struct metric *m, const char *const *values);
/* For a family with one label. */
struct metric_cell *metric_cell_of(struct metric *m, const char *value);
/* For a family without labels. */
struct metric_cell *metric_only(struct metric *m);

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
/* labels: n pairs name, value; a sample of the family named last. */
void metrics_out_sample(struct metrics_out *o, const char *const (*labels)[2], size_t n,
                        double value);
/* fn runs at every render, on the thread that renders. */
bool metrics_collector(struct metrics *m, void (*fn)(struct metrics_out *o, void *arg), void *arg);

/* Appends the text format 0.0.4, families in order of registration. */
bool metrics_render(struct metrics *m, struct buf *out);

#endif
