#include "pages/profiles.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/served.h"
#include "pages/html.h"
#include "pages/label_list.h"
#include "pages/svg.h"
#include "pages/timeline.h"
#include "pages/v1_profiles.h"
#include "pages/value.h"
#include "pages/view.h"
#include "server/routes.h"

/* Number of rows in the table that is shown without JavaScript. */
#define ROWS 50

/* The graph to draw, and the trees that own its names. */
struct drawing {
    struct tree *now;
    struct tree *base;
    struct flamegraph graph;
    struct timeline timeline;
};

/* ---- the form -------------------------------------------------------------------------------- */

/* Writes the options of a choice. The chosen value is always among them, even if the range has no
 * such profile. */
static void put_options(struct buf *out, const struct query_strings *list, struct sv chosen)
{
    bool is_there = false;
    for (size_t i = 0; i < list->n; i++) {
        bool is_chosen = sv_eq(list->at[i], chosen);
        is_there = is_there || is_chosen;
        buf_puts(out, is_chosen ? "<option selected>" : "<option>");
        html_text(out, list->at[i]);
        buf_puts(out, "</option>");
    }
    if (!is_there && chosen.n > 0) {
        buf_puts(out, "<option selected>");
        html_text(out, chosen);
        buf_puts(out, "</option>");
    }
}

/* Writes an option for the id of a type: "process_cpu · cpu (nanoseconds)". */
static void put_type_option(struct buf *out, struct sv id, bool is_chosen)
{
    struct profile_type type;
    if (!profile_type_parse(id, &type, NULL)) {
        return;
    }
    buf_puts(out, "<option value=\"");
    html_text(out, id);
    buf_puts(out, is_chosen ? "\" selected>" : "\">");
    html_text(out, type.name);
    buf_puts(out, " · ");
    html_text(out, type.sample_type);
    buf_puts(out, " (");
    html_text(out, type.sample_unit);
    buf_puts(out, ")</option>");
}

static void put_type_options(struct buf *out, const struct query_strings *list, struct sv chosen)
{
    bool is_there = false;
    for (size_t i = 0; i < list->n; i++) {
        bool is_chosen = sv_eq(list->at[i], chosen);
        is_there = is_there || is_chosen;
        put_type_option(out, list->at[i], is_chosen);
    }
    if (!is_there) {
        put_type_option(out, chosen, true);
    }
}

static void put_input(struct buf *out, const char *name, const char *label, const char *kind,
                      const char *hint, struct sv value)
{
    buf_printf(out, "<label class=\"%s\">%s <input name=\"%s\" placeholder=\"%s\" value=\"", kind,
               label, name, hint);
    html_text(out, value);
    buf_printf(out, "\"%s autocomplete=\"off\" spellcheck=\"false\"></label>",
               sv_eq_str(sv_from(kind), "half") ? " class=\"time\" list=\"times\"" : "");
}

/* Writes service, type and labels as parameters of a URL, escaped for HTML. */
static void put_choice(struct buf *out, const struct view *v)
{
    buf_puts(out, "service=");
    html_param(out, v->now.service);
    buf_puts(out, "&amp;type=");
    html_param(out, v->type);
    buf_puts(out, "&amp;labels=");
    html_param(out, v->now.labels);
}

static void put_quick(struct buf *out, const struct view *v)
{
    static const struct {
        const char *from;
        const char *text;
    } ranges[] = {{"now-5m", "5 minutes"}, {"now-15m", "15 minutes"}, {"now-1h", "1 hour"},
                  {"now-6h", "6 hours"},   {"now-24h", "24 hours"},   {"now-7d", "7 days"}};
    buf_puts(out, "<div class=\"quick\"><span class=\"muted\">Last</span>");
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        buf_puts(out, " <a href=\"?");
        put_choice(out, v);
        buf_printf(out, "&amp;from=%s%s\">%s</a>", ranges[i].from,
                   v->is_diff ? "&amp;compare=1" : "", ranges[i].text);
    }
    buf_puts(out, "</div>");
}

