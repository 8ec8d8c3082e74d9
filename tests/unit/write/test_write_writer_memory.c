/* The writer with each of its allocations failing in turn: writer.c, attempt.c, batch.c, report.c
 * and answer.c, and what they call, the encoders of protocols included. It cannot be made, with a
 * clean error; or one profile is dropped and counted, the other arrives, the books balance and the
 * drain comes to its end. What leaks is for the sanitizers to find.
 *
 * HTTP and the thread of a file endpoint are played here, so that no thread and no socket is
 * involved.
 */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/worker.h"
#include "tests/unit/lib/failing_malloc.h"
#include "write/protocols/table.h"
#include "write/write.h"

#define PROFILES 2

/* A profile that every protocol can read: one sample in one function. */
static const char pprof[] = "\x0a\x04\x08\x01\x10\x02"
                            "\x12\x06\x0a\x01\x01\x12\x01\x05"
                            "\x22\x08\x08\x01\x22\x04\x08\x01\x10\x05"
                            "\x2a\x04\x08\x01\x10\x03"
                            "\x32\x00\x32\x07samples\x32\x05"
                            "count\x32\x04main\x5a\x04\x08\x01\x10\x02";

/* ---- HTTP and the thread of files ------------------------------------------------------------ */

struct http_transfer {
    struct http_request request;
    bool used;
};

static struct http_client {
    struct http_transfer at[PROFILES];
} * client; /* of the writer */

struct http_client *http_client_new(const struct http_client_options *options, struct err *err)
{
    (void)options;
    struct http_client *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        err_memory(err);
    }
    client = c;
    return c;
}

struct http_client *http_client_free(struct http_client *c)
{
    for (size_t i = 0; c != NULL && i < PROFILES; i++) {
        assert_false(c->at[i].used);
    }
    free(c);
    client = NULL;
    return NULL;
}

struct http_transfer *http_start(struct http_client *c, const struct http_request *request)
{
    size_t i = 0;
    while (i < PROFILES && c->at[i].used) {
        i++;
    }
    assert_true(i < PROFILES);
    if (failing_malloc_now()) {
        return NULL;
    }
    c->at[i] = (struct http_transfer){.request = *request, .used = true};
    return &c->at[i];
}

void http_cancel(struct http_transfer *t)
{
    assert_true(t->used);
    t->used = false;
}

const char *http_result_name(enum http_result r)
{
    return r == HTTP_DONE ? "ok" : "other";
}

struct script {
    long status;
    const char *type;
    const char *body;
    const char *grpc; /* the status in its trailers; NULL: none */
};

static void answer_all(struct http_client *c, const struct script *s)
{
    for (size_t i = 0; c != NULL && i < PROFILES; i++) {
        if (!c->at[i].used) {
            continue;
        }
        struct http_response response = {.status = s->status,
                                         .error = "",
                                         .content_type = s->type,
                                         .location = "",
                                         .retry_after_ms = -1};
        struct http_request request = c->at[i].request;
        http_cancel(&c->at[i]);
        if (request.on_field != NULL) {
            request.on_field(request.arg, SV("grpc-status"), sv_from(s->grpc));
            request.on_field(request.arg, SV("grpc-message"), SV("no%20thanks"));
        }
        if (s->body[0]) {
            assert_true(request.on_data(request.arg, s->body, strlen(s->body)));
        }
        request.on_done(request.arg, &response);
    }
}

static void come_home(struct loop_task *task)
{
    struct work *w = (struct work *)(void *)task; /* its first member */
    w->done(w);
}

struct worker_pool {
    char byte;
};

struct worker_pool *worker_thread_new(const char *name, struct err *err)
{
    (void)name;
    struct worker_pool *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        err_memory(err);
    }
    return p;
}

struct worker_pool *worker_pool_free(struct worker_pool *p)
{
    free(p);
    return NULL;
}

int64_t worker_pool_busy_ms(const struct worker_pool *p, int64_t now_ms)
{
    (void)p;
    (void)now_ms;
    return 0;
}

void worker_submit(struct worker_pool *p, struct work *w)
{
    (void)p;
    w->run(w);
    w->task.run = come_home;
    loop_post(w->home, &w->task);
}

/* ---- the scenario ---------------------------------------------------------------------------- */

