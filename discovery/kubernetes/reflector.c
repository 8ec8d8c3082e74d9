#include "discovery/kubernetes/reflector.h"

#include <stdlib.h>
#include <string.h>

#include "discovery/kubernetes/exec_plugin.h"
#include "http/url.h"

/* The limit of a response body that is not streamed; it has no effect, because all bodies are
 * streamed here. */
#define UNSTREAMED_MAX ((size_t)64 * 1024)
/* The size of the receive buffer: a pod has some 12 KiB, so an event usually arrives in one
 * piece. */
#define RECEIVE_BUFFER ((size_t)32 * 1024)
#define URL_MAX ((size_t)300 * 1024)

struct reflector {
    struct reflector *next;
    const struct reflector_env *env;
    struct reflector_options options;
    char *namespace;   /* a copy of the option */
    const char *where; /* the namespace as the log shows it */
    struct reflector_listener *listeners;
    char *path; /* URL without the query */
    char *selectors;
    struct watch *machine;
    struct loop_timer *timer;
    struct loop_timer *relist_timer;
    int64_t relist_credit_ms; /* the time at which a full RELIST_BURST is available again */
    struct http_transfer *transfer;
    /* the plugin of the server; NULL: options.access.http has the credentials */
    struct exec_plugin *plugin;
    struct exec_login *login; /* the login of the last request; NULL if none */
    struct exec_waiter waiter;
    size_t listed;    /* number of objects of the list that is being read */
    const char *verb; /* verb of the current request: "list" or "watch" */
    /* until it is synced: the failure of the last list; WATCH_DONE: it has not failed */
    enum watch_result missing;
    bool relist_requested; /* reflector_relist() was called, and no list has begun since */
    bool started;
    bool waiting;  /* it waits for the plugin */
    bool accepted; /* the current request was answered with 200 */
    bool counted;  /* the encoding of its response was counted */
    bool no_login; /* the request was not sent, because there are no credentials */
    bool synced;
    bool warned_unknown;
    const char *problem;  /* the logged failure of the last request; NULL if it did not fail */
    const char *lost;     /* how the last request ended; NULL once another one is accepted */
    struct err no_stream; /* the reason why a list was not streamed, to be logged */
};

/* The plugin of a server, which its reflectors share. */
struct kube_login {
    struct kube_login *next;
    const void *server_id;
    struct http_settings settings; /* what they point to lives as long as the server's reflectors */
    struct exec_plugin *plugin;
};

/* Fields of the log. */
#define LOG_RESOURCE(r) LOG_STR("resource", (r)->options.resource->plural)
#define LOG_SERVER(r) LOG_STR("server", (r)->options.access.server)
#define LOG_NAMESPACE(r) LOG_STR("namespace", (r)->where)
#define LOG_VERB(r) LOG_STR("verb", (r)->verb)

static void report_progress(const struct reflector *r)
{
    if (r->env->on_progress != NULL) {
        r->env->on_progress(r->env->arg);
    }
}

/* ---- events of the state machine ------------------------------------------------------------- */

static void reflector_on_list_begin(void *arg)
{
    struct reflector *r = arg;
    r->listed = 0;
    r->relist_requested = false;
    for (struct reflector_listener *l = r->listeners; l != NULL; l = l->next) {
        if (l->state != LISTENER_IDLE) {
            l->state = LISTENER_CALLED;
            l->list_begin(l->arg);
        }
    }
}

/* Arms the timer for a list, but not before the pace allows one. */
static void arm_relist(struct reflector *r, int64_t within_ms)
{
    int64_t at = clock_mono_ms() + rng_range(r->env->rng, 0, within_ms + 1);
    int64_t soonest = r->relist_credit_ms - (int64_t)(RELIST_BURST - 1) * RELIST_PERIOD_MS;
    loop_timer_at(r->relist_timer, at > soonest ? at : soonest);
}

