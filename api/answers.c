#include "api/answers.h"

#include "api/protojson.h"

static bool full(struct err *err)
{
    return err_set(err, ERR_LIMIT, "answer too large for the memory limit of a query");
}

void *answer_new(struct arena *arena, const ProtobufCMessageDescriptor *d, struct err *err)
{
    void *m = protojson_new(arena, d);
    if (m == NULL) {
        full(err);
    }
    return m;
}

void *answer_list(struct arena *arena, size_t n, struct err *err)
{
    void *list = arena_array(arena, n == 0 ? 1 : n, sizeof(void *));
    if (list == NULL) {
        full(err);
    }
    return list;
}

bool answer_string(struct arena *arena, struct sv v, char **ret, struct err *err)
{
    *ret = protojson_string(arena, v);
    return *ret != NULL || full(err);
}

/* Copies an array of views as an array of strings. */
static bool strings_of(struct arena *arena, const struct sv *at, size_t n, char ***ret,
                       size_t *ret_n, struct err *err)
{
    *ret = answer_list(arena, n, err);
    *ret_n = n;
    bool ok = *ret != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        ok = answer_string(arena, at[i], &(*ret)[i], err);
    }
    return ok;
}

bool answer_strings(struct arena *arena, const struct query_strings *strings, char ***ret,
                    size_t *ret_n, struct err *err)
{
    return strings_of(arena, strings->at, strings->n, ret, ret_n, err);
}

bool answer_labels(struct arena *arena, const struct query_labels *labels, Api__LabelPair ***ret,
                   size_t *ret_n, struct err *err)
{
    *ret = answer_list(arena, labels->n, err);
    *ret_n = labels->n;
    bool ok = *ret != NULL;
    for (size_t i = 0; ok && i < labels->n; i++) {
        Api__LabelPair *pair = answer_new(arena, &api__label_pair__descriptor, err);
        (*ret)[i] = pair;
        ok = pair != NULL && answer_string(arena, labels->at[i].name, &pair->name, err) &&
             answer_string(arena, labels->at[i].value, &pair->value, err);
    }
    return ok;
}

bool answer_exemplars(struct arena *arena, const struct query_exemplar *exemplars, size_t n,
                      Api__Exemplar ***ret, size_t *ret_n, struct err *err)
{
    *ret = answer_list(arena, n, err);
    *ret_n = n;
    bool ok = *ret != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        const struct query_exemplar *from = &exemplars[i];
        Api__Exemplar *e = answer_new(arena, &api__exemplar__descriptor, err);
        (*ret)[i] = e;
        ok = e != NULL && answer_string(arena, sv_from(from->id), &e->profile_id, err) &&
             answer_string(arena, sv_from(from->span_id), &e->span_id, err) &&
             answer_string(arena, sv_from(from->trace_id), &e->trace_id, err) &&
             answer_labels(arena, &from->labels, &e->labels, &e->n_labels, err);
        if (ok) {
            e->timestamp = from->time_ms;
            e->value = from->value;
        }
    }
    return ok;
}

bool answer_levels(struct arena *arena, const struct flamegraph *graph, Api__Level ***ret,
                   size_t *ret_n, struct err *err)
{
    *ret = answer_list(arena, graph->n_levels, err);
    *ret_n = graph->n_levels;
    bool ok = *ret != NULL;
    for (size_t i = 0; ok && i < graph->n_levels; i++) {
        Api__Level *level = answer_new(arena, &api__level__descriptor, err);
        (*ret)[i] = level;
        ok = level != NULL;
        if (ok) {
            level->values = graph->levels[i].at;
            level->n_values = graph->levels[i].n;
        }
    }
    return ok;
}

Api__FlameGraph *answer_flamegraph(struct arena *arena, const struct flamegraph *graph,
                                   struct err *err)
{
    Api__FlameGraph *g = answer_new(arena, &api__flame_graph__descriptor, err);
    if (g == NULL ||
        !strings_of(arena, graph->names, graph->n_names, &g->names, &g->n_names, err) ||
        !answer_levels(arena, graph, &g->levels, &g->n_levels, err)) {
        return NULL;
    }
    g->total = graph->total;
    g->max_self = graph->max_self;
    return g;
}

Api__FlameGraphDiff *answer_diff(struct arena *arena, const struct flamegraph *graph,
                                 struct err *err)
{
    Api__FlameGraphDiff *g = answer_new(arena, &api__flame_graph_diff__descriptor, err);
    if (g == NULL ||
        !strings_of(arena, graph->names, graph->n_names, &g->names, &g->n_names, err) ||
        !answer_levels(arena, graph, &g->levels, &g->n_levels, err)) {
        return NULL;
    }
    g->total = graph->total;
    g->max_self = graph->max_self;
    g->leftticks = graph->left;
    g->rightticks = graph->right;
    return g;
}

bool answer_views(struct arena *arena, char *const *strings, size_t n, const struct sv **ret,
                  struct err *err)
{
    struct sv *views = arena_array(arena, n == 0 ? 1 : n, sizeof(struct sv));
    if (views == NULL) {
        return full(err);
    }
    for (size_t i = 0; i < n; i++) {
        views[i] = sv_from(strings[i]);
    }
    *ret = views;
    return true;
}
