/* Adds the stacks of profiles to a tree.
 *
 * A stack has a frame for each line of each location; an inlined function is inside the function
 * that it was inlined into. The name of a frame is that of its function, without Go's shape
 * parameters (`[go.shape.int]`). A location without lines is named by its address in hexadecimal
 * digits: no view leaves a frame out. Stacks that Go's runtime cut off are repaired (repair.h). A
 * sample with a negative value in any column does not count.
 *
 * Names are looked up once for each function of a profile. A stack that occurred before, in any
 * profile, costs one lookup in a table. Tables that outlive a profile count towards the limit of
 * the tree; reading a profile has a limit of its own. One thread.
 */
#ifndef PROFPULL_STORE_QUERY_STACKS_H
#define PROFPULL_STORE_QUERY_STACKS_H

#include "pprof/scratch.h"
#include "store/query/query.h"

struct stacks;

/* which: the stacks to add. Its profile_ids are ignored, since the caller chooses the profiles. The
 * tree and the lists are borrowed. work_max: memory for reading one profile. */
struct stacks *stacks_new(struct tree *t, const struct query_stacks *which, size_t work_max,
                          struct err *err);
struct stacks *stacks_free(struct stacks *s); /* accepts NULL, returns NULL */

/* Changes work_max. */
void stacks_limit(struct stacks *s, size_t work_max);

/* The profile that was added last: duration_nanos and period, 0 if it has none. */
struct stacks_times {
    int64_t duration_ns;
    int64_t period;
};
/* Makes stacks_add() read these numbers as well. Costs a pass over the profile. */
void stacks_want_times(struct stacks *s);
struct stacks_times stacks_times(const struct stacks *s);

/* Adds the samples of one column of a profile that belong to its series, and sets *ret_sum to their
 * sum. False with ERR_INPUT if the profile is damaged or not pprof: then nothing was added. False
 * with ERR_LIMIT or ERR_MEMORY: then a part may have been added. */
bool stacks_add(struct stacks *s, const struct store_body *body, size_t column, int64_t *ret_sum,
                struct err *err);

#endif
