#include "pages/targets.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/served.h"
#include "base/clock.h"
#include "config/config.h"
#include "model/masking.h"
#include "pages/html.h"
#include "pages/value.h"
#include "scraper/scraper.h"
#include "server/routes.h"

#define ROWS_MAX 500
#define PAGE_SCRAPES 64
/* Limit of the scrapes that one request makes due at once. */
#define NOW_MAX 100

#define STATUS_SEE_OTHER 303
#define STATUS_FORBIDDEN 403

/* The scrapes that a request selects, and how many were found. */
struct list {
    struct sv job; /* empty: all; service and health likewise */
    struct sv service;
    struct sv health;
    int64_t now_ns;
    size_t counts[SCRAPE_HEALTHS];
    size_t matching;
    size_t shown;
};

static struct sv param(const struct exchange *x, const char *name)
{
    struct sv value = request_param(x->request, name);
    return value.p == NULL ? SV("") : value;
}

static bool matches(const struct list *l, const struct scrape_status *s)
{
    return (l->job.n == 0 || sv_eq_str(l->job, s->job)) &&
           (l->service.n == 0 || sv_eq(l->service, labels_get(s->labels, SV("service_name")))) &&
           (l->health.n == 0 || sv_eq_str(l->health, scrape_health_name(s->health)));
}

/* ---- one scrape ------------------------------------------------------------------------------ */

static void put_state(struct buf *out, const struct scrape_status *s)
{
    static const char *const looks[SCRAPE_HEALTHS] = {[SCRAPE_UNKNOWN] = "muted",
                                                      [SCRAPE_UP] = "good",
                                                      [SCRAPE_DOWN] = "bad",
                                                      [SCRAPE_ABSENT] = "muted"};
    buf_printf(out, "<td><span class=\"pill %s\">%s</span></td>", looks[s->health],
               s->health == SCRAPE_UNKNOWN ? "waiting" : scrape_health_name(s->health));
}

static void put_service(struct buf *out, const struct scrape_status *s)
{
    struct sv service = labels_get(s->labels, SV("service_name"));
    buf_puts(out, "<td data-name=\"Service\"><a href=\"./?service=");
    html_param(out, service);
    buf_puts(out, "\">");
    html_text(out, service);
    buf_puts(out, "</a><div class=\"hint\">");
    html_text(out, sv_from(s->job));
    buf_puts(out, "</div></td><td data-name=\"Type\">");
    html_text(out, sv_from(s->type));
    buf_puts(out, "</td>");
}

/* Writes the link to the labels of a target after each rule. */
static void put_trace(struct buf *out, const struct scrape_status *s)
{
    buf_puts(out, "<a href=\"trace?job=");
    html_param(out, sv_from(s->job));
    buf_puts(out, "&amp;source=");
    html_param(out, sv_from(s->source));
    buf_puts(out, "&amp;address=");
    html_param(out, sv_from(target_canonical(s->target)));
    buf_puts(out, "\">each rule</a>");
}

static void put_target(struct buf *out, const struct scrape_status *s)
{
    bool all = target_masks_all(s->target);
    buf_puts(out, "<td data-name=\"Target\"><details><summary class=\"mono\">");
    html_text(out, sv_from(s->url));
    buf_puts(out, "</summary><div class=\"labels\">");
    for (size_t i = 0; i < labels_count(s->labels); i++) {
        html_label(out, labels_at(s->labels, i), all);
    }
    buf_puts(out, "</div>");
    put_trace(out, s);
    buf_puts(out, "</details>");
    if (s->last_error[0] != '\0') {
        buf_puts(out, "<div class=\"bad\">");
        html_text(out, sv_from(s->last_error));
        buf_puts(out, "</div>");
        html_advice(out, sv_from(reason_advice(s->reason)));
    }
    if (s->follows != NULL) {
        buf_puts(out, "<div class=\"hint\">scraped by job ");
        html_text(out, sv_from(s->follows));
        buf_puts(out, "</div>");
    }
    buf_puts(out, "</td>");
}

/* Writes the button that scrapes at once. */
static void put_now(struct buf *out, const struct scrape_status *s)
{
    buf_puts(out, "<form method=\"post\" action=\"api/v1/scrape?job=");
    html_param(out, sv_from(s->job));
    buf_puts(out, "&amp;type=");
    html_param(out, sv_from(s->type));
    buf_puts(out, "&amp;url=");
    html_param(out, sv_from(s->url));
    buf_puts(out, "\"><button>Profile now</button></form>");
}

/* Writes when a scrape is due, such as "in 12 s", or why it is not. */
static void put_due(struct buf *out, const struct scrape_status *s, int64_t now_ns)
{
    buf_puts(out, "<td data-name=\"Next\">");
    if (s->in_flight) {
        buf_puts(out, "now");
    } else if (s->next_due_ns == 0) {
        buf_puts(out, "–");
    } else {
        int64_t left_s = (s->next_due_ns - now_ns) / NS_PER_S;
        buf_puts(out, "in ");
        value_put(out, left_s > 0 ? left_s : 1, SV("seconds"));
    }
    if (!s->in_flight && s->follows == NULL) {
        put_now(out, s);
    }
    buf_puts(out, "</td>");
}

