#include "pages/v1_profiles.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pages/timeline.h"
#include "pprof/gzip.h"
#include "server/routes.h"

#define JSON "application/json"
#define ROWS_DEFAULT 100
#define ROWS_MAX 100000
#define NAME_MAX_BYTES ((size_t)1 << 20)

/* ---- answers --------------------------------------------------------------------------------- */

void v1_fail(struct exchange *x, const struct err *err)
{
    buf_clear(&x->reply);
    x->status = view_status(err);
    x->content_type = JSON;
    buf_puts(&x->reply, "{");
    json_member("error", sv_from(err->msg), &x->reply);
    buf_puts(&x->reply, "}\n");
}

static void finish(struct exchange *x)
{
    x->content_type = JSON;
    buf_puts(&x->reply, "\n");
    buf_puts(&x->headers, "Cache-Control: no-store\r\n");
    exchange_deflate(x);
}

/* Reads the parameters, calls a function that writes the response, and answers with its error if it
 * fails. choose: missing parameters get the default choice. */
static void answer(struct exchange *x, bool choose,
                   bool (*put)(struct exchange *x, struct view *v, struct err *err))
{
    struct err err = ERR_INIT;
    struct view v;
    bool ok = view_read(&v, x, &err);
    if (ok && choose && !view_choose(&v, &err)) {
        ok = false;
        if (err.kind == ERR_NONE) {
            err_set(&err, ERR_REFUSED, "there is no profile in this range");
        }
    }
    if (!ok || !put(x, &v, &err)) {
        v1_fail(x, &err);
    }
    view_done(&v);
}

static void put_strings(const char *key, const struct query_strings *list, struct buf *out)
{
    buf_puts(out, "{");
    json_key(key, out);
    buf_puts(out, "[");
    for (size_t i = 0; i < list->n; i++) {
        buf_puts(out, i > 0 ? "," : "");
        json_quote(list->at[i], out);
    }
    buf_puts(out, "]}");
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool put_services(struct exchange *x, struct view *v, struct err *err)
{
    struct query_strings list;
    if (!view_services(v, &v->now, &list, err)) {
        return false;
    }
    put_strings("services", &list, &x->reply);
    finish(x);
    return true;
}

void v1_services(struct exchange *x)
{
    answer(x, false, put_services);
}

static bool put_types(struct exchange *x, struct view *v, struct err *err)
{
    struct query_strings list;
    if (!view_types(v, &v->now, &list, err)) {
        return false;
    }
    struct buf *out = &x->reply;
    buf_puts(out, "{\"types\":[");
    for (size_t i = 0; i < list.n; i++) {
        struct profile_type type;
        if (!profile_type_parse(list.at[i], &type, err)) {
            return false;
        }
        buf_puts(out, i > 0 ? ",{" : "{");
        json_member("id", list.at[i], out);
        json_member("name", type.name, out);
        json_member("sampleType", type.sample_type, out);
        json_member("sampleUnit", type.sample_unit, out);
        buf_puts(out, "}");
    }
    buf_puts(out, "]}");
    finish(x);
    return true;
}

void v1_types(struct exchange *x)
{
    answer(x, false, put_types);
}

static bool put_labels(struct exchange *x, struct view *v, struct err *err)
{
    struct sv name = request_param(x->request, "name");
    struct query_range range = view_range(&v->now);
    struct query_strings list;
    bool ok = name.n > 0 ? query_label_values(&v->query, &range, name, &list, err)
                         : query_label_names(&v->query, &range, &list, err);
    if (ok) {
        put_strings(name.n > 0 ? "values" : "labels", &list, &x->reply);
        finish(x);
    }
    return ok;
}

void v1_labels(struct exchange *x)
{
    answer(x, false, put_labels);
}

/* ---- flame graph ----------------------------------------------------------------------------- */

/* Writes a JSON string in which "<" is an escape, so that no "</script>" ends the element early. */
static void put_name(struct sv name, struct buf *out)
{
    struct buf text;
    buf_init(&text, NAME_MAX_BYTES);
    json_quote(name, &text);
    const char *rest = text.data;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '<') {
            buf_append(out, rest, (size_t)(text.data + i - rest));
            buf_puts(out, "\\u003c");
            rest = text.data + i + 1;
        }
    }
    buf_append(out, rest, (size_t)(text.data + text.len - rest));
    if (!buf_ok(&text)) {
        buf_puts(out, "\"?\"");
    }
    buf_done(&text);
}

static void put_level(const int64_t *at, size_t n, struct buf *out)
{
    buf_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, i > 0 ? ",%" PRId64 : "%" PRId64, at[i]);
    }
    buf_puts(out, "]");
}

void v1_put_flamegraph(const struct view *v, const struct flamegraph *g, struct buf *out)
{
    buf_printf(out, "{\"diff\":%s,\"unit\":", v->is_diff ? "true" : "false");
    put_name(v->profile_type.sample_unit, out);
    buf_printf(out,
               ",\"total\":%" PRId64 ",\"maxSelf\":%" PRId64 ",\"left\":%" PRId64
               ",\"right\":%" PRId64 ",\"names\":[",
               g->total, g->max_self, g->left, g->right);
    for (size_t i = 0; i < g->n_names; i++) {
        buf_puts(out, i > 0 ? "," : "");
        put_name(g->names[i], out);
    }
    buf_puts(out, "],\"levels\":[");
    for (size_t i = 0; i < g->n_levels; i++) {
        buf_puts(out, i > 0 ? "," : "");
        put_level(g->levels[i].at, g->levels[i].n, out);
    }
    buf_puts(out, "]}");
}

