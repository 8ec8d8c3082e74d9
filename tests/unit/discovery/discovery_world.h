/* For tests of all of discovery: it runs against a small API server in the same loop, whose answers
 * are rules. */
#ifndef PROFPULL_TESTS_DISCOVERY_WORLD_H
#define PROFPULL_TESTS_DISCOVERY_WORLD_H

#include "tests/unit/discovery/patience.h"
#include "tests/unit/lib/testing.h"

#include "discovery/discovery.h"

/* After the above: it defines macros of names that http/http.h uses. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <zlib.h>

#define STREAM "sendInitialEvents=true"
#define DRIPS 60

/* ---- the server ------------------------------------------------------------------------------ */

/* The answers, in order, to requests whose URI has the given part. */
struct rule {
    const char *part;
    const char *body;
    int status;
    bool keep_open;  /* a watch: the body is sent, and no end */
    bool stalls;     /* the same, and the client must hang up before the test ends */
    bool gzip;       /* if the client accepts it */
    int64_t drip_ms; /* the body is sent in DRIPS parts with this pause between them */
    bool used;
};

/* A body that is on its way, slowly. */
struct drip {
    struct evhttp_request *request;
    const struct rule *rule;
    size_t sent;
    struct loop_timer *timer;
};

struct world {
    struct loop *loop;
    struct drip drip;
    size_t gzipped;                 /* answers */
    struct evhttp_request *stalled; /* see struct rule */
    int64_t list_progress_ms;       /* of discovery */
    struct intern *intern;
    struct metrics *metrics;
    struct testing_log *log;
    struct evhttp *server;
    char url[64];
    struct rule *rules;
    size_t n_rules;
    struct buf requests;  /* URIs, one per line, timeoutSeconds as T */
    struct buf groups;    /* the reported groups, one per line */
    struct buf forbidden; /* events of missing permissions, one per line */
    struct buf missing;   /* what cannot be read, one line for each change */
    char last_missing[4096];
    struct sources *sources;
    struct loop_timer *poll; /* looks whether that has changed */
    struct buf headers;      /* Authorization and Accept of the last request */
    const char *until;       /* the test ends when groups has this */
    bool synced;
    struct patience patience;
    struct discovery *d;
    /* The configuration of run_sources(), to which discovery refers. */
    struct config_source pods;
    struct config_job job;
    struct config config;
};

static inline void note_request(struct world *w, struct evhttp_request *r)
{
    const char *uri = evhttp_request_get_uri(r);
    const char *timeout = strstr(uri, "timeoutSeconds=");
    size_t n = timeout == NULL ? strlen(uri) : (size_t)(timeout - uri) + 15;
    buf_append(&w->requests, uri, n);
    if (timeout != NULL) {
        buf_printf(&w->requests, "T%s", timeout + 15 + strspn(timeout + 15, "0123456789"));
    }
    buf_putc(&w->requests, '\n');
    const struct evkeyvalq *in = evhttp_request_get_input_headers(r);
    const char *auth = evhttp_find_header(in, "Authorization");
    const char *accept = evhttp_find_header(in, "Accept");
    buf_clear(&w->headers);
    buf_printf(&w->headers, "%s, %s", auth == NULL ? "-" : auth, accept == NULL ? "-" : accept);
}

static inline struct rule *find_rule(struct world *w, const char *uri)
{
    for (size_t i = 0; i < w->n_rules; i++) {
        if (!w->rules[i].used && strstr(uri, w->rules[i].part) != NULL) {
            return &w->rules[i];
        }
    }
    return NULL;
}

static inline void send_part(struct drip *d, size_t max)
{
    size_t left = strlen(d->rule->body) - d->sent;
    size_t n = left < max ? left : max;
    struct evbuffer *part = evbuffer_new();
    assert_non_null(part);
    evbuffer_add(part, d->rule->body + d->sent, n);
    d->sent += n;
    evhttp_send_reply_chunk(d->request, part);
    evbuffer_free(part);
}

static inline void on_drip(void *arg)
{
    struct drip *d = &((struct world *)arg)->drip;
    size_t size = strlen(d->rule->body);
    if (d->sent == size) {
        evhttp_send_reply_end(d->request);
        return;
    }
    send_part(d, size / DRIPS + 1);
    loop_timer_after(d->timer, d->rule->drip_ms);
}

/* The body as gzip. */
static inline void add_gzip(const char *text, struct evbuffer *out)
{
    unsigned char room[64 * 1024];
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)text,
                  .avail_in = (unsigned)strlen(text),
                  .next_out = room,
                  .avail_out = sizeof(room)};
    assert_int_equal(
        deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    evbuffer_add(out, room, z.total_out);
    deflateEnd(&z);
}