static void put_last(struct buf *out, const struct scrape_status *s)
{
    buf_puts(out, "<td data-name=\"Last\">");
    html_time(out, s->last_start_ns);
    if (s->last_start_ns != 0) {
        buf_puts(out, "<div class=\"hint\">");
        value_put(out, s->last_duration_ms, SV("milliseconds"));
        if (s->last_size > 0) {
            buf_puts(out, ", ");
            value_put(out, (int64_t)s->last_size, SV("bytes"));
        }
        buf_puts(out, "</div>");
    }
    buf_printf(out,
               "</td><td class=\"num\" data-name=\"Done\">%" PRIu64
               "</td><td class=\"num\" data-name=\"Failed\">%" PRIu64 "</td>",
               s->successes, s->failures);
}

static void put_scrape(struct buf *out, const struct scrape_status *s, int64_t now_ns)
{
    buf_puts(out, "<tr>");
    put_state(out, s);
    put_service(out, s);
    put_target(out, s);
    put_last(out, s);
    put_due(out, s, now_ns);
    buf_puts(out, "</tr>\n");
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void count_all(struct exchange *x, struct list *l)
{
    struct scrape_status statuses[PAGE_SCRAPES];
    size_t cursor = 0;
    size_t n;
    while ((n = scraper_snapshot(x->options->served->scraper, &cursor, statuses, PAGE_SCRAPES)) >
           0) {
        for (size_t i = 0; i < n; i++) {
            l->counts[statuses[i].health]++;
            l->matching += matches(l, &statuses[i]);
            scrape_status_done(&statuses[i]);
        }
    }
}

/* Writes the scrapes that fail, or the others. */
static void put_pass(struct exchange *x, struct list *l, bool failing)
{
    struct scrape_status statuses[PAGE_SCRAPES];
    size_t cursor = 0;
    size_t n;
    while ((n = scraper_snapshot(x->options->served->scraper, &cursor, statuses, PAGE_SCRAPES)) >
           0) {
        for (size_t i = 0; i < n; i++) {
            const struct scrape_status *s = &statuses[i];
            if (matches(l, s) && (s->health == SCRAPE_DOWN) == failing && l->shown < ROWS_MAX) {
                put_scrape(&x->reply, s, l->now_ns);
                l->shown++;
            }
            scrape_status_done(&statuses[i]);
        }
    }
}

static void put_form(struct exchange *x, const struct list *l)
{
    struct buf *out = &x->reply;
    const struct config *config = x->options->served->config;
    buf_puts(out, "<form class=\"ask\" method=\"get\"><div class=\"fields\"><label>Job <select "
                  "name=\"job\"><option value=\"\">all</option>");
    for (size_t i = 0; config != NULL && i < config->n_jobs; i++) {
        bool chosen = sv_eq_str(l->job, config->jobs[i].name);
        buf_puts(out, chosen ? "<option selected>" : "<option>");
        html_text(out, sv_from(config->jobs[i].name));
        buf_puts(out, "</option>");
    }
    buf_puts(out, "</select></label><label>State <select name=\"health\">"
                  "<option value=\"\">all</option>");
    for (int i = 0; i < SCRAPE_HEALTHS; i++) {
        const char *name = scrape_health_name((enum scrape_health)i);
        buf_printf(out, "<option%s>%s</option>", sv_eq_str(l->health, name) ? " selected" : "",
                   name);
    }
    buf_puts(out, "</select></label><label class=\"wide\">Service <input name=\"service\" "
                  "value=\"");
    html_text(out, l->service);
    buf_puts(out, "\"></label><button class=\"main\">Show</button></div></form>\n");
}

static void put_counts(struct buf *out, const struct list *l)
{
    static const struct {
        enum scrape_health health;
        const char *text;
        const char *look;
    } cards[] = {{SCRAPE_UP, "up", "good"},
                 {SCRAPE_DOWN, "down", "bad"},
                 {SCRAPE_ABSENT, "absent: the target has no such profile", "muted"},
                 {SCRAPE_UNKNOWN, "not scraped yet", "muted"}};
    buf_puts(out, "<div class=\"cards\">");
    for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
        size_t n = l->counts[cards[i].health];
        buf_printf(out, "<div><b class=\"%s\">%zu</b><span>%s</span></div>",
                   n > 0 ? cards[i].look : "muted", n, cards[i].text);
    }
    buf_puts(out, "</div>\n");
}

