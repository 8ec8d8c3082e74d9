/* The send queue of a destination, with backoff and ledger: it decides which profile is sent next,
 * and when.
 *
 * The queue is bounded in bytes, those in flight included. Before it is full, deltas of one series
 * are merged (merging.h). When it is full, other profiles are thinned out, and a profile that does
 * not fit even then is refused. The tenants take turns; the profiles of each are sent first in,
 * first out. A profile that got no response returns to its place at the front, because the endpoint
 * was not reachable. With a response, or after SEND_QUEUE_UNANSWERED_MAX attempts without one, it
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

/* The number of attempts without a response after which a profile loses its place at the head of
 * the queue. */
#define SEND_QUEUE_UNANSWERED_MAX 3
/* The longest rest of an endpoint that is out of order, unless min_backoff is longer. One request
 * every few seconds is no burden, and a recovery is noticed soon. */
#define SEND_QUEUE_PROBE_MS 5000
/* The longest rest while draining. A rest that the server asked for may be longer. */
#define SEND_QUEUE_DRAIN_REST_MS 2000
/* A tenant rests when the server has refused so many of its profiles one after the other. */
#define SEND_QUEUE_REFUSED_MAX 8
/* The bytes of max_bytes that a profile takes if it is only on disk, for its place in the index. */
#define SEND_QUEUE_INDEX_COST ((uint64_t)512)
/* The wait after a failure to read the disk, in ms. */
#define SEND_QUEUE_LOAD_REST_MS 1000
/* The number of failed attempts to read a profile from disk after which it is dropped. */
#define SEND_QUEUE_LOADS_MAX 3

struct send_queue;

/* A profile that has been taken to be sent. */
struct send_item;
struct profile *send_item_profile(const struct send_item *it); /* borrowed */
/* Returns the number of this attempt, from 1 on. */
unsigned send_item_attempt(const struct send_item *it);
/* Returns the sender's note about the profile, which is 0 for a new profile and for the result of a
 * merge. */
unsigned send_item_note(const struct send_item *it);
void send_item_set_note(struct send_item *it, unsigned note);

/* The outcome of an attempt, for logs and metrics. */
struct send_result {
    enum write_outcome outcome;
    enum write_drop reason; /* WRITE_DROPPED */
    bool recovered;         /* the endpoint works again */
    bool tenant_recovered;  /* the tenant works again */
    /* The part that rests because of a failure. */
    enum answer_scope scope;
    unsigned failures; /* failures of that part in a row */
    int64_t wait_ms;   /* rest of that part until the next attempt, in ms */
    char tenant[SERIES_TENANT_MAX + 1];
    uint64_t queued;
};

struct send_queue_status {
    struct write_ledger ledger;
    uint64_t in_flight_bytes;
    int64_t oldest_ms;     /* scraped_ms of the oldest queued profile; INT64_MAX if none is */
    uint64_t on_disk_only; /* queued profiles that are only on disk */
    uint64_t waiting;      /* queued profiles that wait alone, because of a doubtful answer */
    uint64_t shared;       /* profiles so far whose tenant had no backoff of its own */
    unsigned failures;     /* failures of the endpoint in a row */
    bool probing;          /* a probe is in flight, to see if the endpoint works again */
    struct lanes_count lanes;
};

/* Returns an empty queue; NULL if out of memory. config is borrowed: its concurrency,
 * queue_max_bytes and times apply. seed: of the jitter. */
struct send_queue *send_queue_new(const struct config_endpoint *config, uint64_t seed);
/* Frees the queue. Nothing may be in flight, and a spool must have been stopped. Queued profiles
 * are forgotten; their copies on disk stay there. Accepts NULL, returns NULL. */
struct send_queue *send_queue_free(struct send_queue *q);

/* Changes the configuration of the endpoint, which is borrowed like the first one. It applies at
 * once, also to queued profiles; rests go on until send_queue_end_rests(). Any thread. */
void send_queue_configure(struct send_queue *q, const struct config_endpoint *config);
/* Ends all rests, because the change of the configuration may have removed the cause of the
 * failure. Call it on the thread that starts attempts, when it uses the new configuration: an
 * attempt by the former one would fail again, and begin another rest. */
