/* A record of two kinds of label sets: those that have not become targets, with the reason, for the
 * page of dropped targets; and those of targets, as they were before the rules, for the page that
 * shows the labels after each rule.
 *
 * The record is bounded: for each job and kind it has the first DROPPED_MAX label sets and
 * DROPPED_BYTES_MAX bytes of labels, by source. The discovery thread writes it, one source at a
 * time; any thread copies from it, under a short lock. A label set without a place is counted if it
 * is no target, and may get a place when its source is discovered again.
 */
#ifndef PROFPULL_AGENT_DROPPED_H
#define PROFPULL_AGENT_DROPPED_H

#include "agent/pipeline.h"
#include "base/labels.h"
#include "base/metrics.h"
#include "config/config.h"

/* The limits of one job and kind. */
#define DROPPED_MAX 500
#define DROPPED_BYTES_MAX ((size_t)2 * 1024 * 1024)

struct dropped;

/* Returns a record for jobs with slots below n_jobs; NULL if out of memory. metrics outlive it. */
struct dropped *dropped_new(size_t n_jobs, struct metrics *metrics);
/* Prepares for jobs with slots below n_jobs. Returns false if out of memory. Any thread. */
bool dropped_grow(struct dropped *d, size_t n_jobs);
struct dropped *dropped_free(struct dropped *d); /* accepts NULL, returns NULL */

/* Removes the records of a source that is about to be relabelled again. */
void dropped_forget(struct dropped *d, size_t job, const char *source);
/* Records a label set with its outcome. */
void dropped_note(struct dropped *d, const struct pipeline_verdict *verdict);

/* A copy of one record. */
struct dropped_target {
    uint64_t id; /* identifies the record until its source is discovered again */
    size_t job;  /* the slot of the job */
    char *source;
    uint64_t source_hash;  /* private */
    struct labels *labels; /* before the rules */
    size_t rule;           /* the rule that dropped it or failed, from 1; 0: see why */
    char *why;             /* NULL if a rule dropped it */
    char *address; /* host:port of the target that the label set became; NULL if it became none */
};

/* Copies the records of a job, in the order of discovery, at most max. Returns the number of
 * copies. *ret_more (may be NULL) is set if the record is full, so that there may be others. Any
 * thread. */
size_t dropped_list(struct dropped *d, size_t job, struct dropped_target *ret, size_t max,
                    bool *ret_more);
/* Copies one record. Returns false if it does not exist any more, or if memory ran out. Any thread.
 */
bool dropped_find(struct dropped *d, uint64_t id, struct dropped_target *ret);
/* Copies the record of a target: the first of several that a source has at an address. */
bool dropped_find_target(struct dropped *d, size_t job, struct sv source, struct sv address,
                         struct dropped_target *ret);
void dropped_target_done(struct dropped_target *t);

#endif
