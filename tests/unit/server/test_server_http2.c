/* Requests over HTTP/2: the handlers and limits of HTTP/1 serve them, and what a client may and may
 * not do.
 */
#include <semaphore.h>
#include <stdlib.h>

#include "tests/unit/lib/http2_client.h"
#include "tests/unit/server/server_rig.h"

SCOPED_VALUE(h2_answer, h2_done)
SCOPED_VALUE(h2_client, h2_close)

#define BODY_MAX ((size_t)300000)
#define MIB ((size_t)1 << 20)

struct fixture {
    struct metrics *metrics;
    struct server *server;
    struct server_options options;
    sem_t started; /* a handler of /wait runs */
    sem_t go_on;   /* and may go on */
    atomic_uint cancelled;
};

/* Handlers find the fixture by it. */
static struct fixture *fixture_of(const struct exchange *x)
{
    return (struct fixture *)(uintptr_t)x->options->served;
}

static void echo(struct exchange *x)
{
    x->content_type = "text/x-echo";
    buf_puts(&x->headers, "X-Echo: Yes\r\n");
    buf_printf(&x->reply, "%s %.*s q=%.*s host=%.*s n=%zu body=%.*s",
               request_method_name(x->request->method), SV_ARG(x->request->path),
               SV_ARG(request_param(x->request, "q")), SV_ARG(request_header(x->request, "Host")),
               x->body.n, x->body.n < 100 ? (int)x->body.n : 100, x->body.p);
}

static void trail(struct exchange *x)
{
    buf_puts(&x->reply, "content");
    buf_puts(&x->trailers, "Grpc-Status: 0\r\n");
}

static void wait_for_test(struct exchange *x)
{
    struct fixture *f = fixture_of(x);
    sem_post(&f->started);
    while (sem_trywait(&f->go_on) != 0 && !atomic_load(x->cancelled)) {
        usleep(1000);
    }
    if (atomic_load(x->cancelled)) {
        atomic_fetch_add(&f->cancelled, 1);
    }
    exchange_text(x, 200, "text/plain", SV("waited"));
}

/* Answers with as many bytes as the parameter n says. */
static void fill(struct exchange *x)
{
    static const char zeros[4096];
    uint64_t n = 0;
    assert_true(parse_u64(request_param(x->request, "n"), 64 * MIB, &n));
    while (x->reply.len < n) {
        size_t left = (size_t)n - x->reply.len;
        buf_append(&x->reply, zeros, left < sizeof(zeros) ? left : sizeof(zeros));
    }
}

static void reply_ok(struct connection *c, const struct request *r,
                     const struct server_options *options)
{
    (void)r;
    (void)options;
    reply_plain(c, 200, "ok");
}

static bool next_page(void *arg, struct buf *page)
{
    int *left = arg;
    buf_printf(page, "page %d\n", *left);
    return --*left > 0;
}

static void pages(struct connection *c, const struct request *r,
                  const struct server_options *options)
{
    int *left = malloc(sizeof(*left));
    (void)r;
    (void)options;
    assert_non_null(left);
    *left = 3;
    connection_stream(c, "text/plain", (struct connection_source){next_page, free, left});
}

static const struct route routes[] = {
    {"/echo", .set = ROUTE_QUERY, .methods = ROUTE_ANY, .work = echo},
    {"/post", .set = ROUTE_QUERY, .methods = ROUTE_POST, .work = echo},
    {"/trail", .set = ROUTE_QUERY, .work = trail},
    {"/wait", .set = ROUTE_QUERY, .work = wait_for_test},
    {"/fill", .set = ROUTE_QUERY, .work = fill},
    {"/ok", .set = ROUTE_ADMIN, .handle = reply_ok},
    {"/pages", .set = ROUTE_ADMIN, .handle = pages},
    {.path = NULL},
};
static const struct route *const tables[] = {routes, NULL};

static void restart(struct fixture *f)
{
    server_stop(f->server);
    f->server = server_rig_start(&f->options);
}

static void fixture_begin(struct fixture *f)
{
    assert_int_equal(sem_init(&f->started, 0, 0), 0);
    assert_int_equal(sem_init(&f->go_on, 0, 0), 0);
    f->metrics = metrics_new();
    f->options = server_rig_options(tables, f->metrics);
    f->options.query.waiting_max = 50;
    f->options.query.body_max = BODY_MAX;
    f->options.served = (const struct served *)(uintptr_t)f;
    f->server = server_rig_start(&f->options);
}

