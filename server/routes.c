#include "server/routes.h"

#include <event2/buffer.h>
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

void reply_text(struct evhttp_request *req, int code, const char *type, const char *text,
                size_t len)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    if (evbuffer_add(evhttp_request_get_output_buffer(req), text, len) != 0) {
        evhttp_send_error(req, HTTP_INTERNAL, NULL);
        return;
    }
    evhttp_add_header(headers, "Content-Type", type);
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_send_reply(req, code, NULL, NULL);
}

void reply_plain(struct evhttp_request *req, int code, const char *text)
{
    reply_text(req, code, "text/plain; charset=utf-8", text, strlen(text));
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void reply_healthy(struct evhttp_request *req, const struct server_options *options)
{
    struct err err = ERR_INIT;
    bool ok = options->healthy == NULL || options->healthy(options->arg, &err);
    char text[ERR_MSG_MAX + 8];
    snprintf(text, sizeof(text), "%s%s%s", ok ? "ok\n" : "", err.msg,
             err.msg[0] != '\0' ? "\n" : "");
    reply_plain(req, ok ? HTTP_OK : HTTP_SERVUNAVAIL, text);
}

static void reply_ready(struct evhttp_request *req, const struct server_options *options)
{
    struct buf text;
    buf_init(&text, READY_TEXT_MAX);
    bool ready = options->ready == NULL || options->ready(options->arg, &text);
    struct buf page;
    buf_init(&page, READY_TEXT_MAX + 16);
    buf_printf(&page, "%s%s%s", ready ? "ok\n" : "", text.data, text.len > 0 ? "\n" : "");
    reply_plain(req, ready ? HTTP_OK : HTTP_SERVUNAVAIL, page.data);
    buf_done(&text);
    buf_done(&page);
}

static void reply_metrics(struct evhttp_request *req, const struct server_options *options)
{
    struct buf page;
    buf_init(&page, METRICS_PAGE_MAX);
    if (metrics_render(options->metrics, &page) && buf_ok(&page)) {
        reply_text(req, HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", page.data, page.len);
    } else {
        reply_plain(req, HTTP_INTERNAL, "out of memory while rendering the metrics\n");
    }
    buf_done(&page);
}

static void reply_links(struct evhttp_request *req, const struct server_options *options)
{
    const struct route *r;
    struct buf page;
    buf_init(&page, LINKS_MAX);
    buf_printf(&page, "<!doctype html><title>profpull</title><h1>profpull %s</h1><ul>",
               options->version);
    for (size_t i = 0; (r = route_at(i)) != NULL; i++) {
        if (r->about != NULL) {
            buf_printf(&page, "<li><a href=\"%s\">%s</a> %s", r->path, r->path, r->about);
        }
    }
    buf_puts(&page, "</ul>\n");
    reply_text(req, HTTP_OK, "text/html; charset=utf-8", page.data, page.len);
    buf_done(&page);
}

/* ---- routes ---------------------------------------------------------------------------------- */

const struct route *route_at(size_t i)
{
    static const struct route routes[] = {
        {EVHTTP_REQ_GET, "/", reply_links, NULL},
        {EVHTTP_REQ_GET, "/metrics", reply_metrics, "counters, gauges and histograms"},
        {EVHTTP_REQ_GET, "/api/v1/targets", reply_targets,
         "every scrape and its state; <a href=\"/api/v1/targets?health=down\">?health=down</a> the "
         "failing ones"},
        {EVHTTP_REQ_GET, "/-/healthy", reply_healthy, "whether the process works"},
        {EVHTTP_REQ_GET, "/-/ready", reply_ready, "whether discovery has been read"},
    };
    return i < sizeof(routes) / sizeof(routes[0]) ? &routes[i] : NULL;
}

void routes_dispatch(struct evhttp_request *req, const struct server_options *options)
{
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    const char *encoded = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
    char *path = encoded == NULL ? NULL : evhttp_uridecode(encoded, 0, NULL);
    const struct route *r;
    size_t i = 0;
    method = method == EVHTTP_REQ_HEAD ? EVHTTP_REQ_GET : method;
    while ((r = route_at(i)) != NULL &&
           (r->method != method || path == NULL || strcmp(r->path, path) != 0)) {
        i++;
    }
    if (r == NULL) {
        reply_plain(req, HTTP_NOTFOUND, "not found\n");
    } else {
        r->handle(req, options);
    }
    free(path);
}