static bool put_flamegraph(struct exchange *x, struct view *v, struct err *err)
{
    struct flamegraph g;
    struct tree *now = view_tree(v, &v->now, err);
    struct tree *base = now != NULL && v->is_diff ? view_tree(v, &v->base, err) : NULL;
    bool ok = now != NULL && (!v->is_diff || base != NULL) &&
              (v->is_diff ? tree_diff(base, now, v->max_nodes, v->arena, &g, err)
                          : tree_flamegraph(now, v->max_nodes, v->arena, &g, err));
    if (ok) {
        v1_put_flamegraph(v, &g, &x->reply);
        finish(x);
    }
    tree_free(now);
    tree_free(base);
    return ok;
}

void v1_flamegraph(struct exchange *x)
{
    answer(x, true, put_flamegraph);
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool put_functions(struct exchange *x, struct view *v, struct err *err)
{
    uint64_t limit = ROWS_DEFAULT;
    struct sv text = request_param(x->request, "limit");
    if (text.n > 0 && !parse_u64(text, ROWS_MAX, &limit)) {
        return err_set(err, ERR_INPUT, "\"limit\": expected a number up to %d", ROWS_MAX);
    }
    struct tree_function *rows;
    size_t n;
    struct tree *t = view_tree(v, &v->now, err);
    bool ok = t != NULL && tree_functions(t, v->arena, &rows, &n, err);
    if (ok) {
        struct buf *out = &x->reply;
        buf_puts(out, "{");
        json_member("unit", v->profile_type.sample_unit, out);
        buf_printf(out, ",\"total\":%" PRId64 ",\"functions\":[", tree_total(t));
        for (size_t i = 0; i < n && i < limit; i++) {
            buf_puts(out, i > 0 ? ",{" : "{");
            json_member("name", rows[i].name, out);
            buf_printf(out, ",\"self\":%" PRId64 ",\"total\":%" PRId64 "}", rows[i].self,
                       rows[i].total);
        }
        buf_puts(out, "]}");
        finish(x);
    }
    tree_free(t);
    return ok;
}

void v1_top(struct exchange *x)
{
    answer(x, true, put_functions);
}

/* ---- timeline -------------------------------------------------------------------------------- */

static bool put_timeline(struct exchange *x, struct view *v, struct err *err)
{
    struct query_range range = view_range(&v->now);
    if (v->is_diff && v->base.from_ms < range.start_ms) {
        range.start_ms = v->base.from_ms;
    }
    if (v->is_diff && v->base.until_ms > range.end_ms) {
        range.end_ms = v->base.until_ms;
    }
    int64_t step_ms = timeline_step_ms(range.start_ms, range.end_ms);
    struct query_steps steps = {.step_s = (double)step_ms / (double)MS_PER_S,
                                .aggregation = QUERY_SUM};
    struct query_stacks all = {.n_call_site = 0};
    struct query_time_series_list list;
    struct timeline t;
    if (!timeline_make(v, &t, err) ||
        !query_time_series(&v->query, &range, &v->profile_type, &steps, &all, &list, err)) {
        return false;
    }
    struct buf *out = &x->reply;
    buf_printf(out, "{\"from\":%" PRId64 ",\"until\":%" PRId64 ",\"stepMs\":%" PRId64 ",\"unit\":",
               range.start_ms, range.end_ms, step_ms);
    json_quote(v->profile_type.sample_unit, out);
    buf_puts(out, ",\"points\":[");
    for (size_t i = 0; list.n > 0 && i < list.at[0].n_points; i++) {
        char value[NUM_TEXT_MAX];
        num_format(list.at[0].points[i].value, value);
        buf_printf(out, "%s[%" PRId64 ",%s]", i > 0 ? "," : "", list.at[0].points[i].time_ms,
                   value);
    }
    buf_puts(out, "]");
    timeline_put_json(&t, out);
    buf_puts(out, "}");
    finish(x);
    return true;
}

void v1_timeline(struct exchange *x)
{
    answer(x, true, put_timeline);
}

/* ---- pprof ----------------------------------------------------------------------------------- */

static bool put_pprof(struct exchange *x, struct view *v, struct err *err)
{
    struct query_range range = view_range(&v->now);
    struct query_profile_options all = {.max_nodes = 0};
    struct buf plain;
    struct sv packed = SV("");
    buf_init(&plain, x->bytes_max);
    bool ok = query_profile(&v->query, &range, &v->profile_type, &all, &plain, err);
    if (ok && plain.len == 0) {
        ok = err_set(err, ERR_REFUSED, "there is no profile in this range");
    }
    struct scratch *s = ok ? scratch_new() : NULL;
    if (ok && (s == NULL || !gzip_deflate(s, (struct sv){plain.data, plain.len}, &packed))) {
        ok = err_memory(err);
    }
    if (ok) {
        x->content_type = "application/octet-stream";
        buf_puts(&x->headers, "Content-Disposition: attachment; filename=\"profile.pb.gz\"\r\n");
        buf_append(&x->reply, packed.p, packed.n);
    }
    scratch_free(s);
    buf_done(&plain);
    return ok;
}

void v1_pprof(struct exchange *x)
{
    answer(x, true, put_pprof);
}
