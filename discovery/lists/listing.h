/* One list of targets that is read repeatedly: a file, or the response of a URL.
 *
 * It remembers a hash of the last text, so that the same text has no effect, and whether the list
 * is broken, so that this is logged once and not at every reading. A broken list keeps the targets
 * of its last good text. One owner.
 */
#ifndef PROFPULL_DISCOVERY_LISTS_LISTING_H
#define PROFPULL_DISCOVERY_LISTS_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"
#include "config/config.h"
#include "discovery/counters.h"
#include "discovery/lists/static.h"
#include "discovery/sources.h"

/* The options of file_sd and http_sd. All of them are referenced. */
struct list_options {
    const char *job;    /* for the log */
    const char *source; /* the name of the group; for files the part before the path */
    struct loop *loop;
    struct http_client *http; /* http_sd */
    struct intern *intern;
    struct log *log;
    const struct discovery_counters *counters;
    /* Takes the current targets of a list; n 0: it has none. */
    void (*on_change)(void *arg, const char *source, struct labels *const *targets, size_t n);
    /* Takes the state after each reading; `why` is the reason of a failure. */
    void (*on_state)(void *arg, enum source_state state, const char *why);
    void *arg;
};

/* The log messages for a list that breaks, and for one that is good again. */
struct listing_messages {
    const char *key; /* key of the log field that names the list */
    const char *broken;
    const char *good;
};

struct listing {
    const struct listing_messages *messages;
    const char *source;         /* referenced, as is shown */
    const char *shown;          /* its name in the log */
    struct config_pair mark;    /* the label that names the list on its targets; referenced */
    struct metric_cell *groups; /* gauge of the lists that have targets */
    struct metric_cell *const *refreshes; /* counters, indexed by enum discovery_refresh */
    size_t n;                             /* targets of the last good text */
    bool broken;                          /* the last reading failed */
    /* Private. */
    bool known;
    uint64_t hash;
};

/* Takes the current text. REFRESH_CHANGED: *ret has the targets, which the caller owns.
 * REFRESH_FAILED: the targets stay as they were, the error says why. */
enum discovery_refresh listing_take(struct listing *l, struct sv text, struct intern *intern,
                                    struct static_group *ret, struct err *err);
/* Takes the current text like listing_take(), and reports, logs and counts the result. text is NULL
 * if the reading failed; err then has the reason. */
void listing_update(struct listing *l, const struct list_options *options, const struct sv *text,
                    struct err *err);
/* Takes the list out of the count of lists with targets; reports nothing. */
void listing_done(struct listing *l);

#endif
