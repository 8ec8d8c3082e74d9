/* Rewrites the labels in the samples of a profile where the configuration of its endpoint or the
 * server requires that.
 *
 * The server of a protocol with reads_sample_labels turns labels of samples into labels of the
 * profile. It refuses the whole profile if there are too many of them, or if a name has characters
 * that it does not accept. The endpoint decides about such labels; pprof/sample_labels.h does the
 * work.
 *
 * To find labels a profile has to be inflated, and most have none. If labels are rewritten only
 * because the server refuses some, and the server reports refusals, then profiles of a series that
 * had no labels so far are not read (series_marks.h). After a refusal, the caller calls again with
 * must_look. One thread for each object. */
#ifndef PROFPULL_WRITE_SAMPLE_LABELS_H
#define PROFPULL_WRITE_SAMPLE_LABELS_H

#include "base/metrics.h"
#include "model/profile.h"
#include "write/protocol.h"

/* The most bytes of an inflated profile; a larger one is sent as it is. */
#define SAMPLE_LABELS_PROFILE_MAX ((size_t)16 * 1024 * 1024)

struct sample_labels;

/* Returns an object for one destination; NULL if out of memory. endpoint: the name of the
 * destination, for metrics. */
struct sample_labels *sample_labels_new(struct metrics *m, const char *endpoint);
struct sample_labels *sample_labels_free(struct sample_labels *s); /* accepts NULL, returns NULL */

/* The treatment of a profile. */
struct sample_labels_wish {
    bool must_look; /* read the profile, whatever is known about its series */
    bool counts;    /* its changes have not been counted yet */
};
/* The result of reading a profile. No member is set for a damaged or too large one. */
struct sample_labels_look {
    bool skipped;    /* the profile was not read, because its series had no labels so far */
    bool clean;      /* the profile has been read, and has nothing to change */
    bool labelled;   /* the profile has been read, and has labels */
    struct sv plain; /* a clean profile inflated, valid until the next call; may be empty */
};
/* Returns the profile to send, with a reference for the caller: p itself, or one with other bytes.
 * A profile that is damaged, or for which there is no memory, is sent as it is. */
struct profile *sample_labels_apply(struct sample_labels *s, const struct config_endpoint *e,
                                    struct profile *p, struct sample_labels_wish wish,
                                    struct sample_labels_look *ret_look);

#endif
