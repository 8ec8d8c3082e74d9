#include "api/render.h"

#include <inttypes.h>

#include "api/ask.h"
#include "api/attime.h"
#include "api/connect.h"
#include "api/route_errors.h"
#include "base/clock.h"
#include "store/query/query.h"
#include "store/query/tree.h"

/* Default number of nodes of a graph, which is lower than that of a flame graph. */
#define DOT_NODES_DEFAULT 100
/* Number of steps that a timeline should have: about the number of columns of a screen. */
#define TIMELINE_STEPS 1500
#define TIMELINE_STEP_MIN_MS INT64_C(15000)

/* ---- parameters ------------------------------------------------------------------------------ */

struct names {
    const char *query;
    const char *from;
    const char *until;
};

/* Reads a query, in which the type stands in the place of a metric's name. */
static bool read_query(const struct request *r, const char *name, struct ask *ret, struct err *err)
{
    struct sv text = request_param(r, name);
    struct sv id;
    if (text.n == 0) {
        return err_set(err, ERR_INPUT, "\"%s\" is required", name);
    }
    ret->selector = selector_parse(text, err);
    ret->range.selector = ret->selector;
    if (ret->selector == NULL) {
        return err_wrap(err, "failed to parse \"%s\"", name);
    }
    if (!selector_take(ret->selector, "__name__", &id)) {
        return err_set(err, ERR_INPUT, "\"%s\" must contain a profile-type selection", name);
    }
    return ask_type(ret, id, err) || err_wrap(err, "failed to parse \"%s\"", name);
}

static int64_t read_time(const struct request *r, const char *name, int64_t now_ns)
{
    return attime_read(request_param(r, name), now_ns) / NS_PER_MS;
}

static bool read_ask(const struct request *r, const struct names *names, struct ask *ret,
                     struct err *err)
{
    int64_t now_ns = clock_wall_ns();
    return read_query(r, names->query, ret, err) &&
           ask_range(ret, read_time(r, names->from, now_ns), read_time(r, names->until, now_ns),
                     err);
}

/* Reads the number of nodes; 0 if it is missing or no number. */
static int64_t read_nodes(const struct request *r)
{
    uint64_t value = 0;
    struct sv text = request_param(r, "max-nodes");
    if (text.p == NULL) {
        text = request_param(r, "maxNodes");
    }
    return parse_u64(text, INT64_MAX, &value) ? (int64_t)value : 0;
}

/* ---- flame graphs ---------------------------------------------------------------------------- */

static void write_levels(const struct flamegraph *graph, struct buf *out)
{
    buf_puts(out, "\"levels\":[");
    for (size_t i = 0; i < graph->n_levels; i++) {
        buf_puts(out, i == 0 ? "[" : ",[");
        for (size_t k = 0; k < graph->levels[i].n; k++) {
            buf_printf(out, k == 0 ? "%" PRId64 : ",%" PRId64, graph->levels[i].at[k]);
        }
        buf_putc(out, ']');
    }
    buf_putc(out, ']');
}

static void write_graph(const struct flamegraph *graph, struct buf *out)
{
    buf_puts(out, "\"flamebearer\":{\"names\":[");
    for (size_t i = 0; i < graph->n_names; i++) {
        if (i > 0) {
            buf_putc(out, ',');
        }
        json_quote(graph->names[i], out);
    }
    buf_puts(out, "],");
    write_levels(graph, out);
    buf_printf(out, ",\"numTicks\":%" PRId64 ",\"maxSelf\":%" PRId64 "}", graph->total,
               graph->max_self);
}

/* Writes how Pyroscope's UI has to show values of a sample type. */
static void write_metadata(const struct profile_type *type, const char *format, struct buf *out)
{
    static const struct {
        const char *sample_type;
        const char *units;
        int rate;
    } known[] = {
        {"cpu", "samples", 1000000000},    {"inuse_objects", "objects", 100},
        {"alloc_objects", "objects", 100}, {"goroutine", "objects", 100},
        {"samples", "objects", 100},
    };
    struct sv units = type->sample_unit;
    int rate = 100;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (sv_eq_str(type->sample_type, known[i].sample_type)) {
            units = sv_from(known[i].units);
            rate = known[i].rate;
        }
    }
    buf_printf(out, "\"metadata\":{\"format\":\"%s\",\"spyName\":\"\",\"sampleRate\":%d,", format,
               rate);
    buf_puts(out, "\"units\":");
    json_quote(units, out);
    buf_puts(out, ",\"name\":");
    json_quote(type->sample_type, out);
    buf_putc(out, '}');
}