static void fixture_end(struct fixture *f)
{
    server_stop(f->server);
    metrics_free(f->metrics);
    sem_destroy(&f->started);
    sem_destroy(&f->go_on);
}

FIXTURE(fixture, fixture_begin, fixture_end)

#define ENDED(reason) "profpull_admin_connections_ended_total{reason=\"" reason "\"}"
#define STREAMS(result) "profpull_admin_http2_streams_total{result=\"" result "\"}"
#define REFUSED(reason) "profpull_admin_requests_refused_total{reason=\"" reason "\"}"

/* ---- requests -------------------------------------------------------------------------------- */

TEST_ON(struct fixture *f, requests_and_their_answers)
{
    static const struct {
        const char *method, *path;
        int status;
        const char *header, *body;
    } rows[] = {
        {"GET", "/echo?q=a+b", 200, "x-echo: Yes\n", "GET /echo q=a b host=test n=0 body="},
        {"GET", "/echo", 200, "content-type: text/x-echo\n", "GET /echo"},
        {"GET", "//echo", 200, "x-content-type-options: nosniff\n", "GET /echo"},
        {"BREW", "/echo", 200, "cache-control: no-store\n", " /echo"},
        {"HEAD", "/echo", 200, "content-length: 33\n", ""},
        {"GET", "/ok", 200, "content-length: 2\n", "ok"},
        {"GET", "/pages", 200, "content-type: text/plain\n", "page 3\npage 2\npage 1\n"},
        {"HEAD", "/pages", 200, "content-type: text/plain\n", ""},
        {"GET", "/nothing", 404, "content-type: text/plain", "404 page not found\n"},
        {"GET", "/post", 405, "allow: POST\n", "method not allowed\n"},
    };
    struct h2_client c = h2_dial(f->server, SV(""));
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        h2_request(&c, 2 * i + 1, rows[i].method, rows[i].path, NULL, NULL, H2_END_STREAM);
        SCOPED(h2_answer) a = h2_wait(&c, 2 * i + 1);
        CHECK_INT(a.status, rows[i].status, rows[i].path);
        CHECK_CONTAINS(a.headers.data, rows[i].header, rows[i].path);
        CHECK_CONTAINS(a.body.data, rows[i].body, rows[i].path);
    }
    h2_close(&c);
    server_rig_wait(f->metrics, ENDED("done"), 1);
    assert_int_equal(testing_metric(f->metrics, STREAMS("done")), sizeof(rows) / sizeof(rows[0]));
}

