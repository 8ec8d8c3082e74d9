/* The scraper: targets -> schedule -> fetch -> check -> (delta) -> profiles.
 *
 * One loop (the network thread) runs every scrape; no thread per scrape, no easy handle per target.
 * Targets are made on the discovery thread with target_new(), a pure function of a job and the
 * relabelled labels, and handed over with scraper_set_group().
 *
 * A scrape is one target x one profile type. Its phase is a hash of its identity within the
 * interval on the wall clock: stable over restarts, the first scrape at the phase and not an
 * interval later. A tick that comes while the last one still runs is skipped and counted. Two
 * sampling profiles of one process (host and port) never overlap.
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
    struct intern *intern; /* that the targets' labels came from: for the labels of each profile */
    struct log *log;
    struct metrics *metrics;
    const char *user_agent;
    /* Transfers at once; further ones wait their turn. 0 = 16384: ten thousand targets that are
     * sampled nearly all the time, and room for the short ones. */
    unsigned max_in_flight;
    unsigned max_idle_connections; /* kept for the next scrape; 0 = 4096, the most there can be */
    struct worker_pool *workers; /* for deltas; NULL: none are made, counters go out as they come */
    size_t delta_state_max_bytes; /* their baselines; 0 = 256 MiB */
    size_t bodies_max_bytes;      /* all bodies that are being received; 0 = 256 MiB */
    /* On the loop's thread; must not block. Takes over the reference. forward_to as in the job. */
    void (*on_profile)(void *arg, struct profile *profile, uint64_t forward_to);
    void *arg;
};

struct scraper *scraper_new(const struct scraper_options *options, struct err *err);
/* On the loop's thread, or when it does not run, and before the loop is freed: ends what is in
 * flight. Updates that are still posted are dropped when the loop comes to them. Accepts NULL,
 * returns NULL. */
struct scraper *scraper_free(struct scraper *s);

/* Replaces the targets of one source ("" + n 0 removes it). Any thread; takes over the references
 * in targets (not the array). Unchanged scrapes keep phase, state and connection. Two targets with
 * the same address, path and type are scraped once; the second is reported as a duplicate. Targets
 * beyond the job's target_limit are refused and counted. False if out of memory. */
bool scraper_set_group(struct scraper *s, size_t job, const char *source,
                       struct target *const *targets, size_t n_targets);
/* Any thread, and idempotent: from its turn on the loop on, nothing new is scraped and what is in
 * flight is cancelled; targets that come later are ignored. */
void scraper_stop(struct scraper *s);

/* ---- what the admin server and commands see (any thread) ------------------------------------- */

/* Absent: the path is not there (404, several times in a row); asked for rarely. */
enum scrape_health { SCRAPE_UNKNOWN, SCRAPE_UP, SCRAPE_DOWN, SCRAPE_ABSENT };
#define SCRAPE_HEALTHS (SCRAPE_ABSENT + 1)

struct scrape_status {
    struct labels *labels; /* a reference: the profile's labels with `__name__` */
    struct target *target; /* a reference; holds job and type */
    const char *job;
    const char *type;
    char *url;
    enum scrape_health health;
    bool in_flight;
    enum reason reason;    /* of the last one */
    char *last_error;      /* "" if none */
    int64_t last_start_ns; /* wall clock; 0 if never */
    int64_t last_duration_ms;
    uint64_t last_size;
    int64_t next_due_ns; /* wall clock */
    uint64_t successes, failures, skipped;
    /* Of the last attempts (at most 16) so many found the process being profiled by another. */
    unsigned conflicts, attempts;
};

/* A consistent copy of up to max scrapes, continuing at *cursor (start with 0); returns how many.
 * 0 at the end. Free each with scrape_status_done(). Locks shortly; safe while the loop works. */
size_t scraper_snapshot(struct scraper *s, size_t *cursor, struct scrape_status *out, size_t max);
void scrape_status_done(struct scrape_status *st);

/* A service of which not all processes are scraped (`sampling` of the job). */
struct sampled_service {
    char *job; /* owned, as is service */
    char *service;
    size_t processes;
    size_t scraped;
};

/* Services shown by one call. */
#define SCRAPER_SAMPLED_MAX 1000

/* Up to max of them, in no order; returns how many. Free each with sampled_service_done(). Locks
 * shortly; safe while the loop works. */
size_t scraper_sampled(struct scraper *s, struct sampled_service *out, size_t max);
void sampled_service_done(struct sampled_service *v);

#endif