/* ---- timelines ------------------------------------------------------------------------------- */

int64_t render_step_s(int64_t length_ms)
{
    /* If the wanted step, in ms, is below the first number, it is rounded to the second one, in s.
     */
    static const struct {
        int64_t below_ms;
        int64_t step_s;
    } steps[] = {
        {17500, 15},       {25000, 20},       {45000, 30},       {90000, 60},
        {210000, 120},     {450000, 300},     {750000, 600},     {1050000, 900},
        {1500000, 1200},   {2700000, 1800},   {5400000, 3600},   {9000000, 7200},
        {16200000, 10800}, {32400000, 21600}, {86400000, 43200}, {INT64_MAX, 86400},
    };
    int64_t wanted_ms = length_ms / TIMELINE_STEPS;
    if (wanted_ms < TIMELINE_STEP_MIN_MS) {
        wanted_ms = TIMELINE_STEP_MIN_MS;
    }
    size_t i = 0;
    while (wanted_ms >= steps[i].below_ms) {
        i++;
    }
    return steps[i].step_s;
}

/* The slots of a timeline. They begin at the last multiple of the step that is not after the start
 * of the range, and end at the last multiple that is not after its end. */
struct timeline {
    int64_t start_ms;
    int64_t step_ms;
    int64_t n;
};

static struct timeline timeline_of(const struct query_range *r)
{
    struct timeline t = {.step_ms = render_step_s(r->end_ms - r->start_ms) * MS_PER_S};
    int64_t first = r->start_ms / t.step_ms;
    t.start_ms = first * t.step_ms;
    t.n = r->end_ms / t.step_ms - first;
    return t;
}

/* Writes a value for each slot, which is zero for a slot without a point. series: NULL if there are
 * no points. */
static void write_timeline(const struct timeline *t, const struct query_time_series *series,
                           struct buf *out)
{
    size_t next = 0;
    size_t n = series == NULL ? 0 : series->n_points;
    buf_printf(out, "{\"startTime\":%" PRId64 ",\"samples\":[", t->start_ms / MS_PER_S);
    for (int64_t i = 0; i < t->n; i++) {
        double value = 0;
        while (next < n && series->points[next].time_ms < t->start_ms + (i + 1) * t->step_ms) {
            value += series->points[next++].value;
        }
        buf_printf(out, i == 0 ? "%.0f" : ",%.0f", value);
    }
    buf_printf(out, "],\"durationDelta\":%" PRId64 ",\"watermarks\":null}", t->step_ms / MS_PER_S);
}

static void write_groups(const struct timeline *t, const struct query_time_series_list *list,
                         struct sv label, struct buf *out)
{
    buf_putc(out, '{');
    for (size_t i = 0; i < list->n; i++) {
        const struct query_labels *labels = &list->at[i].labels;
        struct sv key = SV("*");
        for (size_t k = 0; k < labels->n; k++) {
            if (sv_eq(labels->at[k].name, label)) {
                key = labels->at[k].value;
            }
        }
        if (i > 0) {
            buf_putc(out, ',');
        }
        json_quote(key, out);
        buf_putc(out, ':');
        write_timeline(t, &list->at[i], out);
    }
    buf_putc(out, '}');
}

/* Writes the timeline of all series, or one for each value of a label. The points are at start,
 * start + step, ..., and each is written into the slot that it falls into, as in Pyroscope. So the
 * first slot has the profiles of the step that ends at the start, wherever the slot begins. */
