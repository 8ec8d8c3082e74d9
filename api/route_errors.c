#include "api/route_errors.h"

#include "api/connect.h"
#include "api/rpc.h"

/* The code of Connect for the status of an error that the server itself answers. */
struct code {
    int status;
    enum connect_code code;
    const char *name;
};

static const struct code *code_of(int status)
{
    static const struct code rows[] = {
        {400, CONNECT_INVALID_ARGUMENT, "invalid_argument"},
        {401, CONNECT_UNAUTHENTICATED, "unauthenticated"},
        {408, CONNECT_DEADLINE_EXCEEDED, "deadline_exceeded"},
        {413, CONNECT_RESOURCE_EXHAUSTED, "resource_exhausted"},
        {429, CONNECT_RESOURCE_EXHAUSTED, "resource_exhausted"},
        {499, CONNECT_CANCELED, "canceled"},
        {500, CONNECT_INTERNAL, "internal"},
        {503, CONNECT_UNAVAILABLE, "unavailable"},
        {0, CONNECT_UNKNOWN, "unknown"},
    };
    size_t i = 0;
    while (rows[i].status != status && rows[i].status != 0) {
        i++;
    }
    return &rows[i];
}

void connect_route_error(struct route_error *e)
{
    const struct code *code = code_of(e->status);
    const char *echo = NULL;
    const struct rpc_type *type = e->request == NULL ? NULL : rpc_type_of(e->request, &echo);
    if (e->status == STATUS_METHOD) {
        return; /* the servers of Connect send no body with this status */
    }
    if (type != NULL && type->protocol != RPC_CONNECT) {
        e->status = STATUS_OK;
        e->type = echo;
        rpc_fail(type, connect_code_number(code->code), sv_from(e->message), &e->headers, &e->body);
        return;
    }
    e->type = "application/json";
    buf_puts(&e->body, "{");
    json_member("code", sv_from(code->name), &e->body);
    json_member("message", sv_from(e->message), &e->body);
    buf_puts(&e->body, "}");
}

void profefe_route_error(struct route_error *e)
{
    e->type = "application/json";
    buf_printf(&e->body, "{\"code\":%d", e->status);
    json_member("error", sv_from(e->message), &e->body);
    buf_puts(&e->body, "}\n");
}