/* The surroundings of the scenarios, which have no parameter. */
static struct {
    const struct protocol *protocol;
    struct script first;     /* what the first requests are answered with; then all is well */
    enum write_drop refused; /* what becomes of these profiles; WRITE_DROPS: they are repeated */
    char url[256];
    int64_t made; /* profiles */
    bool abandon; /* the writer is freed with requests in flight, no drain */
} place;

struct attempts {
    uint64_t sent;
    uint64_t dropped;
    bool drained;
};

static struct profile *make(struct intern *in)
{
    bool armed = failing_malloc_pause();
    struct labels *l = testing_labels(in, "__name__", "memory", "service_name", "ns/a\xff",
                                      "app.kubernetes.io/name", "x,y", "z", "\xff", NULL);
    struct profile *p =
        profile_new(l, memcpy(malloc(sizeof(pprof)), pprof, sizeof(pprof)), sizeof(pprof) - 1);
    assert_non_null(p);
    /* No two of one time: files would have the same name. */
    p->from_ns = p->until_ns = (INT64_C(1795230000) + place.made++) * NS_PER_S;
    p->scraped_ms = clock_mono_ms();
    failing_malloc_resume(armed);
    return p;
}

static void on_attempt(void *arg, const struct write_attempt *a)
{
    struct attempts *seen = arg;
    seen->sent += a->outcome == WRITE_SENT;
    seen->dropped += a->outcome == WRITE_DROPPED;
    assert_true(a->outcome == WRITE_SENT || a->text[0] != '\0');
}

static void on_drained(void *arg)
{
    struct attempts *seen = arg;
    assert_false(seen->drained);
    seen->drained = true;
}

static struct write_ledger balance(struct writer *w)
{
    struct write_ledger l = writer_ledger(w, 0);
    uint64_t dropped = 0;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        dropped += l.dropped[i];
    }
    CHECK_INT(l.accepted, l.sent + dropped + l.queued + l.in_flight, "balance");
    return l;
}

/* At most one request was lost to the allocation that failed; the others are where they belong. */
static bool check_end(const struct write_ledger *l, const struct attempts *seen)
{
    uint64_t refused = place.refused < WRITE_DROPS ? l->dropped[place.refused] : 0;
    uint64_t lost = l->dropped[DROP_MEMORY];
    uint64_t together = place.protocol->build_many != NULL ? PROFILES : 1;
    CHECK_INT(l->accepted, PROFILES, "accepted");
    CHECK_INT(l->queued + l->in_flight, 0, "left over");
    CHECK_INT(l->sent + refused + lost, PROFILES, "for no other reason");
    CHECK_INT(lost <= (failing_malloc_failed() ? together : 0), true, "lost");
    CHECK_INT(seen->sent, l->sent, "reported");
    assert_true(seen->dropped <= refused + lost && seen->dropped >= refused);
    if (place.refused < WRITE_DROPS) {
        CHECK_INT(l->sent, 0, "refused");
    }
    return lost == 0;
}

/* Returns what each kind of server says when all is well. */
static struct script good_answer(void)
{
    if (place.protocol == &protocol_profefe) {
        return (struct script){200, "text/plain", "{\"code\":200,\"body\":{\"id\":\"a\"}}", NULL};
    }
    if (place.protocol == &protocol_otlp) {
        return (struct script){200, "application/x-protobuf", "", NULL};
    }
    return (struct script){200, "application/proto", "", "0"};
}

static bool use(struct writer *w, struct loop *loop, struct intern *in, struct attempts *seen)
{
    struct script good = good_answer();
    for (size_t i = 0; i < PROFILES; i++) {
        writer_put(w, make(in), 1);
    }
    balance(w);
    loop_run_once(loop);
    balance(w);
    answer_all(client, &place.first);
    balance(w);
    if (place.abandon) {
        return true;
    }
    writer_drain(w, clock_mono_ms() + 60000, on_drained, seen);
    /* Far beyond the few milliseconds that a repetition waits. */
    int64_t end = clock_mono_ms() + 20000;
    while (!seen->drained && clock_mono_ms() < end) {
        loop_run_once(loop);
        answer_all(client, place.refused < WRITE_DROPS ? &place.first : &good);
        balance(w);
    }
    CHECK_INT(seen->drained, true, "the drain has an end");
    struct write_ledger l = balance(w);
    return check_end(&l, seen);
}