static void reflector_on_list_end(void *arg)
{
    struct reflector *r = arg;
    bool first = !r->synced;
    if (first) {
        r->synced = true;
        log_info(r->env->log, "kubernetes: listed, watching", LOG_RESOURCE(r), LOG_SERVER(r),
                 LOG_NAMESPACE(r), LOG_INT("objects", r->listed),
                 LOG_STR("encoding", watch_is_protobuf(r->machine) ? "protobuf" : "json"));
    }
    for (struct reflector_listener *l = r->listeners; l != NULL; l = l->next) {
        if (l->state == LISTENER_CALLED) {
            l->list_end(l->arg);
        }
    }
    /* Another list was requested while this one was read, which may have passed the objects in
     * question already. */
    if (r->relist_requested) {
        arm_relist(r, 0);
    }
    if (first) {
        report_progress(r);
    }
}

static bool reflector_on_object(void *arg, enum discovery_event event,
                                const struct kube_object *object)
{
    struct reflector *r = arg;
    struct object_id id;
    if (!object_identify(object, r->options.resource->kind, r->options.resource->namespaced, &id)) {
        metric_inc(r->env->counters->skips[SKIP_WRONG_KIND]);
        return true;
    }
    bool changed = false;
    for (struct reflector_listener *l = r->listeners; l != NULL; l = l->next) {
        if (l->state != LISTENER_CALLED) {
            continue;
        }
        enum store_result result = l->object(l->arg, &id, event == EVENT_DELETED ? NULL : object);
        if (result == STORE_NO_MEMORY) {
            metric_inc(r->env->counters->skips[SKIP_MEMORY]);
            return false;
        }
        changed = changed || result == STORE_CHANGED;
    }
    r->listed++;
    if (event != EVENT_LISTED) {
        metric_inc(r->env->counters->events[changed ? event : EVENT_UNCHANGED]);
    }
    return true;
}

static void reflector_on_other(void *arg, enum discovery_event event, struct sv type)
{
    struct reflector *r = arg;
    metric_inc(r->env->counters->events[event]);
    if (event == EVENT_UNKNOWN && !r->warned_unknown) {
        r->warned_unknown = true;
        log_warn(r->env->log, "kubernetes: watch event of an unknown type, ignoring it",
                 LOG_SV("type", type), LOG_NAMESPACE(r));
    }
}

static void reflector_on_skipped(void *arg, enum discovery_skip why)
{
    const struct reflector *r = arg;
    metric_inc(r->env->counters->skips[why]);
}

static void reflector_on_relist(void *arg, enum watch_relist reason)
{
    const struct reflector *r = arg;
    const char *name = watch_relist_name(reason);
    metric_inc(metric_cell_of(r->env->counters->relists, name));
    log_info(r->env->log, "kubernetes: listing again", LOG_RESOURCE(r), LOG_STR("reason", name),
             LOG_NAMESPACE(r));
}

static void reflector_on_slow(void *arg)
{
    const struct reflector *r = arg;
    log_warn(r->env->log,
             "kubernetes: the streamed list is not complete yet; targets stay as they are",
             LOG_RESOURCE(r), LOG_SERVER(r), LOG_NAMESPACE(r),
             LOG_INT("waited_s", WATCH_STREAM_SLOW_MS / MS_PER_S));
}

/* ---- changes of state in the log ------------------------------------------------------------- */

static void log_forbidden(const struct reflector *r, const struct err *err)
{
    const char *plural = r->options.resource->plural;
    bool everywhere = r->options.namespace == NULL;
    char text[512];
    snprintf(text, sizeof(text),
             "kubernetes: not allowed to %s %s in the %s: apply a %s%s with the verbs list and "
             "watch on %s%s%s, and bind it to the service account%s; targets stay as they are, "
             "retrying",
             r->verb, plural, everywhere ? "whole cluster" : "namespace",
             everywhere ? "ClusterRole" : "Role", everywhere ? "" : " there", plural,
             r->options.resource->group[0] == '\0' ? "" : " of the API group ",
             r->options.resource->group,
             everywhere && r->options.resource->namespaced ? ", or name namespaces" : "");
    log_error(r->env->log, text, LOG_VERB(r), LOG_RESOURCE(r), LOG_NAMESPACE(r), LOG_ERR(err));
    if (r->env->on_forbidden != NULL) {
        struct discovery_forbidden what = {
            .verb = r->verb, .resource = plural, .namespace = r->options.namespace};
        r->env->on_forbidden(r->env->arg, &what);
    }
}

