#include "pages/changes.h"

#include <math.h>

#include "api/changes.h"
#include "base/clock.h"
#include "pages/html.h"
#include "pages/rate.h"
#include "pages/view.h"
#include "store/changes/report.h"

#define NAME_CHARS 300
#define VERSION_CHARS 60
#define LINK_BYTES ((size_t)256 * 1024)
/* A longer address does not fit into the head of a request. */
#define LINK_MAX (REQUEST_HEAD_MAX * 3 / 4)
/* The drawing of an effect: its width, and that of one side of the middle. */
#define BAR_WIDTH 160.0
#define BAR_HALF 76.0

struct changes_page {
    struct view v;
    struct changes_asked asked;
    struct changes changes;
    struct changes_rollouts rollouts;
    double most; /* the end of the axis of all bars */
};

/* ---- the form -------------------------------------------------------------------------------- */

static void put_field(struct exchange *x, const char *name, const char *title, const char *hint,
                      const char *class)
{
    struct buf *out = &x->reply;
    buf_printf(out, "<label class=\"%s\">%s <input name=\"%s\" placeholder=\"%s\" value=\"", class,
               title, name, hint);
    html_text(out, request_param(x->request, name));
    buf_puts(out, "\" autocomplete=\"off\" spellcheck=\"false\"></label>");
}

static void put_form(struct exchange *x)
{
    buf_puts(&x->reply, "<form class=\"ask\" method=\"get\" action=\"changes\"><div "
                        "class=\"fields\">");
    put_field(x, "service", "Service", "all whose version changed", "wide");
    put_field(x, "type", "Type", REPORT_TYPE_DEFAULT, "half");
    put_field(x, "from", "From", CHANGES_RANGE_DEFAULT, "time half");
    put_field(x, "until", "Until", "now", "time half");
    put_field(x, "base", "Base version", "the one before", "time half");
    put_field(x, "new", "New version", "the last", "time half");
    /* Ranges are compared by links only; the form keeps them. */
    static const char *const kept[] = {"base_from", "base_until", "labels"};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        struct sv value = request_param(x->request, kept[i]);
        if (value.n > 0) {
            buf_printf(&x->reply, "<input type=\"hidden\" name=\"%s\" value=\"", kept[i]);
            html_text(&x->reply, value);
            buf_puts(&x->reply, "\">");
        }
    }
    buf_puts(&x->reply, "<button class=\"main\">Show</button></div></form>\n");
}

/* ---- the list of services -------------------------------------------------------------------- */

static void put_version(struct buf *out, struct sv version)
{
    buf_puts(out, "<span class=\"mono\">");
    html_cut(out, version, VERSION_CHARS);
    buf_puts(out, "</span>");
}

static void put_rollout(struct exchange *x, const struct changes_rollout *r)
{
    struct buf *out = &x->reply;
    /* Each byte of a name may take three. */
    bool is_link = r->service.n <= LINK_MAX / 3;
    struct sv from = request_param(x->request, "from");
    buf_puts(out, "<tr><th scope=\"row\" class=\"service\">");
    if (is_link) {
        buf_puts(out, "<a href=\"changes?service=");
        html_param(out, r->service);
        if (from.n > 0 && from.n < LINK_MAX / 9) {
            buf_puts(out, "&amp;from=");
            html_param(out, from);
        }
        buf_puts(out, "\">");
    }
    html_cut(out, r->service, NAME_CHARS);
    buf_puts(out, is_link ? "</a></th>" : "</th>");
    buf_puts(out, "<td data-name=\"New version\">");
    put_version(out, r->version[SIDE_NEW]);
    buf_puts(out, "</td><td data-name=\"Before\">");
    put_version(out, r->version[SIDE_BASE]);
    buf_puts(out, "</td><td data-name=\"Since\">");
    html_time(out, r->time_ms * NS_PER_MS);
    buf_puts(out, "</td></tr>\n");
}

static void put_rollouts(struct exchange *x, const struct changes_page *p)
{
    struct buf *out = &x->reply;
    size_t limit = request_param(x->request, "limit").n > 0 ? p->asked.limit : REPORT_LIMIT_MAX;
    if (p->rollouts.n == 0) {
        buf_puts(out,
                 "<div class=\"panel\" id=\"empty\"><h2>No new version</h2><p>In this range no "
                 "service has changed its version. A version is the value of a label such as "
                 "<code>version</code>; name a service to compare other versions.</p></div>\n");
        return;
    }
    buf_puts(out, "<div class=\"panel\"><table class=\"wrap overview\"><caption>Services whose "
                  "version changed, newest first</caption><thead><tr><th scope=\"col\">Service</th>"
                  "<th scope=\"col\">New version</th><th scope=\"col\">Before</th>"
                  "<th scope=\"col\">Since (UTC)</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < p->rollouts.n && i < limit; i++) {
        put_rollout(x, &p->rollouts.at[i]);
    }
    buf_puts(out, "</tbody></table></div>\n");
    if (p->rollouts.n > limit) {
        buf_printf(out, "<p class=\"hint\">%zu more services changed their version.</p>\n",
                   p->rollouts.n - limit);
    }
}

