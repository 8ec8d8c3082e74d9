#include "pages/view.h"

#include <stdlib.h>

#include "api/ask.h"
#include "api/attime.h"
#include "api/served.h"
#include "base/clock.h"
#include "server/routes.h"

#define STATUS_TOO_LARGE 422
#define STATUS_TIMEOUT 504
/* The type that is shown if the request has none. */
#define TYPE_DEFAULT "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

/* ---- parameters ------------------------------------------------------------------------------ */

const char *const view_params[] = {VIEW_PARAMS, NULL};

static struct sv param(const struct exchange *x, const char *name)
{
    struct sv value = request_param(x->request, name);
    return value.p == NULL ? SV("") : sv_trim(value);
}

/* Reads digits, or "now" with an offset. Any other text is an error, so that a typing error does
 * not show another time. */
bool view_time(struct sv text, const char *name, int64_t now_ms, int64_t *ret, struct err *err)
{
    if (text.n > 0 && !(text.p[0] >= '0' && text.p[0] <= '9') && !sv_starts_with(text, SV("now"))) {
        return err_set(err, ERR_INPUT,
                       "\"%s\": expected a time such as now-1h or 1795307400, got \"%.*s\"", name,
                       text.n < 64 ? (int)text.n : 64, text.p);
    }
    *ret = attime_read(text, now_ms * NS_PER_MS) / NS_PER_MS;
    return true;
}

static bool add_labels(struct selector *s, struct sv labels, struct err *err)
{
    struct buf text;
    buf_init(&text, SELECTOR_BYTES_MAX);
    bool has_braces = labels.p[labels.n - 1] == '}';
    buf_printf(&text, "%s%.*s%s", has_braces ? "" : "{", SV_ARG(labels), has_braces ? "" : "}");
    bool ok = buf_ok(&text) ? selector_add_parsed(s, (struct sv){text.data, text.len}, err)
                            : err_set(err, ERR_LIMIT, "labels are too long");
    buf_done(&text);
    return ok;
}

/* Makes the selector of a side. */
static bool select_side(struct view_side *side, struct err *err)
{
    selector_free(side->selector);
    side->selector = selector_new(err);
    return side->selector != NULL &&
           (side->service.n == 0 ||
            selector_add(side->selector, SV("service_name"), MATCH_EQUAL, side->service, err)) &&
           (side->labels.n == 0 || add_labels(side->selector, side->labels, err) ||
            err_wrap(err, "\"labels\""));
}

static bool read_now(struct view *v, const struct exchange *x, int64_t now_ms, struct err *err)
{
    struct view_side *s = &v->now;
    s->service = param(x, "service");
    s->labels = param(x, "labels");
    s->from = param(x, "from");
    s->until = param(x, "until");
    if (!view_time(s->until, "until", now_ms, &s->until_ms, err)) {
        return false;
    }
    s->from_ms = s->until_ms - VIEW_RANGE_DEFAULT_MS;
    if (s->from.n > 0 && !view_time(s->from, "from", now_ms, &s->from_ms, err)) {
        return false;
    }
    return s->from_ms <= s->until_ms || err_set(err, ERR_INPUT, "\"from\" is later than \"until\"");
}

static bool read_base(struct view *v, const struct exchange *x, int64_t now_ms, struct err *err)
{
    struct view_side *s = &v->base;
    s->service = param(x, "base_service");
    s->labels = param(x, "base_labels");
    s->from = param(x, "base_from");
    s->until = param(x, "base_until");
    bool is_other = s->service.n > 0 || s->labels.n > 0;
    int64_t length_ms = v->now.until_ms - v->now.from_ms;
    s->until_ms = is_other ? v->now.until_ms : v->now.from_ms;
    s->from_ms = s->until_ms - length_ms;
    if (s->labels.n == 0) {
        s->labels = v->now.labels;
    }
    if (s->from.n == 0) {
        return true;
    }
    if (!view_time(s->from, "base_from", now_ms, &s->from_ms, err)) {
        return false;
    }
    s->until_ms = s->from_ms + length_ms;
    if (s->until.n > 0 && !view_time(s->until, "base_until", now_ms, &s->until_ms, err)) {
        return false;
    }
    return s->from_ms <= s->until_ms ||
           err_set(err, ERR_INPUT, "\"base_from\" is later than \"base_until\"");
}

