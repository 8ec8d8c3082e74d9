/* The send queue of a destination, with backoff and ledger: it decides which profile is sent next,
 * and when.
 *
 * The queue is bounded in bytes, those in flight included. Before it is full, deltas of one series
 * are merged (merging.h). When it is full, other profiles are thinned out, and a profile that does
 * not fit even then is refused. The tenants take turns; the profiles of each are sent first in,
 * first out. A profile that got no answer returns to its place at the front, because the endpoint
 * was not reachable. With an answer, or after SEND_QUEUE_UNANSWERED_MAX attempts without one, it
 * goes to the end.
 *
 * A failure stops the part that it concerns (enum answer_scope). The endpoint and each tenant back
 * off (backoff.h); a single profile rests, and the others pass it. If an endpoint was stopped by a
 * profile while others passed afterwards, the next failure of that profile stops only its tenant,
 * or only the profile. A tenant of which SEND_QUEUE_REFUSED_MAX profiles in a row were refused
 * rests as well; then no refusal counts against a profile, because the server is at fault.
 *
 * The ledger balances whenever the lock is free: accepted = sent + dropped + merged + queued + in
 * flight. Every counter changes in the critical section in which the profile moves.
 *
 * Logic only: the caller passes the time in and does the sending. Any thread may call all functions
 * except send_queue_take() and send_queue_done(), which belong to the thread of the sender. */
#ifndef PROFPULL_WRITE_QUEUE_SEND_QUEUE_H
#define PROFPULL_WRITE_QUEUE_SEND_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/profile.h"
#include "write/answer.h"
#include "write/queue/lanes.h"
#include "write/write.h"

/* Attempts without an answer before a profile loses its place at the head of the queue. */
#define SEND_QUEUE_UNANSWERED_MAX 3
/* The longest rest of an endpoint that is out of order, unless min_backoff is longer. One request
 * every few seconds is no burden, and a recovery is noticed soon. */
#define SEND_QUEUE_PROBE_MS 5000
/* The longest rest while draining. A rest that the server asked for may be longer. */
#define SEND_QUEUE_DRAIN_REST_MS 2000
/* A tenant rests when the server has refused so many of its profiles one after the other. */
#define SEND_QUEUE_REFUSED_MAX 8
/* Bytes of max_bytes that a profile takes that is only on disk, for its place in the index. */
#define SEND_QUEUE_INDEX_COST ((uint64_t)512)
/* The wait after the disk could not be read. */
#define SEND_QUEUE_LOAD_REST_MS 1000
/* Attempts to read a profile from disk before it is dropped. */
#define SEND_QUEUE_LOADS_MAX 3

struct send_queue;

/* A profile that has been taken to be sent. */
struct send_item;
struct profile *send_item_profile(const struct send_item *it); /* borrowed */
/* 1 for the first attempt. */
unsigned send_item_attempt(const struct send_item *it);
/* The sender's note about the profile: 0 at first, and again for the result of a merge. */
unsigned send_item_note(const struct send_item *it);
void send_item_set_note(struct send_item *it, unsigned note);

/* The outcome of an attempt, for logs and metrics. */
struct send_result {
    enum write_outcome outcome;
    enum write_drop reason; /* WRITE_DROPPED */
    bool recovered;         /* the endpoint works again */
    bool tenant_recovered;  /* or the tenant */
    /* The part that rests because of a failure. */
    enum answer_scope scope;
    unsigned failures; /* of it, in a row */
    int64_t wait_ms;   /* of it, until the next attempt */
    char tenant[SERIES_TENANT_MAX + 1];
    uint64_t queued;
};

struct send_queue_status {
    struct write_ledger ledger;
    uint64_t in_flight_bytes;
    int64_t oldest_ms;     /* scraped_ms of the oldest queued profile; INT64_MAX if none is */
    uint64_t on_disk_only; /* of the queued ones */
    uint64_t waiting;      /* of the queued ones: they wait alone, for a doubtful answer */
    uint64_t shared;       /* profiles so far whose tenant had no backoff of its own */
    unsigned failures;     /* of the endpoint */
    bool probing;          /* one is in flight to see whether the endpoint works again */
    struct lanes_count lanes;
};

