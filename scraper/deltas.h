/* Deltas of cumulative profiles (pprof/delta.h): their baselines, within one memory budget.
 *
 * A baseline belongs to the identity of a scrape (scheme, address, path, type), not to its labels.
 * It outlives a scrape that is removed for a while, in case the scrape comes back. All calls on the
 * engine's thread.
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
/* The baseline of a removed scrape is kept for two of its intervals, and at least this long. */
#define DELTAS_KEPT_MIN_MS (2 * 60 * 1000)

struct scrape;
struct target;

struct delta_work {
    struct offload offload;       /* first */
    struct delta_state *baseline; /* a reference, or NULL */
    bool any_counter;
    uint64_t seed;
    enum gzip_level level;
    enum delta_result result;
    struct delta_output out; /* done() takes what it wants */
};

struct deltas {
    uint64_t seed;
    size_t max_bytes;
    size_t bytes; /* of all baselines, as are the stacks */
    size_t stacks;
    struct map *kept;       /* identity -> struct delta_state: baselines of removed scrapes */
    int64_t next_expiry_ms; /* INT64_MAX if nothing is kept */
    struct log_limit room_limit;
    struct metric *results;
    struct metric_cell *bytes_cell;
    struct metric_cell *stacks_cell;
};

/* False if out of memory; deltas_done() in any case. max_bytes: 0 = DELTAS_STATE_DEFAULT. */
bool deltas_init(struct deltas *d, struct metrics *metrics, size_t max_bytes);
void deltas_done(struct deltas *d);

/* Starts the delta of a body against the baseline of the scrape and takes the body over if it
 * succeeds; has_place as offload_new(). done(arg, o) gets a struct delta_work. NULL with a reason
 * as offload_new(). */
struct offload *deltas_start(struct engine *e, const struct scrape *sc, char *body, size_t size,
                             bool has_place, void (*done)(void *arg, struct offload *o), void *arg,
                             enum reason *ret_reason, struct err *err);

/* The profile has been passed on: its counters become the baseline (takes over a reference). False
 * if they exceed the budget: there is no baseline then, and the next profile is a first one. */
bool deltas_commit(struct engine *e, struct scrape *sc, struct delta_state *next);
/* Counts one result. */
void deltas_count(struct deltas *d, const char *result);

/* The scrape now reaches another process: drops the baseline. */
void deltas_forget(struct engine *e, struct scrape *sc);
/* The scrape is removed: keeps its baseline for a while. */
void deltas_keep(struct engine *e, struct scrape *sc);
/* The scrape is new: gives it the baseline that was kept for it. */
void deltas_adopt(struct engine *e, struct scrape *sc);
/* Another scrape of the same process goes on from the baseline of this one. */
void deltas_share(struct engine *e, const struct scrape *from, struct scrape *to);
/* A target of another job is about to share a scrape. False if its job was sent deltas beyond the
 * baseline of that scrape: it would get growth twice. Otherwise drops the baseline that was kept
 * for it. */
bool deltas_join(struct engine *e, const struct scrape *sc, const struct target *t, size_t i);
/* Frees the baselines that were kept long enough. */
void deltas_expire(struct deltas *d, int64_t now_ms);

#endif
