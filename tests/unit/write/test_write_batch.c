/* Many profiles in one request: which ones go together, and what each answer does to them. OTLP is
 * the protocol; the server reads its requests with the generated code. */
#include "tests/unit/lib/http_server.h"

#include "base/loop.h"
#include "pprof/proto/otlp.pb-c.h"
#include "tests/unit/write/requests.h"
#include "write/batch.h"
#include "write/protocols/otlp.h"
#include "write/write.h"

#define PATIENCE_S 60
#define FAR_MS INT64_C(60000)

/* ---- the server ------------------------------------------------------------------------------ */

/* The behaviour of the server; set before the writer starts, except for the atomic members. */
struct script {
    atomic_bool gate; /* answers wait until it is open */
    atomic_int held;
    atomic_int requests;
    atomic_int unreadable;
    atomic_int failing; /* so many 503 first */
    atomic_int most;    /* profiles in one request */
    int64_t left_out;   /* of each request, as partial success */
};

static struct sv text_of(const Otlp__Resource *r, const char *key)
{
    for (size_t i = 0; i < r->n_attributes; i++) {
        const Otlp__KeyValue *a = r->attributes[i];
        if (a->key.len == strlen(key) && memcmp(a->key.data, key, a->key.len) == 0) {
            const ProtobufCBinaryData *v = &a->value->string_value;
            return (struct sv){.p = (const char *)v->data, .n = v->len};
        }
    }
    return SV("");
}

static bool has_bad(const Otlp__ExportRequest *request)
{
    for (size_t i = 0; i < request->n_resource_profiles; i++) {
        if (sv_eq_str(text_of(request->resource_profiles[i]->resource, "k8s.pod.name"), "bad")) {
            return true;
        }
    }
    return false;
}

static void wait_for_gate(struct script *s)
{
    atomic_fetch_add(&s->held, 1);
    for (int i = 0; i < PATIENCE_S * 1000 && !atomic_load(&s->gate); i++) {
        usleep(1000);
    }
    atomic_fetch_sub(&s->held, 1);
}

