#include "server/targets_json.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/masking.h"

#define PAGE_SCRAPES 64
/* A label set has at most LABELS_BYTES_MAX bytes, escaped at most six times that. */
#define STATUS_JSON_MAX (8 * 1024 * 1024)

/* A response being streamed; lives until the last page is sent or the connection closes. */
struct stream {
    struct evhttp_request *req;
    struct scraper *scraper;
    struct evbuffer *page;
    size_t cursor;
    bool any;
    struct evkeyvalq query;
    const char *health; /* a value of the query; NULL: all */
    const char *job;
};

static void put_time(struct buf *out, const char *key, int64_t wall_ns)
{
    char text[32];
    if (wall_ns == 0) {
        json_key(key, out);
        buf_puts(out, "null");
    } else {
        clock_format_rfc3339(wall_ns, text, sizeof(text));
        json_member(key, sv_from(text), out);
    }
}

static bool put_status(const struct scrape_status *st, struct buf *out)
{
    buf_putc(out, '{');
    json_member("job", sv_from(st->job), out);
    json_member("type", sv_from(st->type), out);
    json_member("url", sv_from(st->url), out);
    json_key("labels", out);
    mask_labels_json(st->labels, target_masks_all(st->target), out);
    json_member("health", sv_from(scrape_health_name(st->health)), out);
    json_member("reason", sv_from(reason_name(st->reason)), out);
    json_member("lastError", sv_from(st->last_error), out);
    put_time(out, "lastScrape", st->last_start_ns);
    put_time(out, "nextDue", st->next_due_ns);
    buf_printf(out, ",\"inFlight\":%s", st->in_flight ? "true" : "false");
    buf_printf(out, ",\"lastDurationSeconds\":%.3f", (double)st->last_duration_ms / 1000.0);
    buf_printf(out, ",\"lastSizeBytes\":%" PRIu64, st->last_size);
    buf_printf(out, ",\"successes\":%" PRIu64 ",\"failures\":%" PRIu64 ",\"skipped\":%" PRIu64,
               st->successes, st->failures, st->skipped);
    buf_printf(out, ",\"conflicts\":{\"found\":%u,\"of\":%u}}", st->conflicts, st->attempts);
    return buf_ok(out);
}

static void stream_free(struct stream *st)
{
    if (st->page != NULL) {
        evbuffer_free(st->page);
    }
    evhttp_clear_headers(&st->query);
    free(st);
}

static void on_close(struct evhttp_connection *connection, void *arg)
{
    (void)connection;
    struct stream *st = arg;
    /* When the client hangs up, evhttp detaches the request and we own it; when the server stops,
     * it is freed with its connection. */
    if (evhttp_request_get_connection(st->req) == NULL) {
        evhttp_request_free(st->req);
    }
    stream_free(st);
}

static bool matches(const struct stream *st, const struct scrape_status *status)
{
    return (st->health == NULL || strcmp(st->health, scrape_health_name(status->health)) == 0) &&
           (st->job == NULL || strcmp(st->job, status->job) == 0);
}

static void add_item(struct evbuffer *page, const struct buf *text, bool *any)
{
    evbuffer_add_printf(page, "%s\n", *any ? "," : "");
    evbuffer_add(page, text->data, text->len);
    *any = true;
}

static void add_status(struct stream *st, const struct scrape_status *status, struct evbuffer *page)
{
    struct buf text;
    buf_init(&text, STATUS_JSON_MAX);
    if (matches(st, status) && put_status(status, &text)) {
        add_item(page, &text, &st->any);
    }
    buf_done(&text);
}

/* Fills a page with at least one matching scrape; false at the end. */
static bool fill_page(struct stream *st, struct evbuffer *page)
{
    struct scrape_status statuses[PAGE_SCRAPES];
    while (evbuffer_get_length(page) == 0) {
        size_t n = scraper_snapshot(st->scraper, &st->cursor, statuses, PAGE_SCRAPES);
        if (n == 0) {
            return false;
        }
        for (size_t i = 0; i < n; i++) {
            add_status(st, &statuses[i], page);
            scrape_status_done(&statuses[i]);
        }
    }
    return true;
}

static void put_sampled(struct buf *out, const struct sampled_service *v)
{
    buf_putc(out, '{');
    json_member("job", sv_from(v->job), out);
    json_member("service", sv_from(v->service), out);
    buf_printf(out, ",\"processes\":%zu,\"scraped\":%zu}", v->processes, v->scraped);
}

/* Services that are sampled: not all of their processes are scraped. */
static void add_sampled(struct stream *st, struct evbuffer *page)
{
    struct sampled_service *services = calloc(SCRAPER_SAMPLED_MAX, sizeof(*services));
    size_t n = services == NULL ? 0 : scraper_sampled(st->scraper, services, SCRAPER_SAMPLED_MAX);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        struct buf text;
        buf_init(&text, STATUS_JSON_MAX);
        put_sampled(&text, &services[i]);
        bool shown =
            st->job == NULL || (services[i].job != NULL && strcmp(st->job, services[i].job) == 0);
        if (shown && buf_ok(&text)) {
            add_item(page, &text, &any);
        }
        buf_done(&text);
        sampled_service_done(&services[i]);
    }
    free(services);
}

static void end_reply(struct stream *st)
{
    struct evhttp_request *req = st->req;
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
    stream_free(st);
    evhttp_send_reply_end(req);
}

static void on_page_sent(struct evhttp_connection *connection, void *arg)
{
    struct stream *st = arg;
    (void)connection;
    if (fill_page(st, st->page)) {
        evhttp_send_reply_chunk_with_cb(st->req, st->page, on_page_sent, st);
        return;
    }
    evbuffer_add_printf(st->page, "\n],\"sampled\":[");
    add_sampled(st, st->page);
    evbuffer_add_printf(st->page, "\n]}}\n");
    evhttp_send_reply_chunk(st->req, st->page);
    end_reply(st);
}

static struct stream *stream_new(struct evhttp_request *req, struct scraper *scraper)
{
    struct stream *st = calloc(1, sizeof(*st));
    if (st == NULL) {
        return NULL;
    }
    st->req = req;
    st->scraper = scraper;
    const char *text = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
    (void)evhttp_parse_query_str(text == NULL ? "" : text, &st->query); /* empty on failure */
    st->health = evhttp_find_header(&st->query, "health");
    st->job = evhttp_find_header(&st->query, "job");
    st->page = evbuffer_new();
    if (st->page == NULL) {
        stream_free(st);
        return NULL;
    }
    return st;
}

void reply_targets(struct evhttp_request *req, const struct server_options *options)
{
    struct stream *st = stream_new(req, options->scraper);
    if (st == NULL) {
        evhttp_send_error(req, HTTP_INTERNAL, NULL);
        return;
    }
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    evhttp_add_header(headers, "Content-Type", "application/json");
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_close, st);
    evhttp_send_reply_start(req, HTTP_OK, NULL);
    if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD) {
        end_reply(st); /* libevent sends no body, and would never call on_page_sent() */
        return;
    }
    evbuffer_add_printf(st->page, "{\"status\":\"success\",\"data\":{\"scrapes\":[");
    evhttp_send_reply_chunk_with_cb(req, st->page, on_page_sent, st);
}
