#include <string.h>

#include "api/answers.h"
#include "api/ask.h"
#include "api/protojson.h"
#include "api/querier.h"
#include "store/query/tree.h"

/* Default number of nodes of a graph, which is lower than that of a flame graph. */
#define DOT_NODES_DEFAULT 100

/* ---- which stacks ---------------------------------------------------------------------------- */

/* Checks the ids of spans or traces: hexadecimal digits of a fixed length. */
static bool ids_of(struct arena *arena, char *const *ids, size_t n, size_t length, const char *what,
                   const struct sv **ret, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(ids[i]) != length) {
            return err_set(err, ERR_INPUT, "invalid %s id length: \"%s\"", what, ids[i]);
        }
        if (strspn(ids[i], "0123456789abcdefABCDEF") != length) {
            return err_set(err, ERR_INPUT, "invalid %s id: \"%s\"", what, ids[i]);
        }
    }
    return answer_views(arena, ids, n, ret, err);
}

static bool spans_of(struct arena *arena, char *const *ids, size_t n, struct query_stacks *ret,
                     struct err *err)
{
    ret->n_span_ids = n;
    return ids_of(arena, ids, n, QUERY_SPAN_ID_LENGTH, "span", &ret->span_ids, err);
}

static bool traces_of(struct arena *arena, char *const *ids, size_t n, struct query_stacks *ret,
                      struct err *err)
{
    ret->n_trace_ids = n;
    return ids_of(arena, ids, n, QUERY_TRACE_ID_LENGTH, "trace", &ret->trace_ids, err);
}

static bool profiles_of(struct arena *arena, char *const *ids, size_t n, struct query_stacks *ret,
                        struct err *err)
{
    ret->n_profile_ids = n;
    return answer_views(arena, ids, n, &ret->profile_ids, err);
}

bool querier_call_site(struct arena *arena, const Api__StackTraceSelector *s,
                       struct query_stacks *ret, struct err *err)
{
    size_t n = s == NULL ? 0 : s->n_call_site;
    struct sv *names = arena_array(arena, n + 1, sizeof(struct sv));
    if (names == NULL) {
        return err_set(err, ERR_LIMIT, "query too large for its memory limit");
    }
    for (size_t i = 0; i < n; i++) {
        names[i] = sv_from(s->call_site[i]->name);
    }
    ret->call_site = names;
    ret->n_call_site = n;
    return true;
}

