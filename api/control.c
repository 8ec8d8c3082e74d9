#include "api/control.h"

#include "api/served.h"
#include "server/exchange.h"

#define STATUS_BAD_REQUEST 400
#define TEXT_MAX ((size_t)16 * 1024 * 1024)

static void answer(struct exchange *x, bool ok, int refused, struct buf *text)
{
    exchange_text(x, ok ? STATUS_OK : refused, "text/plain; charset=utf-8",
                  (struct sv){text->data, text->len});
    buf_done(text);
}

/* Answers 200 if the new configuration is in force, or is the same as before; 500 with all errors
 * otherwise. */
static void control_reload(struct exchange *x)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    bool ok = false;
    if (x->options->served->reload == NULL) {
        buf_puts(&text, "this process cannot reload its configuration\n");
    } else {
        ok = x->options->served->reload(x->options->served->arg, &text);
    }
    answer(x, ok, STATUS_INTERNAL, &text);
}

static void control_log_level(struct exchange *x)
{
    static const struct {
        const char *name;
        enum log_level level;
    } levels[] = {
        {"debug", LOG_DEBUG}, {"info", LOG_INFO}, {"warn", LOG_WARN}, {"error", LOG_ERROR}};
    struct sv wanted = request_param(x->request, "level");
    struct buf text;
    bool ok = false;
    buf_init(&text, TEXT_MAX);
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (sv_eq_str(wanted, levels[i].name)) {
            log_set_level(x->options->log, levels[i].level);
            ok = true;
        }
    }
    if (ok) {
        buf_printf(&text, "the level of the log is %.*s\n", SV_ARG(wanted));
    } else {
        buf_puts(&text, "level: expected debug, info, warn or error\n");
    }
    answer(x, ok, STATUS_BAD_REQUEST, &text);
}

const struct route control_routes[] = {
    {"/-/reload", .set = ROUTE_ADMIN, .methods = ROUTE_POST, .work = control_reload},
    {"/-/log-level", .set = ROUTE_ADMIN, .methods = ROUTE_POST, .work = control_log_level},
    {.path = NULL},
};
