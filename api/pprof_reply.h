/* Responses with a profile, for `go tool pprof` and browsers. Errors are texts that the tool shows;
 * for that, they need a header of their own. Any thread.
 */
#ifndef PROFPULL_API_PPROF_REPLY_H
#define PROFPULL_API_PPROF_REPLY_H

#include "base/err.h"
#include "base/str.h"
#include "server/exchange.h"
#include "store/query/query.h"

/* Sets the file name of the response. name must not have characters that are not allowed in a
 * header. */
void pprof_reply_name(struct exchange *x, struct sv name);
/* Turns an error response, in JSON or text, into one that go tool pprof shows. */
void pprof_reply_explain(struct exchange *x);
/* Returns the status for the error of a query: 429 at a limit, 504 after the deadline, 503 if out
 * of memory, 404 without a store (ERR_REFUSED), otherwise 500. */
int query_error_status(const struct err *err);
/* Returns true with err if the client has gone or the deadline has passed. */
bool exchange_is_over(const struct exchange *x, struct err *err);
/* Returns the whole time that the store covers. False if the store is empty. */
bool exchange_whole_time(const struct exchange *x, struct query_range *ret);

#endif
