/* The scraper: targets -> schedule -> fetch -> check -> (delta) -> profiles.
 *
 * One loop (the network thread) runs every scrape: there is no thread per scrape and no easy handle
 * per target. The discovery thread creates targets with target_new(), a pure function of a job and
 * the relabelled labels, and passes them to scraper_set_group().
 *
 * A scrape is one target x one profile type. The phase of a scrape within its interval, on the wall
 * clock, is a hash of its identity, so it survives restarts. The first scrape is made when the
 * phase is first reached. If a scrape still runs at its next tick, this tick is skipped and
 * counted. Two sampling profiles of one process (host and port) never overlap.
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
#include "pprof/scratch.h"
#include "scraper/targets/target.h"

/* ---- the engine ------------------------------------------------------------------------------ */

struct scraper;

/* Names for the addresses in profiles. */
struct scraper_names {
    /* Returns true if a body of this scrape may need names. On the loop's thread. */
    bool (*wants)(void *arg, const struct target *target, size_t entry, struct sv body);
    /* Appends a plain profile with names to out; returns false if nothing is to be changed. Working
     * memory comes from the scratch. *ret counts the names, and is zero if the profile lacked none.
     * The rewrite counts nothing in metrics, since the work may run twice. On a worker. */
    bool (*rewrite)(void *arg, struct target *target, size_t entry, struct scratch *scratch,
                    struct sv plain, struct buf *out, struct profile_names *ret);
    void *arg;
};

struct scraper_options {
    struct loop *loop;
    struct intern *intern; /* the table of the targets' labels */
    struct log *log;
    struct metrics *metrics;
    struct http_contents *contents; /* for the HTTP client (http/http.h); may be NULL */
    size_t n_jobs;                  /* one more than the highest slot of a job at the start */
    /* Concurrent transfers; further ones wait. 0 = 16384: enough for ten thousand targets that are
     * sampled nearly all the time, besides short scrapes. */
    unsigned max_in_flight;
    unsigned max_connections;     /* connections in use, and kept for the next scrape; 0 = 32768 */
    struct worker_pool *workers;  /* NULL: no deltas are made, counters pass through unchanged */
    unsigned n_workers;           /* threads of the workers; 0 = 1 */
    size_t delta_state_max_bytes; /* limit of the baselines of deltas; 0 = 256 MiB */
    size_t bodies_max_bytes;      /* limit of all bodies being received; 0 = 256 MiB */
    size_t pending_max_bytes;     /* limit of all bodies that wait for a worker; 0 = 128 MiB */
    size_t work_max_bytes;        /* the memory in which all workers work; 0 = 4 GiB */
    struct scraper_names names;   /* functions NULL: profiles get no names */
    uint64_t seed;                /* seed of the random numbers; 0: the system gives one */
    /* Called for each profile, on the loop's thread; must not block. Takes over the reference.
     * forward_to is the value of the job's key. Returns false if no destination accepted the
     * profile; the baseline of a delta does not move then. */
    bool (*on_profile)(void *arg, struct profile *profile, uint64_t forward_to);
    void *arg;
};

struct scraper *scraper_new(const struct scraper_options *options, struct err *err);
/* Frees the scraper, and cancels everything in flight. Call it on the loop's thread or while the
 * loop does not run, and before the loop is freed. Updates that are still posted to the loop are
 * dropped when the loop runs them. Accepts NULL, returns NULL. */
struct scraper *scraper_free(struct scraper *s);

/* Replaces the targets of one source of a job (n 0 removes it); job is its slot. Any thread; takes
 * over the references in targets, not the array. Unchanged scrapes keep phase, state and
 * connection. Two targets of a job with the same address, path and type are scraped once; the
 * second is reported as a duplicate. Two such targets of different jobs share one scrape if the
 * settings of their scrapes are equal. Targets beyond the job's target_limit are refused and
 * counted. Returns false if out of memory. If s is NULL, nothing is scraped, and the references are
 * released. */
