#include "pages/overview.h"

#include <inttypes.h>
#include <math.h>

#include "api/attime.h"
#include "api/served.h"
#include "base/ascii.h"
#include "base/clock.h"
#include "pages/chart.h"
#include "pages/html.h"
#include "pages/profiles.h"
#include "pages/rate.h"
#include "pages/service_rows.h"
#include "pages/v1_profiles.h"
#include "pages/view.h"
#include "server/routes.h"

/* Services of a page. */
#define ROWS 100
#define PAGES_MAX (SERVICE_ROWS_MAX / ROWS)
#define NAME_CHARS 200
#define VERSION_CHARS 40
/* A longer address does not fit into the head of a request. */
#define LINK_MAX (REQUEST_HEAD_MAX * 3 / 4)

const char *const overview_params[] = {"last", "find", "page", "at", NULL};

static const struct {
    const char *name;
    const char *text;
    int64_t minutes;
} ranges[] = {
    {"15m", "15 minutes", 15}, {"1h", "hour", 60}, {"6h", "6 hours", 360}, {"24h", "day", 1440}};
#define RANGES (sizeof(ranges) / sizeof(ranges[0]))
#define RANGE_DEFAULT 1

static const struct {
    const char *title;
    const char *key; /* in JSON */
    enum rate_unit unit;
} columns[SERVICE_KINDS] = {
    [SERVICE_CPU] = {"CPU", "cpuCores", RATE_CORES},
    [SERVICE_ALLOC] = {"Allocations", "allocBytesPerSecond", RATE_BYTES},
    [SERVICE_HEAP] = {"Live heap", "liveHeapBytes", RATE_LEVEL_BYTES},
    [SERVICE_GOROUTINES] = {"Goroutines", "goroutines", RATE_LEVEL_COUNT},
};

struct overview {
    size_t range;
    struct sv find; /* shown are services whose name has this text; case does not matter */
    struct sv at;   /* empty: now */
    int64_t until_ms;
    size_t page; /* from 1 on */
    struct service_rows rows;
    size_t first; /* of the rows of this page; rows.n is the number of those found */
    size_t n;
};

/* ---- parameters ------------------------------------------------------------------------------ */

static struct sv param(const struct exchange *x, const char *name)
{
    struct sv value = request_param(x->request, name);
    return value.p == NULL ? SV("") : sv_trim(value);
}

static bool read_params(struct overview *o, const struct exchange *x, struct err *err)
{
    struct sv last = param(x, "last");
    struct sv page = param(x, "page");
    uint64_t number = 1;
    o->find = param(x, "find");
    o->at = param(x, "at");
    o->range = last.n == 0 ? RANGE_DEFAULT : 0;
    while (last.n > 0 && o->range < RANGES && !sv_eq_str(last, ranges[o->range].name)) {
        o->range++;
    }
    if (o->range == RANGES) {
        o->range = RANGE_DEFAULT;
        return err_set(err, ERR_INPUT, "\"last\": expected 15m, 1h, 6h or 24h, got \"%.*s\"",
                       last.n < 32 ? (int)last.n : 32, last.p);
    }
    if (page.n > 0 && (!parse_u64(page, PAGES_MAX, &number) || number == 0)) {
        return err_set(err, ERR_INPUT, "\"page\": expected a number from 1 to %d", PAGES_MAX);
    }
    o->page = (size_t)number;
    return view_time(o->at, "at", clock_wall_ns() / NS_PER_MS, &o->until_ms, err);
}

/* ---- computing ------------------------------------------------------------------------------- */

static bool has_text(struct sv name, struct sv text)
{
    for (size_t i = 0; i + text.n <= name.n; i++) {
        size_t k = 0;
        while (k < text.n && ascii_lower(name.p[i + k]) == ascii_lower(text.p[k])) {
            k++;
        }
        if (k == text.n) {
            return true;
        }
    }
    return text.n == 0;
}

static bool compute(struct overview *o, const struct exchange *x, const struct query *q,
                    struct err *err)
{
    struct service_rows *r = &o->rows;
    int64_t length_ms = ranges[o->range].minutes * 60 * MS_PER_S;
    if (!service_rows_make(q, x->options->served->scraper, o->until_ms - length_ms, o->until_ms, r,
                           err)) {
        return false;
    }
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (has_text(r->at[i].name, o->find)) {
            r->at[n++] = r->at[i];
        }
    }
    r->n = n;
    o->first = (o->page - 1) * ROWS < n ? (o->page - 1) * ROWS : n;
    o->n = n - o->first < ROWS ? n - o->first : ROWS;
    return true;
}

/* ---- a row ----------------------------------------------------------------------------------- */

static bool fits_link(struct sv name)
{
    return html_param_size(name) <= LINK_MAX;
}

