/* The scraper: targets -> schedule -> fetch -> check -> (delta) -> profiles.
 *
 * One loop (the network thread) runs every scrape: there is no thread per scrape and no easy handle
 * per target. The discovery thread creates targets with target_new(), a pure function of a job and
 * the relabelled labels, and passes them to scraper_set_group().
 *
 * A scrape is one target x one profile type. Its phase within the interval, on the wall clock, is a
 * hash of its identity: it survives restarts, and the first scrape comes at the first phase. A tick
 * that falls into a running scrape is skipped and counted. Two sampling profiles of one process
 * (host and port) never overlap.
 */
#ifndef PROFPULL_SCRAPER_SCRAPER_H
#define PROFPULL_SCRAPER_SCRAPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/worker.h"
#include "config/config.h"
#include "model/profile.h"
#include "model/reason.h"
#include "scraper/targets/target.h"

/* ---- the engine ------------------------------------------------------------------------------ */

struct scraper;

struct scraper_options {
    struct loop *loop;
    struct intern *intern; /* of the targets' labels */
    struct log *log;
    struct metrics *metrics;
    struct http_contents *contents; /* of its client (http/http.h); may be NULL */
    size_t n_jobs;                  /* at the start: one more than the highest slot */
    /* Concurrent transfers; further ones wait. 0 = 16384: enough for ten thousand targets that are
     * sampled nearly all the time, besides short scrapes. */
    unsigned max_in_flight;
    unsigned max_connections;     /* in use and kept for the next scrape; 0 = 32768 */
    struct worker_pool *workers;  /* NULL: no deltas are made, counters pass through unchanged */
    unsigned n_workers;           /* threads of theirs; 0 = 1 */
    size_t delta_state_max_bytes; /* of the baselines of deltas; 0 = 256 MiB */
    size_t bodies_max_bytes;      /* of all bodies being received; 0 = 256 MiB */
    size_t pending_max_bytes;     /* of those that wait for a worker; 0 = 128 MiB */
    size_t work_max_bytes;        /* of what workers work in; 0 = 4 GiB */
    uint64_t seed;                /* of the random numbers; 0: from the system */
    /* Accepts a profile, on the loop's thread; must not block. Takes over the reference. forward_to
     * is that of the job. Returns false if no destination accepted the profile: the baseline of a
     * delta does not move then. */
    bool (*on_profile)(void *arg, struct profile *profile, uint64_t forward_to);
    void *arg;
};

struct scraper *scraper_new(const struct scraper_options *options, struct err *err);
/* Frees the scraper, and cancels everything in flight. On the loop's thread or while the loop does
 * not run, and before the loop is freed; updates still posted to it are dropped when it runs them.
 * Accepts NULL, returns NULL. */
struct scraper *scraper_free(struct scraper *s);

/* Replaces the targets of one source of a job (n 0 removes it); job is its slot. Any thread; takes
 * over the references in targets, not the array. Unchanged scrapes keep phase, state and
 * connection. Two targets of a job with the same address, path and type are scraped once; the
 * second is reported as a duplicate. Two of different jobs are scraped once for both, if the
 * settings of their scrapes are equal. Targets beyond the job's target_limit are refused and
 * counted. False if out of memory. s NULL: nothing is scraped, and the references are released. */
bool scraper_set_group(struct scraper *s, size_t job, const char *source,
                       struct target *const *targets, size_t n_targets);
/* Posts to the loop: a scrape of scraper_snapshot() that does not wait or run is due now, once;
 * after that its phase holds again. The scrape waits for the gate of its process like any other.
 * Takes a reference of target. False if out of memory. Any thread. */
bool scraper_scrape_now(struct scraper *s, struct target *target, size_t entry);
/* Posts to the loop: starts nothing more and ignores later targets. Scrapes in flight that can end
 * by the deadline (monotonic ms) do, the others are cancelled. Then calls on_drained on the loop's
 * thread, unless scraper_stop() came first. Any thread; only the first call counts. */
void scraper_drain(struct scraper *s, int64_t deadline_ms, void (*on_drained)(void *arg),
                   void *arg);
/* Posts to the loop: cancels everything in flight, starts nothing more and ignores later targets.
 * Any thread, idempotent. */
void scraper_stop(struct scraper *s);

/* The reason why scrapes have waited for long, or in vain, in the last minute. */
enum scrape_shortage { SHORTAGE_NONE, SHORTAGE_MEMORY, SHORTAGE_WORKERS };

struct scrape_memory {
    enum scrape_shortage shortage;
    unsigned unread;    /* scrapes whose response is there and waits to be read */
    unsigned held_back; /* scrapes that are due and not started meanwhile */
    size_t max_bytes;   /* of all bodies together */
};

/* "none", "memory", "workers" */
const char *scrape_shortage_name(enum scrape_shortage s);
/* A sentence with the remedy; "" for SHORTAGE_NONE. */
const char *scrape_shortage_advice(enum scrape_shortage s);

/* ---- for the admin server and commands (any thread) ------------------------------------------ */

/* Absent: the path does not exist (404 several times in a row); tried rarely. */
enum scrape_health { SCRAPE_UNKNOWN, SCRAPE_UP, SCRAPE_DOWN, SCRAPE_ABSENT };
#define SCRAPE_HEALTHS (SCRAPE_ABSENT + 1)
/* "unknown", "up", "down" or "absent". Static storage. */
const char *scrape_health_name(enum scrape_health health);

struct scrape_status {
    struct labels *labels; /* a reference: of its profiles, with `__name__` */
    struct target *target; /* a reference; holds job and type */
    size_t entry;          /* which of the target's scrapes */
    const char *job;
    const char *type;
    struct target *leader; /* a reference; NULL: the scrape is not that of another job */
    const char *follows;   /* the job whose scrape it is; NULL: its own */
    char *source;          /* what it was discovered as: "pod/shop/cart-1", "static/0" */
    char *url;             /* without secrets: model/masking.h */
    enum scrape_health health;
    bool in_flight;
    enum reason reason;    /* of the last attempt */
    char *last_error;      /* "" if none */
    int64_t last_start_ns; /* wall clock; 0 if never */
    int64_t last_duration_ms;
    int64_t sampling_ms; /* for how long the target samples before it answers */
    uint64_t last_size;
    int64_t next_due_ns; /* wall clock */
    uint64_t successes, failures, skipped;
    /* How many of the last attempts (at most 16) found another client profiling the process. */
    unsigned conflicts, attempts;
};

/* Copies the status of up to max scrapes, and of each job that follows one, continuing at *cursor
 * (start with 0), and returns how many: 0 at the end. Free each with scrape_status_done(). Holds a
 * lock briefly. */
size_t scraper_snapshot(struct scraper *s, size_t *cursor, struct scrape_status *out, size_t max);
void scrape_status_done(struct scrape_status *st);

struct scrape_memory scraper_memory(struct scraper *s);

/* A service with processes that are not scraped (`sampling` of the job). */
struct sampled_service {
    char *job; /* owned, as is service */
    char *service;
    size_t processes;
    size_t scraped;
};

/* The most services that one call need ask for. */
#define SCRAPER_SAMPLED_MAX 1000

/* Copies up to max services, in no order, and returns how many. Free each with
 * sampled_service_done(). Holds a lock briefly. */
size_t scraper_sampled(struct scraper *s, struct sampled_service *out, size_t max);
void sampled_service_done(struct sampled_service *v);

#endif
