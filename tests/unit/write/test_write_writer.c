/* The writer on a real loop, with real sockets and files: what was put arrives, the books balance,
 * and nobody waits for anybody. */
#include "tests/unit/lib/http_server.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "write/protocols/table.h"
#include "write/write.h"

/* Far beyond what anything here takes; only a hanging test gets there. */
#define PATIENCE_S 60
#define FAR_MS INT64_C(60000)

/* ---- a server that keeps what it receives ---------------------------------------------------- */

#define BODY_MAX (1 << 26)
#define REQUESTS_MAX 64

struct received {
    char *head; /* request line and headers */
    char *body;
    size_t size;
};

struct collector {
    struct server *server;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool gate_open;
    int in_progress;
    int most_in_progress;
    int unread;  /* answers that the other side did not read to the end */
    int broken;  /* so many answers first: the connection is closed without one */
    int failing; /* then so many with status `status` */
    int status;
    const char *extra; /* headers of these */
    const char *body;
    struct received requests[REQUESTS_MAX];
    size_t n_requests;
};

/* Returns the status to answer with; 0 to close without an answer. Waits for the gate. Takes the
 * body. */
static int judge(struct collector *s, const char *head, char *body, size_t size)
{
    pthread_mutex_lock(&s->lock);
    if (s->n_requests < REQUESTS_MAX) {
        s->requests[s->n_requests++] = (struct received){strdup(head), body, size};
    } else {
        free(body);
    }
    s->in_progress++;
    if (s->in_progress > s->most_in_progress) {
        s->most_in_progress = s->in_progress;
    }
    pthread_cond_broadcast(&s->changed);
    while (!s->gate_open) {
        pthread_cond_wait(&s->changed, &s->lock);
    }
    int status = 200;
    if (s->broken > 0) {
        s->broken--;
        status = 0;
    } else if (s->failing > 0) {
        s->failing--;
        status = s->status;
    }
    s->in_progress--;
    pthread_mutex_unlock(&s->lock);
    return status;
}

static bool respond(struct collector *s, struct server_conn *c, int status)
{
    SCOPED(buf) out = testing_buf(1 << 26);
    if (status == 200) {
        buf_puts(&out, "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n"
                       "Content-Length: 0\r\n\r\n");
    } else {
        buf_printf(&out,
                   "HTTP/1.1 %d No\r\nContent-Type: application/json\r\n%sContent-Length: "
                   "%zu\r\n\r\n%s",
                   status, s->extra, strlen(s->body), s->body);
    }
    bool ok = buf_ok(&out) && server_send_bytes(c, out.data, out.len);
    pthread_mutex_lock(&s->lock);
    s->unread += !ok;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return ok;
}

static void receive(struct server_conn *c)
{
    struct collector *s = server_arg(c);
    bool more = true;
    while (more && server_read_request(c)) {
        char text[32];
        uint64_t size = 0;
        more = server_header(c->head, "Content-Length", text, sizeof(text)) &&
               parse_u64(sv_from(text), BODY_MAX, &size);
        char *body = calloc(size + 1, 1);
        if (!more || !server_read_body(c, body, size)) {
            free(body);
            return;
        }
        int status = judge(s, c->head, body, size);
        more = status != 0 && respond(s, c, status);
    }
}

static void collector_init(struct collector *s)
{
    *s = (struct collector){.gate_open = true, .extra = "", .body = ""};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->server = server_new(receive, s);
}

