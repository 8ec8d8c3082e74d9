/* Answers profefe's API with profiles of the store: merged in the way of google/pprof, or
 * unchanged. If something was found, the functions fill in the response. They return false with err
 * on failure; ERR_INPUT means that the profiles have different sample types. Any thread.
 */
#ifndef PROFPULL_API_PROFEFE_MERGE_H
#define PROFPULL_API_PROFEFE_MERGE_H

#include "base/err.h"
#include "base/str.h"
#include "server/exchange.h"
#include "store/store.h"

/* Merges the newest profiles of the range, at most limit of them (0: all), beginning with the
 * newest. *ret_n is their number. */
bool profefe_merge_range(struct exchange *x, const struct store_range *range, size_t limit,
                         size_t *ret_n, struct err *err);

/* Answers with the bytes of one profile, unchanged. */
bool profefe_get(struct exchange *x, struct sv id, bool *ret_found, struct err *err);
/* Merges the profiles of several ids, joined by "+", in this order. *ret_found is false if any of
 * them is missing. */
bool profefe_merge_ids(struct exchange *x, struct sv ids, bool *ret_found, struct err *err);

#endif
