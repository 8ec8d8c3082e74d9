/* Values of Secrets and ConfigMaps, read from a server that answers what the test says. */
#include "tests/unit/lib/http_server.h"

#include "config/content.h"
#include "discovery/kubernetes/contents.h"
#include "http/files.h"

/* A pause as short as a test likes. */
#define RETRY_MS 1

struct world {
    struct fixture f;
    struct server *server;
    struct http_contents *contents;
    struct discovery_counters counters;
    struct http_settings access;
    struct kube_contents *reader;
    char url[URL_SIZE];
    int asked;
    int changes;
};

/* The response of the server; the handler's thread reads it. */
static _Atomic(const char *) answer;

static void respond(struct server_conn *c)
{
    if (server_read_request(c)) {
        server_send(c, atomic_load(&answer));
    }
}

#define ANSWER(status, body) "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n" body

static void note_asked(void *arg)
{
    struct world *w = arg;
    w->asked++;
    loop_stop(w->f.loop);
}

static void note_change(void *arg)
{
    struct world *w = arg;
    w->changes++;
    loop_stop(w->f.loop);
}

static const char *const names[] = {"kubernetes:secret/n/s/one", "kubernetes:secret/n/s/two"};

static void world_init_with(struct world *w, const char *first, const struct config_strings *list)
{
    struct err err = ERR_INIT;
    *w = (struct world){.contents = http_contents_new()};
    atomic_store(&answer, first);
    w->f = fixture_new(1);
    w->server = server_new(respond, NULL);
    server_url(w->server, "", w->url);
    discovery_counters_init(&w->counters, w->f.metrics);
    w->reader = kube_contents_new(&(struct kube_contents_options){.names = list,
                                                                  .server = w->url,
                                                                  .access = &w->access,
                                                                  .http = w->f.client,
                                                                  .loop = w->f.loop,
                                                                  .log = testing_log(w->f.log),
                                                                  .counters = &w->counters,
                                                                  .contents = w->contents,
                                                                  .retry_ms = RETRY_MS,
                                                                  .on_asked = note_asked,
                                                                  .on_change = note_change,
                                                                  .arg = w},
                                  &err);
    CHECK_STR(err.msg, "", "kube_contents_new");
    assert_non_null(w->reader);
}

static void world_init(struct world *w, const char *first)
{
    static const struct config_strings list = {names, 2};
    world_init_with(w, first, &list);
}

static void world_done(struct world *w)
{
    kube_contents_free(w->reader);
    http_contents_free(w->contents);
    fixture_done(&w->f);
    server_free(w->server);
}
SCOPED_VALUE(world, world_done)

/* want NULL: the error. */
static void check_value(struct world *w, size_t i, const char *want, const char *error)
{
    struct err err = ERR_INIT;
    uint64_t version;
    struct http_file *file = http_contents_copy(w->contents, names[i], &version, &err);
    CHECK_STR(file != NULL ? file->data : NULL, want, names[i]);
    CHECK_STR(err.msg, error, names[i]);
    http_file_unref(file);
}

static void check_missing(struct world *w, const char *want)
{
    SCOPED(buf) text = testing_buf(4096);
    kube_contents_missing(w->reader, &text);
    CHECK_STR(text.len > 0 ? text.data : "", want, "missing");
}

TEST(a_secret_is_read_once_for_its_values)
{
    SCOPED(world) w;
    world_init(&w, ANSWER("200 OK", "{\"data\":{\"one\":\"YQ==\",\"two\":\"YgpjCg==\"}}"));
    check_missing(&w, "Secret n/s: not read yet");
    kube_contents_start(w.reader);
    while (w.asked == 0) {
        loop_run(w.f.loop);
    }
    check_value(&w, 0, "a", "");
    check_value(&w, 1, "b\nc\n", "");
    check_missing(&w, "");
    assert_true(server_saw_text(w.server, "GET /api/v1/namespaces/n/secrets/s HTTP/1.1"));
    CHECK_INT(metric_value(w.counters.content_reads[CONTENT_READ_OK]), 1, "");
}

