/* Profiles of the store as the answers of profefe's API: merged as google/pprof does, or as they
 * are. All of them fill in the answer if something was found, and return false with err on failure:
 * ERR_INPUT if the profiles have different sample types. Any thread.
 */
#ifndef PROFPULL_API_PROFEFE_MERGE_H
#define PROFPULL_API_PROFEFE_MERGE_H

#include "base/err.h"
#include "base/str.h"
#include "server/exchange.h"
#include "store/store.h"

/* Merges the newest profiles of the range, at most limit (0: all), from the newest on. *ret_n is
 * set to their number. */
bool profefe_merge_range(struct exchange *x, const struct store_range *range, size_t limit,
                         size_t *ret_n, struct err *err);

/* Answers with the bytes of one profile as they came. */
bool profefe_get(struct exchange *x, struct sv id, bool *ret_found, struct err *err);
/* Merges the profiles of several ids, which have "+" between them, in this order. *ret_found is
 * false if any of them is missing. */
bool profefe_merge_ids(struct exchange *x, struct sv ids, bool *ret_found, struct err *err);

#endif
