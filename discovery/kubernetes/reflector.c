#include "discovery/kubernetes/reflector.h"

#include <stdlib.h>
#include <string.h>

#include "discovery/kubernetes/exec_plugin.h"
#include "discovery/kubernetes/roles/endpoints.h"
#include "discovery/kubernetes/roles/ingress.h"
#include "discovery/kubernetes/roles/node.h"
#include "discovery/kubernetes/roles/pod.h"
#include "discovery/kubernetes/roles/service.h"
#include "http/url.h"

/* Of an answer that is not streamed; all of ours are. */
#define UNSTREAMED_MAX ((size_t)64 * 1024)
/* A pod is some 12 KiB: an event comes in one piece. */
#define RECEIVE_BUFFER ((size_t)32 * 1024)
#define URL_MAX ((size_t)300 * 1024)

struct resource {
    const char *api;
    const char *group; /* "" for the core one */
    const char *plural;
    const char *kind;
    bool namespaced;
    const struct json_keep *members; /* that are needed */
};

static const struct resource resources[RESOURCE_COUNT] = {
    [RESOURCE_PODS] = {"api/v1", "", "pods", "Pod", true, pod_keep},
    [RESOURCE_NODES] = {"api/v1", "", "nodes", "Node", false, node_keep},
    [RESOURCE_NAMESPACES] = {"api/v1", "", "namespaces", "Namespace", false, object_keep_marks},
    [RESOURCE_SERVICES] = {"api/v1", "", "services", "Service", true, service_keep},
    [RESOURCE_ENDPOINTS] = {"api/v1", "", "endpoints", "Endpoints", true, endpoints_keep},
    [RESOURCE_SLICES] = {"apis/discovery.k8s.io/v1", "discovery.k8s.io", "endpointslices",
                         "EndpointSlice", true, slice_keep},
    [RESOURCE_INGRESSES] = {"apis/networking.k8s.io/v1", "networking.k8s.io", "ingresses",
                            "Ingress", true, ingress_keep},
};

bool kube_resource_namespaced(enum kube_resource r)
{
    return resources[r].namespaced;
}

/* Reflectors of one server (options.server_id) share its credentials. */
struct server_login {
    struct server_login *next;
    const void *server_id;
    struct http_settings settings;
    struct exec_plugin *plugin;
};

struct reflector {
    struct reflector *next;
    const struct reflector_env *env;
    struct reflector_options options;
    const struct resource *resource;
    struct reflector_listener *listeners;
    char *path; /* URL without the query */
    char *selectors;
    struct watch *machine;
    struct loop_timer *timer;
    struct loop_timer *relist; /* of reflector_relist() */
    int64_t relist_credit_ms;  /* when all of RELIST_BURST may be used again */
    bool relist_wanted;        /* no list has begun since */
    struct http_transfer *transfer;
    struct exec_plugin *plugin; /* NULL: options.access.http has the credentials */
    struct exec_login *login;   /* of the last request; NULL if none */
    struct exec_waiter waiter;
    bool waiting;  /* for the plugin */
    size_t listed; /* objects of the list that is being read */
    bool is_watch; /* the request that runs */
    bool accepted; /* it was answered with 200 */
    bool lost;     /* the last request failed; said so in the log */
    bool told_unknown;
    bool no_login; /* the last request was not made: there are no credentials */
    bool synced;
    bool told_login;           /* no_login when the problem was said */
    enum watch_result problem; /* what was said, when lost */
    struct err no_stream;      /* why a list was not streamed; to be said */
};

static const char *namespace_text(const struct reflector *r)
{
    return r->options.namespace == NULL ? "all" : r->options.namespace;
}

/* ---- what the state machine tells ------------------------------------------------------------ */

static void count(struct metric_cell *const *cells, int which)
{
    metric_inc(cells[which]);
}

static void on_list_begin(void *arg)
{
    struct reflector *r = arg;
    r->listed = 0;
    r->relist_wanted = false;
    for (struct reflector_listener *l = r->listeners; l != NULL; l = l->next) {
        l->list_begin(l->arg);
    }
}

/* Now or when the pace allows it. */
static void arm_relist(struct reflector *r, int64_t within_ms)
{
    int64_t at = clock_mono_ms() + rng_range(r->env->rng, 0, within_ms + 1);
    int64_t soonest = r->relist_credit_ms - (int64_t)(RELIST_BURST - 1) * RELIST_PERIOD_MS;
    loop_timer_at(r->relist, at > soonest ? at : soonest);
}

