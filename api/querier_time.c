#include "api/answers.h"
#include "api/ask.h"
#include "api/querier.h"

static enum query_exemplars exemplars_of(Api__ExemplarType type)
{
    return type == API__EXEMPLAR_TYPE__EXEMPLAR_TYPE_INDIVIDUAL ? QUERY_WITH_EXEMPLARS
                                                                : QUERY_NO_EXEMPLARS;
}

/* ---- time series ----------------------------------------------------------------------------- */

static bool answer_points(struct arena *arena, const struct query_time_series *from,
                          Api__Series *ret, struct err *err)
{
    ret->points = answer_list(arena, from->n_points, err);
    ret->n_points = from->n_points;
    bool ok = ret->points != NULL;
    for (size_t i = 0; ok && i < from->n_points; i++) {
        const struct query_point *point = &from->points[i];
        Api__Point *p = answer_new(arena, &api__point__descriptor, err);
        ret->points[i] = p;
        ok = p != NULL;
        if (ok) {
            p->value = point->value;
            p->timestamp = point->time_ms;
        }
        if (ok && point->exemplar != NULL) {
            ok = answer_exemplars(arena, point->exemplar, 1, &p->exemplars, &p->n_exemplars, err);
        }
    }
    return ok;
}

static bool answer_series(struct arena *arena, const struct query_time_series_list *list,
                          Api__SelectSeriesResponse *ret, struct err *err)
{
    ret->series = answer_list(arena, list->n, err);
    ret->n_series = list->n;
    bool ok = ret->series != NULL;
    for (size_t i = 0; ok && i < list->n; i++) {
        Api__Series *s = answer_new(arena, &api__series__descriptor, err);
        ret->series[i] = s;
        ok = s != NULL &&
             answer_labels(arena, &list->at[i].labels, &s->labels, &s->n_labels, err) &&
             answer_points(arena, &list->at[i], s, err);
    }
    return ok;
}

static bool find_series(struct connect_call *call, const Api__SelectSeriesRequest *r,
                        struct ask *ask, struct query_time_series_list *ret, struct err *err)
{
    struct query q;
    struct query_stacks stacks = {.as_recorded = ask_as_recorded(call->exchange->request)};
    struct query_steps steps = {
        .step_s = r->step,
        .n_group_by = r->n_group_by,
        .aggregation =
            r->aggregation ==
                    API__TIME_SERIES_AGGREGATION_TYPE__TIME_SERIES_AGGREGATION_TYPE_AVERAGE
                ? QUERY_AVERAGE
                : QUERY_SUM,
        .exemplars = exemplars_of(r->exemplar_type),
        .limit = r->limit > 0 ? (size_t)r->limit : 0,
    };
    return ask_range(ask, r->start, r->end, err) &&
           ask_type(ask, sv_from(r->profile_typeid), err) && ask_step(r->step, err) &&
           ask_selector(ask, sv_from(r->label_selector), err) &&
           answer_views(call->arena, r->group_by, r->n_group_by, &steps.group_by, err) &&
           querier_call_site(call->arena, r->stack_trace_selector, &stacks, err) &&
           ask_query(call->exchange, call->deadline_ms, call->arena, &call->damaged, &q, err) &&
           query_time_series(&q, &ask->range, &ask->type, &steps, &stacks, ret, err);
}

bool querier_series(struct connect_call *call, const void *request, struct err *err)
{
    struct ask ask = {.selector = NULL};
    struct query_time_series_list list;
    Api__SelectSeriesResponse *answer =
        answer_new(call->arena, &api__select_series_response__descriptor, err);
    bool ok = answer != NULL && find_series(call, request, &ask, &list, err) &&
              answer_series(call->arena, &list, answer, err);
    ask_done(&ask);
    if (ok) {
        call->reply = &answer->base;
    }
    return ok;
}

/* ---- heatmaps -------------------------------------------------------------------------------- */

static bool answer_slot(struct arena *arena, struct query_slot *from, Api__HeatmapSlot **ret,
                        struct err *err)
{
    Api__HeatmapSlot *slot = answer_new(arena, &api__heatmap_slot__descriptor, err);
    *ret = slot;
    if (slot == NULL) {
        return false;
    }
    slot->timestamp = from->time_ms;
    slot->y_min = from->y_min;
    slot->n_y_min = QUERY_HEATMAP_ROWS;
    slot->counts = from->counts;
    slot->n_counts = QUERY_HEATMAP_ROWS;
    return answer_exemplars(arena, from->exemplars, from->n_exemplars, &slot->exemplars,
                            &slot->n_exemplars, err);
}

