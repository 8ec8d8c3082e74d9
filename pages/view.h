/* The parameters of the pages of profiles and of their API: service, type, time and labels of one
 * side, or of two for a difference:
 *
 *     service, type, labels, from, until                        the profiles that are shown
 *     compare=1, base_service, base_labels, base_from, base_until   the profiles to compare with
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

/* One side of a view. Its texts are as the request has them, so that the form can show them again.
 */
struct view_side {
    struct sv service;
    struct sv labels;
    struct sv from; /* empty if the request has none */
    struct sv until;
    int64_t from_ms;
    int64_t until_ms;
    struct selector *selector; /* owned; made from service and labels */
};

struct view {
    struct sv type; /* empty if the request has none */
    struct profile_type profile_type;
    bool is_diff;
    int64_t max_nodes;
    bool as_recorded; /* stacks that Go's runtime cut off are not repaired */
    struct view_side now;
    struct view_side base; /* the side that a difference is compared with */
    struct query query;
    struct arena *arena; /* owned */
};

#define VIEW_PARAMS                                                                                \
    "service", "type", "labels", "from", "until", "compare", "base_service", "base_labels",        \
        "base_from", "base_until", "max_nodes", "repair"
/* The names of the parameters; ends with NULL. */
extern const char *const view_params[];

/* Begins a view without parameters: query and arena. ERR_REFUSED means that there is no store.
 * view_done() must be called whatever the result. */
bool view_begin(struct view *v, const struct exchange *x, struct err *err);
/* Reads a time: digits, or "now" with an offset; "" is now. */
bool view_time(struct sv text, const char *name, int64_t now_ms, int64_t *ret, struct err *err);
/* Reads the parameters. ERR_INPUT names the wrong parameter; ERR_REFUSED means that there is no
 * store. view_done() must be called whatever the result. */
bool view_read(struct view *v, const struct exchange *x, struct err *err);
void view_done(struct view *v);

/* Chooses the service and the type to show, if the parameters do not have them. Returns false if
 * there is nothing to choose; err is set only if this failed. */
bool view_choose(struct view *v, struct err *err);

struct query_range view_range(const struct view_side *side);
/* List the services, or the types, that have profiles in the time of a side. */
bool view_services(const struct view *v, const struct view_side *side, struct query_strings *ret,
                   struct err *err);
bool view_types(const struct view *v, const struct view_side *side, struct query_strings *ret,
                struct err *err);
/* Builds the tree of a side, which the caller frees. */
struct tree *view_tree(const struct view *v, const struct view_side *side, struct err *err);

/* Returns the HTTP status for an error. */
int view_status(const struct err *err);

#endif