static bool stacks_of(const struct connect_call *call, const Api__SelectMergeStacktracesRequest *r,
                      struct query_stacks *ret, struct err *err)
{
    struct arena *arena = call->arena;
    *ret = (struct query_stacks){.as_recorded = ask_as_recorded(call->exchange->request)};
    if (r->n_span_selector > 0 && r->n_trace_id_selector > 0) {
        return err_set(err, ERR_INPUT, "span_selector and trace_id_selector cannot be combined");
    }
    return querier_call_site(arena, r->stack_trace_selector, ret, err) &&
           profiles_of(arena, r->profile_id_selector, r->n_profile_id_selector, ret, err) &&
           spans_of(arena, r->span_selector, r->n_span_selector, ret, err) &&
           traces_of(arena, r->trace_id_selector, r->n_trace_id_selector, ret, err);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* A request for merged stacks, and the format of its response. */
struct merge {
    struct ask ask;
    struct query query;
    struct query_stacks stacks;
    const Api__StackTraceSelector *selector;
    Api__ProfileFormat format;
    int64_t asked_nodes; /* the number in the request */
    int64_t nodes;
};

struct shape {
    Api__FlameGraph *flamegraph;
    ProtobufCBinaryData tree;
    char *dot;
    Api__PprofProfile *pprof;
};

static bool copy_bytes(struct arena *arena, const struct buf *from, void *ret_data, size_t *ret_n,
                       struct err *err)
{
    /* The copy ends with a NUL, because some callers use it as a text. */
    char *copy = arena_strndup(arena, from->data, from->len);
    if (copy == NULL || !buf_ok(from)) {
        return err_set(err, ERR_LIMIT, "answer too large for the memory limit of a query");
    }
    memcpy(ret_data, &copy, sizeof(copy));
    *ret_n = from->len;
    return true;
}

static bool shape_flamegraph(const struct merge *m, const struct tree *tree, struct shape *ret,
                             struct err *err)
{
    struct flamegraph graph;
    if (!tree_flamegraph(tree, m->nodes, m->query.arena, &graph, err)) {
        return false;
    }
    ret->flamegraph = answer_flamegraph(m->query.arena, &graph, err);
    return ret->flamegraph != NULL;
}

static bool shape_tree(const struct merge *m, const struct tree *tree, struct shape *ret,
                       struct err *err)
{
    struct buf out;
    buf_init(&out, m->query.bytes_max);
    bool ok = tree_bytes(tree, m->nodes, &out, err) &&
              copy_bytes(m->query.arena, &out, (void *)&ret->tree.data, &ret->tree.len, err);
    buf_done(&out);
    return ok;
}

static bool shape_dot(const struct merge *m, const struct tree *tree, struct shape *ret,
                      struct err *err)
{
    struct buf out;
    size_t n = 0;
    buf_init(&out, m->query.bytes_max);
    bool ok = tree_total(tree) == 0 ||
              (tree_dot(tree, m->asked_nodes == 0 ? DOT_NODES_DEFAULT : m->nodes,
                        m->ask.type.sample_type, m->ask.type.sample_unit, &out, err) &&
               copy_bytes(m->query.arena, &out, (void *)&ret->dot, &n, err));
    buf_done(&out);
    return ok;
}

static void ask_pgo(const Api__StackTraceSelector *s, struct query_profile_options *ret)
{
    const Api__GoPGO *pgo = s == NULL ? NULL : s->go_pgo;
    if (pgo != NULL) {
        ret->go_pgo = true;
        ret->keep_locations = pgo->keep_locations;
        ret->aggregate_callees = pgo->aggregate_callees;
    }
}

static bool shape_pprof(const struct merge *m, struct shape *ret, struct err *err)
{
    struct buf out;
    struct query_profile_options o = {.stacks = m->stacks, .max_nodes = m->asked_nodes};
    ask_pgo(m->selector, &o);
    buf_init(&out, m->query.bytes_max);
    ret->pprof = answer_new(m->query.arena, &api__pprof_profile__descriptor, err);
    bool ok =
        ret->pprof != NULL && query_profile(&m->query, &m->ask.range, &m->ask.type, &o, &out, err);
    if (ok) {
        ret->pprof->profile = (Api__Profile *)protojson_read_bytes(
            (struct sv){out.data, out.len}, &api__profile__descriptor, m->query.arena, err);
        ok = ret->pprof->profile != NULL;
    }
    buf_done(&out);
    return ok;
}

/* Answers in the format that the request names. An unknown format is a flame graph, as in
 * Pyroscope. */
static bool shape_of(const struct merge *m, struct shape *ret, struct err *err)
{
    *ret = (struct shape){.flamegraph = NULL};
    if (m->format == API__PROFILE_FORMAT__PROFILE_FORMAT_PPROF) {
        return shape_pprof(m, ret, err);
    }
    struct tree *tree = query_tree(&m->query, &m->ask.range, &m->ask.type, &m->stacks, err);
    if (tree == NULL) {
        return false;
    }
    bool ok = m->format == API__PROFILE_FORMAT__PROFILE_FORMAT_TREE ? shape_tree(m, tree, ret, err)
              : m->format == API__PROFILE_FORMAT__PROFILE_FORMAT_DOT
                  ? shape_dot(m, tree, ret, err)
                  : shape_flamegraph(m, tree, ret, err);
    tree_free(tree);
    return ok;
}

/* ---- merges ---------------------------------------------------------------------------------- */

/* Reads the parts that both kinds of requests for a merge share: everything except the time and the
 * selected stacks. */
static bool ask_merge(struct merge *m, const char *type, const char *selector, struct err *err)
{
    return ask_type(&m->ask, sv_from(type), err) && ask_nodes(m->asked_nodes, &m->nodes, err) &&
           ask_selector(&m->ask, sv_from(selector), err);
}

static bool answer_merge(struct connect_call *call, struct merge *m, struct shape *ret,
                         struct err *err)
{
    return ask_query(call->exchange, call->deadline_ms, call->arena, &call->damaged, &m->query,
                     err) &&
           shape_of(m, ret, err);
}

bool querier_merge_stacktraces(struct connect_call *call, const void *request, struct err *err)
{
    const Api__SelectMergeStacktracesRequest *r = request;
    struct merge m = {
        .selector = r->stack_trace_selector, .format = r->format, .asked_nodes = r->max_nodes};
    struct shape shape;
    Api__SelectMergeStacktracesResponse *answer =
        answer_new(call->arena, &api__select_merge_stacktraces_response__descriptor, err);
    bool ok = answer != NULL && ask_range(&m.ask, r->start, r->end, err) &&
              ask_merge(&m, r->profile_typeid, r->label_selector, err) &&
              stacks_of(call, r, &m.stacks, err) && answer_merge(call, &m, &shape, err);
    ask_done(&m.ask);
    if (!ok) {
        return false;
    }
    answer->flamegraph = shape.flamegraph;
    answer->tree = shape.tree;
    answer->dot = shape.dot;
    answer->pprof = shape.pprof;
    call->reply = &answer->base;
    return true;
}

bool querier_merge_span_profile(struct connect_call *call, const void *request, struct err *err)
{
    const Api__SelectMergeSpanProfileRequest *r = request;
    bool tree = r->format == API__PROFILE_FORMAT__PROFILE_FORMAT_TREE;
    struct merge m = {.format = tree ? API__PROFILE_FORMAT__PROFILE_FORMAT_TREE
                                     : API__PROFILE_FORMAT__PROFILE_FORMAT_FLAMEGRAPH,
                      .stacks.as_recorded = ask_as_recorded(call->exchange->request),
                      .asked_nodes = r->max_nodes};
    struct shape shape;
    Api__SelectMergeSpanProfileResponse *answer =
        answer_new(call->arena, &api__select_merge_span_profile_response__descriptor, err);
    bool ok = answer != NULL && ask_range(&m.ask, r->start, r->end, err) &&
              ask_merge(&m, r->profile_typeid, r->label_selector, err) &&
              spans_of(call->arena, r->span_selector, r->n_span_selector, &m.stacks, err) &&
              answer_merge(call, &m, &shape, err);
    ask_done(&m.ask);
    if (!ok) {
        return false;
    }
    answer->flamegraph = shape.flamegraph;
    answer->tree = shape.tree;
    call->reply = &answer->base;
    return true;
}

/* Answers with the profile itself: its bytes are the message. */
bool querier_merge_profile(struct connect_call *call, const void *request, struct err *err)
{
    const Api__SelectMergeProfileRequest *r = request;
    struct ask ask = {.selector = NULL};
    struct query q;
    struct query_profile_options o = {.max_nodes = r->max_nodes < 0 ? 0 : r->max_nodes};
    ask_pgo(r->stack_trace_selector, &o);
    bool ok =
        ask_range(&ask, r->start, r->end, err) && ask_type(&ask, sv_from(r->profile_typeid), err) &&
        ask_selector(&ask, sv_from(r->label_selector), err) &&
        querier_call_site(call->arena, r->stack_trace_selector, &o.stacks, err) &&
        profiles_of(call->arena, r->profile_id_selector, r->n_profile_id_selector, &o.stacks,
                    err) &&
        traces_of(call->arena, r->trace_id_selector, r->n_trace_id_selector, &o.stacks, err) &&
        ask_query(call->exchange, call->deadline_ms, call->arena, &call->damaged, &q, err) &&
        query_profile(&q, &ask.range, &ask.type, &o, &call->reply_bytes, err);
    ask_done(&ask);
    return ok;
}

/* ---- differences ----------------------------------------------------------------------------- */

/* Builds the tree of one side; NULL with err. Here the type is checked before the range, while
 * other methods check the range first; both is so in Pyroscope. */
static struct tree *tree_of_side(struct connect_call *call,
                                 const Api__SelectMergeStacktracesRequest *r, struct err *err)
{
    struct ask ask = {.selector = NULL};
    struct query q;
    struct query_stacks stacks;
    struct tree *tree = NULL;
    if (ask_type(&ask, sv_from(r == NULL ? "" : r->profile_typeid), err) &&
        ask_range(&ask, r->start, r->end, err) &&
        ask_selector(&ask, sv_from(r->label_selector), err) && stacks_of(call, r, &stacks, err) &&
        ask_query(call->exchange, call->deadline_ms, call->arena, &call->damaged, &q, err)) {
        tree = query_tree(&q, &ask.range, &ask.type, &stacks, err);
    }
    ask_done(&ask);
    return tree;
}

static int64_t larger_of(const Api__DiffRequest *r)
{
    int64_t left = r->left == NULL ? 0 : r->left->max_nodes;
    int64_t right = r->right == NULL ? 0 : r->right->max_nodes;
    return left > right ? left : right;
}

bool querier_diff(struct connect_call *call, const void *request, struct err *err)
{
    const Api__DiffRequest *r = request;
    int64_t nodes = 0;
    struct flamegraph graph;
    Api__DiffResponse *answer = answer_new(call->arena, &api__diff_response__descriptor, err);
    if (answer == NULL || !ask_nodes(larger_of(r), &nodes, err)) {
        return false;
    }
    struct tree *left = tree_of_side(call, r->left, err);
    struct tree *right = left == NULL ? NULL : tree_of_side(call, r->right, err);
    bool ok = right != NULL && tree_diff(left, right, nodes, call->arena, &graph, err);
    if (ok) {
        answer->flamegraph = answer_diff(call->arena, &graph, err);
        call->reply = &answer->base;
        ok = answer->flamegraph != NULL;
    }
    tree_free(right);
    tree_free(left);
    return ok;
}
