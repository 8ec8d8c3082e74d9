#include "cli/cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/loop.h"
#include "config/kubeconfig.h"
#include "discovery/kubernetes/exec_plugin.h"
#include "http/url.h"

#define URL_MAX ((size_t)64 * 1024)
/* Bytes of an answer of the API server that an error quotes. */
#define QUOTE_MAX 300
#define STATUS_UNAUTHORIZED 401
#define STATUS_FORBIDDEN 403
#define STATUS_NOT_FOUND 404

/* ---- the access ------------------------------------------------------------------------------ */

static bool of_pod(struct arena *arena, struct cluster_access *ret, struct err *err)
{
    static const struct config_kubernetes own;
    ret->name = "the service account of this pod";
    return kube_access_find(&own, &(struct kube_env){.get = NULL}, arena, &ret->access, err);
}

/* Returns true for an API server on this machine, such as that of kind: no proxy leads to it. */
static bool is_here(const char *server)
{
    static const char *const hosts[] = {"127.", "localhost", "[::1]"};
    const char *host = strstr(server, "://");
    for (size_t i = 0; host != NULL && i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        if (strncmp(host + 3, hosts[i], strlen(hosts[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool of_kubeconfig(const struct kubeconfig *k, struct arena *arena,
                          struct cluster_access *ret, struct err *err)
{
    ret->is_person = true;
    ret->access = (struct kube_access){
        .server = k->server, .namespace = k->namespace, .http = k->http, .exec = k->exec};
    if (ret->access.namespace == NULL) {
        ret->access.namespace = "default";
    }
    /* kubectl uses these proxies as well. The agent does not: nobody looks at its environment. */
    ret->access.http.proxy_from_environment = k->http.proxy_url == NULL && !is_here(k->server);
    ret->name = arena_printf(arena, "context \"%s\" of %s", k->context, k->file);
    return ret->name != NULL || err_memory(err);
}

/* Says where a kubeconfig was looked for, after none was found and this is no pod. */
static bool fail_nothing(const struct kubeconfig_paths *paths, struct err *err)
{
    return err_set(err, ERR_INPUT,
                   "no cluster to ask: %s%s does not exist, and this is not a Kubernetes pod "
                   "(KUBERNETES_SERVICE_HOST is not set). Name "
                   "a kubeconfig with --kubeconfig FILE, or set KUBECONFIG",
                   paths->is_default ? "" : "KUBECONFIG ", paths->names);
}

bool cluster_access_find(const struct cluster_flags *flags, struct arena *arena,
                         struct cluster_access *ret, struct err *err)
{
    struct kubeconfig kubeconfig;
    struct kubeconfig_paths paths;
    bool found = flags->kubeconfig != NULL;
    *ret = (struct cluster_access){.is_person = false};
    if (flags->kubeconfig != NULL) {
        return kubeconfig_load(flags->kubeconfig, flags->context, arena, &kubeconfig, err) &&
               of_kubeconfig(&kubeconfig, arena, ret, err);
    }
    if (!kubeconfig_paths(getenv("KUBECONFIG"), getenv("HOME"), arena, &paths, err) ||
        !kubeconfig_load_all(&paths, flags->context, arena, &kubeconfig, &found, err)) {
        return false;
    }
    if (found) {
        return of_kubeconfig(&kubeconfig, arena, ret, err);
    }
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    if (flags->context != NULL || host == NULL || host[0] == '\0') {
        return fail_nothing(&paths, err);
    }
    return of_pod(arena, ret, err);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct cluster {
    const struct cluster_access *access;
    int64_t timeout_ms;
    struct loop *loop;
    struct http_client *http;
    struct discovery_counters counters;
    struct exec_plugin *exec; /* NULL unless the kubeconfig has a plugin */
    /* State of the request in flight. */
    struct cluster_answer *answer;
    struct err *err;
    bool ok;
};

struct cluster *cluster_new(const struct cluster_access *access, int64_t timeout_ms,
                            struct err *err)
{
    struct cluster *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        err_memory(err);
        return NULL;
    }
    c->access = access;
    c->timeout_ms = timeout_ms;
    discovery_counters_init(&c->counters, NULL);
    c->loop = loop_new(err);
    struct http_client_options options = {.loop = c->loop, .name = "kubernetes"};
    if (c->loop == NULL || (c->http = http_client_new(&options, err)) == NULL) {
        return cluster_free(c);
    }
    if (access->access.exec != NULL) {
        c->exec = exec_plugin_new(&(struct exec_plugin_options){.config = access->access.exec,
                                                                .settings = &access->access.http,
                                                                .loop = c->loop,
                                                                .counters = &c->counters,
                                                                .timeout_ms = EXEC_TIMEOUT_MS});
        if (c->exec == NULL) {
            err_memory(err);
            return cluster_free(c);
        }
    }
    return c;
}

struct cluster *cluster_free(struct cluster *c)
{
    if (c != NULL) {
        exec_plugin_free(c->exec);
        http_client_free(c->http);
        loop_free(c->loop);
        free(c);
    }
    return NULL;
}

const struct cluster_access *cluster_access(const struct cluster *c)
{
    return c->access;
}

void cluster_answer_done(struct cluster_answer *a)
{
    buf_done(&a->body);
}

static void cluster_on_credentials(void *arg)
{
    loop_stop(arg);
}

/* Gets the credentials: those of the kubeconfig, or *ret_login, a reference to those of the
 * plugin. Returns NULL if the plugin fails. */
static const struct http_settings *log_in(struct cluster *c, struct exec_login **ret_login,
                                          struct err *err)
{
    *ret_login = NULL;
    if (c->exec == NULL) {
        return &c->access->access.http;
    }
    for (;;) {
        switch (exec_plugin_get(c->exec, ret_login, err)) {
        case EXEC_READY:
            return exec_login_settings(*ret_login);
        case EXEC_FAILED:
            err_wrap(err, "%s", c->access->name);
            return NULL;
        case EXEC_RUNNING:
            break;
        }
        struct exec_waiter waiter = {.fn = cluster_on_credentials, .arg = c->loop};
        exec_plugin_wait(c->exec, &waiter);
        loop_run(c->loop);
        exec_plugin_forget(c->exec, &waiter);
    }
}

static void cluster_on_done(void *arg, const struct http_response *r)
{
    struct cluster *c = arg;
    struct cluster_answer *a = c->answer;
    c->ok = r->result == HTTP_DONE;
    if (c->ok) {
        a->status = r->status;
        a->duration_ns = r->end_ns - r->start_ns;
        snprintf(a->content_type, sizeof(a->content_type), "%s", r->content_type);
        a->body = *r->body;
        buf_init(r->body, 0);
    } else {
        (void)err_set(c->err, ERR_NETWORK, "%s", r->error);
    }
    loop_stop(c->loop);
}

/* Sends a request with these settings, and waits for its answer. */
static bool send_one(struct cluster *c, const struct cluster_ask *ask, const char *url,
                     const struct http_settings *settings, struct err *err)
{
    static const struct http_header accept[] = {{"Accept", "application/json, */*"}};
    struct http_request request = {
        .url = url,
        .settings = settings,
        .headers = accept,
        .n_headers = 1,
        .timeout_ms = c->timeout_ms + ask->timeout_ms,
        .max_body = ask->max_body == 0 ? CLUSTER_BODY_MAX : ask->max_body,
        .on_done = cluster_on_done,
        .arg = c,
    };
    c->err = err;
    c->ok = false;
    buf_init(&c->answer->body, 0);
    if (http_start(c->http, &request) == NULL) {
        return err_memory(err);
    }
    loop_run(c->loop);
    return c->ok;
}

/* Sends a request. If the server refuses the credentials of a plugin, the plugin runs once more. */
static bool send_all(struct cluster *c, const struct cluster_ask *ask, const char *url,
                     struct err *err)
{
    for (int left = c->exec == NULL ? 0 : 1;; left--) {
        struct exec_login *login;
        const struct http_settings *settings = log_in(c, &login, err);
        bool ok = settings != NULL && send_one(c, ask, url, settings, err);
        bool refused = ok && c->exec != NULL && c->answer->status == STATUS_UNAUTHORIZED;
        if (refused) {
            exec_plugin_refused(c->exec, login);
        }
        exec_login_unref(login);
        if (!refused || left == 0) {
            return ok;
        }
        cluster_answer_done(c->answer);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Returns the Status object of the API server; NULL if the answer comes from somebody else, such as
 * the program that a proxy reaches. The caller decrefs it. */
static json_t *status_of(const struct cluster_answer *a)
{
    json_t *root = json_loadb(a->body.data, a->body.len, 0, NULL);
    const char *kind = json_string_value(json_object_get(root, "kind"));
    if (kind != NULL && strcmp(kind, "Status") == 0) {
        return root;
    }
    json_decref(root);
    return NULL;
}

static void quote(const json_t *status, struct buf *out)
{
    struct sv said = sv_trim(sv_from(json_string_value(json_object_get(status, "message"))));
    said.n = said.n < QUOTE_MAX ? said.n : QUOTE_MAX;
    buf_puts(out, said.n == 0 ? "" : ". The API server says: ");
    json_escape(said, out);
}

/* Says which permission is missing, and who can give it. */
static bool fail_forbidden(const struct cluster *c, const struct cluster_ask *ask,
                           const json_t *status, struct err *err)
{
    bool whole = ask->namespace == NULL;
    char resource[128];
    struct buf said;
    buf_init(&said, URL_MAX);
    quote(status, &said);
    bool core = ask->group == NULL || ask->group[0] == '\0';
    snprintf(resource, sizeof(resource), "%s%s%s", ask->resource, core ? "" : ".",
             core ? "" : ask->group);
    err_set(err, ERR_REFUSED,
            "%s may not %s %s in %s%s: the verb \"%s\" on the resource \"%s\" is missing. Ask for "
            "a %s with it; `kubectl auth can-i %s %s %s%s` asks the same%s",
            c->access->name, ask->verb, resource, whole ? "the whole cluster" : "namespace ",
            whole ? "" : ask->namespace, ask->verb, resource, whole ? "ClusterRole" : "Role",
            ask->verb, resource, whole ? "--all-namespaces" : "-n ", whole ? "" : ask->namespace,
            buf_ok(&said) ? said.data : "");
    buf_done(&said);
    return false;
}

static bool fail_unauthorized(const struct cluster *c, struct err *err)
{
    return err_set(err, ERR_REFUSED,
                   "%s: the API server %s does not accept the credentials (401): they are wrong or "
                   "have expired. %s",
                   c->access->name, c->access->access.server,
                   c->exec != NULL
                       ? "Log in again with the tool that the kubeconfig names in `exec`"
                       : "Renew the token or the client certificate in the kubeconfig");
}

static bool fail_network(const struct cluster *c, struct err *err)
{
    struct err why = *err;
    return err_set(err, why.kind,
                   "%s: the API server does not answer: %s. Is the cluster up, and can this "
                   "machine reach it? `kubectl cluster-info` asks the same server",
                   c->access->name, why.msg);
}

/* Returns false with an error if the API server has refused the request. */
static bool check_status(const struct cluster *c, const struct cluster_ask *ask, struct err *err)
{
    long status = c->answer->status;
    if (status != STATUS_UNAUTHORIZED && status != STATUS_FORBIDDEN) {
        return true;
    }
    json_t *object = status_of(c->answer);
    bool ok = object == NULL && status == STATUS_FORBIDDEN; /* the program itself refuses */
    if (status == STATUS_UNAUTHORIZED) {
        ok = object == NULL && strstr(ask->path, "/proxy/") != NULL;
        ok = ok || fail_unauthorized(c, err);
    } else if (!ok) {
        fail_forbidden(c, ask, object, err);
    }
    json_decref(object);
    return ok;
}

bool cluster_ask(struct cluster *c, const struct cluster_ask *ask, struct cluster_answer *ret,
                 struct err *err)
{
    struct buf url;
    buf_init(&url, URL_MAX);
    buf_puts(&url, c->access->access.server);
    buf_puts(&url, ask->path);
    buf_puts(&url, ask->query.n > 0 ? "?" : "");
    buf_append(&url, ask->query.p, ask->query.n);
    *ret = (struct cluster_answer){.status = 0};
    c->answer = ret;
    bool ok = buf_ok(&url) || err_memory(err);
    if (ok && !send_all(c, ask, url.data, err)) {
        ok = err->kind == ERR_NETWORK ? fail_network(c, err) : false;
    } else if (ok && !check_status(c, ask, err)) {
        ok = false;
        cluster_answer_done(ret);
    }
    buf_done(&url);
    return ok;
}

json_t *cluster_get(struct cluster *c, const struct cluster_ask *ask, struct err *err)
{
    struct cluster_answer a;
    json_t *root = NULL;
    if (!cluster_ask(c, ask, &a, err)) {
        return NULL;
    }
    if (a.status / 100 == 2) {
        root = json_loadb(a.body.data, a.body.len, 0, NULL);
    }
    if (a.status != STATUS_NOT_FOUND && !json_is_object(root)) {
        json_t *status = status_of(&a);
        struct buf said;
        buf_init(&said, URL_MAX);
        quote(status, &said);
        err_set(err, ERR_REFUSED, "%s: GET %s: HTTP %ld%s%s", c->access->name, ask->path, a.status,
                a.status / 100 == 2 ? ", and no object of JSON" : "",
                buf_ok(&said) ? said.data : "");
        buf_done(&said);
        json_decref(status);
        json_decref(root);
        root = NULL;
    }
    cluster_answer_done(&a);
    return root;
}

bool cluster_check(struct cluster *c, struct err *err)
{
    /* Every user who has logged in may read this; and if not, the server has answered. */
    struct cluster_ask ask = {.path = "/version", .verb = "get", .resource = "/version"};
    struct cluster_answer a;
    struct err why = ERR_INIT;
    if (cluster_ask(c, &ask, &a, &why)) {
        cluster_answer_done(&a);
        return true;
    }
    if (why.kind == ERR_REFUSED && a.status == STATUS_FORBIDDEN) {
        return true;
    }
    *err = why;
    return false;
}
