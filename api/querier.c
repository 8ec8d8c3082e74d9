#include "api/querier.h"

#include "api/answers.h"
#include "api/ask.h"
#include "api/route_errors.h"
#include "base/clock.h"

/* ---- profile types --------------------------------------------------------------------------- */

static bool answer_type(struct arena *arena, const struct profile_type *from,
                        Api__ProfileType **ret, struct err *err)
{
    Api__ProfileType *t = answer_new(arena, &api__profile_type__descriptor, err);
    *ret = t;
    return t != NULL && answer_string(arena, from->id, &t->id, err) &&
           answer_string(arena, from->name, &t->name, err) &&
           answer_string(arena, from->sample_type, &t->sample_type, err) &&
           answer_string(arena, from->sample_unit, &t->sample_unit, err) &&
           answer_string(arena, from->period_type, &t->period_type, err) &&
           answer_string(arena, from->period_unit, &t->period_unit, err);
}

static bool profile_types(struct connect_call *call, const void *request, struct err *err)
{
    const Api__ProfileTypesRequest *r = request;
    struct ask ask = {.selector = NULL};
    struct query q;
    struct query_strings ids;
    int64_t now_ms = clock_wall_ns() / NS_PER_MS;
    bool no_range = r->start == 0 && r->end == 0;
    Api__ProfileTypesResponse *answer =
        answer_new(call->arena, &api__profile_types_response__descriptor, err);
    if (answer == NULL ||
        !ask_range(&ask, no_range ? now_ms - MS_PER_HOUR : r->start, no_range ? now_ms : r->end,
                   err) ||
        !ask_query(call->exchange, call->deadline_ms, call->arena, &call->damaged, &q, err) ||
        !query_label_values(&q, &ask.range, SV("__profile_type__"), &ids, err)) {
        return false;
    }
    answer->profile_types = answer_list(call->arena, ids.n, err);
    bool ok = answer->profile_types != NULL;
    for (size_t i = 0; ok && i < ids.n; i++) {
        struct profile_type type;
        /* If a name has a colon, its id cannot be used in a query, so it is left out. */
        if (profile_type_parse(ids.at[i], &type, NULL)) {
            ok = answer_type(call->arena, &type, &answer->profile_types[answer->n_profile_types++],
                             err);
        }
    }
    call->reply = &answer->base;
    return ok;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Returns true if the client accepts names of labels with any characters. */
static bool takes_any_name(const struct request *r)
{
    struct sv accept = request_header(r, "accept");
    struct sv word = SV("allow-utf8-labelnames=true");
    for (size_t i = 0; i + word.n <= accept.n; i++) {
        if (sv_eq((struct sv){accept.p + i, word.n}, word)) {
            return true;
        }
    }
    return false;
}

static bool is_plain_name(struct sv name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return name.n > 0;
}

static bool ask_labels(struct connect_call *call, struct ask *ask, char *const *matchers, size_t n,
                       int64_t start, int64_t end, struct query *ret, struct err *err)
{
    return ask_range(ask, start, end, err) && ask_matchers(ask, matchers, n, err) &&
           ask_query(call->exchange, call->deadline_ms, call->arena, &call->damaged, ret, err);
}

static bool label_names(struct connect_call *call, const void *request, struct err *err)
{
    const Api__LabelNamesRequest *r = request;
    struct ask ask = {.selector = NULL};
    struct query q;
    struct query_strings names;
    Api__LabelNamesResponse *answer =
        answer_new(call->arena, &api__label_names_response__descriptor, err);
    bool ok = answer != NULL &&
              ask_labels(call, &ask, r->matchers, r->n_matchers, r->start, r->end, &q, err) &&
              query_label_names(&q, &ask.range, &names, err);
    ask_done(&ask);
    if (!ok) {
        return false;
    }
    if (!takes_any_name(call->exchange->request)) {
        size_t n = names.n;
        names.n = 0;
        for (size_t i = 0; i < n; i++) {
            if (is_plain_name(names.at[i])) {
                names.at[names.n++] = names.at[i];
            }
        }
    }
    call->reply = &answer->base;
    return answer_strings(call->arena, &names, &answer->names, &answer->n_names, err);
}

static bool label_values(struct connect_call *call, const void *request, struct err *err)
{
    const Api__LabelValuesRequest *r = request;
    struct ask ask = {.selector = NULL};
    struct query q;
    struct query_strings values;
    Api__LabelValuesResponse *answer =
        answer_new(call->arena, &api__label_values_response__descriptor, err);
    if (answer == NULL) {
        return false;
    }
    if (r->name[0] == '\0') {
        return err_set(err, ERR_INPUT, "name is required");
    }
    bool ok = ask_labels(call, &ask, r->matchers, r->n_matchers, r->start, r->end, &q, err) &&
              query_label_values(&q, &ask.range, sv_from(r->name), &values, err);
    ask_done(&ask);
    if (ok) {
        call->reply = &answer->base;
    }
    return ok && answer_strings(call->arena, &values, &answer->names, &answer->n_names, err);
}

/* ---- series ---------------------------------------------------------------------------------- */

/* Lists the labels of the response: those that are asked for, or all, except those whose names the
 * client does not accept. */
static bool names_to_answer(const struct query *q, const struct query_range *range,
                            const Api__SeriesRequest *r, bool any_name, struct query_strings *ret,
                            struct err *err)
{
    const struct sv *asked = NULL;
    *ret = (struct query_strings){.at = NULL};
    if (r->n_label_names == 0 && any_name) {
        return true;
    }
    if (r->n_label_names == 0) {
        if (!query_label_names(q, range, ret, err)) {
            return false;
        }
    } else if (!answer_views(q->arena, r->label_names, r->n_label_names, &asked, err)) {
        return false;
    }
    size_t n = asked == NULL ? ret->n : r->n_label_names;
    struct sv *names = arena_array(q->arena, n + 1, sizeof(struct sv));
    if (names == NULL) {
        return err_set(err, ERR_LIMIT, "query too large for its memory limit");
    }
    const struct sv *from = asked == NULL ? ret->at : asked;
    *ret = (struct query_strings){.at = names};
    for (size_t i = 0; i < n; i++) {
        if (any_name || is_plain_name(from[i])) {
            names[ret->n++] = from[i];
        }
    }
    return true;
}

static bool answer_sets(struct arena *arena, const struct query_label_sets *sets,
                        Api__SeriesResponse *answer, struct err *err)
{
    answer->labels_set = answer_list(arena, sets->n, err);
    answer->n_labels_set = sets->n;
    bool ok = answer->labels_set != NULL;
    for (size_t i = 0; ok && i < sets->n; i++) {
        Api__Labels *labels = answer_new(arena, &api__labels__descriptor, err);
        answer->labels_set[i] = labels;
        ok = labels != NULL &&
             answer_labels(arena, &sets->at[i], &labels->labels, &labels->n_labels, err);
    }
    return ok;
}

static bool find_sets(struct connect_call *call, const Api__SeriesRequest *r, struct ask *ask,
                      struct query_label_sets *ret, struct err *err)
{
    struct query q;
    struct query_strings names;
    bool any_name = takes_any_name(call->exchange->request);
    *ret = (struct query_label_sets){.at = NULL};
    if (!ask_labels(call, ask, r->matchers, r->n_matchers, r->start, r->end, &q, err) ||
        !names_to_answer(&q, &ask->range, r, any_name, &names, err)) {
        return false;
    }
    bool none = names.n == 0 && (r->n_label_names > 0 || !any_name);
    return none || query_series(&q, &ask->range, names.at, names.n, ret, err);
}

static bool series(struct connect_call *call, const void *request, struct err *err)
{
    struct ask ask = {.selector = NULL};
    struct query_label_sets sets;
    Api__SeriesResponse *answer = answer_new(call->arena, &api__series_response__descriptor, err);
    bool ok = answer != NULL && find_sets(call, request, &ask, &sets, err) &&
              answer_sets(call->arena, &sets, answer, err);
    ask_done(&ask);
    if (ok) {
        call->reply = &answer->base;
    }
    return ok;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static bool profile_stats(struct connect_call *call, const void *request, struct err *err)
{
    struct query q;
    struct store_stats stats;
    (void)request;
    Api__GetProfileStatsResponse *answer =
        answer_new(call->arena, &api__get_profile_stats_response__descriptor, err);
    if (answer == NULL ||
        !ask_query(call->exchange, call->deadline_ms, call->arena, &call->damaged, &q, err)) {
        return false;
    }
    store_stats(q.store, &stats);
    answer->data_ingested = stats.profiles > 0;
    answer->oldest_profile_time = stats.oldest_ns / NS_PER_MS;
    answer->newest_profile_time = stats.newest_ns / NS_PER_MS;
    call->reply = &answer->base;
    return true;
}

/* Answers with an empty message: without an estimate of the bytes that a query reads, Drilldown
 * shows none. */
static bool analyze_query(struct connect_call *call, const void *request, struct err *err)
{
    (void)request;
    call->reply = answer_new(call->arena, &api__analyze_query_response__descriptor, err);
    return call->reply != NULL;
}

/* ---- the service ----------------------------------------------------------------------------- */

#define SERVICE "/querier.v1.QuerierService/"

static void serve(struct exchange *x)
{
    static const struct connect_method methods[] = {
        {SERVICE "ProfileTypes", &api__profile_types_request__descriptor, NULL, profile_types},
        {SERVICE "LabelNames", &api__label_names_request__descriptor, NULL, label_names},
        {SERVICE "LabelValues", &api__label_values_request__descriptor, NULL, label_values},
        {SERVICE "Series", &api__series_request__descriptor, NULL, series},
        {SERVICE "SelectMergeStacktraces", &api__select_merge_stacktraces_request__descriptor, NULL,
         querier_merge_stacktraces},
        {SERVICE "SelectMergeSpanProfile", &api__select_merge_span_profile_request__descriptor,
         NULL, querier_merge_span_profile},
        {SERVICE "SelectMergeProfile", &api__select_merge_profile_request__descriptor,
         &api__profile__descriptor, querier_merge_profile},
        {SERVICE "Diff", &api__diff_request__descriptor, NULL, querier_diff},
        {SERVICE "SelectSeries", &api__select_series_request__descriptor, NULL, querier_series},
        {SERVICE "SelectHeatmap", &api__select_heatmap_request__descriptor, NULL, querier_heatmap},
        {SERVICE "GetProfileStats", &api__get_profile_stats_request__descriptor, NULL,
         profile_stats},
        {SERVICE "AnalyzeQuery", &api__analyze_query_request__descriptor, NULL, analyze_query},
    };
    connect_serve(x, methods, sizeof(methods) / sizeof(methods[0]), QUERIER_BODY_MAX);
}

const struct route querier_routes[] = {
    {SERVICE, .is_prefix = true, .set = ROUTE_QUERY, .methods = ROUTE_ANY,
     .errors = connect_route_error, .work = serve},
    {.path = NULL},
};
