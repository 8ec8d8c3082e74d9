#include "cli/cluster/proxy.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/pipeline.h"
#include "base/clock.h"
#include "discovery/kubernetes/roles.h"

#define TEXT_MAX ((size_t)256 * 1024)
#define POD META "pod_"
#define PORT_MAX 65535
/* The most ports that an error lists. */
#define PORTS_SHOWN 16

/* A pod, and the port or the URL of its profile. */
struct choice {
    const json_t *pod;
    bool ready;
    char *url; /* as the rules make it; NULL: none */
    char *shown;
    unsigned port;
};

struct search {
    const struct proxy_options *options;
    struct intern *intern;
    struct pipeline *pipeline;
    const json_t *pod; /* the pod whose verdicts arrive */
    struct choice best;
    /* The ports of the first pod that runs, if no rule chooses one. */
    const json_t *candidate;
    struct buf ports; /* all of them, for an error */
    size_t n_ports;
    unsigned only;      /* the last one that was found */
    unsigned profiling; /* one whose name says that it is for profiles */
};

void proxy_result_done(struct proxy_result *r)
{
    free(r->url);
    r->url = NULL;
    cluster_answer_done(&r->answer);
}

/* ---- what the rules say ---------------------------------------------------------------------- */

static void choice_done(struct choice *c)
{
    free(c->url);
    free(c->shown);
    *c = (struct choice){.pod = NULL};
}

static void take_scrape(struct search *s, struct target *t, size_t i, bool ready)
{
    struct buf url;
    struct buf shown;
    buf_init(&url, TEXT_MAX);
    buf_init(&shown, TEXT_MAX);
    if (target_scrape_url(t, i, &url) && target_shown_url(t, i, &shown)) {
        choice_done(&s->best);
        s->best = (struct choice){
            .pod = s->pod, .ready = ready, .url = strdup(url.data), .shown = strdup(shown.data)};
    }
    buf_done(&url);
    buf_done(&shown);
}

/* Takes the first scrape of the wanted type; one of a ready pod replaces one of another pod. */
static void proxy_on_verdict(void *arg, const struct pipeline_verdict *v)
{
    struct search *s = arg;
    const struct proxy_options *o = s->options;
    bool ready = sv_eq_str(labels_get(v->discovered, SV(POD "ready")), "true");
    if (v->target == NULL || (o->job != NULL && strcmp(v->job->name, o->job) != 0) ||
        (s->best.url != NULL && (s->best.ready || !ready))) {
        return;
    }
    for (size_t i = 0; i < target_scrape_count(v->target); i++) {
        if (strcmp(target_scrape_type(v->target, i)->key, o->type->key) == 0) {
            take_scrape(s, v->target, i, ready);
            return;
        }
    }
}

/* ---- ports ----------------------------------------------------------------------------------- */

