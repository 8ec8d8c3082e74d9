/* The inside of struct record, which record.c, thread.c and render.c share. */
#ifndef PROFPULL_RECORD_PRIVATE_H
#define PROFPULL_RECORD_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/map.h"
#include "pprof/scratch.h"
#include "record/record.h"
#include "record/rule.h"

/* The result for one profile and one rule: label of a metric. */
enum record_result {
    RECORD_COUNTED,
    RECORD_OLD,        /* a gauge has the value of a later profile already */
    RECORD_NO_SERIES,  /* the rule has max_series already */
    RECORD_PENDING,    /* too many profiles wait */
    RECORD_CUMULATIVE, /* its counters count from the start of the program, not from the last one */
    RECORD_TOO_LARGE,
    RECORD_DAMAGED,
    RECORD_NO_MEMORY,
    RECORD_RESULTS, /* count */
};

struct record_item {
    STAILQ_ENTRY(record_item) link;
    struct profile *profile; /* a reference */
    size_t bytes;            /* what it counts towards pending_max */
    size_t n;
    struct rule *rules[]; /* references */
};

STAILQ_HEAD(record_queue, record_item);

/* The rules in force. The order is that of the configuration, then that of the API. */
struct record_set {
    struct rule **at; /* references */
    size_t n;
    size_t n_given; /* those of the configuration, which come first */
};

struct record {
    struct record_options options;
    uint64_t seed;
    atomic_size_t n_rules;

    pthread_mutex_t lock; /* guards the rest, and the series of all rules */
    struct record_set set;
    struct map *cache; /* by the mark of a label set: struct matches */
    int64_t cache_swept_ms;
    size_t max_rules;
    size_t max_series;
    int64_t stale_ms;

    /* The queue has a lock of its own: the network thread must not wait for a page. */
    pthread_mutex_t queue_lock;
    pthread_cond_t filled;
    pthread_cond_t emptied;
    struct record_queue queue;
    size_t pending_bytes;
    uint64_t n_begun; /* items that were queued, and those of them that are done */
    uint64_t n_done;
    bool stop;
    bool has_thread;
    pthread_t thread;

    struct scratch *scratch; /* of the record thread */
    struct log_limit limit;
    struct metric_cell *results[RECORD_RESULTS];
    struct metric_cell *rules_cell;
    struct metric_cell *series_cell;
    struct metric_cell *pending_cell;
};

/* Starts the thread unless it runs. */
bool record_thread_start(struct record *r, struct err *err);
/* Lets the thread count what waits, and joins it. */
void record_thread_stop(struct record *r);
/* Queues an item for the thread; takes it over. */
void record_thread_put(struct record *r, struct record_item *i);
/* Waits until all items that are queued now are counted, at most timeout_ms. */
void record_thread_wait(struct record *r, int64_t timeout_ms);

void record_item_free(struct record_item *i);
/* Counts one result for each rule of an item. */
void record_count_all(struct record *r, const struct record_item *i, enum record_result result);
/* Removes stale gauges, and sets the metric of series; under the lock. */
void record_expire(struct record *r, int64_t now_ms);

#endif
