/* Private to trees: several threads that add the profiles of one query to a tree.
 *
 * The thread of the query reads profiles from the store and adds some of them itself. After the
 * first ones it takes idle helpers, threads with a tree of their own, and gives them copies of
 * profiles to add. Profiles of one set of labels go to one thread while it keeps up, so that their
 * stacks are in one tree. At the end the trees of the helpers are added to that of the query.
 *
 * The memory of all trees together stays within that of one tree, and so does the memory for
 * reading profiles: with helpers, each thread has a part. A query that does not fit into the parts
 * fails with ERR_LIMIT and may fit if it is asked again without helpers. One thread.
 */
#ifndef PROFPULL_STORE_QUERY_CREW_H
#define PROFPULL_STORE_QUERY_CREW_H

#include "store/query/query_private.h"

struct crew;

/* which: as for stacks_new(). helpers: NULL for a crew of the calling thread alone. */
struct crew *crew_new(const struct query *q, const struct query_stacks *which,
                      struct query_helpers *helpers, struct err *err);
/* Ends the helpers, gives them back, and frees what is left. Accepts NULL, returns NULL. */
struct crew *crew_free(struct crew *c);

/* Adds a profile, or gives it to a helper: for query_each_body(). An error may be that of an
 * earlier profile. */
bool crew_on_body(void *arg, const struct store_body *body, struct err *err);

/* Waits for the helpers. Returns the tree, which the caller owns; NULL with err. */
struct tree *crew_finish(struct crew *c, struct err *err);

/* Returns true if the crew has had helpers. */
bool crew_had_helpers(const struct crew *c);

#endif