static bool answer_one(struct server_conn *c, struct script *s, const char *body, size_t n)
{
    static const char refusal[] = "\x08\x03\x12\x0b"
                                  "bad profile";
    Otlp__ExportRequest *request = otlp__export_request__unpack(NULL, n, (const uint8_t *)body);
    atomic_fetch_add(&s->requests, 1);
    if (request == NULL) {
        atomic_fetch_add(&s->unreadable, 1);
        return false;
    }
    int count = (int)request->n_resource_profiles;
    bool bad = has_bad(request);
    otlp__export_request__free_unpacked(request, NULL);
    if (count > atomic_load(&s->most)) {
        atomic_store(&s->most, count);
    }
    wait_for_gate(s);
    if (atomic_load(&s->failing) > 0) {
        atomic_fetch_sub(&s->failing, 1);
        return server_send(c, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
    }
    char head[256];
    char taken[64];
    int size = 0;
    if (!bad && s->left_out > 0) {
        size = snprintf(taken, sizeof(taken), "\x0a\x07\x08%c\x12\x03old", (char)s->left_out);
    }
    (void)snprintf(head, sizeof(head),
                   "HTTP/1.1 %s\r\nContent-Type: application/x-protobuf\r\nContent-Length: "
                   "%d\r\n\r\n",
                   bad ? "400 Bad Request" : "200 OK", bad ? (int)sizeof(refusal) - 1 : size);
    return server_send(c, head) &&
           server_send_bytes(c, bad ? refusal : taken, bad ? sizeof(refusal) - 1 : (size_t)size);
}

static void serve(struct server_conn *c)
{
    struct script *s = server_arg(c);
    while (server_read_request(c)) {
        char length[32];
        uint64_t n = 0;
        if (!server_header(c->head, "Content-Length", length, sizeof(length)) ||
            !parse_u64(sv_from(length), 1 << 24, &n)) {
            return;
        }
        SCOPED_MEMORY char *body = malloc(n + 1);
        bool ok = server_read_body(c, body, n) && answer_one(c, s, body, n);
        if (!ok) {
            return;
        }
    }
}

/* ---- the writer ------------------------------------------------------------------------------ */

struct world {
    struct script script;
    uint64_t request_bytes; /* 0: the default */
    struct server *server;
    char url[URL_SIZE];
    struct config_endpoint endpoint;
    struct config config;
    struct testing_log *log;
    struct metrics *metrics;
    struct loop *loop;
    struct loop_thread *thread;
    struct writer *writer;
    atomic_bool drained;
    char text[256]; /* of the last one that was dropped; the writer's thread, until end() */
};

static void on_attempt(void *arg, const struct write_attempt *a)
{
    struct world *w = arg;
    if (a->outcome == WRITE_DROPPED) {
        (void)snprintf(w->text, sizeof(w->text), "%s", a->text);
    }
}

static void start(struct world *w)
{
    struct err err = ERR_INIT;
    assert_int_equal(setup(NULL), 0);
    w->server = server_new(serve, &w->script);
    w->endpoint = (struct config_endpoint){.name = "main",
                                           .url = server_url(w->server, "", w->url),
                                           .protocol = &protocol_otlp.config,
                                           .remote_timeout_ms = FAR_MS,
                                           .min_backoff_ms = 10,
                                           .max_backoff_ms = 50,
                                           .max_age_ms = FAR_MS,
                                           .retry_on_429 = true,
                                           .queue_max_bytes = 1 << 24,
                                           .otlp_request_bytes =
                                               w->request_bytes != 0 ? w->request_bytes : 1 << 22,
                                           .otlp_compression = OTLP_PLAIN,
                                           .label_limits = CONFIG_LABEL_LIMITS_DEFAULT,
                                           .concurrency = 200};
    w->config = (struct config){.endpoints = &w->endpoint, .n_endpoints = 1};
    w->log = testing_log_new();
    w->metrics = metrics_new();
    w->loop = loop_new(&err);
    struct writer_options options = {.config = &w->config,
                                     .loop = w->loop,
                                     .intern = table,
                                     .log = testing_log(w->log),
                                     .metrics = w->metrics,
                                     .on_attempt = on_attempt,
                                     .attempt_arg = w};
    w->writer = writer_new(&options, &err);
    CHECK_STR(err.msg, "", "writer_new");
    w->thread = loop_thread_start(w->loop, "writer", &err);
    assert_non_null(w->thread);
}

static void end(struct world *w)
{
    atomic_store(&w->script.gate, true);
    loop_thread_join(w->thread);
    writer_free(w->writer);
    loop_free(w->loop);
    server_free(w->server);
    metrics_free(w->metrics);
    testing_log_done(w->log);
    assert_int_equal(teardown(NULL), 0);
}

static struct profile *make(const char *pod, const char *tenant, bool damaged)
{
    struct bytes b = from_hex(cpu_hex);
    const struct pair pairs[] = {{"service_name", "shop"},
                                 {"__name__", "process_cpu"},
                                 {"pod", pod},
                                 {"__tenant_id__", tenant}};
    struct profile *p =
        profile_of(labels_of(pairs, tenant != NULL ? 4 : 3), b.data, damaged ? b.n - 1 : b.n);
    p->scraped_ms = clock_mono_ms();
    return p;
}

static void put(struct world *w, int n, const char *pod, const char *tenant)
{
    for (int i = 0; i < n; i++) {
        assert_true(writer_put(w->writer, make(pod, tenant, false), 1));
    }
}

static struct write_ledger ledger(struct world *w)
{
    struct write_ledger l = writer_ledger(w->writer, 0);
    uint64_t dropped = 0;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        dropped += l.dropped[i];
    }
    CHECK_INT(l.accepted, l.sent + dropped + l.queued + l.in_flight, "balance");
    return l;
}

static void wait_until(const atomic_int *value, int n, const char *what)
{
    for (int i = 0; i < PATIENCE_S * 1000 && atomic_load(value) < n; i++) {
        usleep(1000);
    }
    CHECK_INT(atomic_load(value), n, what);
}