bool scraper_set_group(struct scraper *s, size_t job, const char *source,
                       struct target *const *targets, size_t n_targets);
/* Posts to the loop: makes a scrape (known from scraper_snapshot()) due now, once, unless it waits
 * or runs already. Its later ticks keep their phase. The scrape waits for the gate of its process
 * like any other. Takes a reference of target. Returns false if out of memory. Any thread. */
bool scraper_scrape_now(struct scraper *s, struct target *target, size_t entry);
/* Posts to the loop: starts no more scrapes and ignores later targets. Scrapes in flight that can
 * end by the deadline (monotonic ms) are finished, the others are cancelled. Then calls on_drained
 * on the loop's thread, unless scraper_stop() was called before. Any thread; only the first call
 * counts. */
void scraper_drain(struct scraper *s, int64_t deadline_ms, void (*on_drained)(void *arg),
                   void *arg);
/* Posts to the loop: cancels all scrapes in flight, starts no more and ignores later targets. Any
 * thread, idempotent. */
void scraper_stop(struct scraper *s);

/* The reason why scrapes have waited for long, or in vain, in the last minute. */
enum scrape_shortage { SHORTAGE_NONE, SHORTAGE_MEMORY, SHORTAGE_WORKERS };

struct scrape_memory {
    enum scrape_shortage shortage;
    unsigned unread;    /* scrapes whose response has arrived and waits to be read */
    unsigned held_back; /* scrapes that are due, but not started while responses wait */
    size_t max_bytes;   /* the limit of all bodies together */
};

/* Returns "none", "memory" or "workers". Static storage. */
const char *scrape_shortage_name(enum scrape_shortage s);
/* Returns a sentence with the remedy; "" for SHORTAGE_NONE. Static storage. */
const char *scrape_shortage_advice(enum scrape_shortage s);

/* ---- for the admin server and commands (any thread) ------------------------------------------ */

/* The health of a scrape. A scrape is absent if its path does not exist (404 several times in a
 * row); it is tried rarely then. */
enum scrape_health { SCRAPE_UNKNOWN, SCRAPE_UP, SCRAPE_DOWN, SCRAPE_ABSENT };
#define SCRAPE_HEALTHS (SCRAPE_ABSENT + 1)
/* Returns "unknown", "up", "down" or "absent". Static storage. */
const char *scrape_health_name(enum scrape_health health);

struct scrape_status {
    struct labels *labels; /* a reference: the labels of its profiles, with `__name__` */
    struct target *target; /* a reference; holds job and type */
    size_t entry;          /* index of the scrape in the target */
    const char *job;
    const char *type;
    /* A reference: the target that leads the scrape; NULL: the job does not follow another one. */
    struct target *leader;
    const char *follows; /* the job that leads the scrape; NULL: the job has a scrape of its own */
    char *source;        /* where the target was discovered: "pod/shop/cart-1", "static/0" */
    char *url;           /* secrets are masked (model/masking.h) */
    enum scrape_health health;
    bool in_flight;
    enum reason reason;    /* the reason of the last attempt */
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

/* Copies the status of up to max scrapes, and of each job that follows one, from *cursor on (start
 * with 0). Returns the number of copies, 0 at the end. Free each copy with scrape_status_done().
 * Holds a lock briefly. */
size_t scraper_snapshot(struct scraper *s, size_t *cursor, struct scrape_status *out, size_t max);
void scrape_status_done(struct scrape_status *st);

struct scrape_memory scraper_memory(struct scraper *s);

/* A service of which some processes are not scraped (`sampling` of the job). */
struct sampled_service {
    char *job; /* owned, as is service */
    char *service;
    size_t processes;
    size_t scraped;
};

/* The most services that one call need ask for. */
#define SCRAPER_SAMPLED_MAX 1000

/* Copies up to max services, in no order, and returns their number. Free each with
 * sampled_service_done(). Holds a lock briefly. */
size_t scraper_sampled(struct scraper *s, struct sampled_service *out, size_t max);
void sampled_service_done(struct sampled_service *v);

#endif