static void put_base(struct buf *out, const struct view *v)
{
    buf_printf(out,
               "<details class=\"base\"%s><summary>Compare</summary><div class=\"fields\">"
               "<label>Difference <select name=\"compare\"><option value=\"\">no</option>"
               "<option value=\"1\"%s>yes</option></select></label>",
               v->is_diff ? " open" : "", v->is_diff ? " selected" : "");
    put_input(out, "base_from", "Before: from", "half", "the range before", v->base.from);
    put_input(out, "base_until", "until", "half", "of the same length", v->base.until);
    put_input(out, "base_labels", "Before: labels", "wide", "the same",
              sv_eq(v->base.labels, v->now.labels) ? SV("") : v->base.labels);
    buf_puts(out, "</div></details>");
}

static bool put_form(struct exchange *x, const struct view *v, struct err *err)
{
    struct buf *out = &x->reply;
    struct query_strings services;
    struct query_strings types;
    if (!view_services(v, &v->now, &services, err) || !view_types(v, &v->now, &types, err)) {
        return false;
    }
    buf_puts(out, "<form id=\"ask\" class=\"ask\" method=\"get\"><div class=\"fields\">"
                  "<label>Service <select name=\"service\">");
    put_options(out, &services, v->now.service);
    buf_puts(out, "</select></label><label>Profile <select name=\"type\">");
    put_type_options(out, &types, v->type);
    buf_puts(out, "</select></label>");
    put_input(out, "from", "From", "half", "now-1h", v->now.from);
    put_input(out, "until", "Until", "half", "now", v->now.until);
    put_input(out, "labels", "Labels", "wide", "pod=&quot;cart-1&quot;, zone=~&quot;eu-.*&quot;",
              v->now.labels);
    buf_puts(out, "<button class=\"main\">Show</button></div>"
                  "<datalist id=\"times\"><option>now-5m<option>now-15m<option>now-1h"
                  "<option>now-6h<option>now-24h<option>now-7d<option>now</datalist>");
    put_quick(out, v);
    put_base(out, v);
    buf_puts(out, "</form>\n");
    label_list_put(v, out);
    return true;
}

/* ---- without JavaScript ---------------------------------------------------------------------- */

static bool put_static_table(struct exchange *x, const struct view *v, const struct tree *t,
                             struct err *err)
{
    struct tree_function *rows;
    size_t n;
    struct buf *out = &x->reply;
    struct sv unit = v->profile_type.sample_unit;
    if (!tree_functions(t, v->arena, &rows, &n, err)) {
        return false;
    }
    buf_puts(out, "<h2>Functions</h2><div class=\"tablebox\"><table><thead><tr><th>Function</th>"
                  "<th class=\"num\">Self</th><th class=\"num\">Total</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < n && i < ROWS; i++) {
        buf_puts(out, "<tr><td class=\"name\">");
        html_name(out, rows[i].name);
        buf_puts(out, "</td><td class=\"num\">");
        value_put(out, rows[i].self, unit);
        buf_puts(out, "</td><td class=\"num\">");
        value_put(out, rows[i].total, unit);
        buf_puts(out, " (");
        value_put_share(out, rows[i].total, tree_total(t));
        buf_puts(out, ")</td></tr>\n");
    }
    buf_puts(out, "</tbody></table></div>");
    if (n > ROWS) {
        buf_printf(out, "<p class=\"hint\">The first %d of %zu functions.</p>", ROWS, n);
    }
    return true;
}

static bool put_static(struct exchange *x, const struct view *v, const struct drawing *d,
                       struct err *err)
{
    struct buf *out = &x->reply;
    buf_puts(out, "<section id=\"static\" class=\"panel\">\n");
    timeline_put(&d->timeline, out);
    if (v->is_diff) {
        buf_puts(out, "<p class=\"hint\">Before → after; orange is more, blue is less.</p>");
    }
    svg_flamegraph(out, &d->graph, v->is_diff, v->profile_type.sample_unit);
    bool ok = put_static_table(x, v, d->now, err);
    buf_puts(out, "</section>\n");
    return ok;
}

/* ---- with JavaScript ------------------------------------------------------------------------- */

