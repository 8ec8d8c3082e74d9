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

/* The states of profpull_scrapes: those of enum scrape_health, and these of targets whose scrape is
 * that of another target. */
enum { SCRAPES_FOLLOW = 4, SCRAPES_DUPLICATE, SCRAPES_STATES };

/* Cells of one job and type; they live as long as the metrics. */
struct type_metrics {
    struct metric_cell *results[SCRAPE_RESULTS];
    struct metric_cell *states[SCRAPES_STATES]; /* gauges; of the job, for all types */
    struct metric_cell *duration;               /* seconds; of the type, for all jobs */
    struct metric_cell *size;                   /* bytes; the same */
    size_t expected; /* bytes of a body about which nothing else is known; 0: none was seen yet */
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
    struct metric_cell *unread; /* gauges of what waits for memory */
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
/* Returns the cells of a job and type; NULL if out of memory. */
struct type_metrics *scrape_metrics_of_type(struct scrape_metrics *m, const char *job,
                                            const char *type);
/* Learns from a body of this type, which had so many bytes: the expectation follows growth at once,
 * and shrinks by an eighth at a time. */
void scrape_metrics_learn(struct type_metrics *t, size_t size);
/* Counts a failure of a job. */
void scrape_metrics_failed(struct scrape_metrics *m, const char *job, enum reason reason);

#endif