static bool is_for_profiles(struct sv name)
{
    static const char *const words[] = {"pprof", "profil", "debug"};
    char text[PODS_NAME_MAX + 1];
    snprintf(text, sizeof(text), "%.*s", SV_ARG(name));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strstr(text, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Remembers a port of the candidate, given the labels of its container. */
static void note_port(struct search *s, const struct labels *labels)
{
    struct sv number = labels_get(labels, SV(POD "container_port_number"));
    struct sv name = labels_get(labels, SV(POD "container_port_name"));
    const char *wanted = s->options->port;
    uint64_t port;
    if (!parse_u64(number, PORT_MAX, &port)) {
        return;
    }
    if (wanted != NULL && sv_eq_str(name, wanted)) {
        s->best.port = (unsigned)port;
    }
    if (s->n_ports++ < PORTS_SHOWN) {
        buf_printf(&s->ports, "%s%.*s (\"%.*s\", container %.*s)", s->n_ports == 1 ? "" : ", ",
                   SV_ARG(number), SV_ARG(name),
                   SV_ARG(labels_get(labels, SV(POD "container_name"))));
    }
    s->only = (unsigned)port;
    if (s->profiling == 0 && is_for_profiles(name)) {
        s->profiling = (unsigned)port;
    }
}

static bool fail_port(const struct search *s, const char *pod, struct err *err)
{
    const struct proxy_options *o = s->options;
    if (o->port != NULL) {
        return err_set(err, ERR_INPUT, "pod %s has no port named \"%s\"%s%s", pod, o->port,
                       s->n_ports == 0 ? "" : "; it has ", s->n_ports == 0 ? "" : s->ports.data);
    }
    return err_set(
        err, ERR_INPUT,
        "nothing says which port of pod %s has the profile %s: %s%s. Say it with --port, "
        "or annotate the pod; `profpull explain pod/%s` says how",
        pod, o->type->key, s->n_ports == 0 ? "its containers declare no port" : "its ports are ",
        s->n_ports == 0 ? "" : s->ports.data, pod);
}

static bool choose_port(struct search *s, const char *pod, struct err *err)
{
    uint64_t number;
    const char *port = s->options->port;
    if (port != NULL && parse_u64(sv_from(port), PORT_MAX, &number) && number > 0) {
        s->best.port = (unsigned)number;
    } else if (port == NULL) {
        s->best.port = s->profiling > 0 ? s->profiling : s->n_ports == 1 ? s->only : 0;
    }
    return s->best.port > 0 || fail_port(s, pod, err);
}

/* ---- pods ------------------------------------------------------------------------------------ */

static void put_group(struct search *s, const struct object_targets *targets)
{
    struct target_group group = {
        .source = "pod",
        .kind = GROUP_POD,
        .targets = targets->at,
        .n_targets = targets->n,
        .pinned_host = targets->ip,
    };
    bool first = s->candidate == NULL && targets->n > 0;
    if (first) {
        s->candidate = s->pod;
    }
    for (size_t i = 0; first && i < targets->n; i++) {
        note_port(s, targets->at[i]);
    }
    for (size_t i = 0; s->options->port == NULL && i < s->options->config->n_jobs; i++) {
        group.job = i;
        pipeline_group(s->pipeline, &group);
    }
}

static bool put_pods(struct search *s, struct err *err)
{
    const json_t *items = json_object_get(s->options->pods, "items");
    struct labels_builder *builder = labels_builder_new(s->intern);
    struct arena *arena = schema_arena_new();
    struct object_targets targets = {.n = 0};
    bool ok = (builder != NULL && arena != NULL) || err_memory(err);
    for (size_t i = 0; ok && i < json_array_size(items); i++) {
        struct kube_object object = {.kind = SV("")};
        s->pod = json_array_get(items, i);
        arena_reset(arena);
        if (schema_read_json(kube_pods.resource.rows, s->pod, arena, &object) == SKIP_NONE &&
            kube_pods.read(&object, builder, &targets) == OBJECT_OK) {
            put_group(s, &targets);
        }
        object_targets_clear(&targets);
    }
    object_targets_done(&targets);
    labels_builder_free(builder);
    arena_free(arena);
    return ok;
}

static void name_of(const json_t *pod, char out[2 * PODS_NAME_MAX + 2])
{
    snprintf(out, 2 * PODS_NAME_MAX + 2, "%s/%s", pods_meta(pod, "namespace"),
             pods_meta(pod, "name"));
}

/* Says why no pod of the list can be scraped: none has an address. */
static bool fail_address(const struct search *s, struct err *err)
{
    const json_t *pod = json_array_get(json_object_get(s->options->pods, "items"), 0);
    char name[2 * PODS_NAME_MAX + 2];
    struct buf state;
    buf_init(&state, ERR_MSG_MAX);
    name_of(pod, name);
    pods_describe(pod, &state);
    err_set(err, ERR_INPUT, "pod %s has no IP address yet: %s", name,
            buf_ok(&state) ? state.data : "");
    buf_done(&state);
    return false;
}

/* Chooses the pod, and the URL or the port. */
static bool choose(struct search *s, char pod[2 * PODS_NAME_MAX + 2], struct err *err)
{
    struct pipeline_options options = {.config = s->options->config,
                                       .intern = s->intern,
                                       .on_verdict = proxy_on_verdict,
                                       .arg = s};
    s->pipeline = pipeline_new(&options, err);
    if (s->pipeline == NULL || !put_pods(s, err)) {
        return false;
    }
    if (s->best.url == NULL && s->candidate == NULL) {
        return fail_address(s, err);
    }
    if (s->best.pod == NULL) {
        s->best.pod = s->candidate;
    }
    name_of(s->best.pod, pod);
    return s->best.url != NULL || choose_port(s, pod, err);
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* The parts of the request to the pod. */
struct parts {
    char *scheme;
    char *port;
    char *path;
    char *query; /* NULL: none */
};

static void parts_done(struct parts *p)
{
    curl_free(p->scheme);
    curl_free(p->port);
    curl_free(p->path);
    curl_free(p->query);
}

static bool split_url(const char *text, struct parts *ret)
{
    CURLU *u = curl_url();
    bool ok = u != NULL && curl_url_set(u, CURLUPART_URL, text, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_SCHEME, &ret->scheme, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_PATH, &ret->path, 0) == CURLUE_OK;
    if (ok) {
        curl_url_get(u, CURLUPART_QUERY, &ret->query, 0);
    }
    curl_url_cleanup(u);
    return ok;
}

/* Replaces a URL by one that asks for the number of seconds on the command line. */
static bool set_seconds(char **url, const struct proxy_options *o)
{
    struct buf out;
    const char *at = *url + strcspn(*url, "?");
    const char *before = "?";
    buf_init(&out, TEXT_MAX);
    buf_append(&out, *url, (size_t)(at - *url));
    at += *at == '?';
    while (*at != '\0') {
        struct sv pair = {.p = at, .n = strcspn(at, "&")};
        if (!sv_starts_with(pair, SV("seconds="))) {
            buf_printf(&out, "%s%.*s", before, SV_ARG(pair));
            before = "&";
        }
        at += pair.n + (at[pair.n] == '&');
    }
    if (o->type->sampling) {
        buf_printf(&out, "%sseconds=%llu", before, (unsigned long long)o->seconds);
    }
    if (buf_ok(&out)) {
        free(*url);
        *url = strdup(out.data);
    }
    bool ok = buf_ok(&out) && *url != NULL;
    buf_done(&out);
    return ok;
}

static bool ask_pod(struct cluster *c, const char *namespace, const char *name,
                    const struct parts *p, struct cluster_ask *ask, struct cluster_answer *ret,
                    struct err *err)
{
    struct buf path;
    buf_init(&path, TEXT_MAX);
    bool https = p->scheme != NULL && strcmp(p->scheme, "https") == 0;
    buf_printf(&path, "/api/v1/namespaces/%s/pods/%s%s:%s/proxy%s", namespace,
               https ? "https:" : "", name, p->port, p->path);
    ask->path = path.data;
    ask->verb = "get";
    ask->resource = "pods/proxy";
    ask->namespace = namespace;
    bool ok = buf_ok(&path) ? cluster_ask(c, ask, ret, err) : err_memory(err);
    buf_done(&path);
    return ok;
}

bool proxy_get(struct cluster *c, const char *namespace, const char *name, const char *port,
               const char *path, struct sv query, struct cluster_answer *ret, struct err *err)
{
    struct cluster_ask ask = {.query = query};
    char scheme[] = "http";
    struct buf at;
    struct buf number;
    buf_init(&at, TEXT_MAX);
    buf_init(&number, TEXT_MAX);
    buf_puts(&at, path);
    buf_puts(&number, port);
    struct parts p = {.scheme = scheme, .port = number.data, .path = at.data};
    bool ok = buf_ok(&at) && buf_ok(&number) ? ask_pod(c, namespace, name, &p, &ask, ret, err)
                                             : err_memory(err);
    buf_done(&at);
    buf_done(&number);
    return ok;
}

/* Fills in the parts of a request to a port that no rule has chosen. */
static bool plain_url(struct search *s)
{
    const json_t *status = json_object_get(s->best.pod, "status");
    const char *ip = json_string_value(json_object_get(status, "podIP"));
    bool ipv6 = ip != NULL && strchr(ip, ':') != NULL;
    if (asprintf(&s->best.url, "http://%s%s%s:%u%s", ipv6 ? "[" : "", ip == NULL ? "pod" : ip,
                 ipv6 ? "]" : "", s->best.port, s->options->type->path) < 0) {
        s->best.url = NULL;
        return false;
    }
    s->best.shown = strdup(s->best.url);
    return s->best.shown != NULL;
}

static bool fetch(struct search *s, struct proxy_result *ret, struct err *err)
{
    const struct proxy_options *o = s->options;
    struct parts p = {.scheme = NULL};
    bool ok = ((s->best.url != NULL || plain_url(s)) && set_seconds(&s->best.url, o) &&
               set_seconds(&s->best.shown, o) && split_url(s->best.url, &p)) ||
              err_memory(err);
    if (ok) {
        struct cluster_ask ask = {
            .query = sv_from(p.query),
            .timeout_ms = o->type->sampling ? (int64_t)o->seconds * MS_PER_S : 0,
            .max_body = o->max_body,
        };
        if (o->type->sampling && o->seconds > 1) {
            fprintf(stderr, "profpull: sampling pod %s for %llu s\n", ret->pod,
                    (unsigned long long)o->seconds);
        }
        ok = ask_pod(o->cluster, pods_meta(s->best.pod, "namespace"),
                     pods_meta(s->best.pod, "name"), &p, &ask, &ret->answer, err);
    }
    parts_done(&p);
    return ok;
}

/* Returns true if the API server itself has answered with an error. */
static bool is_status(const struct cluster_answer *a)
{
    json_t *root = a->status / 100 == 2 ? NULL : json_loadb(a->body.data, a->body.len, 0, NULL);
    const char *kind = json_string_value(json_object_get(root, "kind"));
    bool is = kind != NULL && strcmp(kind, "Status") == 0;
    json_decref(root);
    return is;
}

bool proxy_fetch(const struct proxy_options *options, struct proxy_result *ret, struct err *err)
{
    struct search s = {.options = options, .intern = intern_new()};
    *ret = (struct proxy_result){.url = NULL};
    buf_init(&s.ports, TEXT_MAX);
    bool ok = s.intern != NULL || err_memory(err);
    ok = ok && choose(&s, ret->pod, err) && fetch(&s, ret, err);
    if (ok) {
        ret->url = s.best.shown;
        s.best.shown = NULL;
        ret->is_status = is_status(&ret->answer);
    }
    choice_done(&s.best);
    buf_done(&s.ports);
    pipeline_free(s.pipeline);
    intern_free(s.intern);
    return ok;
}
