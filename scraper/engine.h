/* The scraper without its loop: groups of targets in, HTTP requests and profiles out.
 *
 * Time, the timer and HTTP are injected, so tests need neither sockets nor sleep. All calls on one
 * thread, except engine_snapshot() and engine_sampled(). Files: engine.c (ticks, gates, the drain),
 * slots.c (which scrape gets a transfer), room.c (which body is read), groups.c (which targets
 * exist), claims.c (which scrapes exist, and for whom), fetch.c (one scrape from request to
 * profile), status.c (what other threads read), deltas.c (baselines), conversions.c (profiles in
 * older formats).
 */
#ifndef PROFPULL_SCRAPER_ENGINE_H
#define PROFPULL_SCRAPER_ENGINE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "scraper/claims.h"
#include "scraper/conversions.h"
#include "scraper/deltas.h"
#include "scraper/process_gate.h"
#include "scraper/room.h"
#include "scraper/sampling.h"
#include "scraper/schedule.h"
#include "scraper/scrape.h"
#include "scraper/slots.h"
#include "scraper/table.h"

/* The most scrapes that one call of engine_wake() starts; the loop runs other tasks in between. */
#define ENGINE_BATCH 64
#define ENGINE_IN_FLIGHT_DEFAULT 16384
#define ENGINE_BODIES_DEFAULT ((size_t)256 * 1024 * 1024)

/* The environment. mono_ns and wall_offset_ns are called on any thread, the others on the engine's.
 */
struct engine_io {
    int64_t (*mono_ns)(void *arg);
    int64_t (*wall_offset_ns)(void *arg);
    /* http_start() and http_cancel(), or their replacements in a test. */
    struct http_transfer *(*start)(void *arg, const struct http_request *request);
    void (*cancel)(void *arg, struct http_transfer *transfer);
    /* http_grant(), or its replacement in a test. */
    void (*grant)(void *arg, struct http_transfer *transfer, size_t bytes);
    /* Arranges one call of engine_wake() at this instant, in place of the instant set before. */
    void (*wake_at)(void *arg, int64_t mono_ms);
    /* Runs work->run() on some thread, then work->done() on the engine's thread, but never within
     * this call. NULL: no deltas are made, and profiles in older formats are refused. */
    void (*submit)(void *arg, struct work *work);
    void *arg;
};

struct engine;

/* Returns an engine, which copies options and io. Of the options, it uses neither the loop, nor the
 * workers, nor the members about the HTTP client. */
struct engine *engine_new(const struct scraper_options *options, const struct engine_io *io,
                          struct err *err);
/* Cancels everything in flight. Accepts NULL, returns NULL. */
struct engine *engine_free(struct engine *e);
/* Starts the scrapes that are due and does the other work whose time has come. Call it when the
 * timer fires. */
void engine_wake(struct engine *e);
/* Does the work of scraper_set_group(). Takes over the references also on failure. */
bool engine_set_group(struct engine *e, size_t job, const char *source,
                      struct target *const *targets, size_t n);
/* Starts no more scrapes and cancels those in flight. If a drain is in progress, it ends without a
 * call of on_drained. */
void engine_stop(struct engine *e);
/* Does the work of scraper_scrape_now(). */
void engine_scrape_now(struct engine *e, const struct target *target, size_t entry);
/* The time that a drain waits for responses after the last target has sampled: 5 s, so that a
 * target that hangs cannot use up the time of the drain. */
#define ENGINE_DRAIN_ANSWER_MS 5000
/* Starts no more scrapes, and ends those in flight. Scrapes whose targets would still sample at the
 * deadline are cancelled at once. The others may end by themselves until the deadline, or until
 * ENGINE_DRAIN_ANSWER_MS after the last target has sampled; then they are cancelled. Finally calls
 * on_drained once, perhaps within this call. */
void engine_drain(struct engine *e, int64_t deadline_ms, void (*on_drained)(void *arg), void *arg);
/* Does the work of scraper_snapshot(). Any thread. */
size_t engine_snapshot(struct engine *e, size_t *cursor, struct scrape_status *out, size_t max);
/* Does the work of scraper_memory(). Any thread. */
struct scrape_memory engine_memory(struct engine *e);
/* Does the work of scraper_sampled(). Any thread. */
size_t engine_sampled(struct engine *e, struct sampled_service *out, size_t max);

/* ---- private to the engine's files ----------------------------------------------------------- */

TAILQ_HEAD(group_line, group);

/* The target_limit of a job. It applies to the targets that the job's sampler has kept. */
struct job_quota {
    size_t admitted;
    size_t limit;                 /* the limit of the last update */
    struct group_line over_quota; /* groups with targets that were refused */
    struct sampler *sampler;      /* NULL: all targets are kept. Shared under the table's lock */
};

/* The state of engine_drain(). */
struct engine_drain {
    void (*on_drained)(void *arg); /* NULL: there is no drain, or it has been called */
    void *arg;
    int64_t until_ms; /* when the remaining scrapes are cancelled */
};

/* The state of the scrapes that wait to be read, for other threads. */
struct admission_status {
    atomic_int_least64_t waits_from_ms; /* since when a scrape has waited; INT64_MAX: none waits */
    atomic_int_least64_t short_ms; /* when a scrape had last waited for long; INT64_MIN: never */
    atomic_uint shortage;          /* enum scrape_shortage: the reason for that wait */
    atomic_uint unread;
    atomic_uint held_back;
};

