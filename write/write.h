/* The writer: profiles -> a queue for each endpoint -> protocol -> HTTP (or files).
 *
 * One loop (the writer thread), a thread that merges queued deltas (queue/merger.h), and one for
 * each directory. Each endpoint has a queue bounded in bytes, its own concurrency limit, backoff
 * and ledger: endpoints never wait for each other, and writer_put() never waits for anything.
 *
 * The ledger of an endpoint balances whenever it is read:
 *     accepted + replayed = sent + dropped (by reason) + merged + queued + in flight
 *
 * With a spool (spool.h) the queue is on disk as well, in a directory for each endpoint; the next
 * process sends the profiles that were still waiting.
 */
#ifndef PROFPULL_WRITE_WRITE_H
#define PROFPULL_WRITE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "config/config.h"
#include "http/http.h"
#include "model/profile.h"

/* The reason for which a profile was dropped: label "reason" of the ledger. */
enum write_drop {
    DROP_QUEUE_FULL, /* it did not fit, or was dropped to make room for another one */
    /* Dropped to make room: every second, fourth, ... profile of its series is kept. No delta. */
    DROP_THINNED,
    DROP_EXPIRED,  /* older than retry.max_age */
    DROP_REJECTED, /* the server will never take it */
    DROP_RETRIES,  /* a doubtful answer came too often, or max_attempts failed */
    DROP_LABELS,   /* labels that the protocol cannot carry */
    /* A format that the protocol cannot carry, or a profile that the server would not store. */
    DROP_FORMAT,
    DROP_SHUTDOWN, /* still queued when the drain deadline came */
    DROP_MEMORY,
    /* The profile was only on disk, and the oldest profiles there made room for new ones. */
    DROP_SPOOL_FULL,
    DROP_DAMAGED,   /* it was only on disk, and cannot be read back */
    DROP_EMPTY,     /* without samples, which the server does not store: profefe, DeepFlow */
    DROP_TOO_LARGE, /* refused by the server for its size */
    DROP_TOO_OLD,   /* refused by the server for its time */
    DROP_BURST,     /* larger than the burst of the server's rate limit */
    /* The endpoint was removed from the configuration, and its time to drain was over. */
    DROP_REMOVED,
    WRITE_DROPS /* count */
};
const char *write_drop_name(unsigned d); /* "queue_full", ... */

struct write_ledger {
    uint64_t accepted; /* put by the scraper, the receiver or an import */
    uint64_t replayed; /* found in the spool of an earlier process */
    uint64_t sent;
    uint64_t dropped[WRITE_DROPS];
    uint64_t merged; /* merged into another profile, which is queued instead */
    uint64_t queued;
    uint64_t in_flight;
    uint64_t queued_bytes;
    /* Profiles that were not accepted because there was no room, and of which nothing was lost; not
     * a part of the balance. */
    uint64_t refused;
    uint64_t merge_failures; /* merges that failed for some or all of their profiles */
};

struct writer;
struct sink;

enum write_outcome { WRITE_SENT, WRITE_RETRIED, WRITE_DROPPED };

/* The result of one attempt at one endpoint, for commands that wait for it. */
struct write_attempt {
    const struct profile *profile;
    size_t endpoint; /* the slot of the endpoint; in the first configuration its index */
    enum write_outcome outcome;
    enum write_drop reason;  /* WRITE_DROPPED */
    enum http_result result; /* HTTP_DONE for files, and if there was no request at all */
    long status;             /* the status of the response; 0 if there was none */
    const char *text;        /* the failure, for people; "" if there was none */
    const char *advice;      /* the remedy; "" if none is known */
    bool final;              /* a retry cannot succeed before somebody changes something */
};