static void log_lost(struct reflector *r, enum watch_result result, int64_t retry_ms,
                     const struct err *err)
{
    /* After an expired version a list follows at once, and reflector_on_relist() logs that. */
    const char *problem = r->no_login ? "no login" : watch_result_name(result);
    if (result == WATCH_EXPIRED || r->problem == problem) {
        return;
    }
    if (result == WATCH_UNSUPPORTED) {
        r->no_stream = *err; /* logged after the list: perhaps the permission is missing */
        return;
    }
    if (result == WATCH_NO_PROTOBUF) {
        log_info(r->env->log, "kubernetes: the API server sends no protobuf, asking it for JSON",
                 LOG_SERVER(r), LOG_RESOURCE(r), LOG_NAMESPACE(r), LOG_ERR(err));
        return;
    }
    r->problem = problem;
    if (result == WATCH_FORBIDDEN) {
        log_forbidden(r, err);
        return;
    }
    log_warn(r->env->log,
             r->no_login ? "kubernetes: no credentials; targets stay as they are, retrying"
                         : "kubernetes: the API server does not answer as it should; targets stay "
                           "as they are, retrying",
             LOG_SERVER(r), LOG_VERB(r), LOG_RESOURCE(r), LOG_NAMESPACE(r),
             LOG_INT("retry_in_ms", retry_ms), LOG_ERR(err));
}

static void log_found(struct reflector *r)
{
    if (r->no_stream.kind != ERR_NONE) {
        log_info(r->env->log,
                 "kubernetes: the API server does not stream this list, reading it in pages",
                 LOG_RESOURCE(r), LOG_NAMESPACE(r), LOG_ERR(&r->no_stream));
        err_clear(&r->no_stream);
    }
    if (r->problem != NULL) {
        r->problem = NULL;
        log_info(r->env->log, "kubernetes: the API server answers again", LOG_SERVER(r),
                 LOG_VERB(r), LOG_NAMESPACE(r));
    }
}

/* ---- what has not been read ------------------------------------------------------------------ */

/* Returns true unless another request follows at once: after an expired version, or if the server
 * does not support the stream or the encoding. */
static bool is_answered(enum watch_result result)
{
    return result == WATCH_EXPIRED || result == WATCH_UNSUPPORTED || result == WATCH_NO_PROTOBUF;
}

static void note_failure(struct reflector *r, enum watch_result result)
{
    const char *how = watch_result_name(result);
    if (!is_answered(result) && r->lost != how) {
        r->missing = result;
        r->lost = how;
        report_progress(r);
    }
}

static void note_answer(struct reflector *r)
{
    bool was_lost = r->lost != NULL;
    r->lost = NULL;
    if (was_lost) {
        report_progress(r);
    }
}

static bool is_refused(const struct reflector *r)
{
    return r->missing == WATCH_FORBIDDEN || r->missing == WATCH_NOT_FOUND;
}

/* Appends the resource and its namespace: "pods in namespace shop". */
static void put_what(const struct reflector *r, struct buf *text)
{
    buf_puts(text, r->options.resource->plural);
    if (r->options.namespace == NULL) {
        buf_puts(text, " in the whole cluster");
    } else {
        buf_printf(text, " in namespace %.*s", OBJECT_NAMESPACE_MAX, r->options.namespace);
    }
}