struct engine {
    struct scraper_options options;
    struct engine_io io;
    struct labels_builder *builder;
    struct scrape_metrics metrics;
    struct schedule schedule;
    struct table table;
    struct process_gate gate;
    struct offload_queue offloads;
    struct deltas deltas;
    struct conversions conversions;
    struct rng rng;
    struct slots slots; /* the slots of transfers */
    struct room room;   /* the memory of bodies */
    uint32_t turns;     /* admissions of bodies so far */
    bool admitting;     /* engine_admit() is on the stack */
    struct admission_status shown;
    struct map *groups;     /* "<job>/<source>" -> struct group */
    struct job_quota *jobs; /* by the slots of jobs; changes under the table's lock */
    size_t n_jobs;
    uint32_t round;   /* number of the current update */
    int64_t armed_ms; /* when the timer fires; INT64_MAX: never */
    bool stopped;     /* starts no more scrapes */
    struct engine_drain drain;
    struct log_limit failures_limit;
    struct log_limit targets_limit;
    struct log_limit duplicates_limit;
};

int64_t engine_now_ms(struct engine *e);
/* Arms the timer if a scrape is due before it fires. */
void engine_rearm(struct engine *e);
/* Puts a new scrape in the schedule. Returns false if out of memory. */
bool engine_schedule(struct engine *e, struct scrape *sc);
/* Schedules a scrape at its next phase after its interval has changed. */
void engine_reschedule(struct engine *e, struct scrape *sc);
/* Cancels a scrape that waits or runs. The next scrapes in its queues take its places. */
void engine_abort(struct engine *e, struct scrape *sc);
/* Schedules the next tick of a scrape that was started at start_ms and has ended with this reason.
 * Call engine_landed() and engine_rearm() next. */
void engine_plan(struct engine *e, struct scrape *sc, enum reason reason, int64_t start_ms);
/* Admits the waiting bodies that fit. If no body could end any more, gives up one scrape so that
 * the others can. */
void engine_admit(struct engine *e);
/* Admits waiting bodies and starts scrapes. Call it when memory or slots have become free. */
void engine_pump(struct engine *e);
/* Calls engine_pump() soon, from the loop. */
void engine_admit_soon(struct engine *e);
/* Notes that a scrape has waited for long, or in vain, for this reason. */
void engine_note_shortage(struct engine *e, enum scrape_shortage reason);
/* Publishes the numbers of scrapes that wait to be read, for other threads. */
void engine_show_waiting(struct engine *e);
/* Converts the size of a body to its class in the line for slots. */
static inline enum slot_body engine_body_of(enum room_size size)
{
    return size == ROOM_LARGE ? SLOT_BODY_LARGE : SLOT_BODY_SMALL;
}
/* Passes the slot and the gate of a scrape whose transfer has ended to the next scrapes. */
void engine_landed(struct engine *e, struct scrape *sc);

/* Returns false if out of memory. Call groups_done() in any case. */
bool groups_init(struct engine *e);
/* Removes all groups and scrapes. */
void groups_done(struct engine *e);

const char *group_source(const struct group *g);

/* Starts the request of a scrape. Returns false if out of memory. */
bool fetch_start(struct engine *e, struct scrape *sc);
/* Returns the instant at which the target of a scrape in flight will have sampled, as far as the
 * request determines it. */
int64_t fetch_sampled_ms(const struct scrape *sc);
/* Returns the size that the body of a scrape is expected to have. */
size_t fetch_expected_size(const struct engine *e, const struct scrape *sc);
/* Continues to read the body of a scrape in flight whose guest has been granted memory. */
void fetch_grant(struct engine *e, struct room_guest *guest);
/* Fails the scrape of a guest, because its body keeps all other bodies from ending. */
void fetch_give_up(struct engine *e, struct room_guest *guest);
/* fetch_serves() returns true if this job is a recipient of the response in flight. fetch_leave()
 * removes the job from the recipients, and returns false if no recipient is left. */
bool fetch_serves(const struct scrape *sc, uint32_t job);
bool fetch_leave(struct scrape *sc, uint32_t job);
/* Cancels the transfer of a scrape in flight, or the work on its body. */
void fetch_cancel(struct engine *e, struct scrape *sc);

/* The time that a scrape took. */
struct scrape_time {
    int64_t duration_ns; /* negative: there was no transfer */
    int64_t waited_ns;   /* the part of the duration in which the scrape waited for memory */
};

/* Counts and logs a scrape that has failed. err has the sentence. */
void outcome_failed(struct engine *e, struct scrape *sc, struct scrape_time time,
                    enum reason reason, const struct err *err);
/* Counts and logs a scrape that was not started because memory ran out. */
void outcome_no_memory(struct engine *e, struct scrape *sc);
/* Counts a scrape that has succeeded with a body of that size. Logs it if the one before had
 * failed.
 */
void outcome_succeeded(struct engine *e, struct scrape *sc, struct scrape_time time, size_t size);

void status_state(struct engine *e, struct scrape *sc, enum scrape_state state);
void status_next_due(struct engine *e, struct scrape *sc, int64_t due_ms);
void status_history(struct engine *e, struct scrape *sc, struct scrape_history history);
void status_started(struct engine *e, struct scrape *sc, int64_t start_ns);
/* Records the end of a scrape. message says why it failed; it is used for failures only. */
void status_ended(struct engine *e, struct scrape *sc, enum reason reason, const char *message,
                  struct scrape_time time, size_t size);
void status_skipped(struct engine *e, struct scrape *sc, uint64_t n);
/* Gives the scrape to another target, which belongs to that group. Takes a reference to the target.
 */
void status_target(struct engine *e, struct scrape *sc, struct group *group, struct target *target,
                   size_t entry);

#endif
