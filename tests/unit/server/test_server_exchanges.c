/* Requests with bodies, handlers on threads of a pool, and connections that serve several requests.
 */
#include <semaphore.h>
#include <stdlib.h>

#include "api/route_errors.h"
#include "api/served.h"
#include "api/tables.h"
#include "base/clock.h"
#include "pages/pages.h"
#include "tests/unit/server/server_rig.h"

#define BODY_MAX 1000

struct fixture {
    struct metrics *metrics;
    struct server *server;
    struct served served;
    struct server_options options;
    sem_t started; /* a handler of /wait runs */
    sem_t go_on;   /* and may go on */
    atomic_bool cancelled;
};

/* Answers with what it was asked. */
static void echo(struct exchange *x)
{
    struct sv type = request_header(x->request, "content-TYPE");
    x->content_type = "text/x-echo";
    buf_puts(&x->headers, "X-Echo: yes\r\n");
    buf_printf(&x->reply, "%s %.*s q=%.*s type=%.*s body=%.*s",
               request_method_name(x->request->method), SV_ARG(x->request->path),
               SV_ARG(request_param(x->request, "q")), SV_ARG(type), SV_ARG(x->body));
}

/* Works until the test or the client lets it go. */
static void wait_for_test(struct exchange *x)
{
    struct fixture *f = x->options->served->arg;
    sem_post(&f->started);
    while (sem_trywait(&f->go_on) != 0 && !atomic_load(x->cancelled)) {
        usleep(1000);
    }
    if (atomic_load(x->cancelled)) {
        atomic_store(&f->cancelled, true);
    }
    exchange_text(x, 200, "text/plain", SV("waited"));
}

static void answer_far_too_much(struct exchange *x)
{
    (void)buf_room(&x->reply, SIZE_MAX);
}

/* Answers with trailers, and with as many bytes as the parameter n says. */
static void trail(struct exchange *x)
{
    uint64_t n = 0;
    (void)parse_u64(request_param(x->request, "n"), 100, &n);
    buf_printf(&x->reply, "%.*s", (int)n, "0123456789abcdefghij");
    buf_puts(&x->headers, "X-Echo: yes\r\n");
    buf_puts(&x->trailers, "grpc-status: 0\r\ngrpc-message: a:b\r\n");
    x->content_type = "t/x";
    x->status = request_param(x->request, "empty").p == NULL ? 200 : 204;
}

static const struct route routes[] = {
    {"/echo", .set = ROUTE_QUERY, .methods = ROUTE_ANY, .work = echo},
    {"/below/", .is_prefix = true, .set = ROUTE_QUERY, .work = echo},
    {"/pyroscope/render", .set = ROUTE_QUERY, .work = echo},
    {"/trail", .set = ROUTE_QUERY, .work = trail},
    {"/wait", .set = ROUTE_QUERY, .work = wait_for_test},
    {"/much", .set = ROUTE_QUERY, .work = answer_far_too_much},
    {"/x.Connect/Much", .set = ROUTE_QUERY, .methods = ROUTE_POST, .errors = connect_route_error,
     .work = answer_far_too_much},
    {"/x.Connect/Do", .set = ROUTE_QUERY, .methods = ROUTE_POST, .errors = connect_route_error,
     .work = echo},
    {"/api/zero/x", .set = ROUTE_QUERY, .methods = ROUTE_POST, .errors = profefe_route_error,
     .work = echo},
    {"/api/zero/x", .set = ROUTE_RECEIVE, .methods = ROUTE_GET, .work = echo},
    {.path = NULL},
};

static const struct route *const tables[] = {routes, page_routes, API_TABLES, NULL};
static const char *const prefixes[] = {API_PREFIXES, NULL};

