/* The parameters of the pages of profiles and of their API: service, type, time and labels of one
 * side, or of two for a difference:
 *
 *     service, type, labels, from, until                        the profiles that are shown
 *     compare=1, base_service, base_labels, base_from, base_until   those they are compared with
 *     max_nodes                                                 the size of the flame graph
 *     repair=false                                              cut stacks stay as they are
 *
 * labels is a selector, with or without its braces; times as in api/attime.h. Without
 * base_from a difference compares with the range of the same length before, or with the same range
 * if base_labels or base_service say which other profiles are meant. One thread.
 */
#ifndef PROFPULL_PAGES_VIEW_H
#define PROFPULL_PAGES_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "server/exchange.h"
#include "store/query/query.h"
#include "store/query/tree.h"

#define VIEW_RANGE_DEFAULT_MS (INT64_C(3600) * 1000)

/* One side. Texts are as they were given, for forms. */
struct view_side {
    struct sv service;
    struct sv labels;
    struct sv from; /* empty if it was not given */
    struct sv until;
    int64_t from_ms;
    int64_t until_ms;
    struct selector *selector; /* owned; service and labels */
};

struct view {
    struct sv type; /* empty if it was not given */
    struct profile_type profile_type;
    bool is_diff;
    int64_t max_nodes;
    bool as_recorded; /* cut stacks are not repaired */
    struct view_side now;
    struct view_side base; /* of a difference */
    struct query query;
    struct arena *arena; /* owned */
};

/* Reads the parameters; ERR_INPUT names the one that is wrong, ERR_REFUSED says that there is no
 * store. view_done() is needed whatever the result. */
bool view_read(struct view *v, const struct exchange *x, struct err *err);
void view_done(struct view *v);

/* Chooses what the parameters do not say: the service and the type that are shown first. False if
 * there is none; then err is set on failure only. */
bool view_choose(struct view *v, struct err *err);

struct query_range view_range(const struct view_side *side);
/* Lists the services, or the types, with profiles in the time of a side. */
bool view_services(const struct view *v, const struct view_side *side, struct query_strings *ret,
                   struct err *err);
bool view_types(const struct view *v, const struct view_side *side, struct query_strings *ret,
                struct err *err);
/* Builds the tree of a side; the caller frees it. */
struct tree *view_tree(const struct view *v, const struct view_side *side, struct err *err);

/* Returns the HTTP status for an error. */
int view_status(const struct err *err);

#endif