static void open_gate(struct collector *s, bool open)
{
    pthread_mutex_lock(&s->lock);
    s->gate_open = open;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void collector_done(struct collector *s)
{
    open_gate(s, true);
    server_free(s->server);
    for (size_t i = 0; i < s->n_requests; i++) {
        free(s->requests[i].head);
        free(s->requests[i].body);
    }
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

static struct timespec give_up_at(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += PATIENCE_S;
    return t;
}

/* Waits until so many requests are held at the gate. */
static void wait_in_progress(struct collector *s, int n)
{
    struct timespec end = give_up_at();
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    while (s->in_progress < n && rc == 0) {
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &end);
    }
    int got = s->in_progress;
    pthread_mutex_unlock(&s->lock);
    CHECK_INT(got, n, "held at the gate");
}

/* ---- the writer and what it needs ------------------------------------------------------------ */

#define ENDPOINTS 2

struct rig {
    struct collector server[ENDPOINTS];
    char urls[ENDPOINTS][128];
    struct config_endpoint endpoints[ENDPOINTS];
    struct config config;
    struct testing_log *log;
    struct intern *in;
    struct metrics *metrics;
    struct loop *loop;
    struct loop_thread *thread;
    struct writer *writer;
    pthread_mutex_t lock; /* guards drained */
    pthread_cond_t changed;
    bool drained;
    int outcomes[WRITE_DROPPED + 1]; /* the writer's thread, until it is drained */
    struct write_attempt last;
    char text[256];
};

static int setup(void **state)
{
    static struct rig f;
    memset(&f, 0, sizeof(f));
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.changed, NULL);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        collector_init(&f.server[i]);
        (void)snprintf(f.urls[i], sizeof(f.urls[i]), "http://127.0.0.1:%u",
                       f.server[i].server->port);
        f.endpoints[i] = (struct config_endpoint){.name = i == 0 ? "main" : "other",
                                                  .label_limits = CONFIG_LABEL_LIMITS_DEFAULT,
                                                  .url = f.urls[i],
                                                  .protocol = &protocol_push.config,
                                                  .remote_timeout_ms = FAR_MS,
                                                  .min_backoff_ms = 10,
                                                  .max_backoff_ms = 50,
                                                  .max_age_ms = FAR_MS,
                                                  .retry_on_429 = true,
                                                  .queue_max_bytes = 1 << 24,
                                                  .concurrency = 3};
    }
    f.config = (struct config){.endpoints = f.endpoints, .n_endpoints = 1};
    f.log = testing_log_new();
    f.in = intern_new();
    f.metrics = metrics_new();
    struct err err = ERR_INIT;
    f.loop = loop_new(&err);
    *state = &f;
    return f.loop == NULL;
}

static void on_attempt(void *arg, const struct write_attempt *a)
{
    struct rig *f = arg;
    f->outcomes[a->outcome]++;
    f->last = *a;
    (void)snprintf(f->text, sizeof(f->text), "%s", a->text);
}

static void make_writer(struct rig *f)
{
    struct err err = ERR_INIT;
    struct writer_options options = {.config = &f->config,
                                     .loop = f->loop,
                                     .intern = f->in,
                                     .log = testing_log(f->log),
                                     .metrics = f->metrics,
                                     .on_attempt = on_attempt,
                                     .attempt_arg = f};
    f->writer = writer_new(&options, &err);
    CHECK_STR(err.msg, "", "writer_new");
    assert_non_null(f->writer);
}

static void start(struct rig *f)
{
    struct err err = ERR_INIT;
    make_writer(f);
    f->thread = loop_thread_start(f->loop, "writer", &err);
    assert_non_null(f->thread);
}

static int teardown(void **state)
{
    struct rig *f = *state;
    loop_thread_join(f->thread);
    writer_free(f->writer);
    loop_free(f->loop);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        collector_done(&f->server[i]);
    }
    metrics_free(f->metrics);
    size_t count = 1;
    size_t bytes;
    intern_stats(f->in, &count, &bytes);
    intern_free(f->in);
    testing_log_done(f->log);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    return count != 0; /* a profile was not released */
}

static void on_drained(void *arg)
{
    struct rig *f = arg;
    pthread_mutex_lock(&f->lock);
    f->drained = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void drain(struct rig *f, int64_t timeout_ms)
{
    struct timespec end = give_up_at();
    int rc = 0;
    writer_drain(f->writer, clock_mono_ms() + timeout_ms, on_drained, f);
    pthread_mutex_lock(&f->lock);
    while (!f->drained && rc == 0) {
        rc = pthread_cond_timedwait(&f->changed, &f->lock, &end);
    }
    bool drained = f->drained;
    pthread_mutex_unlock(&f->lock);
    assert_true(drained);
}

static struct profile *make(struct rig *f, const char *data, size_t size)
{
    struct labels *l =
        testing_labels(f->in, "service_name", "shop.cart", "__name__", "memory", "__delta__",
                       "false", "instance", "10.1.2.3:6060", "__tenant_id__", "team-a", NULL);
    char *copy = testing_memory(size + 1);
    memcpy(copy, data, size);
    struct profile *p = profile_new(l, copy, size);
    assert_non_null(p);
    p->from_ns = INT64_C(1795230000) * NS_PER_S;
    p->until_ns = INT64_C(1795230015) * NS_PER_S;
    p->scraped_ms = clock_mono_ms();
    return p;
}

static void put(struct rig *f, int n, uint64_t endpoints)
{
    for (int i = 0; i < n; i++) {
        writer_put(f->writer, make(f, "\x1f\x8b profile", 10), endpoints);
    }
}

static struct write_ledger ledger(struct rig *f, size_t endpoint)
{
    struct write_ledger l = writer_ledger(f->writer, endpoint);
    uint64_t dropped = 0;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        dropped += l.dropped[i];
    }
    CHECK_INT(l.accepted, l.sent + dropped + l.queued + l.in_flight, "balance");
    return l;
}