static void fixture_begin(struct fixture *f)
{
    assert_int_equal(sem_init(&f->started, 0, 0), 0);
    assert_int_equal(sem_init(&f->go_on, 0, 0), 0);
    f->metrics = metrics_new();
    f->served = (struct served){.version = "1.2.3", .arg = f};
    f->options = server_rig_options(tables, f->metrics);
    f->options.request_timeout_ms = 20000;
    f->options.path_prefix = "/mine";
    f->options.api_prefixes = prefixes;
    f->options.query.waiting_max = 1;
    f->options.query.body_max = BODY_MAX;
    f->options.served = &f->served;
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

static void restart(struct fixture *f)
{
    server_stop(f->server);
    f->server = server_rig_start(&f->options);
}

#define CLOSE "Connection: close\r\n"

TEST_ON(struct fixture *f, requests_and_their_answers)
{
    static const struct {
        const char *request, *status, *part;
    } rows[] = {
        {"POST /echo?q=a+b HTTP/1.1\r\n" CLOSE
         "Content-Type: t/x\r\nContent-Length: 5\r\n\r\nhello",
         "HTTP/1.1 200 OK", "\r\n\r\nPOST /echo q=a b type=t/x body=hello"},
        {"POST /echo HTTP/1.1\r\n" CLOSE "Content-Length: 0\r\n\r\n", "HTTP/1.1 200",
         "X-Echo: yes\r\n"},
        {"POST /echo HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "Content-Type: text/x-echo\r\n"},
        {"POST /echo HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\n"
         "5\r\nhello\r\n6;a=\"b\"\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n",
         "HTTP/1.1 200", "body=hello world"},
        {"POST /echo HTTP/1.1\n" CLOSE "Transfer-Encoding: Chunked\n\n5\nhello\n0\n\n",
         "HTTP/1.1 200", "body=hello"},
        {"POST /echo HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         "HTTP/1.1 200", "body="},
        {"POST /echo HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", "HTTP/1.1 200", "body=hi"},
        {"PUT /echo HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "PUT /echo"},
        {"BREW /echo HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "\r\n\r\n /echo"},
        {"HEAD /echo HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "Content-Length: 25\r\n\r\n"},
        {"GET /below/a%2Fb HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "GET /below/a/b "},
        {"GET //echo HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "GET /echo"},
        {"GET /pyroscope/echo HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "GET /echo"},
        {"GET /profile//echo HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "GET /echo"},
        {"GET /mine/echo HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "GET /echo"},
        {"GET /mine/pyroscope/echo HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "GET /echo"},
        {"GET /mine/-/ready HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200", "ok"},
        {"GET /pyroscope/render HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200",
         "GET /pyroscope/render"},
        {"GET /pyroscope/pyroscope/render HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 200",
         "GET /pyroscope/render"},
        {"GET /render HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 404", "404 page not found\n"},
        {"GET /minecraft/echo HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 404", ""},
        {"GET /pyroscopeecho HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 404", ""},
        {"POST /below/x HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 405", "Allow: GET, HEAD\r\n"},
        {"GET /api/zero/x HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 405",
         "{\"code\":405,\"error\":\"method not allowed\"}\n"},
        {"GET /x.Connect/Do HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 405",
         "Allow: POST\r\nConnection: close\r\nContent-Length: 0\r\n"},
        {"POST /x.Connect/Much HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 500",
         "{\"code\":\"internal\",\"message\":\"the answer is too large\"}"},
        {"GET /much HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 500", "the answer is too large\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED_MEMORY char *answer = client_ask(f->server, rows[i].request);
        CHECK_CONTAINS(answer, rows[i].status, rows[i].request);
        CHECK_CONTAINS(answer, rows[i].part, rows[i].request);
    }
}

/* Trailers need chunks; a response without trailers has a length. */
TEST_ON(struct fixture *f, trailers_follow_the_last_chunk)
{
#define HEAD(status)                                                                               \
    "HTTP/1.1 " status "\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
#define CHUNKED                                                                                    \
    "Content-Type: t/x\r\nX-Echo: yes\r\nTransfer-Encoding: chunked\r\n"                           \
    "Trailer: grpc-status, grpc-message\r\n\r\n"
#define TRAILERS "0\r\ngrpc-status: 0\r\ngrpc-message: a:b\r\n\r\n"
#define LENGTH(n) "Content-Type: t/x\r\nX-Echo: yes\r\n" CLOSE "Content-Length: " n "\r\n\r\n"
    static const char end[] = "GET /echo HTTP/1.1\r\n" CLOSE "\r\n";
    static const char end_answer[] =
        HEAD("200 OK") "Content-Type: text/x-echo\r\nX-Echo: yes\r\n" CLOSE
                       "Content-Length: 24\r\n\r\nGET /echo q= type= body=";
    static const struct {
        const char *request, *answer;
        bool keeps_alive;
    } rows[] = {
        {"GET /trail?n=17 HTTP/1.1\r\n\r\n",
         HEAD("200 OK") CHUNKED "11\r\n0123456789abcdefg\r\n" TRAILERS, true},
        {"GET /trail?n=0 HTTP/1.1\r\n\r\n", HEAD("200 OK") CHUNKED TRAILERS, true},
        {"GET /trail?n=2 HTTP/1.0\r\n\r\n", HEAD("200 OK") LENGTH("2") "01", false},
        {"HEAD /trail?n=2 HTTP/1.1\r\n" CLOSE "\r\n", HEAD("200 OK") LENGTH("2"), false},
        {"GET /trail?n=0&empty=1 HTTP/1.1\r\n" CLOSE "\r\n", HEAD("204 No Content") LENGTH("0"),
         false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) request = testing_buf(REPLY_MAX);
        SCOPED(buf) want = testing_buf(REPLY_MAX);
        buf_printf(&request, "%s%s", rows[i].request, rows[i].keeps_alive ? end : "");
        buf_printf(&want, "%s%s", rows[i].answer, rows[i].keeps_alive ? end_answer : "");
        SCOPED_MEMORY char *answer = client_ask(f->server, request.data);
        CHECK_STR(answer, want.data, rows[i].request);
    }
}

/* None of them leaves a byte that could be taken for another request. */
TEST_ON(struct fixture *f, requests_that_are_refused)
{
    static const struct {
        const char *request, *status, *part;
    } rows[] = {
        {"POST /echo HTTP/1.1\r\nContent-Length: 1001\r\n\r\n", "HTTP/1.1 413",
         "the request body is too large\n"},
        {"POST /echo HTTP/1.1\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n",
         "HTTP/1.1 413", "Connection: close\r\n"},
        {"POST /x.Connect/Do HTTP/1.1\r\nContent-Length: 9000000000\r\n\r\n", "HTTP/1.1 413",
         "{\"code\":\"resource_exhausted\",\"message\":\"the request body is too large\"}"},
        {"POST /api/zero/x HTTP/1.1\r\nContent-Length: 9000000000\r\n\r\n", "HTTP/1.1 413",
         "{\"code\":413,\"error\":\"the request body is too large\"}\n"},
        {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", "HTTP/1.1 413",
         ""},
        {"POST /echo HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
         "HTTP/1.1 400", "Bad Request"},
        {"POST /echo HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\nhello", "HTTP/1.1 400", ""},
        {"POST /echo HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello", "HTTP/1.1 400", ""},
        {"POST /echo HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", "HTTP/1.1 400", ""},
        {"POST /echo HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         "HTTP/1.1 400", ""},
        {"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400", ""},
        {"POST /echo HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "HTTP/1.1 501", ""},
        {"POST /echo HTTP/1.1\r\nExpect: tea\r\n\r\n", "HTTP/1.1 417", ""},
        {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "HTTP/1.1 400", ""},
        {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "HTTP/1.1 400",
         ""},
        {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1111111111111111\r\n",
         "HTTP/1.1 400", ""},
        {"GET /echo HTTP/1.1\r\nno colon\r\n\r\n", "HTTP/1.1 400", ""},
        {"GET /echo HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", "HTTP/1.1 400", ""},
        {"GET /echo HTTP/1.1\r\nContent-Length : 5\r\n\r\nhello", "HTTP/1.1 400", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED_MEMORY char *answer = client_ask(f->server, rows[i].request);
        CHECK_CONTAINS(answer, rows[i].status, rows[i].request);
        CHECK_CONTAINS(answer, rows[i].part, rows[i].request);
        CHECK_CONTAINS(answer, "Connection: close\r\n", rows[i].request);
        assert_null(strstr(answer + 1, "HTTP/1.1"));
    }
    static const char of[] = "profpull_admin_requests_refused_total{reason=\"large_body\"}";
    CHECK_INT(testing_metric(f->metrics, of), 5, "large bodies");
}

/* The bytes that frame chunks are bounded, however they are spread. */
TEST_ON(struct fixture *f, chunks_with_little_in_them)
{
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    int fd = client_dial(f->server);
    buf_puts(&text, "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 100; i++) {
        buf_printf(&text, "1;%0500d\r\nx\r\n", i);
    }
    (void)!send(fd, text.data, text.len, MSG_NOSIGNAL);
    buf_clear(&text);
    client_read_all(fd, &text);
    CHECK_CONTAINS(text.data, "HTTP/1.1 400", "");
    close(fd);
}

TEST_ON(struct fixture *f, a_client_that_awaits_continue)
{
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    int fd = client_dial(f->server);
    client_send(fd, "POST /echo HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n");
    client_read_to(fd, "HTTP/1.1 100 Continue\r\n\r\n", &text);
    client_send(fd, "hi");
    client_read_to(fd, "body=hi", &text);
    close(fd);
}

/* Whole, in pieces, and two at once. */
TEST_ON(struct fixture *f, several_requests_of_a_connection)
{
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    int fd = client_dial(f->server);
    client_send(fd, "POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nfirst");
    client_read_to(fd, "body=first", &text);
    static const char second[] =
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nsecond\r\n0\r\n\r\n";
    for (size_t i = 0; i + 1 < sizeof(second); i++) {
        assert_int_equal(send(fd, second + i, 1, MSG_NOSIGNAL), 1);
        usleep(200);
    }
    client_read_to(fd, "body=second", &text);
    client_send(fd, "HEAD /echo HTTP/1.1\r\n\r\nGET /-/ready HTTP/1.1\r\n\r\n"
                    "POST /echo HTTP/1.1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfifth");
    client_read_all(fd, &text);
    CHECK_CONTAINS(text.data, "\r\n\r\nok\n", "the fourth");
    CHECK_CONTAINS(text.data, "body=fifth", "the last");
    assert_true(strstr(text.data, "\r\n\r\nok\n") < strstr(text.data, "body=fifth"));
    CHECK_INT(testing_metric(f->metrics, "profpull_admin_requests_total"), 5, "");
    close(fd);
}

TEST_ON(struct fixture *f, silence_between_requests)
{
    f->options.idle_timeout_ms = 200;
    restart(f);
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    int fd = client_dial(f->server);
    client_send(fd, "GET /-/ready HTTP/1.1\r\n\r\n");
    client_read_all(fd, &text);
    CHECK_CONTAINS(text.data, "HTTP/1.1 200", "");
    server_rig_wait(f->metrics, "profpull_admin_connections_ended_total{reason=\"idle\"}", 1);
    close(fd);
}

/* ---- bodies that cost ------------------------------------------------------------------------ */

TEST_ON(struct fixture *f, a_body_in_drips)
{
    f->options.request_timeout_ms = 300;
    restart(f);
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    int fd = client_dial(f->server);
    client_send(fd, "POST /echo HTTP/1.1\r\nContent-Length: 1000\r\n\r\n");
    for (int i = 0; i < 999 && send(fd, "x", 1, MSG_NOSIGNAL) == 1; i++) {
        usleep(20000);
    }
    client_read_all(fd, &text);
    server_rig_wait(f->metrics, "profpull_admin_requests_refused_total{reason=\"slow_body\"}", 1);
    close(fd);
}

TEST_ON(struct fixture *f, more_bodies_than_there_is_room_for)
{
    f->options.bodies_max_bytes = 1500;
    restart(f);
    static char part[1001];
    memset(part, 'x', sizeof(part) - 1);
    int first = client_dial(f->server);
    client_send(first, "POST /echo HTTP/1.1\r\nContent-Length: 1000\r\n\r\n");
    client_send(first, part + 1); /* all without its last byte */
    char *answer = NULL;
    for (int i = 0; answer == NULL || strstr(answer, "HTTP/1.1 503") == NULL; i++) {
        assert_true(i < 1000); /* the first one's bytes may not have come yet */
        SCOPED(buf) request = testing_buf(REPLY_MAX);
        buf_printf(&request, "POST /echo HTTP/1.1\r\n" CLOSE "Content-Length: 1000\r\n\r\n%s",
                   part);
        free(answer);
        answer = client_ask(f->server, request.data);
    }
    CHECK_CONTAINS(answer, "Retry-After: 1\r\n", "");
    free(answer);
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    client_send(first, "y");
    client_read_to(first, "xxxy", &text);
    close(first);
}

/* ---- work ------------------------------------------------------------------------------------ */

TEST_ON(struct fixture *f, the_line_before_the_threads)
{
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    int working = client_dial(f->server);
    client_send(working, "GET /wait HTTP/1.1\r\n" CLOSE "\r\n");
    sem_wait(&f->started);
    int waiting = client_dial(f->server);
    client_send(waiting, "GET /echo HTTP/1.1\r\n" CLOSE "\r\n");
    server_rig_wait(f->metrics, "profpull_api_requests_pending{api=\"query\"}", 2);
    char *answer =
        client_ask(f->server, "POST /x.Connect/Do HTTP/1.1\r\nContent-Length: 0\r\n" CLOSE "\r\n");
    CHECK_CONTAINS(answer, "HTTP/1.1 429 Too Many Requests\r\n", "");
    CHECK_CONTAINS(answer, "Retry-After: 1\r\n", "");
    CHECK_CONTAINS(answer, "{\"code\":\"resource_exhausted\"", "");
    free(answer);
    answer = client_ask(f->server, "GET /-/healthy HTTP/1.1\r\n" CLOSE "\r\n");
    CHECK_CONTAINS(answer, "HTTP/1.1 200", "the loop's own pages are answered");
    free(answer);
    sem_post(&f->go_on);
    client_read_all(working, &text);
    CHECK_CONTAINS(text.data, "waited", "");
    client_read_all(waiting, &text);
    CHECK_CONTAINS(text.data, "GET /echo", "");
    CHECK_INT(testing_metric(f->metrics, "profpull_api_request_seconds_count{api=\"query\"}"), 2,
              "");
    close(working);
    close(waiting);
}

/* Four places: a client has two while another one is connected, and all when it is alone. */
TEST_ON(struct fixture *f, a_client_leaves_places_to_others)
{
    static const char pending[] = "profpull_api_requests_pending{api=\"query\"}";
    static const char request[] = "GET /echo HTTP/1.1\r\n" CLOSE "\r\n";
    int own[3];
    f->options.query.waiting_max = 3;
    restart(f);
    own[0] = client_dial(f->server);
    client_send(own[0], "GET /wait HTTP/1.1\r\n" CLOSE "\r\n");
    sem_wait(&f->started);
    for (int i = 1; i < 3; i++) {
        own[i] = client_dial(f->server);
        client_send(own[i], request);
    }
    server_rig_wait(f->metrics, pending, 3);
    int other = client_dial_from(f->server, INADDR_LOOPBACK + 1);
    server_rig_wait(f->metrics, "profpull_admin_connections", 4);
    SCOPED_MEMORY char *answer = client_ask(f->server, request);
    CHECK_CONTAINS(answer, "HTTP/1.1 429 Too Many Requests\r\n", "more than its share");
    client_send(other, request);
    server_rig_wait(f->metrics, pending, 4);
    sem_post(&f->go_on);
    for (int i = 0; i < 3; i++) {
        SCOPED(buf) text = testing_buf(REPLY_MAX);
        client_read_all(own[i], &text);
        CHECK_CONTAINS(text.data, "HTTP/1.1 200", "");
        close(own[i]);
    }
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    client_read_all(other, &text);
    CHECK_CONTAINS(text.data, "HTTP/1.1 200", "the other client");
    close(other);
}

TEST_ON(struct fixture *f, a_client_that_hangs_up)
{
    int fd = client_dial(f->server);
    client_send(fd, "GET /wait HTTP/1.1\r\n\r\n");
    sem_wait(&f->started);
    close(fd);
    server_rig_wait(f->metrics, "profpull_api_requests_pending{api=\"query\"}", 0);
    assert_true(atomic_load(&f->cancelled));
    server_rig_wait(f->metrics, "profpull_admin_connections", 0);
}

/* One that has closed only its side of the connection gets its answer. */
TEST_ON(struct fixture *f, a_client_that_has_said_all)
{
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    int fd = client_dial(f->server);
    int waiting = client_dial(f->server);
    client_send(fd, "GET /wait HTTP/1.1\r\n\r\n");
    sem_wait(&f->started);
    client_send(waiting, "GET /echo HTTP/1.1\r\n\r\n");
    shutdown(waiting, SHUT_WR);
    server_rig_wait(f->metrics, "profpull_api_requests_pending{api=\"query\"}", 2);
    /* Answered by the loop, so it has seen the end of the other one. */
    free(client_ask(f->server, "GET /-/healthy HTTP/1.1\r\n" CLOSE "\r\n"));
    shutdown(fd, SHUT_WR);
    client_read_all(fd, &text);
    CHECK_CONTAINS(text.data, "waited", "the handler has ended early");
    buf_clear(&text);
    client_read_all(waiting, &text);
    CHECK_CONTAINS(text.data, "HTTP/1.1 499", "the handler was not called");
    close(fd);
    close(waiting);
}

TEST_ON(struct fixture *f, no_time_is_left)
{
    f->options.query.timeout_ms = 1;
    restart(f);
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    int working = client_dial(f->server);
    int waiting = -1;
    /* The first one may itself come too late for its 1 ms. */
    while (sem_trywait(&f->started) != 0) {
        close(working);
        /* Nothing is left of it, not even a start that came after the look at the semaphore. */
        server_rig_wait(f->metrics, "profpull_admin_connections", 0);
        server_rig_wait(f->metrics, "profpull_api_requests_pending{api=\"query\"}", 0);
        while (sem_trywait(&f->started) == 0) {
        }
        working = client_dial(f->server);
        client_send(working, "GET /wait HTTP/1.1\r\n" CLOSE "\r\n");
        server_rig_wait(f->metrics, "profpull_admin_connections", 1);
        usleep(20000);
    }
    waiting = client_dial(f->server);
    client_send(waiting, "POST /x.Connect/Do HTTP/1.1\r\n" CLOSE "\r\n");
    server_rig_wait(f->metrics, "profpull_api_requests_pending{api=\"query\"}", 2);
    int64_t now_ms = clock_mono_ms();
    while (clock_mono_ms() < now_ms + 2) {
        usleep(1000);
    }
    sem_post(&f->go_on);
    client_read_all(waiting, &text);
    CHECK_CONTAINS(text.data, "HTTP/1.1 503", "");
    CHECK_CONTAINS(text.data, "{\"code\":\"unavailable\",\"message\":\"no time was left", "");
    close(working);
    close(waiting);
}

/* The server stops although a handler runs and a request waits for its turn. */
TEST_ON(struct fixture *f, a_stop_during_work)
{
    int working = client_dial(f->server);
    int waiting = client_dial(f->server);
    client_send(working, "GET /wait HTTP/1.1\r\n\r\n");
    sem_wait(&f->started);
    client_send(waiting, "GET /wait HTTP/1.1\r\n\r\n");
    server_rig_wait(f->metrics, "profpull_api_requests_pending{api=\"query\"}", 2);
    restart(f);
    assert_true(atomic_load(&f->cancelled));
    assert_int_not_equal(sem_trywait(&f->started), 0);
    close(working);
    close(waiting);
}
