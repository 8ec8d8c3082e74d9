/* The tools list_services and labels. */
#include <stdlib.h>
#include <string.h>

#include "api/mcp/tools.h"
#include "base/clock.h"

#define CPU_TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define NAME_MAX_BYTES 200
/* The most values of a label that follow its name. */
#define VALUES_SHOWN 3

/* ---- list_services --------------------------------------------------------------------------- */

struct service {
    struct sv name;
    double cores[2];   /* of the first and the second half of the range */
    struct buf *types; /* "cpu, alloc_space" */
};

struct services {
    struct service *at;
    size_t n;
};

static int by_name(const void *a, const void *b)
{
    return sv_cmp(((const struct service *)a)->name, ((const struct service *)b)->name);
}

/* The most expensive one first. */
static int by_cost(const void *a, const void *b)
{
    const struct service *x = a;
    const struct service *y = b;
    double left = x->cores[0] + x->cores[1];
    double right = y->cores[0] + y->cores[1];
    return left > right ? -1 : left < right ? 1 : by_name(a, b);
}

static struct service *find(const struct services *all, struct sv name)
{
    const struct service key = {.name = name};
    return all->n > 0 ? bsearch(&key, all->at, all->n, sizeof(key), by_name) : NULL;
}

/* Lists the names of the services that contain a text. */
static bool list_names(struct tool_call *call, const struct query *q, const struct ask *ask,
                       const char *match, struct services *ret, struct err *err)
{
    struct query_strings names = {.n = 0};
    if (!query_label_values(q, &ask->range, SV(LABEL_SERVICE_NAME), &names, err)) {
        return false;
    }
    ret->at = arena_array(call->arena, names.n + 1, sizeof(ret->at[0]));
    if (ret->at == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < names.n; i++) {
        if (match == NULL || memmem(names.at[i].p, names.at[i].n, match, strlen(match)) != NULL) {
            ret->at[ret->n++].name = names.at[i];
        }
    }
    return true;
}

/* Adds the CPU time of the halves of the range. */
static bool add_cpu(const struct query *q, const struct ask *ask, const struct services *all,
                    struct err *err)
{
    static const struct sv group = {LABEL_SERVICE_NAME, sizeof(LABEL_SERVICE_NAME) - 1};
    struct profile_type type;
    const struct query_stacks stacks = {.n_call_site = 0};
    struct query_time_series_list list = {.n = 0};
    double half_s = (double)(ask->range.end_ms - ask->range.start_ms) / 2000.0;
    const struct query_steps steps = {.step_s = half_s > 0.001 ? half_s : 0.001,
                                      .group_by = &group,
                                      .n_group_by = 1,
                                      .aggregation = QUERY_SUM};
    int64_t middle_ms = (ask->range.start_ms + ask->range.end_ms) / 2;
    if (!profile_type_parse(SV(CPU_TYPE), &type, err) ||
        !query_time_series(q, &ask->range, &type, &steps, &stacks, &list, err)) {
        return false;
    }
    for (size_t i = 0; i < list.n; i++) {
        struct service *s = find(
            all, label_value(list.at[i].labels.at, list.at[i].labels.n, SV(LABEL_SERVICE_NAME)));
        for (size_t k = 0; s != NULL && k < list.at[i].n_points; k++) {
            const struct query_point *p = &list.at[i].points[k];
            s->cores[p->time_ms > middle_ms + 1] += p->value / (double)NS_PER_S / half_s;
        }
    }
    return true;
}

/* Adds the sample types of each service. */
static bool add_types(struct tool_call *call, const struct query *q, const struct ask *ask,
                      const struct services *all, struct err *err)
{
    const struct sv names[] = {SV(LABEL_SERVICE_NAME), SV("__type__")};
    struct query_label_sets sets = {.n = 0};
    if (!query_series(q, &ask->range, names, 2, &sets, err)) {
        return false;
    }
    for (size_t i = 0; i < sets.n; i++) {
        struct service *s =
            find(all, label_value(sets.at[i].at, sets.at[i].n, SV(LABEL_SERVICE_NAME)));
        if (s == NULL) {
            continue;
        }
        if (s->types == NULL) {
            s->types = arena_alloc(call->arena, sizeof(*s->types));
            if (s->types == NULL) {
                return err_memory(err);
            }
            buf_init(s->types, 1024);
        }
        buf_printf(s->types, "%s%s", s->types->len > 0 ? " " : "",
                   tool_name(call, label_value(sets.at[i].at, sets.at[i].n, SV("__type__")), 40));
    }
    return true;
}