/* NULL if out of memory. config is referenced: its concurrency, queue_max_bytes and times count.
 * seed: of the jitter. */
struct send_queue *send_queue_new(const struct config_endpoint *config, uint64_t seed);
/* Frees the queue. Nothing may be in flight, and a spool must have been stopped. Queued profiles
 * are forgotten; their copies on disk stay there. Accepts NULL, returns NULL. */
struct send_queue *send_queue_free(struct send_queue *q);

/* Changes the configuration of the endpoint, referenced like the first. It applies at once, also to
 * queued profiles. Rests end, because the cause of the failure may have been changed. Any thread.
 */
void send_queue_configure(struct send_queue *q, const struct config_endpoint *config);

enum send_put {
    SEND_TAKEN,
    SEND_LOST,    /* dropped, and counted so */
    SEND_REFUSED, /* a refusable profile without room: not counted yet, see send_queue_refused() */
};
/* Takes over the reference. Never waits for the disk or the network. */
enum send_put send_queue_put(struct send_queue *q, struct profile *p, int64_t now_ms);
/* Counts a profile that was refused. lost: another queue has taken it, so that it does not come
 * again. */
void send_queue_refused(struct send_queue *q, bool lost);

/* The next profile to send now, or NULL: nothing there, concurrency reached, or resting. Expired
 * profiles are dropped on the way. The item has to come back with send_queue_done() or
 * send_queue_drop(). */
struct send_item *send_queue_take(struct send_queue *q, int64_t now_ms);
struct send_result send_queue_done(struct send_queue *q, struct send_item *it,
                                   const struct answer *a, int64_t now_ms);
/* Gives up a profile that was taken, without effect on the back-off. */
void send_queue_drop(struct send_queue *q, struct send_item *it, enum write_drop reason);

/* When send_queue_take() has something to send or to drop next even if nothing else happens;
 * INT64_MAX for never. */
int64_t send_queue_wake_ms(struct send_queue *q);

/* True if the endpoint works and profiles wait for the end of one in flight, because there may be
 * no more of these: concurrency is reached, or the pace after an outage. */
bool send_queue_is_crowded(struct send_queue *q, int64_t now_ms);

/* True if nothing is in flight, and nothing can be sent before that time. */
bool send_queue_rests_until(struct send_queue *q, int64_t time_ms);

/* From now on, each profile that is put is dropped (DROP_SHUTDOWN). */
void send_queue_close(struct send_queue *q);
/* Closes. From now on rests are short, unless the server asked for more, and no doubtful answer
 * counts against a profile. */
void send_queue_drain(struct send_queue *q, int64_t now_ms);
/* The same for one whose endpoint is not wanted any more: what cannot be sent is dropped as
 * DROP_REMOVED instead of DROP_SHUTDOWN. */
void send_queue_remove(struct send_queue *q, int64_t now_ms);

/* ---- with a spool ------------------------------------------------------------------------------
 *
 * What is put is handed to the spool as well, and given back to it when it is sent or dropped. A
 * profile that is safe on disk may lose its bytes in memory when max_bytes is reached, and is read
 * back when its turn comes. In the ledger it is queued all the time, wherever it is.
 */

struct spool;
struct spool_events;

/* The events that the spool is to be made with; changed and flushed are the caller's to fill in. */
struct spool_events send_queue_spool_events(struct send_queue *q);
/* Before anything is put. The spool outlives the endpoint, and is stopped before it is freed. */
void send_queue_attach(struct send_queue *q, struct spool *spool);
/* Gives up an attempt at the end: a profile that the spool has is queued again, others are dropped
 * (DROP_SHUTDOWN or DROP_REMOVED). */
void send_queue_abandon(struct send_queue *q, struct send_item *it);
/* From now on nothing is taken. */
void send_queue_stop(struct send_queue *q);
/* Drops queued profiles that are not safe on disk; without a spool, all of them. */
void send_queue_drop_unsafe(struct send_queue *q, enum write_drop reason);
/* Returns the final ledger of a queue that is not used any more, after send_queue_drop_unsafe():
 * profiles that are left on disk count as dropped for `reason`, and nothing waits. */
struct write_ledger send_queue_final(struct send_queue *q, enum write_drop reason);

struct send_queue_status send_queue_status(struct send_queue *q);

#endif