/* The server refuses, then has one value and not the other, then both; then something else. */
TEST(failures_leave_what_was_read)
{
    SCOPED(world) w;
    world_init(&w,
               ANSWER("403 Forbidden", "{\"kind\":\"Status\",\"code\":403,\"message\":\"no\"}"));
    testing_log_expect(w.f.log, "cannot read an object of Kubernetes that the configuration names");
    kube_contents_start(w.reader);
    while (w.asked == 0) {
        loop_run(w.f.loop);
    }
    check_value(&w, 0, NULL, "Secret n/s: the API server answered 403: no");
    check_missing(&w, "Secret n/s: the API server answered 403: no");
    atomic_store(&answer, ANSWER("200 OK", "{\"data\":{\"one\":\"YQ==\"}}"));
    for (int changes = w.changes; w.changes == changes;) {
        loop_run(w.f.loop);
    }
    check_value(&w, 0, "a", "");
    check_value(&w, 1, NULL, "Secret n/s: it has no key \"two\"");
    check_missing(&w, "Secret n/s: it has no key \"two\"");
    atomic_store(&answer, ANSWER("200 OK", "{\"data\":{\"one\":\"YQ==\",\"two\":\"Yg==\"}}"));
    for (int changes = w.changes; w.changes == changes;) {
        loop_run(w.f.loop);
    }
    check_value(&w, 1, "b", "");
    check_missing(&w, "");
    CHECK_INT(w.asked, 1, "called once");
    /* A server refuses the content: it is read again, and the old one stays if that fails. */
    testing_log_expect(w.f.log,
                       "cannot read an object of Kubernetes again, keeping its old content");
    atomic_store(&answer, ANSWER("200 OK", "{\"data\":{\"one\":\"?\",\"two\":7}}"));
    http_contents_refuse(w.contents, names[0]);
    for (int changes = w.changes; w.changes == changes;) {
        loop_run(w.f.loop);
    }
    check_value(&w, 0, "a", "");
    check_value(&w, 1, "b", "");
    check_missing(&w, "");
    assert_true(metric_value(w.counters.content_reads[CONTENT_READ_FAILED]) >= 3);
}

/* More than are read at the same time. */
TEST(many_objects_take_turns)
{
    enum { N = 20 };
    char text[N][64];
    const char *list[N];
    for (size_t i = 0; i < N; i++) {
        snprintf(text[i], sizeof(text[i]), "kubernetes:configmap/n/c%zu/k", i);
        list[i] = text[i];
    }
    SCOPED(world) w;
    world_init_with(&w, ANSWER("200 OK", "{\"data\":{\"k\":\"plain\"}}"),
                    &(struct config_strings){list, N});
    kube_contents_start(w.reader);
    while (w.asked == 0) {
        loop_run(w.f.loop);
    }
    check_missing(&w, "");
    CHECK_INT(metric_value(w.counters.content_reads[CONTENT_READ_OK]), N, "");
    for (size_t i = 0; i < N; i++) {
        assert_true(http_contents_version(w.contents, list[i]) == 2);
    }
}

TEST(answers_that_are_no_object)
{
    static const struct text_case cases[] = {
        {ANSWER("200 OK", "[]"), "Secret n/s: the response is not a JSON object"},
        {ANSWER("200 OK", "{"), "Secret n/s: the response is not a JSON object"},
        {ANSWER("200 OK", "{}"), "Secret n/s: it has no key \"two\""},
        {ANSWER("200 OK", "{\"data\":{\"two\":\"\",\"one\":\"YQ==\"}}"),
         "Secret n/s: it has no text under the key \"two\""},
        {ANSWER("200 OK", "{\"data\":{\"two\":\"??\",\"one\":\"YQ==\"}}"),
         "Secret n/s: expected base64 of at most 1048576 bytes under the key \"two\""},
        {ANSWER("500 No", "broken"), "Secret n/s: the API server answered 500: broken"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(world) w;
        world_init(&w, cases[i].text);
        testing_log_expect(w.f.log, "cannot read an object of Kubernetes");
        kube_contents_start(w.reader);
        while (w.asked == 0) {
            loop_run(w.f.loop);
        }
        check_missing(&w, cases[i].want);
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return testing_run("tests", NULL, NULL);
}