/* Waits until the ledger shows so many dropped or sent ones. */
static void wait_settled(struct rig *f, size_t endpoint, uint64_t n)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < PATIENCE_S * 1000; i++) {
        struct write_ledger l = ledger(f, endpoint);
        if (l.accepted - l.queued - l.in_flight >= n) {
            return;
        }
        nanosleep(&pause, NULL);
    }
    fail_msg("not settled");
}

/* ---- what arrives ---------------------------------------------------------------------------- */

TEST_ON(struct rig *f, test_push_arrives)
{
    (void)snprintf(f->urls[0], sizeof(f->urls[0]), "http://user:pass@127.0.0.1:%u/base/?k=v",
                   f->server[0].server->port);
    start(f);
    /* With NULs, and too large for one segment. */
    static char data[200000];
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (char)(i % 251);
    }
    writer_put(f->writer, make(f, data, sizeof(data)), 1);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).sent, 1, "");

    const struct received *r = &f->server[0].requests[0];
    CHECK_INT(f->server[0].n_requests, 1, "");
    CHECK_CONTAINS(r->head, "POST /base/push.v1.PusherService/Push?k=v HTTP/1.1\r\n", "");
    CHECK_CONTAINS(r->head, "\r\nContent-Type: application/proto\r\n", "");
    CHECK_CONTAINS(r->head, "\r\nConnect-Protocol-Version: 1\r\n", "");
    CHECK_CONTAINS(r->head, "\r\nConnect-Timeout-Ms: 60000\r\n", "");
    CHECK_CONTAINS(r->head, "\r\nX-Scope-OrgID: team-a\r\n", "");
    CHECK_CONTAINS(r->head, "\r\nAuthorization: Basic dXNlcjpwYXNz\r\n", "");
    CHECK_CONTAINS(r->head, "\r\nUser-Agent: " USER_AGENT "\r\n", "");
    assert_null(strcasestr(r->head, "\r\nexpect:"));
    assert_null(strcasestr(r->head, "\r\ncontent-encoding:"));
    static const char labels[] = "\x0a\x12\x0a\x09__delta__\x12\x05"
                                 "false\x0a\x12\x0a\x08__name__\x12\x06memory\x0a\x19\x0a\x08"
                                 "instance\x12\x0d"
                                 "10.1.2.3:6060\x0a\x19\x0a\x0cservice_name\x12\x09shop.cart";
    /* tag and three bytes of length for the series; the same twice for sample and profile */
    size_t before = 4 + sizeof(labels) - 1 + 4 + 4;
    CHECK_INT(r->size, before + sizeof(data) + 2 + 36, "with the ID");
    assert_memory_equal(r->body + 4, labels, sizeof(labels) - 1);
    assert_memory_equal(r->body + before, data, sizeof(data));
}

TEST_ON(struct rig *f, test_ingest_arrives)
{
    f->endpoints[0].protocol = &protocol_ingest.config;
    start(f);
    writer_put(f->writer, make(f, "\x1f\x8b\0profile", 10), 1);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).sent, 1, "");
    const struct received *r = &f->server[0].requests[0];
    CHECK_CONTAINS(r->head,
                   "POST /ingest?name=shop.cart%7Binstance%3D10.1.2.3%3A6060%7D&from=1795230000"
                   "&until=1795230015&spyName=gospy&sampleRate=100&units=samples"
                   "&aggregationType=sum HTTP/1.1\r\n",
                   "");
    const char *boundary = strstr(r->head, "boundary=");
    assert_non_null(boundary);
    boundary += strlen("boundary=");
    char want[512];
    (void)snprintf(want, sizeof(want),
                   "--%.40s\r\nContent-Disposition: form-data; name=\"profile\"; "
                   "filename=\"profile.pprof\"\r\nContent-Type: application/octet-stream\r\n\r\n",
                   boundary);
    CHECK_INT(strncmp(r->body, want, strlen(want)), 0, r->body);
    assert_memory_equal(r->body + strlen(want), "\x1f\x8b\0profile\r\n--", 14);
    (void)snprintf(want, sizeof(want), "\r\n--%.40s--\r\n", boundary);
    assert_memory_equal(r->body + r->size - strlen(want), want, strlen(want));
}