static inline bool accepts_gzip(struct evhttp_request *r)
{
    const char *text = evhttp_find_header(evhttp_request_get_input_headers(r), "Accept-Encoding");
    return text != NULL && strstr(text, "gzip") != NULL;
}

static inline void serve(struct evhttp_request *r, void *arg)
{
    struct world *w = arg;
    const char *uri = evhttp_request_get_uri(r);
    struct rule *rule = find_rule(w, uri);
    if (strstr(uri, STREAM) != NULL && (rule == NULL || strcmp(rule->part, STREAM) != 0)) {
        /* Most tests are about lists in pages. */
        evhttp_send_reply(r, 422, "Invalid", NULL);
        return;
    }
    note_request(w, r);
    if (rule == NULL) {
        /* No further rule: the client waits. */
        evhttp_send_reply_start(r, 200, "OK");
        return;
    }
    rule->used = true;
    struct evbuffer *body = evbuffer_new();
    assert_non_null(body);
    if (rule->gzip && accepts_gzip(r)) {
        evhttp_add_header(evhttp_request_get_output_headers(r), "Content-Encoding", "gzip");
        add_gzip(rule->body, body);
        w->gzipped++;
    } else {
        evbuffer_add(body, rule->body, strlen(rule->body));
    }
    evhttp_send_reply_start(r, rule->status, "Status");
    if (rule->drip_ms > 0) {
        w->drip = (struct drip){.request = r, .rule = rule, .timer = w->drip.timer};
        loop_timer_after(w->drip.timer, 0);
        evbuffer_free(body);
        return;
    }
    evhttp_send_reply_chunk(r, body);
    if (rule->stalls) {
        /* Else nobody frees it when the client hangs up. */
        evhttp_request_own(r);
        w->stalled = r;
    } else if (!rule->keep_open) {
        evhttp_send_reply_end(r);
    }
    evbuffer_free(body);
}

static inline void start_server(struct world *w)
{
    w->server = evhttp_new(loop_event_base(w->loop));
    assert_non_null(w->server);
    evhttp_set_gencb(w->server, serve, w);
    struct evhttp_bound_socket *socket = evhttp_bind_socket_with_handle(w->server, "127.0.0.1", 0);
    assert_non_null(socket);
    struct sockaddr_in address = {0};
    socklen_t len = sizeof(address);
    assert_int_equal(
        getsockname(evhttp_bound_socket_get_fd(socket), (struct sockaddr *)&address, &len), 0);
    snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
}

/* ---- the client ------------------------------------------------------------------------------ */

static inline void check_end(struct world *w)
{
    if (w->until != NULL && w->synced && strstr(w->groups.data, w->until) != NULL) {
        loop_stop(w->loop);
    }
}

static inline void on_group(void *arg, const struct target_group *group)
{
    struct world *w = arg;
    buf_printf(&w->groups, "%zu %s", group->job, group->source);
    for (size_t i = 0; i < group->n_targets; i++) {
        struct sv address = labels_get(group->targets[i], SV(LABEL_ADDRESS));
        buf_printf(&w->groups, " %.*s", SV_ARG(address));
    }
    buf_printf(&w->groups, " @%s\n", group->pinned_host == NULL ? "-" : group->pinned_host);
    enum target_group_kind kind = strncmp(group->source, "static/", 7) == 0 ? GROUP_LISTED
                                  : strstr(group->source, "pod/") != NULL   ? GROUP_POD
                                                                            : GROUP_OBJECT;
    CHECK_INT(group->n_targets == 0 ? kind : group->kind, kind, group->source);
    check_end(w);
}

static inline void on_synced(void *arg)
{
    struct world *w = arg;
    assert_false(w->synced);
    w->synced = true;
    buf_puts(&w->groups, "synced\n");
    check_end(w);
}

static inline void on_forbidden(void *arg, const struct discovery_forbidden *what)
{
    struct world *w = arg;
    buf_printf(&w->forbidden, "%s %s in %s\n", what->verb, what->resource,
               what->namespace == NULL ? "the whole cluster" : what->namespace);
}

#define POLL_MS 5

/* Appends to `missing` what cannot be read now, if that has changed. A request is repeated later
 * than the next look. */
static inline void on_poll(void *arg)
{
    struct world *w = arg;
    loop_timer_after(w->poll, POLL_MS);
    SCOPED(buf) now = testing_buf(1 << 16);
    sources_missing(w->sources, &now);
    if (strcmp(now.data, w->last_missing) != 0) {
        snprintf(w->last_missing, sizeof(w->last_missing), "%s", now.data);
        buf_printf(&w->missing, "%s\n", now.data);
    }
}