static bool answer_heatmap(struct arena *arena, const struct query_heatmap *map,
                           Api__SelectHeatmapResponse *ret, struct err *err)
{
    ret->series = answer_list(arena, map->n, err);
    ret->n_series = map->n;
    bool ok = ret->series != NULL;
    for (size_t i = 0; ok && i < map->n; i++) {
        const struct query_heatmap_series *from = &map->at[i];
        Api__HeatmapSeries *s = answer_new(arena, &api__heatmap_series__descriptor, err);
        ret->series[i] = s;
        ok = s != NULL && answer_labels(arena, &from->labels, &s->labels, &s->n_labels, err) &&
             (s->slots = answer_list(arena, from->n_slots, err)) != NULL;
        for (size_t k = 0; ok && k < from->n_slots; k++) {
            s->n_slots = k + 1;
            ok = answer_slot(arena, &from->slots[k], &s->slots[k], err);
        }
    }
    return ok;
}

/* Makes the checks that Pyroscope makes of heatmaps only; other functions make those of all
 * queries. */
static bool check_heatmap(const Api__SelectHeatmapRequest *r, struct err *err)
{
    if (r->start == r->end) {
        return err_set(err, ERR_INPUT, "start must be before end");
    }
    if (r->limit < 0) {
        return err_set(err, ERR_INPUT, "limit must be >= 0");
    }
    bool spans = r->query_type == API__HEATMAP_QUERY_TYPE__HEATMAP_QUERY_TYPE_SPAN;
    if (!spans && r->query_type != API__HEATMAP_QUERY_TYPE__HEATMAP_QUERY_TYPE_INDIVIDUAL) {
        return err_set(err, ERR_INPUT, "valid heatmap query type must be specified");
    }
    if (spans && r->exemplar_type == API__EXEMPLAR_TYPE__EXEMPLAR_TYPE_INDIVIDUAL) {
        return err_set(err, ERR_INPUT,
                       "individual exemplars only available for individual query type");
    }
    return spans || r->exemplar_type != API__EXEMPLAR_TYPE__EXEMPLAR_TYPE_SPAN ||
           err_set(err, ERR_INPUT, "span exemplars only available for span query type");
}

static bool find_heatmap(struct connect_call *call, const Api__SelectHeatmapRequest *r,
                         struct ask *ask, struct query_heatmap *ret, struct err *err)
{
    struct query q;
    struct query_steps steps = {
        .step_s = r->step,
        .n_group_by = r->n_group_by,
        .exemplars = r->exemplar_type == API__EXEMPLAR_TYPE__EXEMPLAR_TYPE_SPAN
                         ? QUERY_WITH_EXEMPLARS
                         : exemplars_of(r->exemplar_type),
        .limit = r->limit > 0 ? (size_t)r->limit : 0,
    };
    enum query_counted counted = r->query_type == API__HEATMAP_QUERY_TYPE__HEATMAP_QUERY_TYPE_SPAN
                                     ? QUERY_SPANS
                                     : QUERY_PROFILES;
    *ret = (struct query_heatmap){.at = NULL};
    return ask_range(ask, r->start, r->end, err) &&
           ask_type(ask, sv_from(r->profile_typeid), err) && ask_step(r->step, err) &&
           ask_selector(ask, sv_from(r->label_selector), err) && check_heatmap(r, err) &&
           answer_views(call->arena, r->group_by, r->n_group_by, &steps.group_by, err) &&
           ask_query(call->exchange, call->deadline_ms, call->arena, &call->damaged, &q, err) &&
           query_heatmap(&q, &ask->range, &ask->type, &steps, counted, ret, err);
}

bool querier_heatmap(struct connect_call *call, const void *request, struct err *err)
{
    struct ask ask = {.selector = NULL};
    struct query_heatmap map;
    Api__SelectHeatmapResponse *answer =
        answer_new(call->arena, &api__select_heatmap_response__descriptor, err);
    bool ok = answer != NULL && find_heatmap(call, request, &ask, &map, err) &&
              answer_heatmap(call->arena, &map, answer, err);
    ask_done(&ask);
    if (ok) {
        call->reply = &answer->base;
    }
    return ok;
}
