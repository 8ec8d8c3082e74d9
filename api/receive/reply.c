#include "api/receive/reply.h"

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
