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

struct names_of;
struct scrape;
struct target;

struct delta_work {
    struct offload offload;       /* first */
    struct delta_state *baseline; /* a reference, or NULL */
    struct names_of *names;       /* or NULL */
    bool any_counter;
    uint64_t seed;
    enum gzip_level level;
    enum delta_result result;
    char *named; /* the body with names, if no delta is made of it; or NULL */
    size_t named_size;
    struct delta_output out; /* done() takes the members that it wants, and clears them */
};

struct deltas {
    uint64_t seed;
    size_t max_bytes;
    size_t bytes; /* the size of all baselines together; stacks is their number of stacks */
    size_t stacks;
    struct map *kept;       /* identity -> struct delta_state: baselines of removed scrapes */
    int64_t next_expiry_ms; /* INT64_MAX if nothing is kept */
    struct log_limit room_limit;
    struct metric *results;
    struct metric_cell *bytes_cell;
    struct metric_cell *stacks_cell;
};

/* Returns false if out of memory. Call deltas_done() in any case. max_bytes: 0 =
 * DELTAS_STATE_DEFAULT. */
bool deltas_init(struct deltas *d, struct metrics *metrics, size_t max_bytes);
void deltas_done(struct deltas *d);

/* Starts the delta of a body against the baseline of the scrape. names: may be NULL. If that
 * succeeds, the body and the names belong to the delta. done(arg, o) gets a struct delta_work.
 * has_place, and the reason when NULL is returned, are those of offload_new(). */
struct offload *deltas_start(struct engine *e, const struct scrape *sc, struct names_of *names,
                             char *body, size_t size, bool has_place,
                             void (*done)(void *arg, struct offload *o), void *arg,
                             enum reason *ret_reason, struct err *err);

/* Makes `next`, the counters of a profile that has been passed on, the baseline of the scrape.
 * Takes over the reference. If the counters exceed the budget, returns false: the scrape has no
 * baseline then, and its next profile only sets one. */
bool deltas_commit(struct engine *e, struct scrape *sc, struct delta_state *next);
/* Counts the result of a delta. */
void deltas_count(struct deltas *d, const char *result);

/* Drops the baseline of a scrape whose address belongs to another process from now on. */
void deltas_forget(struct engine *e, struct scrape *sc);
/* Keeps the baseline of a removed scrape for a while, in case the scrape comes back. */
void deltas_keep(struct engine *e, struct scrape *sc);
/* Gives a new scrape the baseline that was kept for it. */
void deltas_adopt(struct engine *e, struct scrape *sc);
/* Gives another scrape of the same process the baseline of this one. */
void deltas_share(struct engine *e, const struct scrape *from, struct scrape *to);
/* Prepares the baselines for a target of another job that is about to share a scrape. Returns false
 * if its job was sent deltas beyond the baseline of that scrape: the job would get growth twice.
 * Otherwise drops the baseline that was kept for the target. */
bool deltas_join(struct engine *e, const struct scrape *sc, const struct target *t, size_t i);
/* Frees the kept baselines that have expired. */
void deltas_expire(struct deltas *d, int64_t now_ms);

#endif