/* Until all are sent or dropped. */
static struct write_ledger settle(struct world *w)
{
    struct write_ledger l = ledger(w);
    atomic_store(&w->script.gate, true);
    for (int i = 0; i < PATIENCE_S * 1000 && l.queued + l.in_flight > 0; i++) {
        usleep(1000);
        l = ledger(w);
    }
    CHECK_INT(l.queued + l.in_flight, 0, "left");
    CHECK_INT(atomic_load(&w->script.unreadable), 0, "unreadable requests");
    return l;
}

/* Until the queue has let all go, so that they are known to be in flight. */
static void wait_in_flight(struct world *w, uint64_t n)
{
    for (int i = 0; i < PATIENCE_S * 1000 && ledger(w).in_flight < n; i++) {
        usleep(1000);
    }
    CHECK_INT(ledger(w).in_flight, n, "in flight");
}

static void check_metric(struct world *w, const char *line)
{
    SCOPED(buf) out = testing_buf(1 << 20);
    assert_true(metrics_render(w->metrics, &out));
    CHECK_CONTAINS(out.data, line, "metrics");
}

/* ---- which ones go together ------------------------------------------------------------------ */

/* Profiles that arrive while a request is under way wait for its end, and go together. */
TEST(test_company)
{
    struct world w = {.request_bytes = 0};
    start(&w);
    put(&w, 1, "a", NULL);
    wait_until(&w.script.held, 1, "held");
    put(&w, 20, "b", NULL);
    wait_in_flight(&w, 21);
    struct write_ledger l = settle(&w);
    CHECK_INT(l.sent, 21, "sent");
    CHECK_INT(atomic_load(&w.script.requests), 2, "requests");
    CHECK_INT(atomic_load(&w.script.most), 20, "profiles in the larger one");
    check_metric(&w, "profpull_write_batches_total{endpoint=\"main\"} 2");
    check_metric(&w, "profpull_write_halved_batches_total{endpoint=\"main\"} 0");
    end(&w);
}

/* One that is full does not wait, and neither does another tenant. */
TEST(test_no_waiting)
{
    struct world w = {.request_bytes = 0};
    start(&w);
    put(&w, 1, "a", NULL);
    wait_until(&w.script.held, 1, "held");
    put(&w, BATCH_PROFILES_MAX + 5, "b", NULL);
    wait_until(&w.script.held, 2, "held");
    CHECK_INT(atomic_load(&w.script.most), BATCH_PROFILES_MAX, "profiles in the larger one");
    put(&w, 1, "c", "team-b");
    wait_until(&w.script.held, 3, "held");
    struct write_ledger l = settle(&w);
    CHECK_INT(l.sent, BATCH_PROFILES_MAX + 7, "sent");
    CHECK_INT(atomic_load(&w.script.requests), 4, "requests");
    end(&w);
}

