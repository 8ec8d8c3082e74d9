/* The stacks of profiles, added to a tree or summed up.
 *
 * A stack has a frame for each line of each location, inlined functions inside the one that they
 * were inlined into. A frame's name is that of its function, without Go's shape parameters
 * (`[go.shape.int]`); a location without lines has its address in hexadecimal digits instead:
 * nothing is left out of a stack, in any view. A sample with a negative value, in whatever column,
 * does not count.
 *
 * Names are looked up once for each function of a profile. A stack that has been seen, in whichever
 * profile, costs one look into a table. What is kept counts for the tree's limit; working on a
 * profile is bounded by a limit of its own. One thread.
 */
#ifndef PROFPULL_STORE_QUERY_STACKS_H
#define PROFPULL_STORE_QUERY_STACKS_H

#include "pprof/scratch.h"
#include "store/query/query.h"

struct stacks;

/* Which stacks count; profile_ids are the caller's affair. tree and lists are borrowed. */
struct stacks *stacks_new(struct tree *t, const struct query_stacks *which, size_t work_max,
                          struct err *err);
struct stacks *stacks_free(struct stacks *s); /* accepts NULL, returns NULL */

/* Adds the samples of one column of a profile that belong to its series. *ret_sum is set to what
 * they sum up to. False with ERR_INPUT for a profile that is damaged or not pprof: then nothing was
 * added; with ERR_LIMIT or ERR_MEMORY something may have been. */
bool stacks_add(struct stacks *s, const struct store_body *body, size_t column, int64_t *ret_sum,
                struct err *err);

#endif