static void scenario(bool *ret_complete)
{
    static const struct config_pair external[] = {{"cluster", "prod"}};
    struct err err = ERR_INIT;
    struct config_endpoint endpoint = {.name = "main",
                                       .label_limits = CONFIG_LABEL_LIMITS_DEFAULT,
                                       .url = place.url,
                                       .protocol = &place.protocol->config,
                                       .remote_timeout_ms = 10000,
                                       .min_backoff_ms = 1,
                                       .max_backoff_ms = 2,
                                       .max_age_ms = 3600000,
                                       .retry_on_429 = true,
                                       .queue_max_bytes = 1 << 20,
                                       .concurrency = 4,
                                       .otlp_request_bytes = 1 << 20,
                                       .external_labels = {external, 1}};
    struct config config = {.endpoints = &endpoint, .n_endpoints = 1};
    bool armed = failing_malloc_pause();
    struct intern *in = intern_new();
    struct metrics *metrics = metrics_new();
    struct testing_log *log = testing_log_new();
    struct loop *loop = loop_new(&err);
    log_set(testing_log(log), LOG_ERROR, LOG_LOGFMT);
    assert_true(in && metrics && loop);
    struct attempts seen = {.sent = 0};
    struct writer_options options = {.config = &config,
                                     .loop = loop,
                                     .intern = in,
                                     .log = testing_log(log),
                                     .metrics = metrics,
                                     .on_attempt = on_attempt,
                                     .attempt_arg = &seen};
    failing_malloc_resume(armed);
    struct writer *w = writer_new(&options, &err);
    if (w != NULL) {
        *ret_complete = use(w, loop, in, &seen);
        /* Collected even if memory is short; what is printed is whole or refused. */
        SCOPED(buf) out = testing_buf(1 << 20);
        (void)metrics_render(metrics, &out);
    } else {
        assert_true(failing_malloc_failed());
        CHECK_CONTAINS(err.msg, "out of memory", "a clean error");
    }
    writer_free(w);
    armed = failing_malloc_pause();
    loop_free(loop);
    metrics_free(metrics);
    size_t count = 1;
    size_t bytes;
    intern_stats(in, &count, &bytes);
    CHECK_INT(count, 0, "a profile was not released");
    intern_free(in);
    testing_log_done(log);
    failing_malloc_resume(armed);
}

static void run(const char *name)
{
    size_t n = failing_malloc_each(FAIL_OURS, scenario);
    print_message("%s: %zu allocations\n", name, n);
    assert_true(n >= 10);
}

static int setup(void **state)
{
    (void)state;
    (void)failing_malloc_stop(); /* if the last test failed */
    place.protocol = &protocol_push;
    place.refused = WRITE_DROPS;
    (void)snprintf(place.url, sizeof(place.url), "http://h/base");
    return 0;
}

TEST_WITH(test_sent, setup, NULL)
{
    static const struct protocol *const all[] = {
        &protocol_push, &protocol_ingest, &protocol_profefe, &protocol_otlp, &protocol_parca};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        place.protocol = all[i];
        place.first = good_answer();
        place.refused = WRITE_DROPS;
        run(all[i]->config.name);
    }
}

TEST_WITH(test_repeated, setup, NULL)
{
    place.first =
        (struct script){503, "application/json",
                        "{\"code\":\"unavailable\",\"message\":\"not \\u001b yet\"}", NULL};
    place.refused = WRITE_DROPS;
    run("repeated");
    place.protocol = &protocol_otlp;
    run("repeated together");
}

TEST_WITH(test_refused, setup, NULL)
{
    place.protocol = &protocol_ingest;
    place.first =
        (struct script){400, "application/json",
                        "{\"code\":\"invalid_argument\",\"message\":\"no \\\"thanks\\\"\"}", NULL};
    place.refused = DROP_REJECTED;
    run("refused");
    /* The request and each of its halves. */
    place.protocol = &protocol_otlp;
    place.first = (struct script){400, "application/x-protobuf", "\x12\x02no", NULL};
    run("refused together");
    place.protocol = &protocol_parca;
    place.first = (struct script){200, "application/grpc", "", "3"};
    run("refused by gRPC");
}

TEST_WITH(test_file, setup, NULL)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    place.protocol = &protocol_file;
    (void)snprintf(place.url, sizeof(place.url), "file://%s/p", dir);
    run("file");
}

/* Freed while requests or files are on their way. */
TEST_WITH(test_abandoned, setup, NULL)
{
    place.abandon = true;
    test_repeated(state);
    test_file(state);
    place.abandon = false;
}
