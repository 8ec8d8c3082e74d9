#include "discovery/kubernetes.h"

#include <stdlib.h>
#include <string.h>

#include "discovery/pod.h"
#include "discovery/store.h"
#include "discovery/watch.h"

/* Of an answer that is not streamed; all of ours are. */
#define UNSTREAMED_MAX ((size_t)64 * 1024)
#define URL_MAX ((size_t)300 * 1024)

/* One list and watch: of a namespace, or of the whole cluster. */
struct pod_watch {
    struct kubernetes *k;
    const char *namespace; /* NULL: all */
    char *path;            /* URL without the query */
    struct watch *machine;
    struct store *store;
    struct loop_timer *timer;
    struct http_transfer *transfer;
    bool is_watch; /* the request that runs */
    bool accepted; /* it was answered with 200 */
    bool lost;     /* the last request failed; said so in the log */
    bool told_full;
    bool told_unknown;
    bool synced;
    enum watch_result problem; /* what was said, when lost */
};

struct kubernetes {
    struct kubernetes_options options;
    struct labels_builder *builder;
    struct pod_targets targets; /* scratch */
    struct pod_watch *watches;
    size_t n_watches;
    size_t n_synced;
};

static const char *namespace_text(const struct pod_watch *pw)
{
    return pw->namespace == NULL ? "all" : pw->namespace;
}

/* ---- what the state machine tells ------------------------------------------------------------ */

static void count(struct metric_cell *const *cells, int which)
{
    metric_inc(cells[which]);
}

static void on_list_begin(void *arg)
{
    struct pod_watch *pw = arg;
    store_list_begin(pw->store);
}

static void on_list_end(void *arg)
{
    struct pod_watch *pw = arg;
    struct kubernetes *k = pw->k;
    store_list_end(pw->store);
    if (pw->synced) {
        return;
    }
    pw->synced = true;
    log_info(k->options.log, "kubernetes: pods listed, watching them",
             LOG_STR("server", k->options.access.server), LOG_STR("namespace", namespace_text(pw)),
             LOG_INT("with_targets", store_count(pw->store)));
    if (++k->n_synced == k->n_watches) {
        k->options.on_synced(k->options.arg);
    }
}

static void count_left_out(struct kubernetes *k)
{
    const struct discovery_counters *c = k->options.counters;
    metric_add(c->skips[SKIP_BAD_IP], k->targets.bad_ip);
    metric_add(c->target_skips[TARGET_BAD_PORT], k->targets.bad_ports);
    metric_add(c->target_skips[TARGET_TOO_MANY], k->targets.too_many_targets);
}

static void tell_full(struct pod_watch *pw)
{
    metric_inc(pw->k->options.counters->skips[SKIP_TOO_MANY_OBJECTS]);
    if (!pw->told_full) {
        pw->told_full = true;
        log_warn(pw->k->options.log,
                 "kubernetes: too many pods, ignoring new ones (use namespaces or selectors)",
                 LOG_STR("namespace", namespace_text(pw)), LOG_INT("limit", DISCOVERY_OBJECTS_MAX));
    }
}

/* A pod as it is now. False if out of memory. */
static bool put_pod(struct pod_watch *pw, const struct pod_id *id, const json_t *object,
                    bool *ret_changed)
{
    struct kubernetes *k = pw->k;
    enum pod_status status = pod_read(object, k->builder, &k->targets);
    count_left_out(k);
    if (status == POD_NO_MEMORY) {
        return false;
    }
    if (status == POD_TOO_MANY_LABELS) {
        /* It cannot be described any more: what it was described as is out of date. */
        metric_inc(k->options.counters->skips[SKIP_TOO_MANY_LABELS]);
    }
    enum store_result result = store_put(pw->store, id, &k->targets);
    pod_targets_clear(&k->targets);
    if (result == STORE_FULL) {
        tell_full(pw);
    }
    *ret_changed = result == STORE_CHANGED;
    return result != STORE_NO_MEMORY;
}

static void count_event(struct kubernetes *k, enum watch_event event, bool changed)
{
    static const enum discovery_event names[] = {
        [WATCH_ADDED] = EVENT_ADDED,
        [WATCH_MODIFIED] = EVENT_MODIFIED,
        [WATCH_DELETED] = EVENT_DELETED,
    };
    if (event != WATCH_LISTED) {
        count(k->options.counters->events, changed ? (int)names[event] : EVENT_UNCHANGED);
    }
}

