#include "api/receive/reply.h"

#include "api/connect.h"
#include "api/rpc.h"
#include "api/served.h"
#include "base/str.h"

bool receive_is_transient(enum receive_result result)
{
    return result == RECEIVE_QUEUE_FULL || result == RECEIVE_NO_MEMORY;
}

void receive_reply_error(struct exchange *x, int status, const char *code, const char *message)
{
    x->status = status;
    x->content_type = "application/json";
    buf_clear(&x->reply);
    buf_putc(&x->reply, '{');
    json_member("code", sv_from(code), &x->reply);
    json_member("message", sv_from(message), &x->reply);
    buf_puts(&x->reply, "}\n");
}

size_t receive_body_max(const struct exchange *x)
{
    return x->bytes_max;
}

bool receive_begin_wait(struct exchange *x,
                        void (*settle)(struct exchange *x, enum exchange_wait result))
{
    if (!receive_waits(x->options->served->receiver)) {
        return true;
    }
    x->receipt = receipt_new();
    x->settle = settle;
    return x->receipt != NULL;
}

bool receive_end_wait(struct exchange *x, enum exchange_wait result, const char **ret_message)
{
    static const enum receive_wait waits[] = {[EXCHANGE_SETTLED] = RECEIVE_STORED,
                                              [EXCHANGE_LATE] = RECEIVE_LATE,
                                              [EXCHANGE_FAILED] = RECEIVE_NOT_STORED};
    receive_count_wait(x->options->served->receiver, waits[result]);
    *ret_message = result == EXCHANGE_LATE
                       ? "not every destination has stored this in time; try again later"
                       : "a destination has not stored this; try again later";
    return result != EXCHANGE_SETTLED;
}

void receive_settle(struct exchange *x, enum exchange_wait result)
{
    const char *message;
    const char *echo = NULL;
    const struct rpc_type *type = rpc_type_of(x->request, &echo);
    struct err err = ERR_INIT;
    if (!receive_end_wait(x, result, &message)) {
        return;
    }
    if (type == NULL || type->protocol == RPC_CONNECT) {
        receive_reply_error(x, STATUS_UNAVAILABLE, "unavailable", message);
    } else {
        err_set(&err, ERR_REFUSED, "%s", message);
        connect_reply_error(x, CONNECT_UNAVAILABLE, &err);
    }
}

void receive_serve_call(struct exchange *x, const struct connect_method *method)
{
    if (!receive_begin_wait(x, receive_settle)) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_REFUSED, "out of memory");
        connect_reply_error(x, CONNECT_UNAVAILABLE, &err);
        return;
    }
    connect_serve(x, method, 1, receive_body_max(x));
}
