/* Conversions of old profiles within the engine: the work on the pool.
 *
 * All on the engine's thread; only the work itself (pprof/legacy/legacy.h) runs elsewhere, in the
 * scratches that the deltas have.
 */
#ifndef PROFPULL_SCRAPER_CONVERSIONS_H
#define PROFPULL_SCRAPER_CONVERSIONS_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/metrics.h"
#include "base/worker.h"
#include "model/reason.h"
#include "pprof/legacy/legacy.h"

/* Bodies that wait to be converted, all together: what comes beyond fails with "busy". */
#define CONVERSIONS_PENDING_MAX ((size_t)64 * 1024 * 1024)

struct engine;

/* One conversion. Readable in done(). */
struct conversion {
    struct work work; /* first */
    TAILQ_ENTRY(conversion) link;
    struct conversions *conversions; /* NULL: the engine has gone */
    void (*done)(void *arg, struct conversion *c);
    void *arg;                      /* NULL: nobody wants the result any more */
    struct legacy_input in;         /* its body is owned */
    struct scratch_pool *scratches; /* a reference */
    enum legacy_result result;
    struct legacy_output out; /* done() may take its data: set it to NULL then */
    struct err err;
};

TAILQ_HEAD(conversion_line, conversion);

struct conversions {
    size_t pending_bytes;
    struct conversion_line pending;
    struct metric *results;
};

void conversions_init(struct conversions *c, struct metrics *metrics);
/* Work that still runs frees itself when it ends. */
void conversions_done(struct conversions *c);

/* Starts the conversion of a body; takes it over if it succeeds. The times: see struct
 * legacy_input. done(arg, c) is called later, on this thread, never from within. NULL with a reason
 * (memory, busy). */
struct conversion *conversions_start(struct engine *e, struct sv body, int64_t time_ns,
                                     int64_t duration_ns,
                                     void (*done)(void *arg, struct conversion *c), void *arg,
                                     enum reason *ret_reason);
/* done() will not be called. */
void conversions_cancel(struct conversion *c);

#endif
