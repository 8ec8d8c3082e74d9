/* The answers of the receiving APIs, and what they have in common. */
#ifndef PROFPULL_API_RECEIVE_REPLY_H
#define PROFPULL_API_RECEIVE_REPLY_H

#include "agent/receive.h"
#include "base/err.h"
#include "server/exchange.h"
#include "server/routes.h"

#define STATUS_BAD_REQUEST 400
#define STATUS_TOO_LARGE 413
#define STATUS_UNSUPPORTED_TYPE 415
#define STATUS_UNPROCESSABLE 422

/* Returns true if another try may succeed: the answer is 503 then. */
bool receive_is_transient(enum receive_result result);
/* Answers {"code":"...","message":"..."} with this status. */
void receive_reply_error(struct exchange *x, int status, const char *code, const char *message);
/* Has the answer wait until the profiles of the request are on disk, if the configuration says so;
 * the receipt for them is x->receipt then, else NULL. settle: see struct exchange.
 * False if out of memory. */
bool receive_begin_wait(struct exchange *x,
                        void (*settle)(struct exchange *x, enum exchange_wait result));
/* For these `settle` functions: counts the result. True if the answer is to be replaced by 503 with
 * this message. */
bool receive_end_wait(struct exchange *x, enum exchange_wait result, const char **ret_message);
/* The `settle` of APIs that answer with receive_reply_error(). */
void receive_settle(struct exchange *x, enum exchange_wait result);
/* Returns the most bytes that an inflated body may have. */
size_t receive_body_max(const struct exchange *x);

#endif