void send_queue_end_rests(struct send_queue *q);

enum send_put {
    SEND_TAKEN,
    SEND_LOST,    /* dropped, and counted as such */
    SEND_REFUSED, /* a refusable profile without room: not counted yet, see send_queue_refused() */
};
/* Puts a profile into the queue. Takes over the reference. Never waits for the disk or the network.
 */
enum send_put send_queue_put(struct send_queue *q, struct profile *p, int64_t now_ms);
/* Counts a profile that was refused. lost: another queue has accepted it, so it will not be put
 * again, and this queue has lost it. */
void send_queue_refused(struct send_queue *q, bool lost);

/* Takes the next profile to send now. Returns NULL if the queue is empty, concurrency is reached,
 * or the endpoint rests. Drops expired profiles. Return the item with send_queue_done(),
 * send_queue_drop() or send_queue_abandon(). */
struct send_item *send_queue_take(struct send_queue *q, int64_t now_ms);
/* Ends an attempt with the classified response: the profile is sent, dropped or queued again. The
 * caller must not use the item after this. */
struct send_result send_queue_done(struct send_queue *q, struct send_item *it,
                                   const struct answer *a, int64_t now_ms);
/* Drops a profile that was taken, without effect on the backoff. */
void send_queue_drop(struct send_queue *q, struct send_item *it, enum write_drop reason);

/* Returns the next time at which send_queue_take() will have something to send or to drop, even if
 * nothing else happens; INT64_MAX for never. */
int64_t send_queue_wake_ms(struct send_queue *q);

/* Returns true if the endpoint works, and profiles wait only until one in flight has ended, because
 * concurrency, or the pace after an outage, allows no more of them. */
bool send_queue_is_crowded(struct send_queue *q, int64_t now_ms);

/* Returns true if nothing is in flight, and nothing can be sent before that time. */
bool send_queue_rests_until(struct send_queue *q, int64_t time_ms);

/* Closes the queue: from now on, each profile that is put is dropped (DROP_SHUTDOWN). */
void send_queue_close(struct send_queue *q);
/* Closes the queue to drain it. From now on, rests are short unless the server asked for longer
 * ones, and no doubtful answer counts against a profile. */
void send_queue_drain(struct send_queue *q, int64_t now_ms);
/* Drains the queue of an endpoint that was removed: profiles that cannot be sent are dropped as
 * DROP_REMOVED instead of DROP_SHUTDOWN. */
void send_queue_remove(struct send_queue *q, int64_t now_ms);

/* ---- with a spool ------------------------------------------------------------------------------
 *
 * Each profile that is put is handed to the spool as well, and released there when it is sent or
 * dropped. A profile that is safe on disk may lose its bytes in memory when max_bytes is reached,
 * and is read back when its turn comes. In the ledger it is queued all the time, wherever it is.
 */

struct spool;
struct spool_events;

/* Returns the events with which the spool has to be made. The caller fills in changed and flushed.
 */
struct spool_events send_queue_spool_events(struct send_queue *q);
/* Attaches a spool. Call it before any profile is put. The spool must outlive the queue, and be
 * stopped before the queue is freed. */
void send_queue_attach(struct send_queue *q, struct spool *spool);
/* Abandons an attempt at the end of the process or of the endpoint. A profile that is in the spool
 * is queued again, any other one is dropped (DROP_SHUTDOWN or DROP_REMOVED). */
void send_queue_abandon(struct send_queue *q, struct send_item *it);
/* Stops the queue: from now on send_queue_take() returns NULL. */
void send_queue_stop(struct send_queue *q);
/* Drops queued profiles that are not safe on disk; without a spool, all of them. */
void send_queue_drop_unsafe(struct send_queue *q, enum write_drop reason);
/* Returns the final ledger of a queue that is not used any more, after send_queue_drop_unsafe():
 * profiles that are left on disk count as dropped for `reason`, and nothing waits. */
struct write_ledger send_queue_final(struct send_queue *q, enum write_drop reason);

struct send_queue_status send_queue_status(struct send_queue *q);

#endif
