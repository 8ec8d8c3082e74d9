/* Answers that are profiles, for `go tool pprof` and browsers: the errors are texts that the tool
 * shows, which it does only with a header of its own. Any thread.
 */
#ifndef PROFPULL_API_PPROF_REPLY_H
#define PROFPULL_API_PPROF_REPLY_H

#include "base/err.h"
#include "base/str.h"
#include "server/exchange.h"
#include "store/query/query.h"

/* Names the file of the answer; name has no character that a header may not have. */
void pprof_reply_name(struct exchange *x, struct sv name);
/* Turns the answer, an error in JSON or text, into one that go tool pprof shows. */
void pprof_reply_explain(struct exchange *x);
/* The status for an error of a query: 429 at a limit, 504 after the deadline, 503 out of memory,
 * 404 without a store (ERR_REFUSED), else 500. */
int query_error_status(const struct err *err);
/* Returns true with err if the client has gone or the deadline has passed. */
bool exchange_is_over(const struct exchange *x, struct err *err);
/* Returns the whole time that the store covers. False if the store is empty. */
bool exchange_whole_time(const struct exchange *x, struct query_range *ret);

#endif
