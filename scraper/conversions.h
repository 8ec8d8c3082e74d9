/* Conversions of profiles in an older format of pprof (pprof/legacy/legacy.h) on the worker pool.
 *
 * All calls on the engine's thread.
 */
#ifndef PROFPULL_SCRAPER_CONVERSIONS_H
#define PROFPULL_SCRAPER_CONVERSIONS_H

#include "pprof/legacy/legacy.h"
#include "scraper/offload.h"

struct names_of;

struct conversion {
    struct offload offload; /* first */
    struct names_of *names; /* or NULL */
    int64_t time_ns;
    int64_t duration_ns;
    uint64_t seed;
    enum legacy_result result;
    struct legacy_output out; /* done() may take its data, and sets data to NULL then */
};

struct conversions {
    struct metric *results;
};

void conversions_init(struct conversions *c, struct metrics *metrics);

/* Starts the conversion of a body. names: may be NULL. If that succeeds, the body and the names
 * belong to the conversion. done(arg, o) gets a struct conversion. time_ns and duration_ns are
 * those of struct legacy_input. Returns NULL with a reason as offload_new() does. */
struct offload *conversions_start(struct engine *e, struct names_of *names, char *body, size_t size,
                                  int64_t time_ns, int64_t duration_ns,
                                  void (*done)(void *arg, struct offload *o), void *arg,
                                  enum reason *ret_reason, struct err *err);

#endif