static void describe_missing(const struct reflector *r, struct buf *text)
{
    const struct kube_resource *resource = r->options.resource;
    if (r->missing == WATCH_FORBIDDEN) {
        buf_puts(text, "not allowed to list ");
        put_what(r, text);
        buf_printf(text, " (a %s needs the verbs list and watch on %s%s%s)",
                   r->options.namespace == NULL ? "ClusterRole" : "Role", resource->plural,
                   resource->group[0] == '\0' ? "" : " of ", resource->group);
    } else if (r->missing == WATCH_NOT_FOUND) {
        buf_puts(text, "the API server does not have ");
        put_what(r, text);
        buf_puts(text, " (404)");
    } else {
        put_what(r, text);
        buf_printf(text, " not read yet%s%s",
                   r->missing == WATCH_DONE ? "" : ": the last request ended as ",
                   r->missing == WATCH_DONE ? "" : watch_result_name(r->missing));
    }
}

enum source_state reflector_state(const struct reflector *r, struct buf *why)
{
    if (r->synced && r->lost == NULL) {
        return SOURCE_WORKS;
    }
    if (!r->synced) {
        describe_missing(r, why);
        return is_refused(r) ? SOURCE_FAILS : SOURCE_WAITS;
    }
    buf_puts(why, "changes of ");
    put_what(r, why);
    buf_printf(why, " are not seen: the last request ended as %s", r->lost);
    return SOURCE_FAILS;
}

struct reflectors_unread reflectors_unread(const struct reflectors *all)
{
    struct reflectors_unread unread = {0};
    for (const struct reflector *r = all->first; r != NULL; r = r->next) {
        unread.refused += !r->synced && is_refused(r);
        unread.pending += !r->synced && !is_refused(r);
    }
    return unread;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void report_reachable(const struct reflector *r, bool reachable)
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
    metric_inc(metric_cell(r->env->counters->requests,
                           (const char *const[]){r->verb, watch_result_name(result)}));
    if (result == WATCH_DONE) {
        log_found(r);
    } else {
        log_lost(r, result, watch_next_at(r->machine) - now_ms, &err);
        note_failure(r, result);
        report_reachable(r, is_answered(result));
    }
    loop_timer_at(r->timer, watch_next_at(r->machine));
}

static bool reflector_on_head(void *arg, long status, const char *content_type)
{
    struct reflector *r = arg;
    r->accepted = status == 200;
    r->counted = false;
    watch_head(r->machine, status, content_type);
    if (r->accepted) {
        note_answer(r);
        report_reachable(r, true);
    }
    return true;
}

/* Counts the encoding of a response, which is known after the first bytes of the body. */
static void count_encoding(struct reflector *r)
{
    bool is_protobuf = watch_is_protobuf(r->machine);
    metric_inc(r->env->counters->answers[is_protobuf ? ENCODING_PROTOBUF : ENCODING_JSON]);
    r->counted = true;
}

static bool reflector_on_data(void *arg, const char *data, size_t len)
{
    struct reflector *r = arg;
    bool go_on = watch_data(r->machine, clock_mono_ms(), data, len);
    if (r->accepted && !r->counted) {
        count_encoding(r);
    }
    /* A request counts as accepted only when data arrives, because a server may accept a watch and
     * close it at once. */
    if (go_on && r->accepted) {
        log_found(r);
    }
    return go_on;
}

static void reflector_on_done(void *arg, const struct http_response *response)
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
    const struct http_header accept = {.name = "Accept", .value = request->accept};
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
                                  .progress_timeout_ms = request->progress_timeout_ms,
                                  .accept_gzip = !request->is_watch,
                                  .max_body = UNSTREAMED_MAX,
                                  .receive_buffer = RECEIVE_BUFFER,
                                  .detect_dead_peer = true,
                                  .on_head = reflector_on_head,
                                  .on_data = reflector_on_data,
                                  .on_done = reflector_on_done,
                                  .arg = r,
                              });
    }
    buf_done(&url);
    return transfer;
}

static void arm_check(struct reflector *r)
{
    int64_t at = watch_tick_at(r->machine);
    if (at != INT64_MAX) {
        loop_timer_at(r->timer, at);
    }
}

/* Ends a request that has no response. */
static void fail_request(struct reflector *r, enum http_result result, const char *error)
{
    end_request(r, &(struct watch_outcome){.result = result,
                                           .status = r->accepted ? 200 : 0,
                                           .retry_after_ms = -1,
                                           .error = error});
}