TEST_ON(struct rig *f, test_file_arrives)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    (void)snprintf(f->urls[0], sizeof(f->urls[0]), "file://%s", dir);
    f->endpoints[0].protocol = &protocol_file.config;
    start(f);
    put(f, 5, 1);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).sent, 5, "");
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/shop.cart/memory/%s", dir,
                   "20261121T030015.000Z_10.1.2.3-6060-5.pb.gz");
    CHECK_INT(access(path, R_OK), 0, path);
}

/* ---- concurrency, fan-out -------------------------------------------------------------------- */

TEST_ON(struct rig *f, test_concurrency)
{
    open_gate(&f->server[0], false);
    start(f);
    put(f, 10, 1);
    wait_in_progress(&f->server[0], 3);
    CHECK_INT(ledger(f, 0).in_flight, 3, "");
    CHECK_INT(ledger(f, 0).queued, 7, "");
    open_gate(&f->server[0], true);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).sent, 10, "");
    CHECK_INT(f->server[0].most_in_progress, 3, "");
}

TEST_ON(struct rig *f, test_endpoints_do_not_wait_for_each_other)
{
    f->config.n_endpoints = 2;
    open_gate(&f->server[0], false);
    start(f);
    put(f, 8, 3);
    put(f, 2, 2);
    put(f, 1, 0); /* to nobody */
    wait_settled(f, 1, 10);
    CHECK_INT(ledger(f, 1).sent, 10, "");
    CHECK_INT(ledger(f, 0).sent, 0, "");
    CHECK_INT(ledger(f, 0).accepted, 8, "");
    open_gate(&f->server[0], true);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).sent, 8, "");
    CHECK_INT(ledger(f, 2).accepted, 0, "no such endpoint");
}

/* ---- failures -------------------------------------------------------------------------------- */

static char *render(struct rig *f)
{
    struct buf out = testing_buf(1 << 20);
    assert_true(metrics_render(f->metrics, &out));
    char *text = buf_take(&out, NULL);
    assert_non_null(text);
    return text;
}

TEST_ON(struct rig *f, test_failure_and_recovery)
{
    f->server[0].failing = 3;
    f->server[0].status = 503;
    f->server[0].body = "{\"code\":\"unavailable\",\"message\":\"come back later\"}";
    f->endpoints[0].concurrency = 1;
    testing_log_expect(f->log, "endpoint fails, retrying");
    start(f);
    put(f, 2, 1);
    wait_settled(f, 0, 2);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).sent, 2, "");
    const char *log = testing_log_text(f->log);
    CHECK_CONTAINS(log, "HTTP 503: come back later", "");
    CHECK_CONTAINS(log, "endpoint works again", "");
    const char *first = strstr(log, "endpoint fails");
    assert_null(strstr(first + 1, "endpoint fails")); /* once, not three times */
    SCOPED_MEMORY char *text = render(f);
    CHECK_CONTAINS(text, "profpull_write_requests_total{endpoint=\"main\",result=\"5xx\"} 3", "");
    CHECK_CONTAINS(text, "profpull_write_requests_total{endpoint=\"main\",result=\"2xx\"} 2", "");
    CHECK_CONTAINS(text, "profpull_write_retries_total{endpoint=\"main\"} 3", "");
    CHECK_CONTAINS(text, "profpull_write_accepted_profiles_total{endpoint=\"main\"} 2", "");
    CHECK_CONTAINS(text, "profpull_write_sent_profiles_total{endpoint=\"main\"} 2", "");
    CHECK_CONTAINS(text, "profpull_write_sent_bytes_total{endpoint=\"main\"} 20", "");
    CHECK_CONTAINS(
        text, "profpull_write_dropped_profiles_total{endpoint=\"main\",reason=\"expired\"} 0", "");
    CHECK_CONTAINS(text, "profpull_write_queued_profiles{endpoint=\"main\"} 0", "");
    CHECK_CONTAINS(text, "profpull_write_in_flight_profiles{endpoint=\"main\"} 0", "");
    CHECK_CONTAINS(text, "profpull_write_queue_limit_bytes{endpoint=\"main\"} 16777216", "");
    CHECK_CONTAINS(text, "profpull_write_oldest_age_seconds{endpoint=\"main\"} 0", "");
    CHECK_CONTAINS(text, "profpull_write_up{endpoint=\"main\"} 1", "");
    CHECK_CONTAINS(text, "profpull_write_request_duration_seconds_count{endpoint=\"main\"} 5", "");
}

