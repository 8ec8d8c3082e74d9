/* The responses of the APIs that receive profiles, and other parts that these APIs share. */
#ifndef PROFPULL_API_RECEIVE_REPLY_H
#define PROFPULL_API_RECEIVE_REPLY_H

#include "agent/receive.h"
#include "base/err.h"
#include "server/exchange.h"
#include "server/routes.h"

struct connect_method;

#define STATUS_BAD_REQUEST 400
#define STATUS_TOO_LARGE 413
#define STATUS_UNSUPPORTED_TYPE 415
#define STATUS_UNPROCESSABLE 422

/* Returns true if another try may succeed: then the response is 503. */
bool receive_is_transient(enum receive_result result);
/* Answers with {"code":"...","message":"..."} and this status. */
void receive_reply_error(struct exchange *x, int status, const char *code, const char *message);
/* If the configuration says so, makes the response wait until the profiles of the request are on
 * disk: then x->receipt is the receipt for them, else NULL. settle: see struct exchange. False if
 * out of memory. */
bool receive_begin_wait(struct exchange *x,
                        void (*settle)(struct exchange *x, enum exchange_wait result));
/* For use in `settle` functions: counts the result of the wait. Returns true if the response has to
 * be replaced by 503 with this message. */
bool receive_end_wait(struct exchange *x, enum exchange_wait result, const char **ret_message);
/* The `settle` function of APIs that answer with receive_reply_error(), and of calls. */
void receive_settle(struct exchange *x, enum exchange_wait result);
/* Returns the limit of an inflated body, in bytes. */
size_t receive_body_max(const struct exchange *x);
/* Serves a method of Connect and gRPC that receives profiles: waits for the disk if the
 * configuration says so, and answers "unavailable" if out of memory. */
void receive_serve_call(struct exchange *x, const struct connect_method *method);

#endif
