/* Work on the bodies of profiles that runs on the worker pool: deltas and conversions.
 *
 * Two limits bound the memory: one for the bodies that wait or are being worked on, and one for the
 * working memory of all workers together. Before a piece of work starts, it reserves the memory
 * that it is likely to need, and waits while there is too little. It never gets more than it has
 * reserved. If the reservation was too small, the work runs once more with all the memory that one
 * piece of work may have, and fails if that is not enough either.
 *
 * Large work has a line of its own. Small work goes first, but at most OFFLOAD_PATIENCE pieces pass
 * a large one that waits. If there are two workers or more, one of them is always kept for small
 * work. So a few pods with large profiles do not hold up all others, and are not held up by them
 * for ever.
 *
 * All calls on the engine's thread; only run() of a kind is called elsewhere. Work that still runs
 * when its queue is closed frees itself when it ends.
 */
#ifndef PROFPULL_SCRAPER_OFFLOAD_H
#define PROFPULL_SCRAPER_OFFLOAD_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/metrics.h"
#include "base/worker.h"
#include "model/reason.h"
#include "pprof/scratch.h"

/* Bytes of the bodies that wait for a worker or are being worked on. If there is no room here, a
 * response waits unread (scraper/room.h); if its body has none even then, the scrape fails with
 * REASON_BUSY. */
#define OFFLOAD_PENDING_DEFAULT ((size_t)128 * 1024 * 1024)
/* A body is large if it has more than 1/16 of this limit. Large bodies leave 1/2 of the limit to
 * smaller ones. */
#define OFFLOAD_LARGE_PART 16
#define OFFLOAD_SMALL_RESERVE 2
/* The memory in which all workers together may work. */
#define OFFLOAD_WORK_DEFAULT ((size_t)4 * 1024 * 1024 * 1024)
/* The memory of one piece of work: more than the largest profile that is accepted needs. */
#define OFFLOAD_JOB_MAX ((size_t)256 * 1024 * 1024)
/* The first reservation of a piece of work is OFFLOAD_JOB_MIN plus OFFLOAD_JOB_FACTOR times the
 * size of the inflated body. A delta of a Go heap takes six times that size. */
#define OFFLOAD_JOB_MIN ((size_t)512 * 1024)
#define OFFLOAD_JOB_FACTOR 7

struct engine;
struct offload;

TAILQ_HEAD(offload_line, offload);

/* Work is large if it reserves more than OFFLOAD_LARGE_JOB, or more than 1/OFFLOAD_LARGE_JOB_PART
 * of the memory of all workers. */
#define OFFLOAD_LARGE_JOB ((size_t)16 * 1024 * 1024)
#define OFFLOAD_LARGE_JOB_PART 4
/* The number of small pieces of work that may pass a large one that waits. */
#define OFFLOAD_PATIENCE 256

struct offload_limits {
    size_t pending_max; /* 0 = OFFLOAD_PENDING_DEFAULT */
    size_t work_max;    /* 0 = OFFLOAD_WORK_DEFAULT */
    unsigned workers;   /* 0 = 1 */
};

enum offload_size { OFFLOAD_SMALL, OFFLOAD_LARGE, OFFLOAD_SIZES };

struct offload_queue {
    struct offload_line pending;                /* all */
    struct offload_line waiting[OFFLOAD_SIZES]; /* the part of `pending` that no worker has yet */
    unsigned large_max; /* the most pieces of large work that workers may have at the same time */
    unsigned n_large;
    unsigned passed; /* small pieces of work that have passed the large one that waits */
    size_t pending_bytes;
    size_t promised_bytes; /* bytes promised to bodies that are being received */
    size_t pending_max;
    size_t work_bytes; /* reserved */
    size_t work_max;
    size_t job_max;
    void (*on_left)(struct engine *e); /* called after a body has left; NULL: nothing is called */
    struct scratch_pool *scratches;
    struct metric_cell *pending_cell;
    struct metric_cell *work_cell;
    struct metric_cell *waiting_cell;
    struct metric_cell *repeated;
    struct metric *refused;
};

struct offload_kind {
    size_t size; /* the size of the object that starts with a struct offload */
    /* Does the work, on a worker. Puts a failure into o->err, and leaves the object as it was, so
     * that it can run again. */
    void (*run)(struct offload *o, struct scratch *scratch);
    /* Releases everything that the object holds besides the body. Called once for each object:
     * after done(), or in place of done(). o->queue is NULL if the queue was closed, or if the work
     * was cancelled before it ran. */
    void (*release)(struct offload *o);
};

struct offload {
    struct work work; /* first */
    TAILQ_ENTRY(offload) link;
    TAILQ_ENTRY(offload) wait;
    const struct offload_kind *kind;
    struct engine *engine;
    struct offload_queue *queue;
    void (*done)(void *arg, struct offload *o);
    void *arg;  /* NULL: cancelled */
    char *body; /* done() may take it, and sets it to NULL then */
    size_t size;
    size_t reserved; /* the memory that the work may take, in bytes */
    size_t most;     /* the most that may be reserved */
    enum offload_size lane;
    bool waits;                     /* it is in the line of work that waits for a worker */
    bool over;                      /* it needed more memory than it had reserved */
    struct scratch_pool *scratches; /* a reference */
    struct err err;
};

/* Returns false if out of memory; call offload_close() in any case. metrics may be NULL. */
bool offload_open(struct offload_queue *q, const struct offload_limits *limits,
                  struct metrics *metrics);
void offload_close(struct offload_queue *q);

/* Returns true if a body of this size finds room among the pending ones, or if it is so large that
 * it never can. */
bool offload_has_place(const struct offload_queue *q, size_t size);
/* Returns true if work waits for memory to work in, false if it only waits for a worker. */
bool offload_lacks_memory(const struct offload_queue *q);
/* Replaces a promise to a body that is being received (0: none) by another one (0: none). Returns
 * the new promise: 0 if a body of this size can never wait. */
size_t offload_promise(struct offload_queue *q, size_t before, size_t size);
/* Returns a zeroed object of this kind for a body, and takes the body over. has_place: room was
 * promised to this body until now (offload_promise()). On failure returns NULL with a reason (busy,
 * too_large, memory) and its sentence. Submit the object next. */
void *offload_new(struct engine *e, const struct offload_kind *kind, char *body, size_t size,
                  bool has_place, enum reason *ret_reason, struct err *err);
/* Reserves more memory for work that is not yet submitted. */
void offload_reserve_more(struct offload *o, size_t bytes);
/* Submits work. done(arg, o) is called later on this thread, never from within this call. */
void offload_submit(struct offload *o, void (*done)(void *arg, struct offload *o), void *arg);
/* Cancels work: done() will not be called. */
void offload_cancel(struct offload *o);

#endif