/* Cancels the current request if it has stalled. */
static void check_request(struct reflector *r)
{
    if (watch_tick(r->machine, clock_mono_ms())) {
        arm_check(r);
        return;
    }
    http_cancel(r->transfer);
    r->transfer = NULL;
    fail_request(r, HTTP_ERR_ABORTED, "given up");
}

/* Continues after the plugin has ended, whether it succeeded or not. */
static void reflector_on_login(void *arg)
{
    struct reflector *r = arg;
    r->waiting = false;
    loop_timer_after(r->timer, 0);
}

/* Gets the login of the next request; EXEC_READY if the server needs no plugin. */
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
    r->verb = request.is_watch ? "watch" : "list";
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
    arm_check(r);
}

/* Begins the next request, or checks the current one. */
static void reflector_on_request_timer(void *arg)
{
    struct reflector *r = arg;
    if (r->transfer != NULL) {
        check_request(r);
    } else if (!r->waiting) {
        begin_request(r);
    }
}

void reflector_relist(struct reflector *r, int64_t within_ms)
{
    if (!r->relist_requested) {
        r->relist_requested = true;
        arm_relist(r, within_ms);
    }
}

static void reflector_on_relist_due(void *arg)
{
    struct reflector *r = arg;
    /* If a list is being read, the new one begins after it: see reflector_on_list_end(). */
    if (!r->relist_requested || !watch_relist(r->machine)) {
        return;
    }
    int64_t now_ms = clock_mono_ms();
    int64_t from_ms = r->relist_credit_ms > now_ms ? r->relist_credit_ms : now_ms;
    r->relist_credit_ms = from_ms + RELIST_PERIOD_MS;
    if (r->transfer != NULL) {
        http_cancel(r->transfer);
        r->transfer = NULL;
        loop_timer_after(r->timer, 0);
    } /* otherwise the next request, which is scheduled, is a list */
}

/* ---- life ------------------------------------------------------------------------------------ */

static char *make_path(const struct reflector_options *o)
{
    struct buf path;
    buf_init(&path, URL_MAX);
    buf_printf(&path, "%s/%s%s/v1/", o->access.server,
               o->resource->group[0] == '\0' ? "api" : "apis/", o->resource->group);
    if (o->namespace != NULL) {
        buf_puts(&path, "namespaces/");
        url_encode(sv_from(o->namespace), &path);
        buf_putc(&path, '/');
    }
    buf_puts(&path, o->resource->plural);
    char *text = buf_take(&path, NULL);
    buf_done(&path);
    return text;
}

static struct reflector *reflector_free(struct reflector *r)
{
    if (r->transfer != NULL) {
        http_cancel(r->transfer);
    }
    if (r->waiting) {
        exec_plugin_forget(r->plugin, &r->waiter);
    }
    exec_login_unref(r->login);
    loop_timer_free(r->timer);
    loop_timer_free(r->relist_timer);
    watch_free(r->machine);
    free(r->path);
    free(r->namespace);
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
    r->namespace = options->namespace == NULL ? NULL : strdup(options->namespace);
    r->options.namespace = r->namespace;
    r->where = r->namespace == NULL ? "all" : r->namespace;
    r->waiter = (struct exec_waiter){.fn = reflector_on_login, .arg = r};
    r->path = make_path(options);
    r->selectors = strdup(options->selectors);
    r->timer = loop_timer_new(env->loop, reflector_on_request_timer, r);
    r->relist_timer = loop_timer_new(env->loop, reflector_on_relist_due, r);
    r->machine = watch_new(&(struct watch_options){
        .handler = {.list_begin = reflector_on_list_begin,
                    .list_end = reflector_on_list_end,
                    .object = reflector_on_object,
                    .other = reflector_on_other,
                    .skipped = reflector_on_skipped,
                    .relist = reflector_on_relist,
                    .slow = reflector_on_slow,
                    .arg = r},
        .rng = env->rng,
        .selectors = r->selectors == NULL ? "" : r->selectors,
        .object_max = OBJECT_BYTES_MAX,
        .depth_max = OBJECT_DEPTH_MAX,
        .rows = r->options.resource->rows,
        .kind = r->options.resource->kind,
        .metadata_only = r->options.resource->metadata_only,
        .progress_ms = env->list_progress_ms,
    });
    bool named = r->namespace != NULL || options->namespace == NULL;
    if (!named || r->path == NULL || r->selectors == NULL || r->timer == NULL ||
        r->relist_timer == NULL || r->machine == NULL) {
        return reflector_free(r);
    }
    return r;
}

