#include "api/targets_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/served.h"
#include "base/clock.h"
#include "model/masking.h"

#define PAGE_SCRAPES 64
/* Limit of one scrape as JSON: its labels have at most LABELS_BYTES_MAX bytes, which escapes may
 * multiply by six. */
#define STATUS_JSON_MAX (8 * 1024 * 1024)

enum { BY_HEALTH, BY_JOB, BY_SERVICE, BY_SOURCE, BY_TYPE, FILTERS };
const char *const targets_params[FILTERS + 1] = {
    [BY_HEALTH] = "health", [BY_JOB] = "job",   [BY_SERVICE] = "service",
    [BY_SOURCE] = "source", [BY_TYPE] = "type", [FILTERS] = NULL,
};

/* A response that is being streamed. It lives until the last page is sent or the connection ends.
 */
struct stream {
    struct scraper *scraper;
    size_t cursor;
    bool started;
    bool any;
    char *filters[FILTERS]; /* values of the parameters; NULL: all */
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

bool targets_put(const struct scrape_status *st, struct buf *out)
{
    buf_putc(out, '{');
    json_member("job", sv_from(st->job), out);
    json_member("type", sv_from(st->type), out);
    if (st->follows != NULL) {
        json_member("follows", sv_from(st->follows), out);
    }
    json_member("source", sv_from(st->source), out);
    json_member("service", labels_get(st->labels, SV(LABEL_SERVICE_NAME)), out);
    json_member("url", sv_from(st->url), out);
    json_key("labels", out);
    mask_labels_json(st->labels, target_masks_all(st->target), out);
    json_member("health", sv_from(scrape_health_name(st->health)), out);
    json_member("reason", sv_from(reason_name(st->reason)), out);
    json_member("lastError", sv_from(st->last_error), out);
    json_member("advice", sv_from(reason_advice(st->reason)), out);
    put_time(out, "lastScrape", st->last_start_ns);
    put_time(out, "nextDue", st->next_due_ns);
    buf_printf(out, ",\"inFlight\":%s", st->in_flight ? "true" : "false");
    buf_printf(out, ",\"lastDurationSeconds\":%.3f", (double)st->last_duration_ms / 1000.0);
    buf_printf(out, ",\"samplingSeconds\":%" PRId64, st->sampling_ms / MS_PER_S);
    buf_printf(out, ",\"lastSizeBytes\":%" PRIu64, st->last_size);
    buf_printf(out, ",\"successes\":%" PRIu64 ",\"failures\":%" PRIu64 ",\"skipped\":%" PRIu64,
               st->successes, st->failures, st->skipped);
    buf_printf(out, ",\"conflicts\":{\"found\":%u,\"of\":%u}}", st->conflicts, st->attempts);
    return buf_ok(out);
}

static void targets_on_done(void *arg)
{
    struct stream *st = arg;
    for (size_t i = 0; i < FILTERS; i++) {
        free(st->filters[i]);
    }
    free(st);
}

static bool matches(const struct stream *st, const struct scrape_status *status)
{
    const struct sv values[FILTERS] = {
        [BY_HEALTH] = sv_from(scrape_health_name(status->health)),
        [BY_JOB] = sv_from(status->job),
        [BY_SERVICE] = labels_get(status->labels, SV(LABEL_SERVICE_NAME)),
        [BY_SOURCE] = sv_from(status->source),
        [BY_TYPE] = sv_from(status->type),
    };
    for (size_t i = 0; i < FILTERS; i++) {
        if (st->filters[i] != NULL && !sv_eq_str(values[i], st->filters[i])) {
            return false;
        }
    }
    return true;
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
    if (matches(st, status) && targets_put(status, &text)) {
        add_item(page, &text, &st->any);
    }
    buf_done(&text);
}

/* Fills a page with at least one matching scrape. Returns false at the end, when no such scrape is
 * left. */
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

static bool is_wanted(const char *filter, const char *value)
{
    return filter == NULL || (value != NULL && strcmp(filter, value) == 0);
}

/* Adds the services of which only a sample of the processes is scraped. */
static void add_sampled(struct stream *st, struct buf *page)
{
    struct sampled_service *services = calloc(SCRAPER_SAMPLED_MAX, sizeof(*services));
    size_t n = services == NULL ? 0 : scraper_sampled(st->scraper, services, SCRAPER_SAMPLED_MAX);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        struct buf text;
        buf_init(&text, STATUS_JSON_MAX);
        put_sampled(&text, &services[i]);
        bool shown = is_wanted(st->filters[BY_JOB], services[i].job) &&
                     is_wanted(st->filters[BY_SERVICE], services[i].service);
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

/* Sets *ret to a copy of a parameter's value; to NULL if it is missing, or empty, as forms send it.
 * False if out of memory. */
static bool copy_param(const struct request *r, const char *name, char **ret)
{
    struct sv value = request_param(r, name);
    *ret = value.n == 0 ? NULL : strndup(value.p, value.n);
    return value.n == 0 || *ret != NULL;
}

/* Refuses an unknown state, because it would match nothing, like a state that no scrape is in. */
static bool check_health(const char *health, struct err *err)
{
    const char *names[SCRAPE_HEALTHS];
    struct buf known;
    bool ok = health == NULL;
    buf_init(&known, sizeof(err->msg));
    for (size_t i = 0; i < SCRAPE_HEALTHS; i++) {
        names[i] = scrape_health_name((enum scrape_health)i);
        ok = ok || strcmp(health, names[i]) == 0;
        buf_printf(&known, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    ok = ok ||
         err_set(err, ERR_INPUT, "health: expected one of %s, got \"%.64s\"", known.data, health);
    buf_done(&known);
    return ok;
}

static bool read_filters(struct stream *st, const struct request *r, struct err *err)
{
    for (size_t i = 0; i < FILTERS; i++) {
        if (!copy_param(r, targets_params[i], &st->filters[i])) {
            return err_memory(err);
        }
    }
    return check_health(st->filters[BY_HEALTH], err);
}

void reply_targets(struct connection *c, const struct request *r,
                   const struct server_options *options)
{
    struct err err = ERR_INIT;
    struct stream *st = calloc(1, sizeof(*st));
    if (st == NULL) {
        reply_plain(c, STATUS_INTERNAL, "out of memory\n");
        return;
    }
    if (!read_filters(st, r, &err)) {
        targets_on_done(st);
        reply_bad_query(c, err.msg);
        return;
    }
    st->scraper = options->served->scraper;
    connection_stream(
        c, "application/json",
        (struct connection_source){.next = targets_on_next, .done = targets_on_done, .arg = st});
}