static bool read_nodes(struct view *v, struct sv text, struct err *err)
{
    uint64_t n = TREE_NODES_DEFAULT;
    if (text.n > 0 && (!parse_u64(text, TREE_NODES_MAX, &n) || n == 0)) {
        return err_set(err, ERR_INPUT, "\"max_nodes\": expected a number from 1 to %d",
                       TREE_NODES_MAX);
    }
    v->max_nodes = (int64_t)n;
    return true;
}

bool view_begin(struct view *v, const struct exchange *x, struct err *err)
{
    *v = (struct view){.is_diff = false};
    v->arena = arena_new(x->bytes_max / 2);
    if (v->arena == NULL) {
        return err_memory(err);
    }
    return ask_query(x, x->deadline_ms, v->arena, NULL, &v->query, err);
}

bool view_read(struct view *v, const struct exchange *x, struct err *err)
{
    int64_t now_ms = clock_wall_ns() / NS_PER_MS;
    if (!view_begin(v, x, err)) {
        return false;
    }
    v->type = param(x, "type");
    v->is_diff = param(x, "compare").n > 0;
    v->as_recorded = ask_as_recorded(x->request);
    return read_nodes(v, param(x, "max_nodes"), err) && read_now(v, x, now_ms, err) &&
           (!v->is_diff || read_base(v, x, now_ms, err)) && select_side(&v->now, err) &&
           (!v->is_diff || select_side(&v->base, err)) &&
           (v->type.n == 0 || profile_type_parse(v->type, &v->profile_type, err));
}

void view_done(struct view *v)
{
    selector_free(v->now.selector);
    selector_free(v->base.selector);
    arena_free(v->arena);
}

/* ---- questions ------------------------------------------------------------------------------- */

struct query_range view_range(const struct view_side *side)
{
    return (struct query_range){
        .start_ms = side->from_ms, .end_ms = side->until_ms, .selector = side->selector};
}

bool view_services(const struct view *v, const struct view_side *side, struct query_strings *ret,
                   struct err *err)
{
    struct query_range range = view_range(side);
    range.selector = NULL;
    return query_label_values(&v->query, &range, SV("service_name"), ret, err);
}

bool view_types(const struct view *v, const struct view_side *side, struct query_strings *ret,
                struct err *err)
{
    struct query_range range = view_range(side);
    return query_label_values(&v->query, &range, SV("__profile_type__"), ret, err);
}

struct tree *view_tree(const struct view *v, const struct view_side *side, struct err *err)
{
    struct query_range range = view_range(side);
    struct query_stacks all = {.as_recorded = v->as_recorded};
    return query_tree(&v->query, &range, &v->profile_type, &all, err);
}

static bool choose_service(struct view *v, struct err *err)
{
    struct query_strings services;
    if (!view_services(v, &v->now, &services, err) || services.n == 0) {
        return false;
    }
    v->now.service = services.at[0];
    return select_side(&v->now, err);
}

static bool choose_type(struct view *v, struct err *err)
{
    struct query_strings types;
    if (!view_types(v, &v->now, &types, err) || types.n == 0) {
        return false;
    }
    v->type = types.at[0];
    for (size_t i = 0; i < types.n; i++) {
        if (sv_eq_str(types.at[i], TYPE_DEFAULT)) {
            v->type = types.at[i];
        }
    }
    return profile_type_parse(v->type, &v->profile_type, err);
}

bool view_choose(struct view *v, struct err *err)
{
    if ((v->now.service.n == 0 && !choose_service(v, err)) ||
        (v->type.n == 0 && !choose_type(v, err))) {
        return false;
    }
    if (v->is_diff && v->base.service.n == 0) {
        v->base.service = v->now.service;
        return select_side(&v->base, err);
    }
    return true;
}

int view_status(const struct err *err)
{
    static const int statuses[] = {
        [ERR_INPUT] = STATUS_BAD_REQUEST, [ERR_LIMIT] = STATUS_TOO_LARGE,
        [ERR_SYSTEM] = STATUS_INTERNAL,   [ERR_REFUSED] = STATUS_NOT_FOUND,
        [ERR_MEMORY] = STATUS_INTERNAL,   [ERR_TIMEOUT] = STATUS_TIMEOUT,
    };
    size_t kind = (size_t)err->kind;
    return kind < sizeof(statuses) / sizeof(statuses[0]) && statuses[kind] != 0 ? statuses[kind]
                                                                                : STATUS_INTERNAL;
}