/* No request is larger than it may be, unless it has one profile. */
TEST(test_size)
{
    struct world w = {.request_bytes = 3 * (sizeof(cpu_hex) / 2)};
    start(&w);
    put(&w, 1, "a", NULL);
    wait_until(&w.script.held, 1, "held");
    put(&w, 9, "b", NULL);
    /* Full ones do not wait; the last three may still get company. */
    wait_until(&w.script.held, 3, "held");
    wait_in_flight(&w, 10);
    CHECK_INT(settle(&w).sent, 10, "sent");
    CHECK_INT(atomic_load(&w.script.most), 3, "profiles in the largest one");
    CHECK_INT(atomic_load(&w.script.requests), 4, "requests");
    end(&w);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* A profile that the server refuses costs no other one. */
TEST(test_halves)
{
    struct world w = {.request_bytes = 0};
    start(&w);
    testing_log_expect(w.log, "profile given up");
    put(&w, 1, "a", NULL);
    wait_until(&w.script.held, 1, "held");
    put(&w, 9, "b", NULL);
    put(&w, 1, "bad", NULL);
    put(&w, 6, "c", NULL);
    wait_in_flight(&w, 17);
    struct write_ledger l = settle(&w);
    CHECK_INT(l.sent, 16, "sent");
    CHECK_INT(l.dropped[DROP_REJECTED], 1, "dropped");
    /* 16 -> 8 -> 4 -> 2 -> 1 */
    check_metric(&w, "profpull_write_halved_batches_total{endpoint=\"main\"} 4");
    end(&w);
    CHECK_STR(w.text, "HTTP 400: bad profile", "the server's words");
}

TEST(test_outage)
{
    struct world w = {.request_bytes = 0};
    atomic_store(&w.script.gate, true);
    atomic_store(&w.script.failing, 3);
    start(&w);
    testing_log_expect(w.log, "endpoint fails, retrying");
    put(&w, 30, "a", NULL);
    CHECK_INT(settle(&w).sent, 30, "sent");
    CHECK_INT(atomic_load(&w.script.failing), 0, "answers 503 that are left");
    end(&w);
}

TEST(test_partly_taken)
{
    struct world w = {.script.left_out = 3};
    start(&w);
    testing_log_expect(w.log, "a server accepted a request in part");
    testing_log_expect(w.log, "profile given up");
    put(&w, 1, "a", NULL);
    wait_until(&w.script.held, 1, "held");
    put(&w, 5, "b", NULL);
    wait_in_flight(&w, 6);
    /* Each has two sample types, so the first request had two messages. */
    struct write_ledger l = settle(&w);
    CHECK_INT(l.dropped[DROP_REJECTED], 1, "all of the first request is refused");
    CHECK_INT(l.sent, 5, "sent");
    CHECK_INT(atomic_load(&w.script.requests), 2, "nothing is sent again");
    check_metric(&w, "profpull_write_partly_refused_total{endpoint=\"main\"} 6");
    CHECK_CONTAINS(testing_log_text(w.log), "err=\"HTTP 200, 3 not accepted: old\" refused=3 of=10",
                   "");
    end(&w);
}

TEST(test_damaged)
{
    struct world w = {.request_bytes = 0};
    start(&w);
    put(&w, 1, "a", NULL);
    wait_until(&w.script.held, 1, "held");
    testing_log_expect(w.log, "profile given up");
    put(&w, 2, "b", NULL);
    assert_true(writer_put(w.writer, make("c", NULL, true), 1));
    struct profile *jfr = make("d", NULL, false);
    jfr->format = PROFILE_JFR;
    assert_true(writer_put(w.writer, jfr, 1));
    wait_in_flight(&w, 5);
    struct write_ledger l = settle(&w);
    CHECK_INT(l.sent, 3, "sent");
    CHECK_INT(l.dropped[DROP_FORMAT], 2, "dropped");
    end(&w);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void on_drained(void *arg)
{
    struct world *w = arg;
    atomic_store(&w->drained, true);
}

/* The deadline comes while one request is held and others wait for its end. */
TEST(test_deadline)
{
    struct world w = {.request_bytes = 0};
    start(&w);
    put(&w, 1, "a", NULL);
    wait_until(&w.script.held, 1, "held");
    put(&w, 5, "b", NULL);
    wait_in_flight(&w, 6);
    writer_drain(w.writer, clock_mono_ms() + 1, on_drained, &w);
    for (int i = 0; i < PATIENCE_S * 1000 && !atomic_load(&w.drained); i++) {
        usleep(1000);
    }
    assert_true(atomic_load(&w.drained));
    CHECK_INT(ledger(&w).dropped[DROP_SHUTDOWN], 6, "dropped");
    end(&w);
}

/* Requests of any state are freed with the writer. */
TEST(test_end)
{
    struct world w = {.request_bytes = 0};
    start(&w);
    put(&w, 1, "a", NULL);
    wait_until(&w.script.held, 1, "held");
    put(&w, 2 * BATCH_PROFILES_MAX, "b", NULL);
    end(&w);
}
