#include "api/route_errors.h"

/* Returns Connect's code for the status of an error that the server itself answers. */
static const char *connect_code(int status)
{
    static const struct {
        int status;
        const char *code;
    } rows[] = {
        {400, "invalid_argument"},   {401, "unauthenticated"},    {408, "deadline_exceeded"},
        {413, "resource_exhausted"}, {429, "resource_exhausted"}, {499, "canceled"},
        {500, "internal"},           {503, "unavailable"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == status) {
            return rows[i].code;
        }
    }
    return "unknown";
}

const char *connect_route_error(int status, const char *message, struct buf *body)
{
    if (status == STATUS_METHOD) {
        return NULL; /* the servers of Connect send no body with this status */
    }
    buf_puts(body, "{");
    json_member("code", sv_from(connect_code(status)), body);
    json_member("message", sv_from(message), body);
    buf_puts(body, "}");
    return "application/json";
}

const char *profefe_route_error(int status, const char *message, struct buf *body)
{
    buf_printf(body, "{\"code\":%d", status);
    json_member("error", sv_from(message), body);
    buf_puts(body, "}\n");
    return "application/json";
}
