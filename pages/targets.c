#include "pages/targets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static void put_state(struct buf *out, enum scrape_health health)
{
    static const char *const looks[SCRAPE_HEALTHS] = {[SCRAPE_UNKNOWN] = "muted",
                                                      [SCRAPE_UP] = "good",
                                                      [SCRAPE_DOWN] = "bad",
                                                      [SCRAPE_ABSENT] = "muted"};
    buf_printf(out, "<td><span class=\"pill %s\">%s</span></td>", looks[health],
               health == SCRAPE_UNKNOWN ? "waiting" : scrape_health_name(health));
}

static void put_type(struct buf *out, const struct scrape_status *s)
{
    buf_puts(out, "<td data-name=\"Type\">");
    html_text(out, sv_from(s->type));
    buf_puts(out, "<div class=\"hint mono\">");
    html_text(out, sv_from(s->url));
    buf_puts(out, "</div>");
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
    put_state(out, s->health);
    put_type(out, s);
    put_last(out, s);
    put_due(out, s, now_ns);
    buf_puts(out, "</tr>\n");
}

/* ---- one target ------------------------------------------------------------------------------ */

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

/* Writes service, job and address of a target, and its labels to unfold. */
static void put_target(struct buf *out, const struct scrape_status *s)
{
    struct sv service = labels_get(s->labels, SV("service_name"));
    bool all = target_masks_all(s->target);
    buf_puts(out, "<td data-name=\"Target\"><a href=\"./?service=");
    html_param(out, service);
    buf_puts(out, "\">");
    html_text(out, service);
    buf_puts(out, "</a> <span class=\"hint\">");
    html_text(out, sv_from(s->job));
    buf_puts(out, "</span><details><summary class=\"mono\">");
    html_text(out, sv_from(target_canonical(s->target)));
    buf_puts(out, "</summary><div class=\"labels\">");
    for (size_t i = 0; i < labels_count(s->labels); i++) {
        if (!sv_eq(labels_at(s->labels, i).name, SV("__name__"))) { /* differs by type */
            html_label(out, labels_at(s->labels, i), all);
        }
    }
    buf_puts(out, "</div>");
    put_trace(out, s);
    buf_puts(out, "</details></td>");
}

/* Writes a button that makes scrapes of a target due: one type, or all of them (NULL). */
static void put_now(struct buf *out, const struct scrape_status *s, const char *type)
{
    buf_puts(out, "<form method=\"post\" action=\"api/v1/scrape?job=");
    html_param(out, sv_from(s->job));
    buf_puts(out, "&amp;address=");
    html_param(out, sv_from(target_canonical(s->target)));
    if (type != NULL) {
        buf_puts(out, "&amp;type=");
        html_param(out, sv_from(type));
    }
    buf_puts(out, "\"><button>");
    html_text(out, type == NULL ? SV("all types") : sv_from(type));
    buf_puts(out, "</button></form>");
}

/* The scrapes of one target, which stand together in a list. */
struct group {
    const struct scrape_status *at;
    size_t n;
};

/* Writes the menu "Profile now"; nothing if other jobs scrape for this one. */
static void put_menu(struct buf *out, const struct group *g)
{
    size_t own = 0;
    for (size_t i = 0; i < g->n; i++) {
        own += g->at[i].follows == NULL;
    }
    buf_puts(out, "<td colspan=\"4\" class=\"num\">");
    if (own > 0) {
        buf_puts(out, "<details class=\"menu\"><summary class=\"button\">Profile now</summary>");
        put_now(out, g->at, NULL);
        for (size_t i = 0; i < g->n; i++) {
            if (g->at[i].follows == NULL) {
                put_now(out, g->at, g->at[i].type);
            }
        }
        buf_puts(out, "</details>");
    }
    buf_puts(out, "</td>");
}

/* Returns the state of a target: down if a scrape is, else up if one is. */
static enum scrape_health health_of(const struct group *g)
{
    enum scrape_health health = g->at[0].health;
    for (size_t i = 0; i < g->n; i++) {
        if (g->at[i].health == SCRAPE_DOWN) {
            return SCRAPE_DOWN;
        }
        health = g->at[i].health == SCRAPE_UP ? SCRAPE_UP : health;
    }
    return health;
}