static bool write_time(const struct query *q, const struct request *r, const struct ask *ask,
                       struct buf *out, struct err *err)
{
    struct timeline t = timeline_of(&ask->range);
    struct sv label = request_param(r, "groupBy");
    struct query_stacks stacks = {.call_site = NULL};
    struct query_time_series_list list;
    struct query_steps steps = {
        .step_s = (double)t.step_ms / (double)MS_PER_S,
        .group_by = &label,
        .n_group_by = label.n > 0,
        .aggregation =
            sv_eq_str(request_param(r, "aggregation"), "avg") ? QUERY_AVERAGE : QUERY_SUM,
    };
    if (!query_time_series(q, &ask->range, &ask->type, &steps, &stacks, &list, err)) {
        return false;
    }
    buf_puts(out, "\"timeline\":");
    write_timeline(&t, list.n == 1 ? &list.at[0] : NULL, out);
    buf_puts(out, ",\"groups\":");
    if (label.n > 0) {
        write_groups(&t, &list, label, out);
    } else {
        buf_puts(out, "null");
    }
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool written(const struct buf *out, struct err *err)
{
    return buf_ok(out) ||
           err_set(err, ERR_LIMIT, "answer too large for the memory limit of a query");
}

/* Runs a handler with an arena. If it fails, answers with its error. */
static void serve(struct exchange *x, bool (*render)(struct exchange *x, struct arena *arena,
                                                     atomic_size_t *damaged, struct err *err))
{
    struct err err = ERR_INIT;
    struct arena *arena = arena_new(x->bytes_max / 2);
    atomic_size_t damaged = 0;
    x->content_type = "application/json";
    if (arena == NULL) {
        err_memory(&err);
    }
    if (arena != NULL && render(x, arena, &damaged, &err) && written(&x->reply, &err)) {
        exchange_deflate(x);
    } else {
        connect_reply_error(x, CONNECT_BY_KIND, &err);
    }
    ask_count_damaged(x, &damaged);
    arena_free(arena);
}

static bool render_dot(struct exchange *x, const struct tree *tree, const struct ask *ask,
                       int64_t nodes, struct err *err)
{
    x->content_type = "text/plain";
    return tree_total(tree) == 0 ||
           tree_dot(tree, nodes, ask->type.sample_type, ask->type.sample_unit, &x->reply, err);
}

static bool render_json(struct exchange *x, const struct tree *tree, const struct query *q,
                        const struct ask *ask, int64_t nodes, struct err *err)
{
    struct flamegraph graph;
    if (!tree_flamegraph(tree, nodes, q->arena, &graph, err)) {
        return false;
    }
    buf_puts(&x->reply, "{\"version\":1,");
    write_graph(&graph, &x->reply);
    buf_putc(&x->reply, ',');
    write_metadata(&ask->type, "single", &x->reply);
    buf_putc(&x->reply, ',');
    if (!write_time(q, x->request, ask, &x->reply, err)) {
        return false;
    }
    buf_puts(&x->reply, ",\"heatmap\":null}\n");
    exchange_add_partial(x);
    return true;
}

static bool render_asked(struct exchange *x, struct arena *arena, atomic_size_t *damaged,
                         const struct ask *ask, struct err *err)
{
    struct query q;
    struct query_stacks stacks = {.as_recorded = ask_as_recorded(x->request)};
    bool dot = sv_eq_str(request_param(x->request, "format"), "dot");
    int64_t asked = read_nodes(x->request);
    int64_t nodes = 0;
    if (!ask_nodes(dot && asked == 0 ? DOT_NODES_DEFAULT : asked, &nodes, err) ||
        !ask_query(x, x->deadline_ms, arena, damaged, &q, err)) {
        return false;
    }
    struct tree *tree = query_tree(&q, &ask->range, &ask->type, &stacks, err);
    bool ok = tree != NULL && (dot ? render_dot(x, tree, ask, nodes, err)
                                   : render_json(x, tree, &q, ask, nodes, err));
    tree_free(tree);
    return ok;
}

static bool render(struct exchange *x, struct arena *arena, atomic_size_t *damaged, struct err *err)
{
    static const struct names names = {"query", "from", "until"};
    struct ask ask = {.selector = NULL};
    bool ok = read_ask(x->request, &names, &ask, err) && render_asked(x, arena, damaged, &ask, err);
    ask_done(&ask);
    return ok;
}

static void serve_render(struct exchange *x)
{
    serve(x, render);
}

/* ---- differences ----------------------------------------------------------------------------- */

static void write_diff(const struct flamegraph *graph, const struct profile_type *type,
                       struct buf *out)
{
    buf_puts(out, "{\"version\":1,");
    write_graph(graph, out);
    buf_putc(out, ',');
    write_metadata(type, "double", out);
    buf_puts(out, ",\"timeline\":null,\"groups\":null,\"heatmap\":null");
    if (graph->left != 0) {
        buf_printf(out, ",\"leftTicks\":%" PRId64, graph->left);
    }
    if (graph->right != 0) {
        buf_printf(out, ",\"rightTicks\":%" PRId64, graph->right);
    }
    buf_puts(out, "}\n");
}

static bool render_sides(struct exchange *x, struct arena *arena, atomic_size_t *damaged,
                         const struct ask *left, const struct ask *right, struct err *err)
{
    struct query q;
    struct query_stacks stacks = {.as_recorded = ask_as_recorded(x->request)};
    struct flamegraph graph;
    int64_t nodes = 0;
    if (!sv_eq(left->type.id, right->type.id)) {
        return err_set(err, ERR_INPUT, "profile types must match");
    }
    if (!ask_nodes(read_nodes(x->request), &nodes, err) ||
        !ask_query(x, x->deadline_ms, arena, damaged, &q, err)) {
        return false;
    }
    struct tree *a = query_tree(&q, &left->range, &left->type, &stacks, err);
    struct tree *b = a == NULL ? NULL : query_tree(&q, &right->range, &right->type, &stacks, err);
    bool ok = b != NULL && tree_diff(a, b, nodes, arena, &graph, err);
    if (ok) {
        write_diff(&graph, &left->type, &x->reply);
        exchange_add_partial(x);
    }
    tree_free(a);
    tree_free(b);
    return ok;
}

static bool render_diff(struct exchange *x, struct arena *arena, atomic_size_t *damaged,
                        struct err *err)
{
    static const struct names left_names = {"leftQuery", "leftFrom", "leftUntil"};
    static const struct names right_names = {"rightQuery", "rightFrom", "rightUntil"};
    struct ask left = {.selector = NULL};
    struct ask right = {.selector = NULL};
    bool ok = read_ask(x->request, &left_names, &left, err) &&
              read_ask(x->request, &right_names, &right, err) &&
              render_sides(x, arena, damaged, &left, &right, err);
    ask_done(&left);
    ask_done(&right);
    return ok;
}

static void serve_diff(struct exchange *x)
{
    serve(x, render_diff);
}

/* ---- values of labels ------------------------------------------------------------------------ */

static bool label_values(struct exchange *x, struct arena *arena, atomic_size_t *damaged,
                         struct err *err)
{
    struct sv label = request_param(x->request, "label");
    int64_t now_ms = clock_wall_ns() / NS_PER_MS;
    struct query_range range = {.start_ms = now_ms - MS_PER_HOUR, .end_ms = now_ms};
    struct query q;
    struct query_strings values;
    if (label.n == 0) {
        return err_set(err, ERR_INPUT, "label parameter is required");
    }
    if (sv_eq_str(label, "__name__")) {
        label = SV("__profile_type__");
    }
    if (!ask_query(x, x->deadline_ms, arena, damaged, &q, err) ||
        !query_label_values(&q, &range, label, &values, err)) {
        return false;
    }
    buf_putc(&x->reply, '[');
    for (size_t i = 0; i < values.n; i++) {
        if (i > 0) {
            buf_putc(&x->reply, ',');
        }
        json_quote(values.at[i], &x->reply);
    }
    buf_puts(&x->reply, "]\n");
    return true;
}

static void serve_label_values(struct exchange *x)
{
    serve(x, label_values);
}

/* ---- routes ---------------------------------------------------------------------------------- */

const struct route render_routes[] = {
    {"/pyroscope/render", .set = ROUTE_QUERY, .errors = connect_route_error, .work = serve_render},
    {"/pyroscope/render-diff", .set = ROUTE_QUERY, .errors = connect_route_error,
     .work = serve_diff},
    {"/pyroscope/label-values", .set = ROUTE_QUERY, .errors = connect_route_error,
     .work = serve_label_values},
    {.path = NULL},
};