static void on_list_end(void *arg)
{
    struct reflector *r = arg;
    if (!r->synced) {
        r->synced = true;
        log_info(r->env->log, "kubernetes: listed, watching",
                 LOG_STR("resource", r->resource->plural),
                 LOG_STR("server", r->options.access.server),
                 LOG_STR("namespace", namespace_text(r)), LOG_INT("objects", r->listed));
    }
    for (struct reflector_listener *l = r->listeners; l != NULL; l = l->next) {
        l->list_end(l->arg);
    }
    /* It was asked for while this list was read, which may have passed what it is about. */
    if (r->relist_wanted) {
        arm_relist(r, 0);
    }
}

static void count_event(struct reflector *r, enum watch_event event, bool changed)
{
    static const enum discovery_event names[] = {
        [WATCH_ADDED] = EVENT_ADDED,
        [WATCH_MODIFIED] = EVENT_MODIFIED,
        [WATCH_DELETED] = EVENT_DELETED,
    };
    if (event != WATCH_LISTED) {
        count(r->env->counters->events, changed ? (int)names[event] : EVENT_UNCHANGED);
    }
}

static bool on_object(void *arg, enum watch_event event, const json_t *object)
{
    struct reflector *r = arg;
    struct object_id id;
    if (!object_identify(object, r->resource->kind, r->resource->namespaced, &id)) {
        metric_inc(r->env->counters->skips[SKIP_WRONG_KIND]);
        return true;
    }
    enum reflector_event what = event == WATCH_DELETED  ? OBJECT_GONE
                                : event == WATCH_LISTED ? OBJECT_LISTED
                                                        : OBJECT_PUT;
    bool changed = false;
    for (struct reflector_listener *l = r->listeners; l != NULL; l = l->next) {
        enum reflector_result result = l->object(l->arg, what, &id, object);
        if (result == REFLECTOR_NO_MEMORY) {
            metric_inc(r->env->counters->skips[SKIP_MEMORY]);
            return false;
        }
        changed = changed || result == REFLECTOR_CHANGED;
    }
    r->listed++;
    count_event(r, event, changed);
    return true;
}