/* ---- one service ----------------------------------------------------------------------------- */

static void put_rate(struct buf *out, const struct changes_page *p, double value)
{
    const struct profile_type *type = &p->asked.question.type;
    rate_put(out, value * rate_factor(type), rate_unit_of(type));
}

static void put_side(struct buf *out, const char *name, const struct changes_side *side)
{
    buf_printf(out, "<div><b>");
    if (side->version.n > 0) {
        html_cut(out, side->version, VERSION_CHARS);
    } else {
        buf_puts(out, "all versions");
    }
    buf_printf(out, "</b><span>%s: %zu instance%s, %zu profiles<br>", name, side->instances,
               side->instances == 1 ? "" : "s", side->profiles);
    html_time(out, side->from_ms * NS_PER_MS);
    buf_puts(out, " to ");
    html_time(out, side->until_ms * NS_PER_MS);
    buf_puts(out, "</span></div>");
}

static void put_cards(struct buf *out, const struct changes_page *p)
{
    const struct changes *c = &p->changes;
    const struct estimate *total = &c->verdicts.total;
    buf_puts(out, "<div class=\"cards sides\">");
    put_side(out, "Base", &c->side[SIDE_BASE]);
    put_side(out, "New", &c->side[SIDE_NEW]);
    buf_puts(out, "<div><b>");
    put_rate(out, p, total->base);
    buf_puts(out, " → ");
    put_rate(out, p, total->now);
    buf_puts(out, "</b><span>an instance, all functions; moves with the load");
    if (isfinite(total->low)) {
        buf_puts(out, "<br>difference at 95 %: ");
        put_rate(out, p, total->low);
        buf_puts(out, " to ");
        put_rate(out, p, total->high);
    }
    buf_puts(out, "</span></div></div>\n");
}

/* Returns the place of an effect on the axis. */
static double place(const struct changes_page *p, double effect)
{
    double at = p->most > 0 ? effect / p->most : 0;
    at = at < -1 ? -1 : at > 1 ? 1 : at;
    return BAR_WIDTH / 2 + BAR_HALF * at;
}

/* Draws an effect as a bar from the middle, with its interval as a line. */
static void put_bar(struct buf *out, const struct changes_page *p, const struct cost_change *c)
{
    double middle = BAR_WIDTH / 2;
    double end = place(p, c->effect);
    buf_printf(out,
               "<svg class=\"effect\" viewBox=\"0 0 %.0f 16\" width=\"%.0f\" height=\"16\" "
               "aria-hidden=\"true\"><line class=\"axis\" x1=\"%.1f\" y1=\"0\" x2=\"%.1f\" "
               "y2=\"16\"/><rect class=\"%s\" x=\"%.1f\" y=\"4\" width=\"%.1f\" height=\"8\"/>",
               BAR_WIDTH, BAR_WIDTH, middle, middle, c->effect > 0 ? "more" : "less",
               end < middle ? end : middle, fabs(end - middle));
    if (isfinite(c->effect_low)) {
        double low = place(p, c->effect_low);
        double high = place(p, c->effect_high);
        buf_printf(out, "<path class=\"interval\" d=\"M%.1f 4V12M%.1f 8H%.1fM%.1f 4V12\"/>", low,
                   low, high, high);
    }
    buf_puts(out, "</svg>");
}

static void put_effect(struct buf *out, const struct changes_page *p, const struct cost_change *c)
{
    buf_printf(out, "<td class=\"change\" data-name=\"Change\"><span>%+.2f %%</span> ",
               100 * c->effect);
    put_bar(out, p, c);
    if (isfinite(c->effect_low)) {
        buf_printf(out, "<div class=\"hint\">%+.2f to %+.2f %%</div>", 100 * c->effect_low,
                   100 * c->effect_high);
    }
    buf_puts(out, "</td>");
}