static size_t count_lines(struct rig *f, const char *part)
{
    size_t n = 0;
    for (const char *at = testing_log_text(f->log); (at = strstr(at, part)) != NULL; at++) {
        n++;
    }
    return n;
}

/* Each outage is news, five times a minute; a recovery only if its outage was said. */
TEST_ON(struct rig *f, test_many_outages)
{
    f->server[0].status = 503;
    f->endpoints[0].concurrency = 1;
    testing_log_expect(f->log, "endpoint fails, retrying");
    start(f);
    for (uint64_t i = 1; i <= 7; i++) {
        pthread_mutex_lock(&f->server[0].lock);
        f->server[0].failing = 2;
        pthread_mutex_unlock(&f->server[0].lock);
        put(f, 1, 1);
        wait_settled(f, 0, i);
    }
    drain(f, FAR_MS);
    CHECK_INT(count_lines(f, "endpoint fails"), 5, "");
    CHECK_INT(count_lines(f, "endpoint works again"), 5, "");
}

TEST_ON(struct rig *f, test_closed_without_an_answer)
{
    f->server[0].broken = 2;
    f->endpoints[0].concurrency = 1;
    testing_log_expect(f->log, "endpoint fails, retrying");
    start(f);
    put(f, 3, 1);
    wait_settled(f, 0, 3);
    CHECK_INT(ledger(f, 0).sent, 3, "");
}

TEST_ON(struct rig *f, test_rejected)
{
    f->server[0].failing = 1;
    f->server[0].status = 400;
    f->server[0].body = "{\"code\":\"invalid_argument\",\"message\":\"bad\\nnews\"}";
    testing_log_expect(f->log, "profile given up");
    start(f);
    put(f, 1, 1);
    wait_settled(f, 0, 1);
    put(f, 1, 1);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).sent, 1, "");
    CHECK_INT(ledger(f, 0).dropped[DROP_REJECTED], 1, "");
    CHECK_CONTAINS(testing_log_text(f->log), "reason=rejected err=\"HTTP 400: bad news\"", "");
}

/* Only the beginning of an error page is read. */
TEST_ON(struct rig *f, test_huge_error_page)
{
    size_t size = 1 << 25; /* far more than socket buffers hold */
    SCOPED_MEMORY char *page = malloc(size + 1);
    memset(page, 'x', size);
    page[size] = '\0';
    f->server[0].failing = 1;
    f->server[0].status = 413;
    f->server[0].body = page;
    testing_log_expect(f->log, "profile given up");
    start(f);
    put(f, 1, 1);
    wait_settled(f, 0, 1);
    put(f, 1, 1);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).sent, 1, "");
    CHECK_INT(ledger(f, 0).dropped[DROP_TOO_LARGE], 1, "");
    CHECK_CONTAINS(testing_log_text(f->log), "HTTP 413: xxxx", "");
    struct timespec end = give_up_at();
    int rc = 0;
    pthread_mutex_lock(&f->server[0].lock);
    while (f->server[0].unread == 0 && rc == 0) {
        rc = pthread_cond_timedwait(&f->server[0].changed, &f->server[0].lock, &end);
    }
    pthread_mutex_unlock(&f->server[0].lock);
    CHECK_INT(rc, 0, "the rest was not waited for");
    SCOPED_MEMORY char *text = render(f);
    CHECK_CONTAINS(text, "profpull_write_requests_total{endpoint=\"main\",result=\"4xx\"} 1", "");
}