/* Appends the address of the profiles of a service, with the time of the overview. */
static void put_link(struct buf *out, const struct overview *o, const struct service_row *row,
                     enum service_kind kind)
{
    buf_puts(out, "profiles?service=");
    html_param(out, row->name);
    if (row->values[kind] != NULL) {
        buf_printf(out, "&amp;type=%s", service_kind_type(kind));
    }
    if (o->at.n > 0) {
        buf_printf(out, "&amp;from=%" PRId64 "&amp;until=%" PRId64,
                   o->until_ms - ranges[o->range].minutes * 60 * MS_PER_S, o->until_ms);
    } else {
        buf_printf(out, "&amp;from=now-%s", ranges[o->range].name);
    }
}

static void put_name(struct buf *out, const struct overview *o, const struct service_row *row)
{
    enum service_kind kind = SERVICE_CPU;
    while (kind + 1 < SERVICE_KINDS && row->values[kind] == NULL) {
        kind++;
    }
    bool is_link = fits_link(row->name);
    buf_puts(out, "<th scope=\"row\" class=\"service\">");
    if (is_link) {
        buf_puts(out, "<a href=\"");
        put_link(out, o, row, kind);
        buf_puts(out, "\">");
    }
    html_cut(out, row->name, NAME_CHARS);
    buf_puts(out, is_link ? "</a></th>" : "</th>");
}

/* Appends what a sparkline shows: "CPU, the last hour: 0.31 cores to 0.55 cores". */
static void describe(struct buf *out, const struct overview *o, const double *values,
                     enum service_kind kind)
{
    double least = (double)INFINITY;
    double most = (double)-INFINITY;
    for (size_t i = 0; i < o->rows.n_steps; i++) {
        if (!isnan(values[i])) {
            least = values[i] < least ? values[i] : least;
            most = values[i] > most ? values[i] : most;
        }
    }
    buf_printf(out, "%s, %s%s: ", columns[kind].title, o->at.n > 0 ? "" : "the last ",
               ranges[o->range].text);
    rate_put(out, least, columns[kind].unit);
    buf_puts(out, " to ");
    rate_put(out, most, columns[kind].unit);
}

static void put_kind(struct buf *out, const struct overview *o, const struct service_row *row,
                     enum service_kind kind)
{
    buf_printf(out, "<td class=\"rate\" data-name=\"%s\">", columns[kind].title);
    if (isnan(row->means[kind])) {
        buf_puts(out, "<span class=\"muted\">–</span></td>");
        return;
    }
    struct buf label;
    buf_init(&label, 256);
    describe(&label, o, row->values[kind], kind);
    buf_puts(out, "<span>");
    rate_put(out, row->means[kind], columns[kind].unit);
    buf_puts(out, "</span>");
    chart_spark(out, row->values[kind], o->rows.n_steps, label.data);
    buf_puts(out, "</td>");
    buf_done(&label);
}

static void put_targets(struct buf *out, const struct exchange *x, const struct service_row *row)
{
    /* A server for queries only has no page of targets. */
    bool is_link = (x->options->sets & ROUTE_ADMIN) != 0 && fits_link(row->name);
    buf_puts(out, "<td data-name=\"Targets\">");
    if (row->up + row->down == 0) {
        buf_puts(out, "<span class=\"muted\">–</span></td>");
        return;
    }
    if (is_link) {
        buf_puts(out, "<a href=\"targets?service=");
        html_param(out, row->name);
        buf_puts(out, "\">");
    }
    if (row->down > 0) {
        buf_printf(out, "<span class=\"bad\">%zu of %zu down</span>", row->down,
                   row->up + row->down);
    } else {
        buf_printf(out, "%zu up", row->up);
    }
    buf_puts(out, is_link ? "</a></td>" : "</td>");
}

