/* Finds the profiles that are not split into series by the labels of their samples, because they
 * have too many sets of them (parts.h).
 *
 * They are merged with each other only: a merge with other profiles would have too many sets as
 * well, and queries for a label of the others would find none of their samples. One thread at a
 * time may use it.
 */
#ifndef PROFPULL_STORE_UNSPLIT_H
#define PROFPULL_STORE_UNSPLIT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"
#include "store/blob.h"

struct unsplit {
    struct scratch *scratch;
    struct arena *arena;  /* has the labels of the set */
    struct buf no_labels; /* the blob of the labels of the series that such a profile belongs to */
    struct set set;
};

/* False with err if out of memory; then unsplit_done() is needed, too. */
bool unsplit_init(struct unsplit *u, struct err *err);
void unsplit_done(struct unsplit *u);

/* Takes the blob of the set that the next profiles belong to. A damaged one counts as empty. */
void unsplit_take_set(struct unsplit *u, struct sv blob);
/* Returns true if the labels of a series are those of the series without labels. */
bool unsplit_no_labels(const struct unsplit *u, struct sv labels);
/* Sets *ret to true if the profile, or the merge of profiles, is not split. One that cannot be read
 * counts as split. False with err if out of memory. */
bool unsplit_read(struct unsplit *u, struct sv body, bool *ret, struct err *err);

#endif
