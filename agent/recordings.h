/* Recordings of Java's Flight Recorder for destinations that cannot read them: each recording is
 * replaced by the profiles that it contains.
 *
 * The profiles have the labels of the recording, with the name of their type, `__delta__` and the
 * label jfr_event, and cover its time. Conversion takes CPU time in proportion to the recording, so
 * it runs on a worker or on a thread of an API, never on a loop.
 *
 * The counters balance: recordings that were handed over = converted + damaged + failed + refused +
 * pending; `profiles` counts the profiles that were made of converted or damaged ones. Any thread.
 */
#ifndef PROFPULL_AGENT_RECORDINGS_H
#define PROFPULL_AGENT_RECORDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/metrics.h"
#include "jfr/jfr.h"
#include "model/profile.h"

/* Recordings of targets that wait for their conversion, in bytes; further ones are refused. */
#define RECORDINGS_PENDING_DEFAULT ((size_t)128 * 1024 * 1024)

struct recordings;

struct recordings_options {
    struct intern *intern;
    struct log *log;
    struct metrics *metrics;
    size_t work_max; /* bytes that one conversion may take; 0: the limits of jfr/ */
};

/* Returns an object for conversions; NULL if out of memory. All of the options outlive it. */
struct recordings *recordings_new(const struct recordings_options *options);
struct recordings *recordings_free(struct recordings *r); /* accepts NULL, returns NULL */

struct recording_hints {
    /* The rate that the sender gave, per second; 0: the settings of the recording decide. */
    unsigned sample_rate;
    struct sv labels; /* the part `labels` of Pyroscope's agent; empty: none */
    bool own_times;   /* the profiles cover the recording's time, not that of the base */
};

struct recording_profiles {
    struct profile *at[JFR_PROFILES_MAX]; /* references of the caller */
    size_t n;
};

/* Makes the profiles of a recording, gzip or plain. base: a profile with its labels, window, job
 * and flags; its bytes are not read. Returns false with err if no profile could be made. A
 * recording that is damaged after a good part gives the profiles of that part. Counts and logs. */
bool recordings_convert(struct recordings *r, const struct profile *base, struct sv body,
                        const struct recording_hints *hints, struct recording_profiles *ret,
                        struct err *err);
/* Counts a recording that finds no room. */
void recordings_refuse(struct recordings *r, const struct profile *base);
/* Counts recordings that begin (1) and end (-1) to wait. */
void recordings_pending(struct recordings *r, int change);

#endif