TEST_ON(struct fixture *f, http1_stays_on_the_same_port)
{
    SCOPED_MEMORY char *answer =
        client_ask(f->server, "POST /post HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                              "Content-Length: 2\r\n\r\nhi");
    CHECK_CONTAINS(answer, "HTTP/1.1 200 OK\r\n", "");
    CHECK_CONTAINS(answer, "n=2 body=hi", "");
    free(answer);
    /* Nearly the preface. */
    answer = client_ask(f->server, "PRI * HTTP/2.0\r\nConnection: close\r\n\r\n");
    CHECK_CONTAINS(answer, "HTTP/1.1 400 Bad Request\r\n", "");
}

TEST_ON(struct fixture *f, the_preface_may_come_in_pieces)
{
    SCOPED(h2_client) c = {.fd = client_dial(f->server)};
    assert_int_equal(nghttp2_hd_inflate_new(&c.inflater), 0);
    for (size_t i = 0; i < NGHTTP2_CLIENT_MAGIC_LEN; i++) {
        h2_put(&c, &NGHTTP2_CLIENT_MAGIC[i], 1);
        usleep(500);
    }
    h2_frame(&c, NGHTTP2_SETTINGS, 0, 0, SV(""));
    h2_get(&c, 1, "/ok");
    SCOPED(h2_answer) a = h2_wait(&c, 1);
    assert_int_equal(a.status, 200);
}

TEST_ON(struct fixture *f, bodies_come_whole)
{
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    static char much[16384];
    size_t pieces = BODY_MAX / sizeof(much);
    h2_request(&c, 1, "POST", "/echo", NULL, NULL, 0);
    h2_request(&c, 3, "POST", "/echo", NULL, NULL, 0);
    /* More than the window of a stream, which the server opens further as it reads. */
    for (size_t i = 0; i < pieces; i++) {
        h2_frame(&c, NGHTTP2_DATA, 0, 1, (struct sv){much, sizeof(much)});
    }
    h2_frame(&c, NGHTTP2_DATA, 0, 3, SV("he"));
    h2_frame(&c, NGHTTP2_DATA, H2_END_STREAM, 1, SV(""));
    struct h2_answer a = h2_wait(&c, 1);
    char want[64];
    snprintf(want, sizeof(want), "n=%zu ", pieces * sizeof(much));
    CHECK_CONTAINS(a.body.data, want, "");
    h2_done(&a);
    h2_frame(&c, NGHTTP2_DATA, 0, 3, SV("llo"));
    /* Trailers end it as well. */
    SCOPED(buf) block = testing_buf(1000);
    h2_header(&block, "x-trailer", SV("1"));
    h2_frame(&c, NGHTTP2_HEADERS, H2_END_HEADERS | H2_END_STREAM, 3,
             (struct sv){block.data, block.len});
    a = h2_wait(&c, 3);
    CHECK_CONTAINS(a.body.data, "n=5 body=hello", "");
    h2_done(&a);
}

/* Reads up to the head of the next response; the caller frees. */
static char *next_head(struct h2_client *c)
{
    struct h2_frame frame = h2_next(c);
    while (frame.type != NGHTTP2_HEADERS) {
        assert_true(frame.type != 0xff);
        buf_done(&frame.payload);
        frame = h2_next(c);
    }
    struct buf text = testing_buf(10000);
    h2_unpack(c, &frame.payload, &text);
    buf_done(&frame.payload);
    return buf_take(&text, NULL);
}

TEST_ON(struct fixture *f, a_client_that_expects_to_be_asked_is_asked)
{
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    h2_request(&c, 1, "POST", "/echo", "expect", "100-continue", 0);
    SCOPED_MEMORY char *head = next_head(&c);
    CHECK_STR(head, ":status: 100\n", "");
    h2_frame(&c, NGHTTP2_DATA, H2_END_STREAM, 1, SV("hello"));
    SCOPED(h2_answer) a = h2_wait(&c, 1);
    CHECK_CONTAINS(a.body.data, "body=hello", "");
}

TEST_ON(struct fixture *f, trailers_follow_the_body)
{
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    h2_get(&c, 1, "/trail");
    SCOPED(h2_answer) a = h2_wait(&c, 1);
    CHECK_STR(a.body.data, "content", "");
    CHECK_STR(a.trailers.data, "grpc-status: 0\n", "");
}

TEST_ON(struct fixture *f, a_stream_does_not_wait_for_another)
{
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    h2_get(&c, 1, "/wait");
    assert_int_equal(sem_wait(&f->started), 0);
    h2_get(&c, 3, "/ok");
    struct h2_answer a = h2_wait(&c, 3);
    CHECK_STR(a.body.data, "ok", "");
    h2_done(&a);
    sem_post(&f->go_on);
    a = h2_wait(&c, 1);
    CHECK_STR(a.body.data, "waited", "");
    h2_done(&a);
}

TEST_ON(struct fixture *f, a_large_answer_goes_as_the_client_reads)
{
    /* SETTINGS_INITIAL_WINDOW_SIZE 20 MiB, and as much for the connection. */
    SCOPED(h2_client) c = h2_dial(f->server, (struct sv){"\0\4\1\100\0\0", 6});
    h2_frame(&c, NGHTTP2_WINDOW_UPDATE, 0, 0, (struct sv){"\1\100\0\0", 4});
    h2_get(&c, 1, "/fill?n=16777217");
    SCOPED(h2_answer) a = h2_wait(&c, 1);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body.len, 16777217);
}

/* ---- limits ---------------------------------------------------------------------------------- */

TEST_ON(struct fixture *f, a_body_that_is_too_large_is_refused)
{
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    static char much[16384];
    char announced[32];
    snprintf(announced, sizeof(announced), "%zu", BODY_MAX + 1);
    h2_request(&c, 1, "POST", "/echo", "content-length", announced, 0);
    struct h2_answer a = h2_wait(&c, 1);
    assert_int_equal(a.status, 413);
    h2_done(&a);
    h2_request(&c, 3, "POST", "/echo", NULL, NULL, 0);
    for (size_t i = 0; i <= BODY_MAX / sizeof(much); i++) {
        h2_frame(&c, NGHTTP2_DATA, 0, 3, (struct sv){much, sizeof(much)});
    }
    a = h2_wait(&c, 3);
    assert_int_equal(a.status, 413);
    h2_done(&a);
    assert_int_equal(testing_metric(f->metrics, REFUSED("large_body")), 2);
    /* The connection goes on, and the windows are open again. */
    h2_request(&c, 5, "POST", "/echo", NULL, NULL, 0);
    h2_frame(&c, NGHTTP2_DATA, H2_END_STREAM, 5, (struct sv){much, sizeof(much)});
    a = h2_wait(&c, 5);
    assert_int_equal(a.status, 200);
    h2_done(&a);
}

