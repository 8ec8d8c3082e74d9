/* The state of all sources of targets: which can be read now, and why the others cannot. Readiness,
 * metrics and the API show it.
 *
 * The discovery thread sets the state of one source at a time, and any thread reads it; a lock is
 * held for a short time. The object outlives the discovery.
 */
#ifndef PROFPULL_DISCOVERY_SOURCES_H
#define PROFPULL_DISCOVERY_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/metrics.h"

enum source_state {
    SOURCE_WAITS, /* not read since the start, and readiness waits for it */
    SOURCE_WORKS,
    SOURCE_FAILS, /* refused, or the last reading failed: its targets stay as they are */
};
/* "pending", "up" or "down". Static storage. */
const char *source_state_name(enum source_state state);

struct source_status {
    const char *job;  /* "" for sources without a job: the members of a sharding, Secrets */
    const char *name; /* "kubernetes/0", "static/0", "file/1", "http/0" */
    enum source_state state;
    const char *why;  /* "" if it works */
    int64_t since_ns; /* since when it is in this state, wall clock */
};

struct sources;

/* Makes an empty set of sources, and registers profpull_discovery_up in metrics, which outlives it
 * and may be NULL. NULL if out of memory. */
struct sources *sources_new(struct metrics *metrics);
struct sources *sources_free(struct sources *s); /* accepts NULL, returns NULL */

/* Sets the state of a source. Copies the strings; without memory for them the source keeps its old
 * state. */
void sources_set(struct sources *s, const char *job, const char *name, enum source_state state,
                 const char *why);
void sources_forget(struct sources *s, const char *job, const char *name);

/* Returns the number of sources in a state. Any thread may call it, and the functions below. */
size_t sources_count(struct sources *s, enum source_state state);
/* Calls fn for each source, in the order in which they were added, with the lock held. */
void sources_each(struct sources *s, void (*fn)(void *arg, const struct source_status *status),
                  void *arg);
/* The most sources that sources_missing() names. */
#define SOURCES_SHOWN 16
/* Appends the sources that cannot be read and the reasons, without a line break: `job "pods": not
 * allowed to list pods`. Jobs with the same reason are named together. */
void sources_missing(struct sources *s, struct buf *text);

#endif