static bool on_object(void *arg, enum watch_event event, const json_t *object)
{
    struct pod_watch *pw = arg;
    struct kubernetes *k = pw->k;
    struct pod_id id;
    if (!pod_identify(object, &id)) {
        metric_inc(k->options.counters->skips[SKIP_NOT_A_POD]);
        return true;
    }
    bool changed = false;
    if (event == WATCH_DELETED) {
        changed = store_remove(pw->store, &id) == STORE_CHANGED;
    } else if (!put_pod(pw, &id, object, &changed)) {
        metric_inc(k->options.counters->skips[SKIP_MEMORY]);
        return false;
    }
    count_event(k, event, changed);
    return true;
}

static void on_other(void *arg, enum watch_event event, struct sv type)
{
    struct pod_watch *pw = arg;
    const struct discovery_counters *c = pw->k->options.counters;
    if (event != WATCH_UNKNOWN) {
        count(c->events, event == WATCH_BOOKMARK ? EVENT_BOOKMARK : EVENT_ERROR);
        return;
    }
    count(c->events, EVENT_UNKNOWN);
    if (!pw->told_unknown) {
        pw->told_unknown = true;
        log_warn(pw->k->options.log, "kubernetes: watch event of an unknown type, ignoring it",
                 LOG_SV("type", type), LOG_STR("namespace", namespace_text(pw)));
    }
}

static void on_skipped(void *arg, enum json_skip why)
{
    static const enum discovery_skip names[] = {
        [JSON_SKIP_TOO_LARGE] = SKIP_TOO_LARGE,
        [JSON_SKIP_TOO_DEEP] = SKIP_TOO_DEEP,
        [JSON_SKIP_SYNTAX] = SKIP_SYNTAX,
        [JSON_SKIP_MEMORY] = SKIP_MEMORY,
    };
    const struct pod_watch *pw = arg;
    count(pw->k->options.counters->skips, (int)names[why]);
}

static void on_relist(void *arg, enum watch_relist reason)
{
    const struct pod_watch *pw = arg;
    const char *name = watch_relist_name(reason);
    metric_inc(metric_cell(pw->k->options.counters->relists, (const char *const[]){name}));
    log_info(pw->k->options.log, "kubernetes: listing the pods again", LOG_STR("reason", name),
             LOG_STR("namespace", namespace_text(pw)));
}

/* ---- changes of state in the log ------------------------------------------------------------- */

static void say_forbidden(const struct pod_watch *pw, const struct err *err)
{
    bool all = pw->namespace == NULL;
    log_error(
        pw->k->options.log,
        all ? "kubernetes: not allowed to read pods in the whole cluster: apply a ClusterRole "
              "with list and watch on pods and bind it to the service account, or name "
              "namespaces; targets stay as they are, retrying"
            : "kubernetes: not allowed to read pods in the namespace: apply a Role with list "
              "and watch on pods there and bind it to the service account; targets stay as "
              "they are, retrying",
        LOG_STR("verb", pw->is_watch ? "watch" : "list"), LOG_STR("resource", "pods"),
        LOG_STR("namespace", namespace_text(pw)), LOG_ERR(err));
}

static void say_lost(struct pod_watch *pw, enum watch_result result, int64_t retry_ms,
                     const struct err *err)
{
    /* What expired is listed again at once: the handler says so. */
    if (result == WATCH_EXPIRED || (pw->lost && pw->problem == result)) {
        return;
    }
    pw->lost = true;
    pw->problem = result;
    if (result == WATCH_FORBIDDEN) {
        say_forbidden(pw, err);
        return;
    }
    log_warn(pw->k->options.log,
             "kubernetes: the API server does not answer as it should; targets stay as they are, "
             "retrying",
             LOG_STR("server", pw->k->options.access.server),
             LOG_STR("verb", pw->is_watch ? "watch" : "list"),
             LOG_STR("namespace", namespace_text(pw)), LOG_INT("retry_in_ms", retry_ms),
             LOG_ERR(err));
}