static void put_version(struct buf *out, const struct service_row *row)
{
    buf_puts(out, "<td class=\"version\" data-name=\"Version\">");
    if (row->version.n == 0) {
        buf_puts(out, "<span class=\"muted\">–</span></td></tr>\n");
        return;
    }
    /* The page of changes compares the version with the one before. */
    bool is_link = row->version_ms > 0 && fits_link(row->name);
    if (is_link) {
        buf_puts(out, "<a class=\"mono\" href=\"changes?service=");
        html_param(out, row->name);
        buf_puts(out, "\">");
    } else {
        buf_puts(out, "<span class=\"mono\">");
    }
    html_cut(out, row->version, VERSION_CHARS);
    buf_puts(out, is_link ? "</a>" : "</span>");
    if (row->version_ms > 0) {
        buf_puts(out, "<div class=\"hint\">since ");
        html_time(out, row->version_ms * NS_PER_MS);
        buf_puts(out, ", before: <span class=\"mono\">");
        html_cut(out, row->version_before, VERSION_CHARS);
        buf_puts(out, "</span></div>");
    }
    buf_puts(out, "</td></tr>\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

/* Appends the address of another range or page of this overview. */
static void put_self(struct buf *out, const struct overview *o, size_t range, size_t page)
{
    buf_printf(out, "?last=%s", ranges[range].name);
    if (o->find.n > 0) {
        buf_puts(out, "&amp;find=");
        html_param(out, o->find);
    }
    if (o->at.n > 0) {
        buf_puts(out, "&amp;at=");
        html_param(out, o->at);
    }
    if (page > 1) {
        buf_printf(out, "&amp;page=%zu", page);
    }
}

static void put_form(struct buf *out, const struct overview *o)
{
    buf_printf(out,
               "<form class=\"ask\" method=\"get\" action=\"./\" role=\"search\">"
               "<div class=\"fields\"><input type=\"hidden\" name=\"last\" value=\"%s\">"
               "<label class=\"wide\">Service <input name=\"find\" type=\"search\" "
               "placeholder=\"a part of its name\" value=\"",
               ranges[o->range].name);
    html_text(out, o->find);
    buf_puts(out, "\" autocomplete=\"off\" spellcheck=\"false\"></label>");
    if (o->at.n > 0) {
        buf_puts(out, "<input type=\"hidden\" name=\"at\" value=\"");
        html_text(out, o->at);
        buf_puts(out, "\">");
    }
    buf_puts(out, "<button class=\"main\">Find</button></div>"
                  "<div class=\"quick\"><span class=\"muted\">Last</span>");
    for (size_t i = 0; i < RANGES; i++) {
        buf_puts(out, " <a href=\"");
        put_self(out, o, i, 1);
        buf_printf(out, "\"%s>%s</a>", i == o->range ? " aria-current=\"true\"" : "",
                   ranges[i].text);
    }
    buf_puts(out, "</div></form>\n");
}

/* Appends the sums of all services that were found. */
static void put_cards(struct buf *out, const struct overview *o)
{
    const struct service_rows *r = &o->rows;
    double sums[SERVICE_KINDS] = {0};
    size_t up = 0;
    size_t down = 0;
    for (size_t i = 0; i < r->n; i++) {
        for (size_t k = 0; k < SERVICE_KINDS; k++) {
            sums[k] += isnan(r->at[i].means[k]) ? 0 : r->at[i].means[k];
        }
        up += r->at[i].up;
        down += r->at[i].down;
    }
    buf_printf(out, "<div class=\"cards\"><div><b>%zu</b><span>%s</span></div>", r->n,
               r->n == 1 ? "service" : "services");
    for (enum service_kind k = SERVICE_CPU; k < SERVICE_KINDS; k++) {
        buf_puts(out, "<div><b>");
        rate_put(out, sums[k], columns[k].unit);
        buf_printf(out, "</b><span>%s</span></div>", columns[k].title);
    }
    if (r->has_targets) {
        buf_printf(out, "<div><b>%zu up", up);
        if (down > 0) {
            buf_printf(out, ", <span class=\"bad\">%zu down</span>", down);
        }
        buf_puts(out, "</b><span>targets</span></div>");
    }
    buf_puts(out, "</div>\n");
}

static void put_table(struct exchange *x, const struct overview *o)
{
    struct buf *out = &x->reply;
    buf_printf(out,
               "<div class=\"panel\"><table class=\"wrap overview\"><caption>Averages of %s%s, "
               "the most CPU first</caption><thead><tr><th scope=\"col\">Service</th>",
               o->at.n > 0 ? "one " : "the last ",
               o->at.n > 0 && ranges[o->range].minutes < 60 ? "quarter of an hour"
                                                            : ranges[o->range].text);
    for (enum service_kind k = SERVICE_CPU; k < SERVICE_KINDS; k++) {
        buf_printf(out, "<th scope=\"col\">%s</th>", columns[k].title);
    }
    buf_puts(out, "<th scope=\"col\">Targets</th><th scope=\"col\">Version</th></tr></thead>"
                  "<tbody>\n");
    for (size_t i = o->first; i < o->first + o->n; i++) {
        const struct service_row *row = &o->rows.at[i];
        buf_puts(out, "<tr>");
        put_name(out, o, row);
        for (enum service_kind k = SERVICE_CPU; k < SERVICE_KINDS; k++) {
            put_kind(out, o, row, k);
        }
        put_targets(out, x, row);
        put_version(out, row);
    }
    buf_puts(out, "</tbody></table></div>\n");
}

/* Appends which services are shown, and links to the others. */
static void put_notes(struct buf *out, const struct overview *o)
{
    const struct service_rows *r = &o->rows;
    if (r->n > ROWS) {
        buf_printf(out,
                   "<nav class=\"pages\" aria-label=\"Pages\"><span>Services %zu to %zu of "
                   "%zu</span>",
                   o->n > 0 ? o->first + 1 : o->first, o->first + o->n, r->n);
        if (o->page > 1) {
            buf_puts(out, " <a rel=\"prev\" href=\"");
            put_self(out, o, o->range, o->page - 1);
            buf_puts(out, "\">Previous</a>");
        }
        if (o->first + o->n < r->n) {
            buf_puts(out, " <a rel=\"next\" href=\"");
            put_self(out, o, o->range, o->page + 1);
            buf_puts(out, "\">Next</a>");
        }
        buf_puts(out, "</nav>\n");
    }
    if (r->services_left_out > 0) {
        buf_printf(out, "<p class=\"hint\">%zu services that cost less are not listed.</p>\n",
                   r->services_left_out);
    }
    if (r->is_cut) {
        buf_printf(out,
                   "<p class=\"hint\">The values do not contain all label sets: at most %d are "
                   "read.</p>\n",
                   QUERY_RATE_INSTANCES_MAX);
    }
}

static void put_nothing(struct buf *out, const struct overview *o)
{
    if (o->find.n > 0) {
        buf_puts(out, "<div class=\"panel\" id=\"empty\"><h2>No such service</h2><p>No service "
                      "with profiles or targets has \"");
        html_cut(out, o->find, NAME_CHARS);
        buf_puts(out, "\" in its name.</p></div>\n");
        return;
    }
    buf_puts(out, "<div class=\"panel\" id=\"empty\"><h2>No profile yet</h2><p>In this range "
                  "nothing has been stored. The first profiles come one interval after the start; "
                  "<a href=\"targets\">Targets</a> shows whether they are scraped, and when. "
                  "<a href=\"\">Look again</a>.</p></div>\n");
}

static void page_overview(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct overview o = {.range = RANGE_DEFAULT, .find = SV(""), .at = SV("")};
    struct view v;
    html_begin(x, "Overview", "./");
    buf_puts(&x->reply, "<h1>Services</h1>\n");
    bool ok = view_begin(&v, x, &err) && read_params(&o, x, &err) && compute(&o, x, &v.query, &err);
    put_form(&x->reply, &o);
    if (!ok) {
        x->status = view_status(&err);
        buf_puts(&x->reply, "<p class=\"panel bad\" id=\"error\">");
        html_text(&x->reply, sv_from(err.msg));
        buf_puts(&x->reply, "</p>\n");
    } else if (o.rows.n == 0) {
        put_nothing(&x->reply, &o);
    } else {
        put_cards(&x->reply, &o);
        put_table(x, &o);
        put_notes(&x->reply, &o);
    }
    view_done(&v);
    html_end(x);
}

void page_first(struct exchange *x)
{
    bool is_view = x->options->served->store == NULL;
    for (size_t i = 0; view_params[i] != NULL; i++) {
        is_view = is_view || param(x, view_params[i]).n > 0;
    }
    (is_view ? page_profiles : page_overview)(x);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_json_row(const struct service_row *row, struct buf *out)
{
    buf_puts(out, "{");
    json_member("service", row->name, out);
    for (size_t k = 0; k < SERVICE_KINDS; k++) {
        char text[NUM_TEXT_MAX];
        num_format(row->means[k], text);
        buf_printf(out, ",\"%s\":%s", columns[k].key, isnan(row->means[k]) ? "null" : text);
    }
    buf_printf(out, ",\"targets\":{\"up\":%zu,\"down\":%zu}", row->up, row->down);
    json_member("version", row->version, out);
    json_member("versionBefore", row->version_before, out);
    buf_printf(out, ",\"versionSinceMs\":%" PRId64 "}", row->version_ms);
}

void v1_overview(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct overview o = {.range = RANGE_DEFAULT};
    struct view v;
    struct buf *out = &x->reply;
    if (!view_begin(&v, x, &err) || !read_params(&o, x, &err) || !compute(&o, x, &v.query, &err)) {
        v1_fail(x, &err);
        view_done(&v);
        return;
    }
    buf_printf(out,
               "{\"from\":%" PRId64 ",\"until\":%" PRId64 ",\"found\":%zu,\"leftOut\":%zu,"
               "\"isCut\":%s,\"services\":[",
               o.rows.start_ms, o.until_ms, o.rows.n, o.rows.services_left_out,
               o.rows.is_cut ? "true" : "false");
    for (size_t i = o.first; i < o.first + o.n; i++) {
        buf_puts(out, i > o.first ? ",\n" : "\n");
        put_json_row(&o.rows.at[i], out);
    }
    buf_puts(out, "\n]}\n");
    exchange_add_partial(x);
    x->content_type = "application/json";
    buf_puts(&x->headers, "Cache-Control: no-store\r\n");
    view_done(&v);
    exchange_deflate(x);
}
