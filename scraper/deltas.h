/* Deltas within the engine: baselines of all scrapes within one budget, and the work on the pool.
 *
 * A baseline belongs to the identity of a scrape (scheme, address, path, type), not to its labels.
 * When the scrape goes it is kept for a while, in case that it comes back. All on the engine's
 * thread; only the work itself (pprof/delta.h) runs elsewhere.
 */
#ifndef PROFPULL_SCRAPER_DELTAS_H
#define PROFPULL_SCRAPER_DELTAS_H

#include <stdint.h>

#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "pprof/delta.h"
#include "scraper/offload.h"

#define DELTAS_STATE_DEFAULT ((size_t)256 * 1024 * 1024)
/* The baseline of a scrape that has gone is kept for two of its intervals, and at least so long. */
#define DELTAS_KEPT_MIN_MS (2 * 60 * 1000)

struct scrape;

struct delta_work {
    struct offload offload;       /* first */
    struct delta_state *baseline; /* a reference, or NULL */
    bool any_counter;
    uint64_t seed;
    enum delta_result result;
    struct delta_output out; /* done() takes what it wants */
};

struct deltas {
    uint64_t seed;
    size_t max_bytes;
    size_t bytes; /* of all baselines */
    size_t stacks;
    struct offload_queue queue;
    struct scratch_pool *scratches;
    struct map *kept;       /* identity -> struct kept: of scrapes that have gone */
    int64_t next_expiry_ms; /* INT64_MAX if nothing is kept */
    struct log *log;
    struct log_limit room_limit;
    struct metric *results;
    struct metric_cell *bytes_cell;
    struct metric_cell *stacks_cell;
};

/* False if out of memory; deltas_done() in any case. max_bytes: 0 = DELTAS_STATE_DEFAULT. */
bool deltas_init(struct deltas *d, struct log *log, struct metrics *metrics, size_t max_bytes);
void deltas_done(struct deltas *d);

/* Starts the delta of a body against the baseline of the scrape and takes the body over if it
 * succeeds; done(arg, o) gets a struct delta_work. NULL with a reason (busy, memory). */
struct offload *deltas_start(struct engine *e, const struct scrape *sc, char *body, size_t size,
                             void (*done)(void *arg, struct offload *o), void *arg,
                             enum reason *ret_reason);

/* The profile was handed on: its counters are the new baseline (a reference is taken over). Without
 * room for it there is no baseline, and the next profile is a first one: false. */
bool deltas_commit(struct engine *e, struct scrape *sc, struct delta_state *next);
/* Counts how one went. */
void deltas_count(struct deltas *d, const char *result);

/* Another process stands behind the scrape: its counters have nothing to do with the baseline. */
void deltas_forget(struct engine *e, struct scrape *sc);
/* A scrape goes: its baseline is kept for a while. */
void deltas_keep(struct engine *e, struct scrape *sc);
/* A scrape has come: it gets the baseline that was kept for it. */
void deltas_adopt(struct engine *e, struct scrape *sc);
/* Frees what was kept long enough. */
void deltas_expire(struct deltas *d, int64_t now_ms);

#endif
