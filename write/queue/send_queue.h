/* One endpoint's queue, backoff and ledger: what is sent next, and when.
 *
 * The queue is first in, first out and bounded in bytes; what is in flight counts as well. When a
 * new profile does not fit, the oldest queued ones go. A profile that failed without any answer
 * goes back to its place at the front (the endpoint was not there); with an answer, or after
 * ENDPOINT_UNANSWERED_MAX attempts without one, it goes to the end, so that one profile that a
 * server stumbles over cannot block the others.
 *
 * A retryable failure makes the endpoint rest, min_backoff * 2^(k-1) to min_backoff * 2^k for the
 * k-th failure in a row (max_backoff at most), or as long as the server asked for. Behind the rest
 * a single probe is in flight at a time, until one is answered; then the number in flight grows
 * from one (ENDPOINT_PACE_MS). Attempts that had been started before a failure do not count as
 * further failures, or as a recovery.
 *
 * The ledger balances whenever the lock is free: accepted = sent + dropped + queued + in flight.
 * Every counter changes in the critical section in which the profile moves.
 *
 * Logic only: the caller brings the time and does the sending. All functions may be called on any
 * thread; endpoint_take() and endpoint_done() belong to the sender's.
 */
#ifndef PROFPULL_WRITE_QUEUE_SEND_QUEUE_H
#define PROFPULL_WRITE_QUEUE_SEND_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/profile.h"
#include "write/answer.h"
#include "write/write.h"

/* Attempts at the head of the queue before a profile that gets no answer has to let others try. */
#define ENDPOINT_UNANSWERED_MAX 3
/* While draining no rest is longer than this, whatever the backoff or the server says. */
#define ENDPOINT_DRAIN_WAIT_MS 100
/* Behind an outage one request is in flight at first, and twice as many after each such time, until
 * concurrency is reached: whatever has gathered must not fall upon a server that has just come up.
 */
#define ENDPOINT_PACE_MS 250
/* What a profile that is only on disk costs of max_bytes, for its place in the index. */
#define ENDPOINT_INDEX_COST ((uint64_t)384)
/* Behind a disk that could not be read. */
#define ENDPOINT_LOAD_REST_MS 1000
/* How often a profile that cannot be read from disk is tried. */
#define ENDPOINT_LOADS_MAX 3
/* Shortest rest: an endpoint that refuses connections must not cost a core. */
#define ENDPOINT_WAIT_MIN_MS 10

struct endpoint;

struct endpoint_options {
    uint64_t max_bytes;
    unsigned concurrency; /* 0 = 1 */
    int64_t min_backoff_ms;
    int64_t max_backoff_ms;
    int64_t max_age_ms; /* 0 = for ever */
    uint64_t seed;      /* of the jitter */
};

/* A profile that is being sent. */
struct endpoint_item;
struct profile *endpoint_item_profile(const struct endpoint_item *it); /* borrowed */
/* 1 for the first attempt. */
unsigned endpoint_item_attempt(const struct endpoint_item *it);

enum endpoint_fate { FATE_SENT, FATE_QUEUED, FATE_DROPPED };

/* What became of an attempt, for logs and metrics. */
struct endpoint_result {
    enum endpoint_fate fate;
    enum write_drop reason; /* FATE_DROPPED */
    bool recovered;         /* the endpoint works again */
    unsigned failures;      /* in a row, of the endpoint */
    int64_t wait_ms;        /* until the next attempt, if the endpoint rests now */
    uint64_t queued;
};

struct endpoint_status {
    struct write_ledger ledger;
    uint64_t in_flight_bytes;
    int64_t oldest_ms;     /* scraped_ms of the oldest queued profile; INT64_MAX if none is */
    uint64_t on_disk_only; /* of the queued ones */
    unsigned failures;
    bool probing; /* one is in flight to see whether the endpoint works again */
};

struct endpoint *endpoint_new(const struct endpoint_options *options); /* NULL if out of memory */
/* Nothing may be in flight, and a spool must have been stopped. What is queued is forgotten; what
 * of it is on disk stays there. Accepts NULL, returns NULL. */
struct endpoint *endpoint_free(struct endpoint *e);

/* Takes over the reference. Never blocks for long. */
void endpoint_put(struct endpoint *e, struct profile *p, int64_t now_ms);

/* The next profile to send now, or NULL: nothing there, concurrency reached, or resting. Expired
 * profiles are dropped on the way. The item has to come back with endpoint_done() or
 * endpoint_drop(). */
struct endpoint_item *endpoint_take(struct endpoint *e, int64_t now_ms);
struct endpoint_result endpoint_done(struct endpoint *e, struct endpoint_item *it,
                                     const struct answer *a, int64_t now_ms);
/* Gives up a profile that was taken; says nothing about the endpoint. */
void endpoint_drop(struct endpoint *e, struct endpoint_item *it, enum write_drop reason);

/* Drops what is over max_age. */
void endpoint_expire(struct endpoint *e, int64_t now_ms);
/* When endpoint_take() or endpoint_expire() has something to do next even if nothing else happens;
 * INT64_MAX for never. */
int64_t endpoint_wake_ms(struct endpoint *e);

/* From now on what is put is dropped at once (DROP_SHUTDOWN). */
void endpoint_close(struct endpoint *e);
/* Closes and ends the present rest; later ones are short. */
void endpoint_drain(struct endpoint *e, int64_t now_ms);

/* ---- with a spool ------------------------------------------------------------------------------
 *
 * What is put is handed to the spool as well, and given back to it when it is sent or dropped. A
 * profile that is safe on disk may lose its bytes in memory when max_bytes is reached, and is read
 * back when its turn comes. In the ledger it is queued all the time, wherever it is.
 */

struct spool;
struct spool_events;

/* The events that the spool is to be made with; changed and flushed are the caller's to fill in. */
struct spool_events endpoint_spool_events(struct endpoint *e);
/* Before anything is put. The spool outlives the endpoint, and is stopped before it is freed. */
void endpoint_attach(struct endpoint *e, struct spool *spool);
/* Gives up an attempt at the end: what the spool knows goes back into the queue, the rest is
 * dropped (DROP_SHUTDOWN). */
void endpoint_abandon(struct endpoint *e, struct endpoint_item *it);
/* From now on nothing is taken. */
void endpoint_stop(struct endpoint *e);
/* Drops what is not safe on disk, in the queue; without a spool that is all of it. */
void endpoint_drop_unsafe(struct endpoint *e, enum write_drop reason);

struct endpoint_status endpoint_status(struct endpoint *e);

#endif