/* Writes the resource that scrapes wait for, if it is memory or CPU. */
static void put_bottleneck(struct exchange *x)
{
    const struct scrape_memory m = scraper_memory(x->options->served->scraper);
    if (m.shortage == SHORTAGE_NONE) {
        return;
    }
    buf_printf(&x->reply,
               "<p class=\"bad\" id=\"bottleneck\">Scrapes wait: %u responses are not read yet, %u "
               "requests not sent yet; ",
               m.unread, m.held_back);
    html_text(&x->reply, sv_from(scrape_shortage_advice(m.shortage)));
    buf_puts(&x->reply, ".</p>\n");
}

void page_targets(struct exchange *x)
{
    struct list l = {.job = param(x, "job"),
                     .service = param(x, "service"),
                     .health = param(x, "health"),
                     .now_ns = clock_wall_ns()};
    struct buf *out = &x->reply;
    html_begin(x, "Targets", "targets");
    buf_puts(out, "<h1>Targets</h1>\n");
    count_all(x, &l);
    put_bottleneck(x);
    put_counts(out, &l);
    put_form(x, &l);
    buf_puts(out, "<section class=\"panel\"><div class=\"tablebox\"><table class=\"wrap\" "
                  "id=\"targets\"><thead><tr><th>State</th><th>Service, job</th><th>Type</th>"
                  "<th>Target</th><th>Last scrape</th><th class=\"num\">Done</th>"
                  "<th class=\"num\">Failed</th><th>Next</th></tr></thead><tbody>\n");
    put_pass(x, &l, true);
    put_pass(x, &l, false);
    buf_puts(out, "</tbody></table></div>");
    if (l.matching > l.shown) {
        buf_printf(out, "<p class=\"hint\">%zu of %zu scrapes; choose a job or service.</p>",
                   l.shown, l.matching);
    } else if (l.matching == 0) {
        buf_puts(out, "<p>No scrape. Is the job's discovery right? <code>profpull discover "
                      "--explain</code> says what becomes of each target.</p>");
    }
    buf_puts(out, "</section>\n");
    html_end(x);
}

/* ---- profile now ----------------------------------------------------------------------------- */

static bool is_wanted(const struct exchange *x, const struct scrape_status *s)
{
    struct sv job = param(x, "job");
    struct sv type = param(x, "type");
    struct sv url = param(x, "url");
    return s->follows == NULL && (job.n == 0 || sv_eq_str(job, s->job)) &&
           (type.n == 0 || sv_eq_str(type, s->type)) && (url.n == 0 || sv_eq_str(url, s->url));
}

static void count_now(struct exchange *x, const char *result, size_t n)
{
    struct metric *family = metrics_family(
        x->options->metrics, METRIC_COUNTER, "profpull_scrapes_asked_for_total",
        "Scrapes that were asked for by POST, by result: scheduled, or surplus to what one request "
        "may ask for.",
        "result", NULL);
    metric_add(metric_cell_of(family, result), n);
}

static size_t scrape_wanted(struct exchange *x)
{
    struct scrape_status statuses[PAGE_SCRAPES];
    size_t cursor = 0;
    size_t n;
    size_t scheduled = 0;
    size_t surplus = 0;
    while ((n = scraper_snapshot(x->options->served->scraper, &cursor, statuses, PAGE_SCRAPES)) >
           0) {
        for (size_t i = 0; i < n; i++) {
            const struct scrape_status *s = &statuses[i];
            if (is_wanted(x, s) && scheduled == NOW_MAX) {
                surplus++;
            } else if (is_wanted(x, s)) {
                scheduled += scraper_scrape_now(x->options->served->scraper, s->target, s->entry);
            }
            scrape_status_done(&statuses[i]);
        }
    }
    count_now(x, "scheduled", scheduled);
    count_now(x, "surplus", surplus);
    return scheduled;
}

/* Returns true if a browser says that a page of another site has sent the request. */
static bool is_foreign(const struct exchange *x)
{
    struct sv site = request_header(x->request, "Sec-Fetch-Site");
    return site.n > 0 && !sv_eq_nocase(site, "same-origin") && !sv_eq_nocase(site, "none");
}

void v1_scrape(struct exchange *x)
{
    x->content_type = "application/json";
    if (is_foreign(x)) {
        x->status = STATUS_FORBIDDEN;
        buf_puts(&x->reply, "{\"error\":\"a page of another site must not ask for scrapes\"}\n");
    } else if (param(x, "job").n + param(x, "type").n + param(x, "url").n == 0) {
        x->status = STATUS_BAD_REQUEST;
        buf_puts(&x->reply, "{\"error\":\"expected job, type or url, got none of them\"}\n");
    } else {
        size_t n = scrape_wanted(x);
        x->status = n > 0 ? STATUS_OK : STATUS_NOT_FOUND;
        buf_printf(&x->reply, "{\"scheduled\":%zu}\n", n);
        if (n > 0 && request_header_lists(x->request, "Accept", "text/html")) {
            x->status = STATUS_SEE_OTHER;
            buf_puts(&x->headers, "Location: ../../targets\r\n");
        }
    }
}