static void put_group(struct buf *out, const struct group *g, int64_t now_ns)
{
    buf_puts(out, "<tbody class=\"target\"><tr class=\"head\">");
    put_state(out, health_of(g));
    put_target(out, g->at);
    put_menu(out, g);
    buf_puts(out, "</tr>\n");
    for (size_t i = 0; i < g->n; i++) {
        put_scrape(out, &g->at[i], now_ns);
    }
    buf_puts(out, "</tbody>\n");
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

/* Scrapes that are shown, and the targets that fail. */
struct rows {
    struct scrape_status at[ROWS_MAX];
    size_t n;
    const struct target *failing[ROWS_MAX];
    size_t n_failing;
};

static bool fails(const struct rows *r, const struct target *t)
{
    for (size_t i = 0; i < r->n_failing; i++) {
        if (r->failing[i] == t) {
            return true;
        }
    }
    return false;
}

/* The passes over all scrapes: a pass notes or takes scrapes that match. */
enum pass { NOTE_FAILING, TAKE_FAILING, TAKE_OTHERS };

/* Returns true if the row has become part of the list. */
static bool take(struct rows *r, const struct scrape_status *s, enum pass pass)
{
    bool down = fails(r, s->target);
    if (pass == NOTE_FAILING) {
        if (s->health == SCRAPE_DOWN && !down && r->n_failing < ROWS_MAX) {
            r->failing[r->n_failing++] = s->target;
        }
        return false;
    }
    if (down != (pass == TAKE_FAILING) || r->n == ROWS_MAX) {
        return false;
    }
    r->at[r->n++] = *s;
    return true;
}

static void walk(struct exchange *x, const struct list *l, struct rows *r, enum pass pass)
{
    struct scrape_status statuses[PAGE_SCRAPES];
    size_t cursor = 0;
    size_t n;
    while ((n = scraper_snapshot(x->options->served->scraper, &cursor, statuses, PAGE_SCRAPES)) >
           0) {
        for (size_t i = 0; i < n; i++) {
            if (!matches(l, &statuses[i]) || !take(r, &statuses[i], pass)) {
                scrape_status_done(&statuses[i]);
            }
        }
    }
}

/* Moves the scrapes of the target at `first` together. Returns the number of them. */
static size_t gather(struct rows *r, size_t first)
{
    size_t end = first + 1;
    for (size_t i = end; i < r->n; i++) {
        if (r->at[i].target == r->at[first].target) {
            struct scrape_status moved = r->at[i];
            memmove(&r->at[end + 1], &r->at[end], (i - end) * sizeof(moved));
            r->at[end++] = moved;
        }
    }
    return end - first;
}

/* Writes a block for each target, those that fail first. */
static void put_targets(struct exchange *x, struct list *l)
{
    struct rows *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return; /* the page says how many scrapes it does not show */
    }
    for (enum pass pass = NOTE_FAILING; pass <= TAKE_OTHERS; pass++) {
        walk(x, l, r, pass);
    }
    for (size_t i = 0; i < r->n;) {
        struct group g = {.at = &r->at[i], .n = gather(r, i)};
        put_group(&x->reply, &g, l->now_ns);
        i += g.n;
    }
    l->shown = r->n;
    for (size_t i = 0; i < r->n; i++) {
        scrape_status_done(&r->at[i]);
    }
    free(r);
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
                  "id=\"targets\"><thead><tr><th>State</th><th>Target, type</th>"
                  "<th>Last scrape</th><th class=\"num\">Done</th><th class=\"num\">Failed</th>"
                  "<th>Next</th></tr></thead>\n");
    put_targets(x, &l);
    buf_puts(out, "</table></div>");
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
    struct sv address = param(x, "address");
    return s->follows == NULL &&
           (address.n == 0 || sv_eq_str(address, target_canonical(s->target))) &&
           (job.n == 0 || sv_eq_str(job, s->job)) && (type.n == 0 || sv_eq_str(type, s->type)) &&
           (url.n == 0 || sv_eq_str(url, s->url));
}

static void count_now(struct exchange *x, const char *result, size_t n)
{
    struct metric *family =
        metrics_family(x->options->metrics, METRIC_COUNTER, "profpull_scrapes_asked_for_total",
                       "Scrapes that were requested by POST, by result: scheduled, or surplus: "
                       "above the limit of one request.",
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
        buf_puts(&x->reply, "{\"error\":\"a page of another site may not request scrapes\"}\n");
    } else if (param(x, "job").n + param(x, "type").n + param(x, "url").n + param(x, "address").n ==
               0) {
        x->status = STATUS_BAD_REQUEST;
        buf_puts(&x->reply,
                 "{\"error\":\"expected job, type, url or address, got none of them\"}\n");
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