static void print_services(struct tool_call *call, const struct ask *ask,
                           const struct services *all)
{
    (void)tool_row(call,
                   "%zu services with profiles from %s to %s. CPU in cores, average of the first "
                   "half -> of the second half of the range:",
                   all->n, tool_time(call, ask->range.start_ms),
                   tool_time(call, ask->range.end_ms));
    for (size_t i = 0; i < all->n; i++) {
        const struct service *s = &all->at[i];
        if (i >= call->limit) {
            call->left_out++;
            continue;
        }
        (void)tool_row(call, "%s: %.3f -> %.3f cores; types: %s",
                       tool_name(call, s->name, NAME_MAX_BYTES), s->cores[0], s->cores[1],
                       s->types != NULL ? s->types->data : "");
    }
    tool_page(call, "/?from=%lld&until=%lld", (long long)ask->range.start_ms / 1000,
              (long long)ask->range.end_ms / 1000);
}

bool tool_list_services(struct tool_call *call, struct err *err)
{
    struct ask ask = {.selector = NULL};
    struct query q;
    const char *match = NULL;
    struct services all = {.n = 0};
    bool ok = tool_text(call, "match", &match, err) && tool_range(call, "", &ask, err) &&
              tool_query(call, &q, err) && list_names(call, &q, &ask, match, &all, err) &&
              add_cpu(&q, &ask, &all, err) && add_types(call, &q, &ask, &all, err);
    if (ok && all.n == 0) {
        ok = err_set(err, ERR_INPUT,
                     "no service%s%s has profiles between %s and %s: ask for a longer range, or "
                     "see with targets whether scrapes fail",
                     match != NULL ? " with this in its name: " : "", match != NULL ? match : "",
                     tool_time(call, ask.range.start_ms), tool_time(call, ask.range.end_ms));
    } else if (ok) {
        qsort(all.at, all.n, sizeof(all.at[0]), by_cost);
        print_services(call, &ask, &all);
    }
    for (size_t i = 0; i < all.n; i++) {
        if (all.at[i].types != NULL) {
            buf_done(all.at[i].types);
        }
    }
    ask_done(&ask);
    return ok;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static bool list_values(struct tool_call *call, const struct query *q, const struct ask *ask,
                        const char *name, struct err *err)
{
    struct query_strings values = {.n = 0};
    if (!query_label_values(q, &ask->range, sv_from(name), &values, err)) {
        return false;
    }
    if (values.n == 0) {
        return err_set(err, ERR_INPUT,
                       "no profile in this range has the label \"%.100s\": labels without name "
                       "lists those that exist",
                       name);
    }
    (void)tool_row(call, "%zu values of %s:", values.n, tool_name(call, sv_from(name), 100));
    for (size_t i = 0; i < values.n; i++) {
        if (i < call->limit) {
            (void)tool_row(call, "%s", tool_name(call, values.at[i], NAME_MAX_BYTES));
        } else {
            call->left_out++;
        }
    }
    return true;
}

static void print_label(struct tool_call *call, struct sv name, const struct query_strings *values)
{
    struct buf some;
    buf_init(&some, 4096);
    for (size_t k = 0; k < values->n && k < VALUES_SHOWN; k++) {
        buf_printf(&some, "%s%s", k > 0 ? ", " : "", tool_name(call, values->at[k], 60));
    }
    (void)tool_row(call, "%s: %zu (%s%s)", tool_name(call, name, 100), values->n, some.data,
                   values->n > VALUES_SHOWN ? ", ..." : "");
    buf_done(&some);
}

static bool list_labels(struct tool_call *call, const struct query *q, const struct ask *ask,
                        struct err *err)
{
    struct query_strings names = {.n = 0};
    if (!query_label_names(q, &ask->range, &names, err)) {
        return false;
    }
    (void)tool_row(call, "Labels, the number of their values, and some of these:");
    size_t shown = 0;
    for (size_t i = 0; i < names.n; i++) {
        struct query_strings values = {.n = 0};
        if (sv_starts_with(names.at[i], SV("__"))) {
            continue;
        }
        if (shown++ >= call->limit) {
            call->left_out++;
            continue;
        }
        if (!query_label_values(q, &ask->range, names.at[i], &values, err)) {
            return false;
        }
        print_label(call, names.at[i], &values);
    }
    return true;
}

bool tool_labels(struct tool_call *call, struct err *err)
{
    struct ask ask = {.selector = NULL};
    struct query q;
    const char *name = NULL;
    bool ok =
        tool_text(call, "name", &name, err) && tool_range(call, "", &ask, err) &&
        tool_selector(call, "", &ask, err) && tool_query(call, &q, err) &&
        (name != NULL ? list_values(call, &q, &ask, name, err) : list_labels(call, &q, &ask, err));
    if (ok) {
        tool_page(call, "/?from=%lld&until=%lld", (long long)ask.range.start_ms / 1000,
                  (long long)ask.range.end_ms / 1000);
    }
    ask_done(&ask);
    return ok;
}
