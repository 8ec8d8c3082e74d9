#include "server/targets_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/masking.h"

#define PAGE_SCRAPES 64
/* A label set has at most LABELS_BYTES_MAX bytes, escaped at most six times that. */
#define STATUS_JSON_MAX (8 * 1024 * 1024)

/* A response being streamed; lives until the last page is sent or the connection ends. */
struct stream {
    struct scraper *scraper;
    size_t cursor;
    bool started;
    bool any;
    char *health; /* a value of the query; NULL: all */
    char *job;
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
    if (st->follows != NULL) {
        json_member("follows", sv_from(st->follows), out);
    }
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

static void targets_on_done(void *arg)
{
    struct stream *st = arg;
    free(st->health);
    free(st->job);
    free(st);
}

static bool matches(const struct stream *st, const struct scrape_status *status)
{
    return (st->health == NULL || strcmp(st->health, scrape_health_name(status->health)) == 0) &&
           (st->job == NULL || strcmp(st->job, status->job) == 0);
}

static void add_item(struct buf *page, const struct buf *text, bool *any)
{
    buf_puts(page, *any ? ",\n" : "\n");
    buf_append(page, text->data, text->len);
    *any = true;
}

static void add_status(struct stream *st, const struct scrape_status *status, struct buf *page)
{
    struct buf text;
    buf_init(&text, STATUS_JSON_MAX);
    if (matches(st, status) && put_status(status, &text)) {
        add_item(page, &text, &st->any);
    }
    buf_done(&text);
}

/* Fills a page with at least one matching scrape; false at the end. */
static bool fill_page(struct stream *st, struct buf *page)
{
    struct scrape_status statuses[PAGE_SCRAPES];
    while (page->len == 0) {
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
static void add_sampled(struct stream *st, struct buf *page)
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

static bool targets_on_next(void *arg, struct buf *page)
{
    struct stream *st = arg;
    if (!st->started) {
        st->started = true;
        buf_puts(page, "{\"status\":\"success\",\"data\":{\"scrapes\":[");
        return true;
    }
    if (fill_page(st, page)) {
        return true;
    }
    buf_puts(page, "\n],\"sampled\":[");
    add_sampled(st, page);
    buf_puts(page, "\n]}}\n");
    return false;
}

/* A copy of a parameter's value in *ret, or NULL if it is not given. False if out of memory. */
static bool copy_param(const struct request *r, const char *name, char **ret)
{
    struct sv value = request_param(r, name);
    *ret = value.p == NULL ? NULL : strndup(value.p, value.n);
    return value.p == NULL || *ret != NULL;
}

void reply_targets(struct connection *c, const struct request *r,
                   const struct server_options *options)
{
    struct stream *st = calloc(1, sizeof(*st));
    if (st == NULL || !copy_param(r, "health", &st->health) || !copy_param(r, "job", &st->job)) {
        if (st != NULL) {
            targets_on_done(st);
        }
        reply_plain(c, STATUS_INTERNAL, "out of memory\n");
        return;
    }
    st->scraper = options->scraper;
    connection_stream(
        c, "application/json",
        (struct connection_source){.next = targets_on_next, .done = targets_on_done, .arg = st});
}