static void put_function(struct buf *out, const struct changes_page *p,
                         const struct function_change *f)
{
    const struct cost_change *self = &f->cost[COST_SELF];
    const struct cost_change *total = &f->cost[COST_TOTAL];
    /* A function whose total alone has changed is shown by its total. */
    const struct cost_change *c = total->changed && !self->changed ? total : self;
    const char *verdict = !c->changed ? "no verdict" : c->effect > 0 ? "costs more" : "costs less";
    buf_printf(out, "<tr><th scope=\"row\" class=\"service\">");
    html_cut(out, p->changes.names[f->index], NAME_CHARS);
    buf_printf(out,
               "<div class=\"hint\">%s</div></th><td data-name=\"Verdict\" class=\"%s\">%s</td>",
               c == total ? "with what it calls" : "itself",
               !c->changed     ? "muted"
               : c->effect > 0 ? "more"
                               : "less",
               verdict);
    put_effect(out, p, c);
    buf_printf(out, "<td class=\"num\" data-name=\"Share\">%.2f → %.2f %%</td>",
               100 * c->share.base, 100 * c->share.now);
    buf_puts(out, "<td class=\"num\" data-name=\"Rate\">");
    put_rate(out, p, c->rate.base);
    buf_puts(out, " → ");
    put_rate(out, p, c->rate.now);
    if (isfinite(c->rate.low)) {
        buf_puts(out, "<div class=\"hint\">difference ");
        put_rate(out, p, c->rate.low);
        buf_puts(out, " to ");
        put_rate(out, p, c->rate.high);
        buf_puts(out, "</div>");
    }
    buf_puts(out, "</td></tr>\n");
}

static void put_table(struct buf *out, const struct changes_page *p)
{
    const struct verdicts *v = &p->changes.verdicts;
    size_t n = v->n < p->asked.limit ? v->n : p->asked.limit;
    buf_puts(out, "<div class=\"panel\"><table class=\"wrap overview changes\"><caption>Functions, "
                  "those with a verdict first. Change: part of the base's total, at the same load; "
                  "the line is its interval at 95 %</caption><thead><tr><th scope=\"col\">Function"
                  "</th><th scope=\"col\">Verdict</th><th scope=\"col\">Change</th>"
                  "<th scope=\"col\">Share</th><th scope=\"col\">Rate of an instance</th></tr>"
                  "</thead><tbody>\n");
    for (size_t i = 0; i < n; i++) {
        put_function(out, p, &v->at[i]);
    }
    buf_puts(out, "</tbody></table></div>\n");
    if (v->n > n) {
        buf_printf(out, "<p class=\"hint\">%zu more functions are left out.</p>\n", v->n - n);
    }
}

static void put_flame_link(struct buf *out, const struct changes_page *p)
{
    struct buf link;
    buf_init(&link, LINK_BYTES);
    changes_link(&p->asked.question, &p->changes, &link);
    if (buf_ok(&link) && link.len <= LINK_MAX) {
        buf_puts(out, "<p><a class=\"button\" id=\"flame\" href=\"profiles");
        html_text(out, (struct sv){link.data, link.len});
        buf_puts(out, "\">Flame graph of the difference</a></p>\n");
    }
    buf_done(&link);
}

static void put_service(struct exchange *x, struct changes_page *p)
{
    struct buf *out = &x->reply;
    const struct changes *c = &p->changes;
    const char *sentence = changes_sentence(c, p->v.arena);
    for (size_t i = 0; i < c->verdicts.n && i < p->asked.limit; i++) {
        const struct function_change *f = &c->verdicts.at[i];
        const struct cost_change *self = &f->cost[COST_SELF];
        double size = fmax(
            fabs(self->effect),
            isfinite(self->effect_low) ? fmax(fabs(self->effect_low), fabs(self->effect_high)) : 0);
        p->most = fmax(p->most, size);
    }
    buf_printf(out, "<p class=\"panel verdict\" id=\"verdict\" data-state=\"%s\">",
               changes_word(c));
    html_text(out, sv_from(sentence == NULL ? "" : sentence));
    buf_puts(out, "</p>\n");
    if (c->state == CHANGES_COMPARED) {
        put_cards(out, p);
        put_flame_link(out, p);
        put_table(out, p);
    }
}

/* ---- the page -------------------------------------------------------------------------------- */

static bool compute(struct changes_page *p, const struct exchange *x, struct err *err)
{
    const struct changes_question *q = &p->asked.question;
    if (!view_begin(&p->v, x, err) ||
        !changes_asked_read(&p->asked, x->request, &p->v.query, err)) {
        return false;
    }
    return q->service.n > 0
               ? changes_find(&p->v.query, q, &p->changes, err)
               : changes_rollouts(&p->v.query, q->from_ms, q->until_ms, &p->rollouts, err);
}

void page_changes(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct changes_page p = {.most = 0};
    struct buf *out = &x->reply;
    html_begin(x, "Changes", "changes");
    bool ok = compute(&p, x, &err);
    buf_puts(out, "<h1>What changed");
    if (p.asked.question.service.n > 0) {
        buf_puts(out, " in ");
        html_cut(out, p.asked.question.service, NAME_CHARS);
    }
    buf_puts(out, "</h1>\n");
    put_form(x);
    if (!ok) {
        x->status = view_status(&err);
        buf_puts(out, "<p class=\"panel bad\" id=\"error\">");
        html_text(out, sv_from(err.msg));
        buf_puts(out, "</p>\n");
    } else if (p.asked.question.service.n > 0) {
        put_service(x, &p);
    } else {
        put_rollouts(x, &p);
    }
    changes_asked_done(&p.asked);
    view_done(&p.v);
    html_end(x);
}