static void on_other(void *arg, enum watch_event event, struct sv type)
{
    struct reflector *r = arg;
    const struct discovery_counters *c = r->env->counters;
    if (event != WATCH_UNKNOWN) {
        count(c->events, event == WATCH_BOOKMARK ? EVENT_BOOKMARK : EVENT_ERROR);
        return;
    }
    count(c->events, EVENT_UNKNOWN);
    if (!r->told_unknown) {
        r->told_unknown = true;
        log_warn(r->env->log, "kubernetes: watch event of an unknown type, ignoring it",
                 LOG_SV("type", type), LOG_STR("namespace", namespace_text(r)));
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
    const struct reflector *r = arg;
    count(r->env->counters->skips, (int)names[why]);
}

static void on_relist(void *arg, enum watch_relist reason)
{
    const struct reflector *r = arg;
    const char *name = watch_relist_name(reason);
    metric_inc(metric_cell(r->env->counters->relists, (const char *const[]){name}));
    log_info(r->env->log, "kubernetes: listing again", LOG_STR("resource", r->resource->plural),
             LOG_STR("reason", name), LOG_STR("namespace", namespace_text(r)));
}

static void on_slow(void *arg)
{
    const struct reflector *r = arg;
    log_warn(r->env->log,
             "kubernetes: the streamed list has not come to its end yet; targets stay as they are",
             LOG_STR("resource", r->resource->plural), LOG_STR("server", r->options.access.server),
             LOG_STR("namespace", namespace_text(r)),
             LOG_INT("waited_s", WATCH_STREAM_SLOW_MS / MS_PER_S));
}

/* ---- changes of state in the log ------------------------------------------------------------- */

static void say_forbidden(const struct reflector *r, const struct err *err)
{
    const char *plural = r->resource->plural;
    const char *verb = r->is_watch ? "watch" : "list";
    bool everywhere = r->options.namespace == NULL;
    char text[512];
    snprintf(text, sizeof(text),
             "kubernetes: not allowed to %s %s in the %s: apply a %s%s with the verbs list and "
             "watch on %s%s%s, and bind it to the service account%s; targets stay as they are, "
             "retrying",
             verb, plural, everywhere ? "whole cluster" : "namespace",
             everywhere ? "ClusterRole" : "Role", everywhere ? "" : " there", plural,
             r->resource->group[0] == '\0' ? "" : " of the API group ", r->resource->group,
             everywhere && r->resource->namespaced ? ", or name namespaces" : "");
    log_error(r->env->log, text, LOG_STR("verb", verb), LOG_STR("resource", plural),
              LOG_STR("namespace", namespace_text(r)), LOG_ERR(err));
    if (r->env->on_forbidden != NULL) {
        struct discovery_forbidden what = {
            .verb = verb, .resource = plural, .namespace = r->options.namespace};
        r->env->on_forbidden(r->env->arg, &what);
    }
}

static void say_lost(struct reflector *r, enum watch_result result, int64_t retry_ms,
                     const struct err *err)
{
    /* What expired is listed again at once: the handler says so. */
    if (result == WATCH_EXPIRED ||
        (r->lost && r->problem == result && r->told_login == r->no_login)) {
        return;
    }
    if (result == WATCH_UNSUPPORTED) {
        r->no_stream = *err; /* said when the list has come: perhaps it is the permission */
        return;
    }
    r->lost = true;
    r->problem = result;
    r->told_login = r->no_login;
    if (result == WATCH_FORBIDDEN) {
        say_forbidden(r, err);
        return;
    }
    log_warn(r->env->log,
             r->no_login ? "kubernetes: no credentials; targets stay as they are, retrying"
                         : "kubernetes: the API server does not answer as it should; targets stay "
                           "as they are, retrying",
             LOG_STR("server", r->options.access.server),
             LOG_STR("verb", r->is_watch ? "watch" : "list"),
             LOG_STR("resource", r->resource->plural), LOG_STR("namespace", namespace_text(r)),
             LOG_INT("retry_in_ms", retry_ms), LOG_ERR(err));
}

static void say_found(struct reflector *r)
{
    if (r->no_stream.kind != ERR_NONE) {
        log_info(r->env->log,
                 "kubernetes: the API server does not stream this list, reading it in pages",
                 LOG_STR("resource", r->resource->plural), LOG_STR("namespace", namespace_text(r)),
                 LOG_ERR(&r->no_stream));
        err_clear(&r->no_stream);
    }
    if (r->lost) {
        r->lost = false;
        log_info(r->env->log, "kubernetes: the API server answers again",
                 LOG_STR("server", r->options.access.server),
                 LOG_STR("verb", r->is_watch ? "watch" : "list"),
                 LOG_STR("namespace", namespace_text(r)));
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static void tell_reachable(const struct reflector *r, bool reachable)
{
    for (struct reflector_listener *l = r->listeners; l != NULL; l = l->next) {
        if (l->reachable != NULL) {
            l->reachable(l->arg, reachable);
        }
    }
}

static void end_request(struct reflector *r, const struct watch_outcome *outcome)
{
    struct err err = ERR_INIT;
    int64_t now_ms = clock_mono_ms();
    enum watch_result result = watch_end(r->machine, outcome, now_ms, &err);
    metric_inc(metric_cell(
        r->env->counters->requests,
        (const char *const[]){r->is_watch ? "watch" : "list", watch_result_name(result)}));
    if (result == WATCH_DONE) {
        say_found(r);
    } else {
        say_lost(r, result, watch_next_at(r->machine) - now_ms, &err);
        tell_reachable(r, result == WATCH_EXPIRED || result == WATCH_UNSUPPORTED);
    }
    loop_timer_at(r->timer, watch_next_at(r->machine));
}

static bool on_head(void *arg, long status, const char *content_type)
{
    struct reflector *r = arg;
    (void)content_type;
    r->accepted = status == 200;
    watch_head(r->machine, status);
    if (r->accepted) {
        tell_reachable(r, true);
    }
    return true;
}

static bool on_data(void *arg, const char *data, size_t len)
{
    struct reflector *r = arg;
    bool go_on = watch_data(r->machine, data, len);
    /* Not earlier: a server may accept a watch and close it at once. */
    if (go_on && r->accepted) {
        say_found(r);
    }
    return go_on;
}

static void on_done(void *arg, const struct http_response *response)
{
    struct reflector *r = arg;
    r->transfer = NULL;
    if (r->plugin != NULL && response->status == 401) {
        exec_plugin_refused(r->plugin, r->login);
    }
    end_request(r, &(struct watch_outcome){
                       .result = response->result,
                       .status = response->status,
                       .retry_after_ms = response->retry_after_ms,
                       .error = response->error,
                   });
}

static struct http_transfer *send_request(struct reflector *r, const struct watch_request *request)
{
    static const struct http_header accept = {.name = "Accept", .value = "application/json"};
    struct buf url;
    buf_init(&url, URL_MAX);
    buf_printf(&url, "%s%s%s", r->path, request->query[0] == '\0' ? "" : "?", request->query);
    struct http_transfer *transfer = NULL;
    if (buf_ok(&url)) {
        transfer = http_start(r->env->http,
                              &(struct http_request){
                                  .url = url.data,
                                  .settings = r->login == NULL ? &r->options.access.http
                                                               : exec_login_settings(r->login),
                                  .headers = &accept,
                                  .n_headers = 1,
                                  .timeout_ms = request->timeout_ms,
                                  .max_body = UNSTREAMED_MAX,
                                  .receive_buffer = RECEIVE_BUFFER,
                                  .detect_dead_peer = true,
                                  .on_head = on_head,
                                  .on_data = on_data,
                                  .on_done = on_done,
                                  .arg = r,
                              });
    }
    buf_done(&url);
    return transfer;
}

static void arm_tick(struct reflector *r)
{
    int64_t at = watch_tick_at(r->machine);
    if (at != INT64_MAX) {
        loop_timer_at(r->timer, at);
    }
}

/* A request runs. */
static void on_tick(struct reflector *r)
{
    if (watch_tick(r->machine, clock_mono_ms())) {
        arm_tick(r);
        return;
    }
    http_cancel(r->transfer);
    r->transfer = NULL;
    end_request(r, &(struct watch_outcome){.result = HTTP_ERR_ABORTED,
                                           .status = r->accepted ? 200 : 0,
                                           .retry_after_ms = -1,
                                           .error = "given up"});
}

static void fail_request(struct reflector *r, enum http_result result, const char *error)
{
    end_request(r, &(struct watch_outcome){.result = result, .retry_after_ms = -1, .error = error});
}

/* The plugin has ended: see what came of it. */
static void on_login(void *arg)
{
    struct reflector *r = arg;
    r->waiting = false;
    loop_timer_after(r->timer, 0);
}

/* READY if the server asks for no plugin. */
static enum exec_state get_login(struct reflector *r, struct err *err)
{
    if (r->plugin == NULL) {
        return EXEC_READY;
    }
    r->login = exec_login_unref(r->login);
    enum exec_state state = exec_plugin_get(r->plugin, &r->login, err);
    if (state == EXEC_RUNNING) {
        r->waiting = true;
        exec_plugin_wait(r->plugin, &r->waiter);
    }
    return state;
}

static void begin_request(struct reflector *r)
{
    struct watch_request request;
    struct err err = ERR_INIT;
    enum exec_state login = get_login(r, &err);
    if (login == EXEC_RUNNING) {
        return;
    }
    if (!watch_begin(r->machine, clock_mono_ms(), &request)) {
        loop_timer_at(r->timer, watch_next_at(r->machine));
        return;
    }
    r->is_watch = request.is_watch;
    r->accepted = false;
    r->no_login = login == EXEC_FAILED;
    if (r->no_login) {
        fail_request(r, HTTP_ERR_CONFIG, err.msg);
        return;
    }
    r->transfer = send_request(r, &request);
    if (r->transfer == NULL) {
        fail_request(r, HTTP_ERR_MEMORY, "out of memory");
        return;
    }
    arm_tick(r);
}

/* The next request is due, or the running one is to be looked at. */
static void on_timer(void *arg)
{
    struct reflector *r = arg;
    if (r->transfer != NULL) {
        on_tick(r);
    } else if (!r->waiting) {
        begin_request(r);
    }
}

void reflector_relist(struct reflector *r, int64_t within_ms)
{
    if (!r->relist_wanted) {
        r->relist_wanted = true;
        arm_relist(r, within_ms);
    }
}

static void on_relist_due(void *arg)
{
    struct reflector *r = arg;
    /* A list that is being read comes to its end first, see on_list_end(). */
    if (!r->relist_wanted || !watch_relist(r->machine)) {
        return;
    }
    int64_t now_ms = clock_mono_ms();
    int64_t from_ms = r->relist_credit_ms > now_ms ? r->relist_credit_ms : now_ms;
    r->relist_credit_ms = from_ms + RELIST_PERIOD_MS;
    if (r->transfer != NULL) {
        http_cancel(r->transfer);
        r->transfer = NULL;
        loop_timer_after(r->timer, 0);
    } /* else the next request has its time, and is a list */
}

/* ---- life ------------------------------------------------------------------------------------ */

static char *make_path(const struct reflector_options *o)
{
    struct buf path;
    buf_init(&path, URL_MAX);
    buf_printf(&path, "%s/%s/", o->access.server, resources[o->resource].api);
    if (o->namespace != NULL) {
        buf_puts(&path, "namespaces/");
        url_encode(sv_from(o->namespace), &path);
        buf_putc(&path, '/');
    }
    buf_puts(&path, resources[o->resource].plural);
    char *text = buf_take(&path, NULL);
    buf_done(&path);
    return text;
}

static struct reflector *reflector_free(struct reflector *r)
{
    if (r->transfer != NULL) {
        http_cancel(r->transfer);
    }
    exec_login_unref(r->login);
    loop_timer_free(r->timer);
    loop_timer_free(r->relist);
    watch_free(r->machine);
    free(r->path);
    free(r->selectors);
    free(r);
    return NULL;
}

static struct reflector *reflector_new(const struct reflector_env *env,
                                       const struct reflector_options *options)
{
    struct reflector *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return NULL;
    }
    r->env = env;
    r->options = *options;
    r->resource = &resources[options->resource];
    r->waiter = (struct exec_waiter){.fn = on_login, .arg = r};
    r->path = make_path(options);
    r->selectors = strdup(options->selectors);
    r->timer = loop_timer_new(env->loop, on_timer, r);
    r->relist = loop_timer_new(env->loop, on_relist_due, r);
    r->machine = watch_new(&(struct watch_options){
        .handler = {.list_begin = on_list_begin,
                    .list_end = on_list_end,
                    .object = on_object,
                    .other = on_other,
                    .skipped = on_skipped,
                    .relist = on_relist,
                    .slow = on_slow,
                    .arg = r},
        .rng = env->rng,
        .selectors = options->selectors,
        .object_max = DISCOVERY_OBJECT_MAX,
        .depth_max = DISCOVERY_DEPTH_MAX,
        .members = r->resource->members,
    });
    if (r->path == NULL || r->selectors == NULL || r->timer == NULL || r->relist == NULL ||
        r->machine == NULL) {
        return reflector_free(r);
    }
    return r;
}

static bool same(const struct reflector *r, const struct reflector_options *o)
{
    return r->options.resource == o->resource && r->options.server_id == o->server_id &&
           strcmp(r->options.access.server, o->access.server) == 0 &&
           strcmp(namespace_text(r), o->namespace == NULL ? "all" : o->namespace) == 0 &&
           (r->options.namespace == NULL) == (o->namespace == NULL) &&
           strcmp(r->selectors, o->selectors) == 0;
}

/* The plugin of the options' server; NULL if out of memory. */
static struct exec_plugin *find_plugin(struct reflectors *all, const struct reflector_options *o)
{
    for (struct server_login *l = all->logins; l != NULL; l = l->next) {
        if (l->server_id == o->server_id) {
            return l->plugin;
        }
    }
    struct server_login *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return NULL;
    }
    *l = (struct server_login){
        .next = all->logins, .server_id = o->server_id, .settings = o->access.http};
    l->plugin = exec_plugin_new(&(struct exec_plugin_options){.config = o->access.exec,
                                                              .settings = &l->settings,
                                                              .loop = all->env.loop,
                                                              .counters = all->env.counters,
                                                              .timeout_ms = EXEC_TIMEOUT_MS});
    if (l->plugin == NULL) {
        free(l);
        return NULL;
    }
    all->logins = l;
    return l->plugin;
}

struct reflector *reflectors_get(struct reflectors *all, const struct reflector_options *options)
{
    for (struct reflector *r = all->first; r != NULL; r = r->next) {
        if (same(r, options)) {
            return r;
        }
    }
    struct exec_plugin *plugin = NULL;
    if (options->access.exec != NULL && (plugin = find_plugin(all, options)) == NULL) {
        return NULL;
    }
    struct reflector *r = reflector_new(&all->env, options);
    if (r != NULL) {
        r->plugin = plugin;
        struct reflector **end = &all->first;
        while (*end != NULL) {
            end = &(*end)->next;
        }
        *end = r;
    }
    return r;
}

void reflectors_start(struct reflectors *all)
{
    for (struct reflector *r = all->first; r != NULL; r = r->next) {
        loop_timer_after(r->timer, 0);
    }
}

void reflectors_free(struct reflectors *all)
{
    while (all->first != NULL) {
        struct reflector *r = all->first;
        all->first = r->next;
        reflector_free(r);
    }
    while (all->logins != NULL) {
        struct server_login *l = all->logins;
        all->logins = l->next;
        exec_plugin_free(l->plugin);
        free(l);
    }
}

void reflector_listen(struct reflector *r, struct reflector_listener *listener)
{
    struct reflector_listener **end = &r->listeners;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    listener->next = NULL;
    *end = listener;
}
