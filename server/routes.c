#include "server/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "server/targets_json.h"

#define LINKS_MAX ((size_t)64 * 1024)
#define READY_TEXT_MAX ((size_t)64 * 1024)
/* A metrics page of 64 MiB would be a defect, not a page. */
#define METRICS_PAGE_MAX ((size_t)64 * 1024 * 1024)

/* ---- replies --------------------------------------------------------------------------------- */

void reply_plain(struct connection *c, int status, const char *text)
{
    connection_reply(c, status, "text/plain; charset=utf-8", sv_from(text));
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void reply_healthy(struct connection *c, const struct request *r,
                          const struct server_options *options)
{
    (void)r;
    struct err err = ERR_INIT;
    bool ok = options->healthy == NULL || options->healthy(options->arg, &err);
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
    bool ready = options->ready == NULL || options->ready(options->arg, &text);
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
    buf_printf(&page, "<!doctype html><title>profpull</title><h1>profpull %s</h1><ul>",
               options->version);
    for (size_t i = 0; (route = route_at(i)) != NULL; i++) {
        if (route->about != NULL) {
            buf_printf(&page, "<li><a href=\"%s\">%s</a> %s", route->path, route->path,
                       route->about);
        }
    }
    buf_puts(&page, "</ul>\n");
    connection_reply(c, STATUS_OK, "text/html; charset=utf-8", (struct sv){page.data, page.len});
    buf_done(&page);
}

/* ---- routes ---------------------------------------------------------------------------------- */

const struct route *route_at(size_t i)
{
    static const struct route routes[] = {
        {"/", reply_links, NULL},
        {"/metrics", reply_metrics, "counters, gauges and histograms"},
        {"/api/v1/targets", reply_targets,
         "every scrape and its state; <a href=\"/api/v1/targets?health=down\">?health=down</a> the "
         "failing ones"},
        {"/-/healthy", reply_healthy, "whether the process works"},
        {"/-/ready", reply_ready, "whether discovery has been read"},
    };
    return i < sizeof(routes) / sizeof(routes[0]) ? &routes[i] : NULL;
}

void routes_dispatch(struct connection *c, const struct request *r,
                     const struct server_options *options)
{
    const struct route *route;
    size_t i = 0;
    while ((route = route_at(i)) != NULL && !sv_eq_str(r->path, route->path)) {
        i++;
    }
    if (route == NULL) {
        reply_plain(c, STATUS_NOT_FOUND, "not found\n");
    } else {
        route->handle(c, r, options);
    }
}