TEST_ON(struct fixture *f, all_bodies_together_have_a_limit)
{
    static char much[16384];
    f->options.bodies_max_bytes = 2 * sizeof(much) + 1;
    restart(f);
    struct h2_client c = h2_dial(f->server, SV(""));
    for (uint32_t id = 1; id <= 5; id += 2) {
        h2_request(&c, id, "POST", "/echo", NULL, NULL, 0);
        h2_frame(&c, NGHTTP2_DATA, 0, id, (struct sv){much, sizeof(much)});
    }
    struct h2_answer a = h2_wait(&c, 5);
    assert_int_equal(a.status, 503);
    CHECK_CONTAINS(a.headers.data, "retry-after: 1\n", "");
    h2_done(&a);
    assert_int_equal(testing_metric(f->metrics, REFUSED("no_room")), 1);
    /* The bodies of a connection that ends count no longer. */
    h2_close(&c);
    server_rig_wait(f->metrics, STREAMS("cut"), 2);
    c = h2_dial(f->server, SV(""));
    h2_request(&c, 1, "POST", "/echo", NULL, NULL, 0);
    h2_frame(&c, NGHTTP2_DATA, 0, 1, (struct sv){much, sizeof(much)});
    h2_frame(&c, NGHTTP2_DATA, H2_END_STREAM, 1, (struct sv){much, sizeof(much)});
    a = h2_wait(&c, 1);
    assert_int_equal(a.status, 200);
    h2_done(&a);
    h2_close(&c);
}

TEST_ON(struct fixture *f, a_stream_too_many_is_refused)
{
    f->options.max_streams_per_connection = 2;
    f->options.max_streams = 3;
    restart(f);
    struct h2_client first = h2_dial(f->server, SV(""));
    SCOPED(h2_client) second = h2_dial(f->server, SV(""));
    h2_get(&first, 1, "/wait");
    assert_int_equal(sem_wait(&f->started), 0);
    h2_get(&first, 3, "/wait");
    /* Giving them up makes no room until their handlers have ended: with the limits of the
     * protocol alone, a client could have any number of them. */
    h2_frame(&first, NGHTTP2_RST_STREAM, 0, 3, (struct sv){"\0\0\0\10", 4});
    server_rig_wait(f->metrics, STREAMS("reset"), 1);
    h2_get(&first, 5, "/ok");
    struct h2_answer a = h2_wait(&first, 5);
    assert_int_equal(a.reset, NGHTTP2_REFUSED_STREAM);
    h2_done(&a);
    /* The limit of all connections. */
    h2_get(&second, 1, "/wait");
    h2_get(&second, 3, "/ok");
    a = h2_wait(&second, 3);
    assert_int_equal(a.reset, NGHTTP2_REFUSED_STREAM);
    h2_done(&a);
    assert_int_equal(testing_metric(f->metrics, STREAMS("refused")), 2);
    sem_post(&f->go_on);
    a = h2_wait(&first, 1);
    assert_int_equal(a.status, 200);
    h2_done(&a);
    sem_post(&f->go_on);
    a = h2_wait(&second, 1);
    assert_int_equal(a.status, 200);
    h2_done(&a);
    h2_get(&first, 7, "/ok");
    a = h2_wait(&first, 7);
    assert_int_equal(a.status, 200);
    h2_done(&a);
    h2_close(&first);
}

TEST_ON(struct fixture *f, a_handler_learns_that_its_client_is_gone)
{
    struct h2_client c = h2_dial(f->server, SV(""));
    h2_get(&c, 1, "/wait");
    assert_int_equal(sem_wait(&f->started), 0);
    h2_frame(&c, NGHTTP2_RST_STREAM, 0, 1, (struct sv){"\0\0\0\10", 4});
    server_rig_wait(f->metrics, STREAMS("reset"), 1);
    h2_get(&c, 3, "/wait");
    assert_int_equal(sem_wait(&f->started), 0); /* the first has ended */
    assert_int_equal(atomic_load(&f->cancelled), 1);
    h2_close(&c);
    server_rig_wait(f->metrics, STREAMS("cut"), 1);
    for (int i = 0; atomic_load(&f->cancelled) != 2; i++) {
        assert_true(i < 30000);
        usleep(1000);
    }
}