static void say_found(struct pod_watch *pw)
{
    if (pw->lost) {
        pw->lost = false;
        log_info(pw->k->options.log, "kubernetes: the API server answers again",
                 LOG_STR("server", pw->k->options.access.server),
                 LOG_STR("verb", pw->is_watch ? "watch" : "list"),
                 LOG_STR("namespace", namespace_text(pw)));
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static void end_request(struct pod_watch *pw, const struct watch_outcome *outcome)
{
    struct kubernetes *k = pw->k;
    struct err err = ERR_INIT;
    int64_t now_ms = clock_mono_ms();
    enum watch_result result = watch_end(pw->machine, outcome, now_ms, &err);
    metric_inc(metric_cell(
        k->options.counters->requests,
        (const char *const[]){pw->is_watch ? "watch" : "list", watch_result_name(result)}));
    if (result == WATCH_DONE) {
        say_found(pw);
    } else {
        say_lost(pw, result, watch_next_at(pw->machine) - now_ms, &err);
    }
    loop_timer_at(pw->timer, watch_next_at(pw->machine));
}

static bool on_head(void *arg, long status, const char *content_type)
{
    struct pod_watch *pw = arg;
    (void)content_type;
    pw->accepted = status == 200;
    watch_head(pw->machine, status);
    return true;
}

static bool on_data(void *arg, const char *data, size_t len)
{
    struct pod_watch *pw = arg;
    bool go_on = watch_data(pw->machine, data, len);
    /* Not earlier: a server may accept a watch and close it at once. */
    if (go_on && pw->accepted) {
        say_found(pw);
    }
    return go_on;
}

static void on_done(void *arg, const struct http_response *response)
{
    struct pod_watch *pw = arg;
    pw->transfer = NULL;
    end_request(pw, &(struct watch_outcome){
                        .result = response->result,
                        .status = response->status,
                        .retry_after_ms = response->retry_after_ms,
                        .error = response->error,
                    });
}

static struct http_transfer *send_request(struct pod_watch *pw, const struct watch_request *request)
{
    static const struct http_header accept = {.name = "Accept", .value = "application/json"};
    struct buf url;
    buf_init(&url, URL_MAX);
    buf_printf(&url, "%s%s%s", pw->path, request->query[0] == '\0' ? "" : "?", request->query);
    struct http_transfer *transfer = NULL;
    if (buf_ok(&url)) {
        transfer = http_start(pw->k->options.http, &(struct http_request){
                                                       .url = url.data,
                                                       .settings = &pw->k->options.access.http,
                                                       .headers = &accept,
                                                       .n_headers = 1,
                                                       .timeout_ms = request->timeout_ms,
                                                       .max_body = UNSTREAMED_MAX,
                                                       .detect_dead_peer = true,
                                                       .on_head = on_head,
                                                       .on_data = on_data,
                                                       .on_done = on_done,
                                                       .arg = pw,
                                                   });
    }
    buf_done(&url);
    return transfer;
}

/* The next request is due. */
static void on_timer(void *arg)
{
    struct pod_watch *pw = arg;
    struct watch_request request;
    if (!watch_begin(pw->machine, clock_mono_ms(), &request)) {
        loop_timer_at(pw->timer, watch_next_at(pw->machine));
        return;
    }
    pw->is_watch = request.is_watch;
    pw->accepted = false;
    pw->transfer = send_request(pw, &request);
    if (pw->transfer == NULL) {
        end_request(pw, &(struct watch_outcome){.result = HTTP_ERR_MEMORY,
                                                .retry_after_ms = -1,
                                                .error = "out of memory"});
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool append_selector(struct buf *out, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0') {
        return true;
    }
    buf_printf(out, "%s%s=", out->len == 0 ? "" : "&", name);
    return percent_encode(sv_from(value), out);
}

static bool make_selectors(const struct config_kubernetes *config, struct buf *out)
{
    for (size_t i = 0; i < config->n_selectors; i++) {
        if (strcmp(config->selectors[i].role, "pod") == 0 &&
            !(append_selector(out, "labelSelector", config->selectors[i].label) &&
              append_selector(out, "fieldSelector", config->selectors[i].field))) {
            return false;
        }
    }
    return buf_ok(out);
}

static char *make_path(const char *server, const char *namespace)
{
    struct buf path;
    buf_init(&path, URL_MAX);
    buf_printf(&path, "%s/api/v1/", server);
    if (namespace != NULL) {
        buf_puts(&path, "namespaces/");
        percent_encode(sv_from(namespace), &path);
        buf_putc(&path, '/');
    }
    buf_puts(&path, "pods");
    char *text = buf_take(&path, NULL);
    buf_done(&path);
    return text;
}

static bool init_watch(struct pod_watch *pw, struct kubernetes *k, const char *namespace,
                       const char *selectors)
{
    pw->k = k;
    pw->namespace = namespace;
    pw->path = make_path(k->options.access.server, namespace);
    pw->timer = loop_timer_new(k->options.loop, on_timer, pw);
    pw->store = store_new(&(struct store_options){
        .max = DISCOVERY_OBJECTS_MAX,
        .on_change = k->options.on_change,
        .arg = k->options.arg,
    });
    pw->machine = watch_new(&(struct watch_options){
        .handler = {.list_begin = on_list_begin,
                    .list_end = on_list_end,
                    .object = on_object,
                    .other = on_other,
                    .skipped = on_skipped,
                    .relist = on_relist,
                    .arg = pw},
        .rng = k->options.rng,
        .selectors = selectors,
        .object_max = DISCOVERY_OBJECT_MAX,
        .depth_max = DISCOVERY_DEPTH_MAX,
        .omit = pod_omit,
        .n_omit = pod_omit_count,
    });
    return pw->path != NULL && pw->timer != NULL && pw->store != NULL && pw->machine != NULL;
}

/* Adds a watch unless the namespace has one. There is room. */
static bool add_watch(struct kubernetes *k, const char *namespace, const char *selectors)
{
    for (size_t i = 0; i < k->n_watches; i++) {
        if (strcmp(namespace_text(&k->watches[i]), namespace) == 0) {
            return true;
        }
    }
    return init_watch(&k->watches[k->n_watches++], k, namespace, selectors);
}

/* One watch for each namespace, or one for all. */
static bool init_watches(struct kubernetes *k, const char *selectors)
{
    const struct config_kubernetes *config = k->options.config;
    k->watches = calloc(config->namespaces.n + 1, sizeof(*k->watches));
    if (k->watches == NULL) {
        return false;
    }
    if (config->namespaces.n == 0 && !config->own_namespace) {
        k->n_watches = 1;
        return init_watch(&k->watches[0], k, NULL, selectors);
    }
    bool ok = true;
    for (size_t i = 0; i < config->namespaces.n && ok; i++) {
        ok = add_watch(k, config->namespaces.at[i], selectors);
    }
    return ok && (!config->own_namespace || add_watch(k, k->options.access.namespace, selectors));
}

static bool init(struct kubernetes *k)
{
    struct buf selectors;
    buf_init(&selectors, URL_MAX);
    pod_targets_init(&k->targets);
    k->builder = labels_builder_new(k->options.intern);
    bool ok = k->builder != NULL && make_selectors(k->options.config, &selectors) &&
              init_watches(k, selectors.data);
    buf_done(&selectors);
    return ok;
}

struct kubernetes *kubernetes_new(const struct kubernetes_options *options, struct err *err)
{
    if (options->config->own_namespace && options->access.namespace == NULL) {
        err_set(err, ERR_INPUT,
                "own_namespace: the own namespace is not known (no file \"namespace\" beside the "
                "service account's token, or none in the kubeconfig's context)");
        return NULL;
    }
    struct kubernetes *k = calloc(1, sizeof(*k));
    if (k != NULL) {
        k->options = *options;
        if (init(k)) {
            return k;
        }
        kubernetes_free(k);
    }
    err_set(err, ERR_MEMORY, "out of memory");
    return NULL;
}

void kubernetes_start(struct kubernetes *k)
{
    for (size_t i = 0; i < k->n_watches; i++) {
        loop_timer_after(k->watches[i].timer, 0);
    }
}

size_t kubernetes_count(const struct kubernetes *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->n_watches; i++) {
        n += store_count(k->watches[i].store);
    }
    return n;
}

struct kubernetes *kubernetes_free(struct kubernetes *k)
{
    if (k == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < k->n_watches; i++) {
        struct pod_watch *pw = &k->watches[i];
        if (pw->transfer != NULL) {
            http_cancel(pw->transfer);
        }
        loop_timer_free(pw->timer);
        watch_free(pw->machine);
        store_free(pw->store);
        free(pw->path);
    }
    free(k->watches);
    pod_targets_done(&k->targets);
    labels_builder_free(k->builder);
    free(k);
    return NULL;
}