TEST_ON(struct rig *f, test_retry_after_is_passed_on)
{
    f->server[0].failing = 1;
    f->server[0].status = 429;
    f->server[0].extra = "Retry-After: 100\r\n";
    testing_log_expect(f->log, "endpoint fails, retrying");
    start(f);
    put(f, 1, 1);
    SCOPED_MEMORY char *text = NULL;
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < PATIENCE_S * 1000; i++) {
        free(text);
        text = render(f);
        /* The line comes last of all. */
        if (strstr(text, "result=\"429\"} 1") != NULL &&
            strstr(testing_log_text(f->log), "retry_in_s=100") != NULL) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    CHECK_CONTAINS(text, "profpull_write_up{endpoint=\"main\"} 0", "");
    free(text);
    CHECK_CONTAINS(testing_log_text(f->log), "retry_in_s=100", "");
    /* A drain honours that, and does not wait in vain: it ends long before its deadline. */
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).sent, 0, "");
    CHECK_INT(ledger(f, 0).dropped[DROP_SHUTDOWN], 1, "");
    text = render(f);
    CHECK_CONTAINS(text, "profpull_write_requests_total{endpoint=\"main\",result=\"429\"} 1", "");
}

TEST_ON(struct rig *f, test_no_type)
{
    testing_log_expect(f->log, "profile given up");
    start(f);
    struct labels *l = testing_labels(f->in, "service_name", "s", NULL);
    struct profile *p = profile_new(l, strdup("x"), 1);
    p->scraped_ms = clock_mono_ms();
    writer_put(f->writer, p, 1);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).dropped[DROP_LABELS], 1, "");
    CHECK_CONTAINS(testing_log_text(f->log), "the label __name__ is missing", "");
}

TEST_ON(struct rig *f, test_label_changes_are_counted_once)
{
    f->server[0].failing = 2;
    f->server[0].status = 503;
    testing_log_expect(f->log, "endpoint fails, retrying");
    start(f);
    struct labels *l =
        testing_labels(f->in, "service_name", "s", "__name__", "memory", "a-b", "x", NULL);
    struct profile *p = profile_new(l, strdup("x"), 1);
    p->scraped_ms = clock_mono_ms();
    writer_put(f->writer, p, 1);
    wait_settled(f, 0, 1);
    drain(f, FAR_MS);
    SCOPED_MEMORY char *text = render(f);
    CHECK_CONTAINS(
        text, "profpull_write_label_changes_total{endpoint=\"main\",change=\"renamed\"} 1", "");
}

TEST_ON(struct rig *f, test_queue_overflow_is_said)
{
    open_gate(&f->server[0], false);
    f->endpoints[0].queue_max_bytes = 6000; /* five profiles of 1034 bytes */
    f->endpoints[0].concurrency = 1;
    testing_log_expect(f->log, "profiles lost in the queue");
    start(f);
    put(f, 1, 1);
    wait_in_progress(&f->server[0], 1);
    put(f, 20, 1);
    struct write_ledger l = ledger(f, 0);
    assert_true(l.queued >= 2 && l.queued <= 4);
    CHECK_INT(l.dropped[DROP_THINNED], 20 - l.queued, "");
    open_gate(&f->server[0], true);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).sent, 1 + l.queued, "");
}

/* ---- the end --------------------------------------------------------------------------------- */

TEST_ON(struct rig *f, test_drain_deadline)
{
    open_gate(&f->server[0], false);
    start(f);
    put(f, 10, 1);
    wait_in_progress(&f->server[0], 3);
    drain(f, 1);
    struct write_ledger l = ledger(f, 0);
    CHECK_INT(l.dropped[DROP_SHUTDOWN], 10, "");
    CHECK_INT(l.in_flight, 0, "");
    put(f, 1, 1);
    CHECK_INT(ledger(f, 0).dropped[DROP_SHUTDOWN], 11, "late ones are counted");
}

TEST_ON(struct rig *f, test_drain_of_nothing)
{
    start(f);
    drain(f, FAR_MS);
    CHECK_INT(ledger(f, 0).accepted, 0, "");
}

static int files_in(const char *path)
{
    DIR *d = opendir(path);
    assert_non_null(d);
    int n = 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        n += e->d_name[0] != '.';
    }
    closedir(d);
    return n;
}

/* A disk hangs: the other endpoint gets everything, the drain ends all the same, and what has not
 * begun by then is not written any more. The index is a pipe that nobody reads, so that the thread
 * of the endpoint hangs in open(). */