static inline void setup(struct world *w, struct rule *rules, size_t n_rules)
{
    *w = (struct world){.rules = rules, .n_rules = n_rules};
    struct err err = ERR_INIT;
    w->loop = loop_new(&err);
    w->intern = intern_new();
    w->metrics = metrics_new();
    w->log = testing_log_new();
    w->sources = sources_new(w->metrics);
    assert_non_null(w->sources);
    assert_non_null(w->loop);
    assert_non_null(w->intern);
    assert_non_null(w->metrics);
    buf_init(&w->requests, 1 << 20);
    buf_init(&w->groups, 1 << 20);
    buf_init(&w->headers, 1 << 16);
    buf_init(&w->forbidden, 1 << 16);
    buf_init(&w->missing, 1 << 16);
    patience_init(&w->patience, w->loop);
    w->poll = loop_timer_new(w->loop, on_poll, w);
    loop_timer_after(w->poll, POLL_MS);
    w->drip.timer = loop_timer_new(w->loop, on_drip, w);
    start_server(w);
}

static inline void start(struct world *w, const struct config *config)
{
    struct err err = ERR_INIT;
    struct config *owned = config_wrap(config);
    assert_non_null(owned);
    w->d = discovery_new(
        &(struct discovery_options){
            .config = owned,
            .loop = w->loop,
            .intern = w->intern,
            .log = testing_log(w->log),
            .metrics = w->metrics,
            .sources = w->sources,
            .on_group = on_group,
            .on_synced = on_synced,
            .on_forbidden = on_forbidden,
            .arg = w,
            .list_progress_ms = w->list_progress_ms,
        },
        &err);
    config_unref(owned);
    CHECK_STR(err.msg, "", "discovery_new");
    assert_non_null(w->d);
}

/* Runs until everything is synced and groups has the text. */
static inline void run(struct world *w, const struct config *config, const char *until)
{
    w->until = until;
    start(w, config);
    bool in_time = patience_run(&w->patience, PATIENCE_MS);
    on_poll(w);
    CHECK_INT(in_time, true, w->groups.data);
}

/* The same with one job of these sources, which must live as long as discovery. */
static inline void run_sources(struct world *w, const char *job,
                               const struct config_source *sources, size_t n, const char *until)
{
    w->job = (struct config_job){.name = job, .sources = sources, .n_sources = n};
    w->config = (struct config){.jobs = &w->job, .n_jobs = 1};
    run(w, &w->config, until);
}

/* The same with all pods of the server. */
static inline void run_pods(struct world *w, const char *until)
{
    w->pods = (struct config_source){
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .api_server = w->url},
    };
    run_sources(w, "pods", &w->pods, 1, until);
}

static inline void check_metric(struct world *w, const char *line, const char *row)
{
    SCOPED(buf) text = testing_buf(1 << 20);
    metrics_render(w->metrics, &text);
    CHECK_CONTAINS(text.data, line, row);
}

static inline void teardown(struct world *w)
{
    discovery_free(w->d);
    check_metric(w, "profpull_discovery_groups{kind=\"kubernetes\"} 0\n", "nothing is left");
    if (w->stalled != NULL) {
        assert_null(evhttp_request_get_connection(w->stalled));
        evhttp_request_free(w->stalled);
    }
    evhttp_free(w->server);
    patience_done(&w->patience);
    loop_timer_free(w->poll);
    loop_timer_free(w->drip.timer);
    loop_free(w->loop);
    intern_free(w->intern);
    metrics_free(w->metrics);
    sources_free(w->sources);
    testing_log_done(w->log);
    buf_done(&w->requests);
    buf_done(&w->groups);
    buf_done(&w->headers);
    buf_done(&w->forbidden);
    buf_done(&w->missing);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

#define POD(name, ip)                                                                              \
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"u-" name \
    "\",\"resourceVersion\":\"11\",\"managedFields\":[{\"x\":\"}\"}]},"                            \
    "\"spec\":{\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":6060}]}]},"           \
    "\"status\":{\"podIP\":\"" ip "\"}}"
#define LIST(next, items)                                                                          \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"" next          \
    "\"},\"items\":[" items "]}"
#define EVENT(type, pod) "{\"type\":\"" type "\",\"object\":" pod "}\n"
#define END                                                                                        \
    EVENT("BOOKMARK",                                                                              \
          "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"10\",\"annotations\":{"           \
          "\"k8s.io/initial-events-end\":\"true\"}}}")

#endif
