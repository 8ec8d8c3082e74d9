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

/* The newest profiles of the range, or all (limit 0), the newest first; *ret_n: how many there
 * were. */
bool profefe_merge_range(struct exchange *x, const struct store_range *range, size_t limit,
                         size_t *ret_n, struct err *err);

/* The bytes of one profile, as it came. */
bool profefe_get(struct exchange *x, struct sv id, bool *ret_found, struct err *err);
/* Those of several, with "+" between them, merged in this order; not found if one of them is not.
 */
bool profefe_merge_ids(struct exchange *x, struct sv ids, bool *ret_found, struct err *err);

#endif