TEST_ON(struct rig *f, test_disk_that_hangs)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/index.jsonl", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)snprintf(f->urls[0], sizeof(f->urls[0]), "file://%s", dir);
    f->endpoints[0].protocol = &protocol_file.config;
    f->config.n_endpoints = 2;
    start(f);
    put(f, 5, 3);
    wait_settled(f, 1, 5);
    CHECK_INT(ledger(f, 1).sent, 5, "");
    CHECK_INT(ledger(f, 0).in_flight, 3, "as many as may be");
    drain(f, 1);
    CHECK_INT(ledger(f, 0).dropped[DROP_SHUTDOWN], 5, "");
    f->thread = loop_thread_join(f->thread);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    f->writer = writer_free(f->writer);
    close(reader);
    (void)snprintf(path, sizeof(path), "%s/shop.cart/memory", dir);
    CHECK_INT(files_in(path), 1, "the one that hung");
}

/* An end without a drain: what was queued and in flight is in the ledger as dropped, and no more.
 */
TEST_ON(struct rig *f, test_stop_settles_the_ledger)
{
    open_gate(&f->server[0], false);
    f->endpoints[0].concurrency = 2;
    start(f);
    put(f, 5, 1);
    wait_in_progress(&f->server[0], 2);
    loop_thread_join(f->thread);
    f->thread = NULL;
    writer_stop(f->writer);
    struct write_ledger l = ledger(f, 0);
    CHECK_INT(l.accepted, 5, "");
    CHECK_INT(l.queued + l.in_flight, 0, "");
    CHECK_INT(l.dropped[DROP_SHUTDOWN], 5, "");
    open_gate(&f->server[0], true);
}

TEST_ON(struct rig *f, test_free_without_a_run)
{
    make_writer(f);
    put(f, 3, 1);
    writer_drain(f->writer, 0, on_drained, f);
    CHECK_INT(ledger(f, 0).queued, 3, "");
}

TEST_ON(struct rig *f, test_free_with_requests_in_flight)
{
    open_gate(&f->server[0], false);
    start(f);
    put(f, 5, 1);
    wait_in_progress(&f->server[0], 3);
    f->thread = loop_thread_join(f->thread);
    f->writer = writer_free(f->writer);
}

TEST_ON(struct rig *f, test_bad_endpoint_is_named)
{
    struct err err = ERR_INIT;
    f->config.n_endpoints = 2;
    f->endpoints[1].protocol = &protocol_file.config;
    f->endpoints[1].url = "file://host/x";
    struct writer_options options = {.config = &f->config,
                                     .loop = f->loop,
                                     .intern = f->in,
                                     .log = testing_log(f->log),
                                     .metrics = f->metrics};
    assert_null(writer_new(&options, &err));
    CHECK_CONTAINS(err.msg, "endpoint \"other\": expected a URL such as", "");
}

/* ---- threads --------------------------------------------------------------------------------- */

#define PUTTERS 3
#define PUTS 300

static void *put_many(void *arg)
{
    struct rig *f = arg;
    put(f, PUTS, 3);
    return NULL;
}

/* Puts, ledgers and renders while the loop sends. */
TEST_ON(struct rig *f, test_threads)
{
    f->config.n_endpoints = 2;
    f->endpoints[1].protocol = &protocol_ingest.config;
    start(f);
    pthread_t threads[PUTTERS];
    for (size_t i = 0; i < PUTTERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, f), 0);
    }
    for (int i = 0; i < 50; i++) {
        ledger(f, 0);
        ledger(f, 1);
        free(render(f));
    }
    for (size_t i = 0; i < PUTTERS; i++) {
        pthread_join(threads[i], NULL);
    }
    drain(f, FAR_MS);
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT(ledger(f, i).sent, PUTTERS * PUTS, "");
    }
}

/* The callback reports each attempt, and each profile that could not be sent at all. */
TEST_ON(struct rig *f, test_attempts_are_told)
{
    testing_log_expect(f->log, "given up");
    testing_log_expect(f->log, "fail");
    f->server[0].failing = 1;
    f->server[0].status = 503;
    start(f);
    put(f, 1, 1);
    wait_settled(f, 0, 1);
    struct profile *recording = make(f, "FLR", 4);
    recording->format = PROFILE_JFR;
    writer_put(f->writer, recording, 1);
    wait_settled(f, 0, 2);
    drain(f, FAR_MS);
    CHECK_INT(f->outcomes[WRITE_RETRIED], 1, "503");
    CHECK_INT(f->outcomes[WRITE_SENT], 1, "second attempt");
    CHECK_INT(f->outcomes[WRITE_DROPPED], 1, "a recording by push");
    CHECK_INT(f->last.reason, DROP_FORMAT, "");
    CHECK_INT(f->last.endpoint, 0, "");
    CHECK_STR(f->text, "the protocol cannot carry its format", "");
}