struct writer_options {
    const struct config *config; /* the first one; outlives the writer */
    struct loop *loop;
    struct intern *intern;
    struct log *log;
    struct metrics *metrics;
    struct http_contents *contents; /* for the HTTP client (http/http.h); may be NULL */
    struct conditions *conditions;  /* the condition of each endpoint (conditions.h); may be NULL */
    /* Called for each finished attempt and for each profile that cannot be sent at all, but not for
     * one that is lost in the queue. On the loop's thread; it must not free the writer. May be
     * NULL. */
    void (*on_attempt)(void *arg, const struct write_attempt *attempt);
    void *attempt_arg;
    /* Opens a destination whose protocol is implemented in another room (protocol.h); its sink has
     * deliver_all. NULL: there are no such protocols. */
    struct sink *(*open_sink)(void *arg, const struct config_endpoint *endpoint, struct err *err);
    void *open_arg;
};

/* Prepares all endpoints; creates the directory of a file endpoint. An error names the endpoint. */
struct writer *writer_new(const struct writer_options *options, struct err *err);
/* Ends the attempts in flight and drops, with reason shutdown, the queued profiles that the next
 * process will not find on disk. After this call the ledgers are final. Call it after the loop has
 * stopped. */
void writer_stop(struct writer *w);
/* Stops the writer and frees it. Call it after the loop has stopped. */
struct writer *writer_free(struct writer *w);

/* Hands a profile to the endpoints in the set (a bit for each slot: config/change.h). Any thread,
 * never blocks. Takes over the caller's reference. Returns false if none of them could take it. In
 * that case, the ledger of each counts it as refused if it is refusable, else as dropped. */
bool writer_put(struct writer *w, struct profile *p, uint64_t endpoints);

/* Closes the queues to further profiles and sends the queued ones. done runs on the writer's loop
 * when every queue is empty, or at the deadline (monotonic ms), after the remaining profiles have
 * been dropped. If nothing can be sent before the deadline, done runs earlier. Any thread. */
void writer_drain(struct writer *w, int64_t deadline_ms, void (*done)(void *arg), void *arg);

/* Returns true if the disk of an endpoint hangs, or its spool cannot be used before a restart; err
 * names the endpoint then. Any thread. */
bool writer_disk_fails(struct writer *w, struct err *err);

/* Returns the ledger of the endpoint with that slot, from one instant, so that it balances as
 * described above. The counts of earlier endpoints with its name are part of it. Any thread. */
struct write_ledger writer_ledger(struct writer *w, size_t endpoint);

/* ---- another configuration ---------------------------------------------------------------------
 *
 * Steps that can fail come first: writer_prepare(), then writer_commit(), and writer_retire() when
 * no profiles are put to the former endpoints any more. An endpoint that has not changed is not
 * touched. An endpoint with the slot of a former one keeps its queue, spool, ledger and
 * connections; its next attempt is made at once with the new configuration, and attempts in flight
 * end with the old one. An endpoint that is gone may send its queued profiles in the background
 * until the deadline. Then the remaining profiles are dropped (DROP_REMOVED), and profiles on disk
 * stay there.
 *
 * One thread at a time, but not the loop's; not after writer_drain(). The memory in which merging
 * works (`memory` in the configuration) stays that of the first configuration.
 */
struct writer_change;

/* Opens new directories, spools and stores; blocks on disks. Takes a reference of next, whose
 * endpoints have slots (config_assign_slots()). On failure, returns NULL with an error that names
 * the endpoint; nothing has changed then. */
struct writer_change *writer_prepare(struct writer *w, const struct config *next, struct err *err);
/* Puts the new configuration in force for profiles that are put from now on. */
void writer_commit(struct writer_change *c);
/* Begins to end the endpoints that the new configuration does not have; they have until the
 * deadline (monotonic ms). Frees c. */
void writer_retire(struct writer_change *c, int64_t deadline_ms);
/* Frees c without a commit: the configuration stays as it was. Accepts NULL, returns NULL. */
struct writer_change *writer_cancel(struct writer_change *c);
/* Returns a bit for each slot in use, also by endpoints that are being ended, for
 * config_assign_slots(). Any thread. */
uint64_t writer_slots(struct writer *w);

#endif
