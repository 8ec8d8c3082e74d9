/* A profile as an endpoint gets it: with other labels in its samples where its configuration or its
 * server want that, otherwise as it is.
 *
 * The server of a protocol with reads_sample_labels makes labels of the profile of those in
 * samples, and refuses the whole profile if there are too many of them, or if it does not know the
 * characters of a name. What to do with them follows from the endpoint; see pprof/sample_labels.h
 * for the work.
 *
 * To see labels a profile has to be inflated, and most have none. So where all that is wanted is to
 * please a server that says what it refuses, the profiles of a series that had none pass without a
 * look (series_marks.h). Whoever sends one that is refused then asks again with must_look. One
 * thread for each object.
 */
#ifndef PROFPULL_WRITE_SAMPLE_LABELS_H
#define PROFPULL_WRITE_SAMPLE_LABELS_H

#include "base/metrics.h"
#include "model/profile.h"
#include "write/protocol.h"

/* Most bytes of a profile, inflated; a larger one goes as it is. */
#define SAMPLE_LABELS_PROFILE_MAX ((size_t)16 * 1024 * 1024)

struct sample_labels;

/* For one destination; endpoint: its name, for metrics. NULL if out of memory. */
struct sample_labels *sample_labels_new(struct metrics *m, const char *endpoint);
struct sample_labels *sample_labels_free(struct sample_labels *s); /* accepts NULL, returns NULL */

/* How to treat a profile. */
struct sample_labels_wish {
    bool must_look; /* whatever is known of its series */
    bool counts;    /* its changes have not been counted yet */
};
/* What came of it; damaged or too large: none of it. */
struct sample_labels_look {
    bool skipped;    /* nobody has looked, because its series has been without labels */
    bool clean;      /* it has been read, and has nothing to change */
    bool labelled;   /* it has been read, and has labels */
    struct sv plain; /* of a clean one, inflated, until the next call; empty: not at hand */
};
/* The profile to send, with a reference for the caller: p itself, or one with other bytes. One that
 * is damaged, or that there is no memory for, goes as it is. */
struct profile *sample_labels_apply(struct sample_labels *s, const struct config_endpoint *e,
                                    struct profile *p, struct sample_labels_wish wish,
                                    struct sample_labels_look *ret_look);

#endif