static bool is_same(const struct reflector *r, const struct reflector_options *o)
{
    return r->options.resource == o->resource && r->options.server_id == o->server_id &&
           strcmp(r->options.access.server, o->access.server) == 0 &&
           str_same(r->options.namespace, o->namespace) && strcmp(r->selectors, o->selectors) == 0;
}

/* Sets the plugin of the reflector's server, if it has one. False if out of memory. */
static bool set_plugin(struct reflectors *all, struct reflector *r)
{
    const struct reflector_options *o = &r->options;
    struct kube_login *login = all->logins;
    while (login != NULL && login->server_id != o->server_id) {
        login = login->next;
    }
    if (login == NULL) {
        login = calloc(1, sizeof(*login));
        if (login == NULL) {
            return false;
        }
        *login = (struct kube_login){
            .next = all->logins, .server_id = o->server_id, .settings = o->access.http};
        login->plugin =
            exec_plugin_new(&(struct exec_plugin_options){.config = o->access.exec,
                                                          .settings = &login->settings,
                                                          .loop = all->env.loop,
                                                          .counters = all->env.counters,
                                                          .timeout_ms = EXEC_TIMEOUT_MS});
        all->logins = login;
    }
    r->plugin = login->plugin;
    return r->plugin != NULL;
}

/* Frees the plugins of servers that have no reflector any more. */
static void prune_logins(struct reflectors *all)
{
    struct kube_login **at = &all->logins;
    while (*at != NULL) {
        struct kube_login *login = *at;
        const struct reflector *r = all->first;
        while (r != NULL && r->options.server_id != login->server_id) {
            r = r->next;
        }
        if (r != NULL) {
            at = &login->next;
            continue;
        }
        *at = login->next;
        exec_plugin_free(login->plugin);
        free(login);
    }
}

struct reflector *reflectors_get(struct reflectors *all, const struct reflector_options *options)
{
    struct reflector **end = &all->first;
    for (; *end != NULL; end = &(*end)->next) {
        if (is_same(*end, options)) {
            return *end;
        }
    }
    struct reflector *r = reflector_new(&all->env, options);
    if (r != NULL && options->access.exec != NULL && !set_plugin(all, r)) {
        return reflector_free(r);
    }
    *end = r;
    return r;
}

void reflectors_prune(struct reflectors *all)
{
    struct reflector **at = &all->first;
    while (*at != NULL) {
        struct reflector *r = *at;
        if (r->listeners != NULL) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        reflector_free(r);
    }
    prune_logins(all);
}

void reflectors_free(struct reflectors *all)
{
    while (all->first != NULL) {
        struct reflector *r = all->first;
        all->first = r->next;
        reflector_free(r);
    }
    prune_logins(all);
}

void reflector_listen(struct reflector *r, struct reflector_listener *listener)
{
    struct reflector_listener **end = &r->listeners;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    listener->next = NULL;
    listener->state = LISTENER_IDLE;
    *end = listener;
}

void reflector_follow(struct reflector *r, struct reflector_listener *listener)
{
    listener->state = LISTENER_WAITING;
    if (r->started) {
        reflector_relist(r, 0);
    } else {
        r->started = true;
        loop_timer_after(r->timer, 0);
    }
}

void reflector_unlisten(struct reflector *r, struct reflector_listener *listener)
{
    struct reflector_listener **at = &r->listeners;
    while (*at != NULL && *at != listener) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = listener->next;
    }
}
