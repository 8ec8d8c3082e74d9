/* The parts that queries of Pyroscope's APIs share: a time range, a type and a selector, checked in
 * the order and with the messages of Pyroscope. Any thread.
 */
#ifndef PROFPULL_API_ASK_H
#define PROFPULL_API_ASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "server/exchange.h"
#include "store/query/query.h"

/* Must be zeroed before the first call. */
struct ask {
    struct query_range range;
    struct selector *selector; /* the matchers of the range */
    struct profile_type type;  /* points into the text that it was read from */
};

void ask_done(struct ask *a);

/* Takes a range in milliseconds; a bound of 0 is missing. */
bool ask_range(struct ask *a, int64_t start_ms, int64_t end_ms, struct err *err);
/* Takes the id of a profile type. */
bool ask_type(struct ask *a, struct sv id, struct err *err);
/* Takes one selector, which must not be empty. */
bool ask_selector(struct ask *a, struct sv text, struct err *err);
/* Takes several selectors, all of which must match; there may be none. */
bool ask_matchers(struct ask *a, char *const *texts, size_t n, struct err *err);
/* Takes the number of nodes of a flame graph; 0 asks for the default. */
bool ask_nodes(int64_t asked, int64_t *ret, struct err *err);
/* Checks the length of a step. */
bool ask_step(double step_s, struct err *err);
/* Returns true if the parameter `repair` of the URL is `false`: stacks that Go's runtime cut off
 * are not to be repaired. */
bool ask_as_recorded(const struct request *r);

/* Fills in a query of the store. It may use half of the memory of a request, or a quarter if there
 * are peers; its arena may use the other half. damaged counts the damaged profiles that the
 * response leaves out; it may be NULL. ERR_REFUSED if there is no store. */
bool ask_query(const struct exchange *x, int64_t deadline_ms, struct arena *arena,
               atomic_size_t *damaged, struct query *ret, struct err *err);
/* Returns the peers that a request asks as well, within a quarter of its memory. */
struct store_peers ask_peers(const struct exchange *x, int64_t deadline_ms);
/* Adds a number of damaged profiles to the metric. */
void ask_count_damaged(const struct exchange *x, const atomic_size_t *damaged);

#endif