static void put_times(struct buf *out, const struct view *v)
{
    buf_printf(out, "data-from=\"%" PRId64 "\" data-until=\"%" PRId64 "\"", v->now.from_ms,
               v->now.until_ms);
    if (v->is_diff) {
        buf_printf(out, " data-base-from=\"%" PRId64 "\" data-base-until=\"%" PRId64 "\"",
                   v->base.from_ms, v->base.until_ms);
    }
}

static void put_download(struct buf *out, const struct view *v)
{
    buf_puts(out, "<a class=\"button\" href=\"api/v1/pprof?");
    put_choice(out, v);
    buf_printf(out, "&amp;from=%" PRId64 "&amp;until=%" PRId64 "\" download>Download pprof</a>",
               v->now.from_ms, v->now.until_ms);
}

static void put_tools(struct buf *out, const struct view *v)
{
    buf_puts(out, "<div class=\"tools\"><input id=\"search\" type=\"search\" "
                  "placeholder=\"Search: text or /regex/\" aria-label=\"Search functions\">"
                  "<output id=\"found\"></output>"
                  "<button id=\"reset\" type=\"button\">Reset</button><span class=\"group\">"
                  "<button type=\"button\" data-view=\"table\">Table</button>"
                  "<button type=\"button\" data-view=\"both\">Both</button>"
                  "<button type=\"button\" data-view=\"flame\">Flame graph</button></span>");
    if (v->is_diff) {
        buf_puts(out, "<span class=\"legend\">less <i></i> more</span>");
    }
    buf_puts(out, "<span class=\"push\"></span>"
                  "<button id=\"copy-link\" type=\"button\">Copy link</button>"
                  "<button id=\"copy-pprof\" type=\"button\">Copy go tool pprof</button>");
    put_download(out, v);
    buf_puts(out, "</div><textarea id=\"copied\" rows=\"2\" readonly hidden></textarea>");
}