TEST_ON(struct fixture *f, unread_answers_have_a_limit)
{
    SCOPED(h2_client) c = h2_dial(f->server, SV("")); /* the windows have 64 KiB */
    h2_get(&c, 1, "/fill?n=17000000");
    /* The first frame of the answer shows that it is there. */
    free(next_head(&c));
    h2_get(&c, 3, "/ok");
    struct h2_answer a = h2_wait(&c, 3);
    assert_int_equal(a.reset, NGHTTP2_REFUSED_STREAM);
    h2_done(&a);
    /* With the answer given up, there is room. */
    h2_frame(&c, NGHTTP2_RST_STREAM, 0, 1, (struct sv){"\0\0\0\10", 4});
    server_rig_wait(f->metrics, STREAMS("reset"), 1);
    h2_frame(&c, NGHTTP2_WINDOW_UPDATE, 0, 0, (struct sv){"\1\0\0\0", 4});
    h2_get(&c, 5, "/ok");
    a = h2_wait(&c, 5);
    assert_int_equal(a.status, 200);
    h2_done(&a);
}

/* ---- time ------------------------------------------------------------------------------------ */

TEST_ON(struct fixture *f, an_answer_that_is_not_read_is_given_up)
{
    f->options.answer_timeout_ms = 200;
    restart(f);
    SCOPED(h2_client) c = h2_dial(f->server, (struct sv){"\0\4\0\0\0\0", 6}); /* windows of 0 */
    h2_get(&c, 1, "/ok");
    struct h2_answer a = h2_wait(&c, 1);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body.len, 0);
    assert_int_equal(a.reset, NGHTTP2_CANCEL);
    h2_done(&a);
    assert_int_equal(testing_metric(f->metrics, STREAMS("slow_answer")), 1);
}

/* A client that reads nothing at all, not even that its streams are reset. */
TEST_ON(struct fixture *f, a_connection_that_is_not_read_ends)
{
    f->options.answer_timeout_ms =
        2000; /* the answer fills the socket before, on a slow machine too */
    restart(f);
    SCOPED(h2_client) c = h2_dial(f->server, (struct sv){"\0\4\1\100\0\0", 6});
    h2_frame(&c, NGHTTP2_WINDOW_UPDATE, 0, 0, (struct sv){"\1\100\0\0", 4});
    h2_get(&c, 1, "/fill?n=16000000");
    server_rig_wait(f->metrics, ENDED("slow_answer"), 1);
}

TEST_ON(struct fixture *f, a_body_that_comes_slowly_is_refused)
{
    f->options.request_timeout_ms = 200;
    restart(f);
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    h2_request(&c, 1, "POST", "/echo", NULL, NULL, 0);
    h2_frame(&c, NGHTTP2_DATA, 0, 1, SV("some"));
    struct h2_answer a = h2_wait(&c, 1);
    assert_int_equal(a.status, 408);
    h2_done(&a);
    assert_int_equal(testing_metric(f->metrics, REFUSED("slow_body")), 1);
}

TEST_ON(struct fixture *f, a_head_that_comes_slowly_ends_the_connection)
{
    f->options.request_timeout_ms = 200;
    restart(f);
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    h2_frame(&c, NGHTTP2_HEADERS, H2_END_STREAM, 1, SV("\x82")); /* the rest does not come */
    struct h2_answer a = h2_wait(&c, 1);
    assert_true(a.closed);
    h2_done(&a);
    server_rig_wait(f->metrics, ENDED("slow_request"), 1);
}

TEST_ON(struct fixture *f, an_idle_connection_ends)
{
    f->options.idle_timeout_ms = 300;
    restart(f);
    struct h2_client c = h2_dial(f->server, SV(""));
    h2_get(&c, 1, "/ok");
    struct h2_answer a = h2_wait(&c, 1);
    assert_int_equal(a.status, 200);
    h2_done(&a);
    a = h2_wait(&c, 3);
    assert_true(a.closed);
    assert_int_equal(a.goaway, NGHTTP2_NO_ERROR);
    h2_done(&a);
    h2_close(&c);
    server_rig_wait(f->metrics, ENDED("idle"), 1);
}

TEST_ON(struct fixture *f, the_server_stops_while_streams_are_held)
{
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    h2_get(&c, 1, "/wait");
    h2_get(&c, 3, "/wait");
    assert_int_equal(sem_wait(&f->started), 0);
    restart(f);
    assert_int_equal(atomic_load(&f->cancelled), 1);
}
