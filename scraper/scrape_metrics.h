/* The scraper's metrics. Label values are names of jobs and types, and fixed words. */
#ifndef PROFPULL_SCRAPER_SCRAPE_METRICS_H
#define PROFPULL_SCRAPER_SCRAPE_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "base/metrics.h"
#include "model/reason.h"
#include "scraper/slots.h"

enum scrape_result { SCRAPE_OK, SCRAPE_FAILED, SCRAPE_SKIPPED };
#define SCRAPE_RESULTS (SCRAPE_SKIPPED + 1)

/* The states of profpull_scrapes: those of enum scrape_health, and two more for targets that share
 * the scrape of another target. */
enum { SCRAPES_FOLLOW = 4, SCRAPES_DUPLICATE, SCRAPES_STATES };

/* Cells of one job and type; they live as long as the metrics. */
struct type_metrics {
    struct metric_cell *results[SCRAPE_RESULTS];
    struct metric_cell *states[SCRAPES_STATES]; /* gauges of the job, for all of its types */
    struct metric_cell *duration;               /* in seconds; of the type, for all jobs */
    struct metric_cell *size;                   /* in bytes; of the type, for all jobs */
    /* Expected bytes of a body about which nothing else is known; 0: no body was seen yet. */
    size_t expected;
};

struct scrape_metrics {
    struct map *types; /* "job\0type" -> struct type_metrics */
    struct metric *scrapes;
    struct metric *failures;
    struct metric *durations;
    struct metric *sizes;
    struct metric_cell *lateness;
    struct metric_cell *in_flight;
    struct metric_cell *waiting;
    struct metric_cell *unread; /* gauges of the scrapes that wait for memory */
    struct metric_cell *held_back;
    struct metric_cell *memory_waits;
    struct metric_cell *slots[SLOT_CLASSES];
    struct metric_cell *targets; /* gauges */
    struct metric_cell *targets_refused;
    struct metric_cell *targets_left_out;
    struct metric *states;
    struct metric_cell *refused_limit; /* counters */
    struct metric_cell *refused_duplicate;
    struct metric_cell *refused_memory;
};

/* Registers the metrics; metrics may be NULL. Returns false if out of memory. */
bool scrape_metrics_init(struct scrape_metrics *m, struct metrics *metrics);
void scrape_metrics_done(struct scrape_metrics *m);
/* Returns the cells of a job and type, which are made if necessary; NULL if out of memory. */
struct type_metrics *scrape_metrics_of_type(struct scrape_metrics *m, const char *job,
                                            const char *type);
/* Updates the expected size with that of a body of this type, in bytes. The expectation grows at
 * once, and shrinks by at most an eighth for each body. */
void scrape_metrics_learn(struct type_metrics *t, size_t size);
/* Counts a failure of a job. */
void scrape_metrics_failed(struct scrape_metrics *m, const char *job, enum reason reason);

#endif