static void put_workbench(struct exchange *x, const struct view *v, const struct drawing *d)
{
    struct buf *out = &x->reply;
    buf_puts(out, "<div id=\"workbench\" hidden>\n<section class=\"panel\">");
    if (v->is_diff) {
        buf_puts(out, "<div class=\"tools\"><span class=\"hint\">Drag chooses the range</span>"
                      "<span class=\"group\"><button type=\"button\" data-chooses=\"base\" "
                      "aria-pressed=\"false\">before</button><button type=\"button\" "
                      "data-chooses=\"this\" aria-pressed=\"true\">after</button></span></div>");
    }
    buf_puts(out, "<div id=\"timeline\" ");
    put_times(out, v);
    buf_puts(out, "></div></section>\n<section class=\"panel\">");
    put_tools(out, v);
    buf_printf(out,
               "<p id=\"note\" class=\"mono\" aria-live=\"polite\"></p>\n<div class=\"both\">"
               "<div class=\"functions\"><div class=\"tablebox\"><table id=\"table\"><thead>"
               "</thead><tbody></tbody></table></div><p id=\"rows\" class=\"hint\"></p>"
               "<div id=\"divider\" role=\"separator\" aria-orientation=\"vertical\" "
               "tabindex=\"0\" aria-valuenow=\"0\" aria-label=\"Width of the table\"></div></div>"
               "<div class=\"flames\"><div id=\"flame\" class=\"scroll\" data-nodes=\"%" PRId64
               "\"></div><div id=\"sandwich\" hidden><div id=\"callers\" class=\"scroll\"></div>"
               "<p class=\"split\"><button id=\"unsandwich\" type=\"button\" "
               "aria-label=\"Back to the whole graph\">✕</button> "
               "<span id=\"sandwich-name\"></span></p>"
               "<div id=\"callees\" class=\"scroll\"></div></div>"
               "<p class=\"hint\">Click zooms, right click shows callers and callees. Keys: / "
               "search, arrows, Enter, s, Esc.</p></div></div>\n</section></div>\n"
               "<script type=\"application/json\" id=\"data\">",
               v->max_nodes);
    v1_put_flamegraph(v, &d->graph, out);
    buf_puts(out, "</script>\n<script type=\"module\" src=\"assets/profiles.js\"></script>\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

static bool draw(const struct view *v, struct drawing *d, struct err *err)
{
    if (!timeline_make(v, &d->timeline, err)) {
        return false;
    }
    d->now = view_tree(v, &v->now, err);
    if (d->now == NULL) {
        return false;
    }
    if (!v->is_diff) {
        return tree_flamegraph(d->now, v->max_nodes, v->arena, &d->graph, err);
    }
    d->base = view_tree(v, &v->base, err);
    return d->base != NULL && tree_diff(d->base, d->now, v->max_nodes, v->arena, &d->graph, err);
}

/* Writes which side of a difference has no profile. */
static void put_empty_side(struct buf *out, const struct drawing *d)
{
    bool is_base = d->base != NULL && tree_total(d->base) == 0;
    if (is_base || tree_total(d->now) == 0) {
        buf_printf(out,
                   "<p class=\"panel\" id=\"empty-side\">No profiles in the range %s: all of "
                   "the other one is shown as a difference.</p>\n",
                   is_base ? "before" : "after");
    }
}

static bool put_profiles(struct exchange *x, struct view *v, struct err *err)
{
    struct drawing d = {.now = NULL};
    bool ok = put_form(x, v, err) && draw(v, &d, err);
    if (ok && tree_total(d.now) == 0 && (d.base == NULL || tree_total(d.base) == 0)) {
        buf_puts(&x->reply, "<p class=\"panel\" id=\"empty\">No profiles in this range. Choose a "
                            "longer range, another type or fewer labels.</p>\n");
    } else if (ok) {
        put_empty_side(&x->reply, &d);
        timeline_put_versions(&d.timeline, &x->reply);
        put_workbench(x, v, &d);
        ok = put_static(x, v, &d, err);
    }
    tree_free(d.now);
    tree_free(d.base);
    return ok;
}

/* Answers that there is nothing to draw, below the form if its values may be the reason. */
static bool put_nothing(struct exchange *x, const struct view *v, struct err *err)
{
    bool is_asked = v->now.service.n > 0 || v->now.labels.n > 0 || v->now.from.n > 0;
    if (is_asked && !put_form(x, v, err)) {
        return false;
    }
    buf_printf(&x->reply,
               "<div class=\"panel\" id=\"empty\"><h2>%s</h2><p>In this range "
               "nothing has been stored. The first profiles come one interval after the start; "
               "<a href=\"targets\">Targets</a> shows whether they are scraped, and when. "
               "<a href=\"\">Look again</a>.</p></div>\n",
               is_asked ? "No profiles in this range" : "No profile yet");
    return true;
}

static void put_no_store(struct buf *out)
{
    buf_puts(
        out,
        "<div class=\"panel\" id=\"empty\"><h2>Profiles are not kept here</h2><p>This profpull "
        "sends its profiles elsewhere. To see them on this page, keep them too:</p>"
        "<pre>write:\n  - name: local\n    url: store:///var/lib/profpull</pre>"
        "<p>What it does is on <a href=\"targets\">Targets</a> and "
        "<a href=\"destinations\">Destinations</a>.</p></div>\n");
}

void page_profiles(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct view v;
    html_begin(x, "Profiles", "profiles");
    buf_puts(&x->reply, "<h1 class=\"unseen\">Profiles</h1>\n");
    bool ok = view_read(&v, x, &err);
    if (ok && !view_choose(&v, &err)) {
        ok = err.kind == ERR_NONE && put_nothing(x, &v, &err);
    } else if (ok) {
        ok = put_profiles(x, &v, &err);
    }
    if (!ok && x->options->served->store == NULL) {
        put_no_store(&x->reply);
    } else if (!ok) {
        x->status = view_status(&err);
        buf_puts(&x->reply, "<p class=\"panel bad\" id=\"error\">");
        html_text(&x->reply, sv_from(err.msg));
        buf_puts(&x->reply, "</p>\n");
    }
    view_done(&v);
    html_end(x);
}
