#include "api/process.h"

#include <stdio.h>

#include "api/served.h"
#include "api/targets_json.h"
#include "base/buf.h"

#define LINKS_MAX ((size_t)64 * 1024)
#define READY_TEXT_MAX ((size_t)64 * 1024)
/* Limit of a page of metrics; a larger page would be a defect. */
#define METRICS_PAGE_MAX ((size_t)64 * 1024 * 1024)

/* ---- pages ----------------------------------------------------------------------------------- */

static void reply_healthy(struct connection *c, const struct request *r,
                          const struct server_options *options)
{
    (void)r;
    struct err err = ERR_INIT;
    bool ok =
        options->served->healthy == NULL || options->served->healthy(options->served->arg, &err);
    char text[ERR_MSG_MAX + 8];
    snprintf(text, sizeof(text), "%s%s%s", ok ? "ok\n" : "", err.msg,
             err.msg[0] != '\0' ? "\n" : "");
    reply_plain(c, ok ? STATUS_OK : STATUS_UNAVAILABLE, text);
}

static void reply_ready(struct connection *c, const struct request *r,
                        const struct server_options *options)
{
    (void)r;
    struct buf text;
    buf_init(&text, READY_TEXT_MAX);
    bool ready =
        options->served->ready == NULL || options->served->ready(options->served->arg, &text);
    struct buf page;
    buf_init(&page, READY_TEXT_MAX + 16);
    buf_printf(&page, "%s%s%s", ready ? "ok\n" : "", text.data, text.len > 0 ? "\n" : "");
    reply_plain(c, ready ? STATUS_OK : STATUS_UNAVAILABLE, page.data);
    buf_done(&text);
    buf_done(&page);
}

static void reply_metrics(struct connection *c, const struct request *r,
                          const struct server_options *options)
{
    (void)r;
    struct buf page;
    buf_init(&page, METRICS_PAGE_MAX);
    if (metrics_render(options->metrics, &page) && buf_ok(&page)) {
        connection_reply(c, STATUS_OK, "text/plain; version=0.0.4; charset=utf-8",
                         (struct sv){page.data, page.len});
    } else {
        reply_plain(c, STATUS_INTERNAL, "out of memory while rendering the metrics\n");
    }
    buf_done(&page);
}

static void reply_links(struct connection *c, const struct request *r,
                        const struct server_options *options)
{
    (void)r;
    const struct route *route;
    struct buf page;
    buf_init(&page, LINKS_MAX);
    buf_printf(&page,
               "<!doctype html><html lang=\"en\"><title>profpull</title><main>"
               "<h1>profpull %s</h1><ul>",
               options->served->version);
    for (size_t i = 0; (route = routes_at(options, i)) != NULL; i++) {
        if (route->about != NULL && (route->set & options->sets) != 0) {
            buf_printf(&page, "<li><a href=\"%s\">%s</a> %s", route->path, route->path,
                       route->about);
        }
    }
    buf_puts(&page, "</ul></main>\n");
    connection_reply(c, STATUS_OK, "text/html; charset=utf-8", (struct sv){page.data, page.len});
    buf_done(&page);
}

/* ---- routes ---------------------------------------------------------------------------------- */

const struct route process_routes[] = {
    {"/", .set = ROUTE_ADMIN, .handle = reply_links}, /* used if this server shows no profiles */
    {"/links", .set = ROUTE_ADMIN, .handle = reply_links},
    {"/metrics", .set = ROUTE_ADMIN, .handle = reply_metrics,
     .about = "counters, gauges and histograms"},
    {"/api/v1/targets", .set = ROUTE_ADMIN, .handle = reply_targets, .params = targets_params,
     .about = "every scrape and its state; <a "
              "href=\"/api/v1/targets?health=down\">?health=down</a> the failing ones"},
    /* Without credentials, because kubelets have none. */
    {"/-/healthy", .set = ROUTE_ADMIN, .is_open = true, .handle = reply_healthy,
     .about = "health: the process works"},
    {"/-/ready", .set = ROUTE_ADMIN, .is_open = true, .handle = reply_ready,
     .about = "readiness: every source of targets has been read"},
    {.path = NULL},
};
