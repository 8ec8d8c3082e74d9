/* Turns results of queries into the messages of responses. All functions allocate from the given
 * arena, and return NULL or false with ERR_LIMIT if it is full. Any thread.
 */
#ifndef PROFPULL_API_ANSWERS_H
#define PROFPULL_API_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>

#include "api/proto/querier.pb-c.h"
#include "base/arena.h"
#include "base/err.h"
#include "store/query/query.h"
#include "store/query/tree.h"

/* Makes an empty message. */
void *answer_new(struct arena *arena, const ProtobufCMessageDescriptor *d, struct err *err);
/* Makes an array of n pointers. The result is not NULL if n is 0. */
void *answer_list(struct arena *arena, size_t n, struct err *err);
bool answer_string(struct arena *arena, struct sv v, char **ret, struct err *err);
bool answer_strings(struct arena *arena, const struct query_strings *strings, char ***ret,
                    size_t *ret_n, struct err *err);
bool answer_labels(struct arena *arena, const struct query_labels *labels, Api__LabelPair ***ret,
                   size_t *ret_n, struct err *err);
bool answer_exemplars(struct arena *arena, const struct query_exemplar *exemplars, size_t n,
                      Api__Exemplar ***ret, size_t *ret_n, struct err *err);
bool answer_levels(struct arena *arena, const struct flamegraph *graph, Api__Level ***ret,
                   size_t *ret_n, struct err *err);
Api__FlameGraph *answer_flamegraph(struct arena *arena, const struct flamegraph *graph,
                                   struct err *err);
Api__FlameGraphDiff *answer_diff(struct arena *arena, const struct flamegraph *graph,
                                 struct err *err);
/* Makes views of the strings of a request. */
bool answer_views(struct arena *arena, char *const *strings, size_t n, const struct sv **ret,
                  struct err *err);

#endif
