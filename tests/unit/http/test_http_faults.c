/* The HTTP client against misbehaving servers: each fault has its result and its message, and does
 * not affect other transfers. */
#include "tests/unit/lib/http_server.h"

#include "http/private.h"

/* ---- broken responses ------------------------------------------------------------------------ */

TEST(test_broken_responses)
{
    static const struct {
        const char *name;
        const char *script; /* then the connection is closed */
        enum http_result result;
        long status;
        const char *error;
    } rows[] = {
        {"nothing", NULL, HTTP_ERR_CUT, 0, "the connection broke before a response"},
        {"cut in the status line", "HTTP/1.1 2", HTTP_ERR_CUT, 0, ""},
        {"cut in the headers", OK_HEAD "Content-Le", HTTP_ERR_CUT, 200,
         "the connection broke within the headers"},
        {"cut in the body", OK_HEAD "Content-Length: 10\r\n\r\nhalf", HTTP_ERR_CUT, 200,
         "the connection broke after 4 of 10 bytes"},
        {"cut in a chunk", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nab", HTTP_ERR_CUT, 200,
         "the response broke after 2 bytes"},
        {"last chunk missing", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
         HTTP_ERR_CUT, 200, "the response broke after 2 bytes"},
        {"chunk size no number", OK_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
         HTTP_ERR_CUT, 200, ""},
        {"chunk size of 2^64",
         OK_HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nab\r\n", HTTP_ERR_CUT,
         200, ""},
        {"HTTP 0.9", "hello\r\n", HTTP_ERR_PROTOCOL, 0, "expected an HTTP response"},
        {"another protocol", "220 smtp.example ESMTP\r\n", HTTP_ERR_PROTOCOL, 0,
         "expected an HTTP response"},
        {"negative length", OK_HEAD "Content-Length: -5\r\n\r\nab", HTTP_ERR_PROTOCOL, 200, ""},
        {"length of 2^64", OK_HEAD "Content-Length: 18446744073709551616\r\n\r\nab", HTTP_DONE, 200,
         ""},
        {"line feeds only", "HTTP/1.1 200 OK\nContent-Length: 2\n\nab", HTTP_DONE, 200, ""},
        {"no length", OK_HEAD "\r\nab", HTTP_DONE, 200, ""},
        {"interim responses",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: "
         "99999999\r\n\r\n" OK_HEAD "Content-Length: 2\r\n\r\nab",
         HTTP_DONE, 200, ""},
    };
    SCOPED(fixture) f = fixture_with(1, server_answer, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        server_set_arg(f.server, rows[i].script);
        fixture_get(&f, &f.call, f.server, NULL);
        check_result(&f.call, rows[i].result, rows[i].name);
        CHECK_INT(f.call.status, rows[i].status, rows[i].name);
        CHECK_CONTAINS(f.call.error, rows[i].error, rows[i].name);
        if (rows[i].result == HTTP_DONE) {
            CHECK_STR(f.call.body, "ab", rows[i].name);
        } else {
            CHECK_CONTAINS(f.call.error, "GET http://127.0.0.1:", rows[i].name);
        }
    }
}

/* ---- headers without end --------------------------------------------------------------------- */

struct flood {
    const char *start;
    const char *line; /* repeated without end */
};

static void send_flood(struct server_conn *c)
{
    if (!server_read_request(c)) {
        return;
    }
    const struct flood *flood = server_arg(c);
    if (!server_send(c, flood->start)) {
        return;
    }
    while (server_send(c, flood->line)) {
        ;
    }
}

TEST(test_header_floods)
{
    SCOPED_MEMORY char *long_line = malloc(8000), *endless = malloc(8000);
    assert_true(long_line && endless);
    memset(long_line, 'a', 7999);
    long_line[0] = 'X';
    long_line[1] = ':';
    long_line[7997] = '\r';
    long_line[7998] = '\n';
    long_line[7999] = '\0';
    memset(endless, 'a', 7999);
    endless[7999] = '\0';
    const struct {
        const char *name;
        struct flood flood;
        const char *error;
    } rows[] = {
        {"many lines", {OK_HEAD, "A: b\r\n"}, "at most 100 header lines"},
        {"many bytes", {OK_HEAD, long_line}, "at most 16384 bytes of headers"},
        {"many interim responses",
         {"", "HTTP/1.1 100 Continue\r\n\r\n"},
         "at most 100 header lines"},
        {"one line without end", {OK_HEAD "X: ", endless}, "got a longer line without its end"},
        {"a status line without end",
         {"HTTP/1.1 200 ", endless},
         "got a longer line without its end"},
    };
    SCOPED(fixture) f = fixture_with(1, send_flood, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        server_set_arg(f.server, &rows[i].flood);
        fixture_get(&f, &f.call, f.server, NULL);
        check_result(&f.call, HTTP_ERR_PROTOCOL, rows[i].name);
        CHECK_CONTAINS(f.call.error, rows[i].error, rows[i].name);
    }
}

/* The highest number that is allowed. */
static void send_99_headers(struct server_conn *c)
{
    if (!server_read_request(c) || !server_send(c, OK_HEAD "Content-Length: 2\r\n")) {
        return;
    }
    for (int i = 0; i < HTTP_HEADER_LINES_MAX - 3; i++) {
        server_send(c, "A: b\r\n");
    }
    server_send(c, "\r\nab");
}

TEST(test_many_headers_are_fine)
{
    SCOPED(fixture) f = fixture_with(1, send_99_headers, NULL);
    fixture_get(&f, &f.call, f.server, NULL);
    check_result(&f.call, HTTP_DONE, "");
}

/* ---- bodies over the limit ------------------------------------------------------------------- */

TEST(test_body_limits)
{
    static const struct {
        const char *name, *script;
        size_t max;
        enum http_result result;
        const char *body, *error;
    } rows[] = {
        {"fits", OK_HEAD "Content-Length: 5\r\n\r\n12345", 5, HTTP_DONE, "12345", ""},
        {"announced", OK_HEAD "Content-Length: 6\r\n\r\n123456", 5, HTTP_ERR_TOO_LARGE, "",
         "expected a body of at most 5B, got one of 6 bytes"},
        {"unknown length", OK_HEAD "\r\n123456", 5, HTTP_ERR_TOO_LARGE, "12345",
         "expected a body of at most 5B, got a longer one"},
        {"unknown length fits", OK_HEAD "\r\n12345", 5, HTTP_DONE, "12345", ""},
        {"chunked", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n0\r\n\r\n", 5,
         HTTP_ERR_TOO_LARGE, "12345", "got a longer one"},
        {"error page", "HTTP/1.1 500 No\r\nContent-Length: 8\r\n\r\nit broke", 2,
         HTTP_ERR_TOO_LARGE, "it", "got one of 8 bytes"},
        {"no body", "HTTP/1.1 204 No\r\n\r\n", 1, HTTP_DONE, "", ""},
    };
    SCOPED(fixture) f = fixture_with(1, server_answer, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        server_set_arg(f.server, rows[i].script);
        fixture_ask(&f, "/", &(struct http_request){.max_body = rows[i].max});
        check_result(&f.call, rows[i].result, rows[i].name);
        CHECK_STR(f.call.body, rows[i].body, rows[i].name);
        CHECK_CONTAINS(f.call.error, rows[i].error, rows[i].name);
        assert_true(f.call.status != 0);
    }
    CHECK_INT(
        fixture_metric(&f, "profpull_http_requests_total{client=\"test\",result=\"too_large\"}"), 4,
        "");
}

static void send_without_end(struct server_conn *c)
{
    char junk[4096];
    memset(junk, 'x', sizeof(junk));
    if (!server_read_request(c) || !server_send(c, OK_HEAD "\r\n")) {
        return;
    }
    while (server_send_bytes(c, junk, sizeof(junk))) {
        ;
    }
}

#define BODY_BYTES "profpull_http_body_bytes{client=\"test\"}"

/* At the end of a transfer, all bodies together, with its own, are below the ceiling. */
static void check_bytes(struct call *call)
{
    long *most = call->then_arg;
    long now = fixture_metric(call->fixture, BODY_BYTES);
    *most = now > *most ? now : *most;
}

/* All bodies together have a ceiling: a transfer that needs more fails, the others go on. */
TEST(test_bodies_together)
{
    struct call calls[3] = {{0}};
    long most = 0;
    SCOPED(fixture) f = fixture_with(2, send_without_end, NULL);
    f.client->bodies_max_bytes = 300000;
    for (size_t i = 0; i < 3; i++) {
        calls[i].then = check_bytes;
        calls[i].then_arg = &most;
        fixture_start_path(&f, &calls[i], "/", &(struct http_request){0});
    }
    fixture_wait(&f);
    for (size_t i = 0; i < 3; i++) {
        check_result(&calls[i], HTTP_ERR_NO_ROOM, "");
        CHECK_CONTAINS(calls[i].error, "the bodies that are being received take ", "");
        assert_true(calls[i].body_len < 300000); /* none, if the others were faster */
        call_clear(&calls[i]);
    }
    assert_true(most > 50000 && most <= 300000);
    CHECK_INT(fixture_metric(&f, BODY_BYTES), 0, "all is given back");
    CHECK_INT(
        fixture_metric(&f, "profpull_http_requests_total{client=\"test\",result=\"no_room\"}"), 3,
        "");
    server_free(f.server);
    f.server = server_new(server_answer, OK_HEAD "Content-Length: 5\r\n\r\n12345");
    fixture_ask(&f, "/", &(struct http_request){0});
    check_result(&f.call, HTTP_DONE, "there is room again");
}

/* Sends as many bytes as the path says, and then nothing, unless they are few. */
static void send_some(struct server_conn *c)
{
    static const char junk[256];
    if (!server_read_request(c) || !server_send(c, OK_HEAD "Connection: close\r\n\r\n")) {
        return;
    }
    long n = strtol(c->head + strlen("GET /"), NULL, 10);
    for (long sent = 0; sent < n && server_send_bytes(c, junk, sizeof(junk));) {
        sent += (long)sizeof(junk);
    }
    if (n > 20000) {
        server_wait_close(c);
    }
}

/* Turns the loop until so many bytes of bodies are held. */
static void hold(struct fixture *f, long bytes)
{
    while (fixture_metric(f, BODY_BYTES) < bytes) {
        loop_run_once(f->loop);
    }
}

/* A few large bodies must not fail the small ones of all others. */
TEST(test_large_bodies_leave_room)
{
    struct call calls[4] = {{0}};
    SCOPED(fixture) f = fixture_with(1, send_some, NULL);
    f.client->bodies_max_bytes = 400000;
    fixture_start_path(&f, &calls[0], "/130000", &(struct http_request){0});
    hold(&f, 131072);
    fixture_start_path(&f, &calls[1], "/130000", &(struct http_request){0});
    hold(&f, 262144);
    /* There is room for it, were it not for the small ones. */
    fixture_start_path(&f, &calls[2], "/130000", &(struct http_request){0});
    while (calls[2].done == 0 && fixture_metric(&f, BODY_BYTES) < 393216) {
        loop_run_once(f.loop);
    }
    fixture_start_path(&f, &calls[3], "/16000", &(struct http_request){0});
    while (calls[3].done == 0) {
        loop_run_once(f.loop);
    }
    check_result(&calls[3], HTTP_DONE, "small");
    check_result(&calls[2], HTTP_ERR_NO_ROOM, "large");
    http_cancel(calls[0].transfer);
    http_cancel(calls[1].transfer);
    for (size_t i = 0; i < 4; i++) {
        call_clear(&calls[i]);
    }
}

TEST(test_body_without_end)
{
    SCOPED(fixture) f = fixture_with(1, send_without_end, NULL);
    fixture_get(&f, &f.call, f.server, NULL);
    check_result(&f.call, HTTP_ERR_TOO_LARGE, "");
    CHECK_INT(f.call.body_len, 1024 * 1024, "what came up to the limit");
}

/* ---- silence --------------------------------------------------------------------------------- */

static void stop_in_body(struct server_conn *c)
{
    if (server_read_request(c) && server_send(c, OK_HEAD "Content-Length: 10\r\n\r\nhal")) {
        server_wait_close(c);
    }
}

static void drip(struct server_conn *c)
{
    if (!server_read_request(c) || !server_send(c, OK_HEAD "Content-Length: 1000000\r\n\r\n")) {
        return;
    }
    while (server_send(c, "x")) {
        usleep(1000);
    }
}

TEST(test_deadlines)
{
    static const struct {
        const char *name;
        server_handler *handler;
        int64_t timeout_ms; /* long if the response has to begin before, on a busy machine too */
        const char *error;
    } rows[] = {
        {"never answers", server_wait_close, 60, "no response within 60ms"},
        {"stops in the body", stop_in_body, 3000,
         "expected the whole response within 3s, got 3 bytes"},
        {"drips", drip, 3000, "expected the whole response within 3s"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(fixture) f = fixture_with(1, rows[i].handler, NULL);
        fixture_ask(&f, "/", &(struct http_request){.timeout_ms = rows[i].timeout_ms});
        check_result(&f.call, HTTP_ERR_TIMEOUT, rows[i].name);
        CHECK_CONTAINS(f.call.error, rows[i].error, rows[i].name);
        assert_true(f.call.end_ns - f.call.start_ns >= rows[i].timeout_ms * NS_PER_MS);
    }
}

/* A socket whose queue of connections is full: the kernel lets further ones wait. */
TEST(test_connect_timeout)
{
    static const struct {
        const char *name;
        int64_t timeout_ms, connect_ms;
        enum http_result result;
        const char *error;
    } rows[] = {
        {"connect timeout", 0, 50, HTTP_ERR_CONNECT, "no connection within 50ms"},
        {"connect timeout first", 60000, 50, HTTP_ERR_CONNECT, "no connection within 50ms"},
        {"deadline first", 50, 0, HTTP_ERR_TIMEOUT, "no connection within 50ms"},
    };
    struct server s = {0};
    int waiting[4];
    char url[URL_SIZE];
    s.fd = server_listen(&s.port);
    assert_int_equal(listen(s.fd, 0), 0);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(s.port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (size_t i = 0; i < 4; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(waiting[i], (struct sockaddr *)&a, sizeof(a));
    }
    SCOPED(fixture) f = fixture_new(1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fixture_do(&f, &f.call,
                   &(struct http_request){.url = server_url(&s, "/", url),
                                          .timeout_ms = rows[i].timeout_ms,
                                          .connect_timeout_ms = rows[i].connect_ms});
        check_result(&f.call, rows[i].result, rows[i].name);
        CHECK_CONTAINS(f.call.error, rows[i].error, rows[i].name);
        CHECK_INT(f.call.sent_ns, 0, rows[i].name);
    }
    for (size_t i = 0; i < 4; i++) {
        close(waiting[i]);
    }
    close(s.fd);
}

TEST(test_refused_and_unknown)
{
    char url[URL_SIZE], want[URL_SIZE + 64];
    struct server s = {0};
    close(server_listen(&s.port)); /* a port that does not listen */
    SCOPED(fixture) f = fixture_new(1);
    fixture_do(&f, &f.call,
               &(struct http_request){.url = server_url(&s, "/debug/pprof/heap", url)});
    check_result(&f.call, HTTP_ERR_CONNECT, "");
    (void)snprintf(want, sizeof(want), "GET %s: connection refused", url);
    CHECK_STR(f.call.error, want, "");
    CHECK_INT(
        fixture_metric(&f, "profpull_http_requests_total{client=\"test\",result=\"connect\"}"), 1,
        "");
    /* With two dots in a row, no name server is asked. */
    fixture_do(&f, &f.call, &(struct http_request){.url = "http://no..host/"});
    check_result(&f.call, HTTP_ERR_RESOLVE, "");
    CHECK_CONTAINS(f.call.error, "GET http://no..host/: Could not resolve host", "");
}

/* ---- redirects ------------------------------------------------------------------------------- */

struct redirects {
    const char *target; /* Location on any path but /end */
    long status;
};

static void redirect(struct server_conn *c)
{
    char answer[600];
    while (server_read_request(c)) {
        const struct redirects *r = server_arg(c);
        if (strstr(c->head, " /end") != NULL) {
            server_send(c, OK_HEAD "Content-Length: 3\r\n\r\nend");
            continue;
        }
        (void)snprintf(answer, sizeof(answer),
                       "HTTP/1.1 %ld Moved\r\nLocation: %s\r\nContent-Length: 5\r\n\r\nmoved",
                       r->status, r->target);
        server_send(c, answer);
    }
}

/* The text with "%u" replaced by the port. */
static void put_port(const char *text, unsigned port, char out[URL_SIZE])
{
    const char *at = strstr(text, "%u");
    if (at != NULL) {
        (void)snprintf(out, URL_SIZE, "%.*s%u%s", (int)(at - text), text, port, at + 2);
    } else {
        (void)snprintf(out, URL_SIZE, "%s", text);
    }
}

TEST(test_redirects)
{
    static const struct {
        const char *name, *method;
        long follow, status;
        const char *target; /* with %u for the server's port */
        enum http_result result;
        const char *body, *location, *error;
    } rows[] = {
        {"relative", "GET", true, 302, "/end", HTTP_DONE, "end", "", ""},
        {"relative path", "GET", true, 308, "b/../../end?x=1", HTTP_DONE, "end", "", ""},
        {"absolute", "GET", true, 301, "http://127.0.0.1:%u/end", HTTP_DONE, "end", "", ""},
        {"with userinfo", "GET", true, 307, "http://u:p@127.0.0.1:%u/end", HTTP_DONE, "end", "",
         ""},
        {"host in capitals", "GET", true, 303, "HTTP://127.0.0.1:%u/end", HTTP_DONE, "end", "", ""},
        {"not asked for", "GET", false, 302, "/end", HTTP_DONE, "moved", "http://127.0.0.1:%u/end",
         ""},
        {"to TLS, not asked for", "GET", false, 308, "https://h/x?token=s3cret&n=5", HTTP_DONE,
         "moved", "https://h/x?token=...&n=5", ""},
        {"a POST", "POST", true, 307, "/end", HTTP_DONE, "moved", "http://127.0.0.1:%u/end", ""},
        {"other status", "GET", true, 300, "/end", HTTP_DONE, "moved", "http://127.0.0.1:%u/end",
         ""},
        {"without end", "GET", true, 302, "/again", HTTP_ERR_REDIRECT, "",
         "http://127.0.0.1:%u/again", "more than 5 redirects, the last to http://127.0.0.1:"},
        {"metadata service", "GET", true, 302, "http://169.254.169.254/latest?a=secret",
         HTTP_ERR_REDIRECT, "", "http://169.254.169.254/latest?a=...",
         "status 302 redirects to http://169.254.169.254/latest?a=..., which is not followed"},
        {"other port", "GET", true, 302, "http://127.0.0.1:1/", HTTP_ERR_REDIRECT, "",
         "http://127.0.0.1:1/", "not followed"},
        {"other scheme", "GET", true, 302, "https://127.0.0.1:%u/end", HTTP_ERR_REDIRECT, "",
         "https://127.0.0.1:%u/end", "not followed"},
        {"a file", "GET", true, 302, "file:///etc/passwd", HTTP_ERR_REDIRECT, "",
         "file:///etc/passwd", "not followed"},
        {"nonsense", "GET", true, 302, "http://[", HTTP_ERR_REDIRECT, "", "http://[",
         "not followed"},
    };
    SCOPED(fixture) f = fixture_with(1, redirect, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_settings settings = {.follow_redirects = rows[i].follow};
        char target[URL_SIZE], location[URL_SIZE];
        put_port(rows[i].target, f.server->port, target);
        put_port(rows[i].location, f.server->port, location);
        struct redirects r = {target, rows[i].status};
        server_set_arg(f.server, &r);
        fixture_ask(&f, "/a/start",
                    &(struct http_request){.method = rows[i].method, .settings = &settings});
        check_result(&f.call, rows[i].result, rows[i].name);
        if (rows[i].result == HTTP_DONE) {
            CHECK_STR(f.call.body, rows[i].body, rows[i].name);
        }
        CHECK_STR(f.call.location, location, rows[i].name);
        CHECK_CONTAINS(f.call.error, rows[i].error, rows[i].name);
        assert_null(strstr(f.call.error, "secret"));
    }
}

static bool count_head(void *arg, long status, const char *content_type)
{
    (void)content_type;
    struct call *call = arg;
    call->then_arg = (char *)call->then_arg + status;
    return true;
}

static void big_redirect(struct server_conn *c)
{
    char junk[4096];
    memset(junk, 'x', sizeof(junk));
    if (server_read_request(c) && server_send(c, "HTTP/1.1 302 Moved\r\nLocation: /end\r\n\r\n")) {
        while (server_send_bytes(c, junk, sizeof(junk))) {
            ;
        }
    }
}

TEST(test_redirect_bodies_and_heads)
{
    struct redirects r = {"/end", 302};
    struct http_settings settings = {.follow_redirects = true};
    SCOPED(fixture) f = fixture_with(1, redirect, &r);
    SCOPED(fixture) big = fixture_with(1, big_redirect, NULL);
    fixture_ask(&f, "/", &(struct http_request){.settings = &settings, .on_head = count_head});
    check_result(&f.call, HTTP_DONE, "");
    CHECK_INT((intptr_t)f.call.then_arg, 200, "on_head() is for the final response");
    CHECK_INT(atomic_load(&f.server->accepted), 1, "the connection is kept");
    fixture_ask(&big, "/", &(struct http_request){.settings = &settings});
    check_result(&big.call, HTTP_ERR_TOO_LARGE, "a redirect with a body without end");
}

/* ---- Retry-After as it arrives --------------------------------------------------------------- */

TEST(test_retry_after)
{
    const char *script = "HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno";
    SCOPED(fixture) f = fixture_with(1, server_answer, script);
    fixture_get(&f, &f.call, f.server, NULL);
    check_result(&f.call, HTTP_DONE, "");
    CHECK_INT(f.call.status, 429, "");
    CHECK_INT(f.call.retry_after_ms, 7000, "");
}

static bool keep_data(void *arg, const char *data, size_t len)
{
    return buf_append(arg, data, len);
}

/* A response that arrives before the server has the body, and that libcurl did not read, counts the
 * same for servers that take the body as it comes. */
TEST(test_late_responses)
{
    static const struct {
        const char *bytes;
        long status;
        const char *type, *body;
    } rows[] = {
        {OK_HEAD "Content-Type: application/proto\r\nContent-Length: 2\r\n\r\nhi!", 200,
         "application/proto", "hi"},
        {OK_HEAD "content-type:text/html \r\n\r\nhi", 200, "text/html", ""},
        {"HTTP/1.1 100 Continue\r\nContent-Type: a/b\r\n\r\nHTTP/1.1 413 No\r\n\r\n", 413, "", ""},
        {"SSH-2.0\r\n", 0, "", ""},
    };
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED_MEMORY struct http_transfer *t = calloc(1, sizeof(*t));
        const char *bytes = rows[i / 2].bytes;
        SCOPED(buf) got;
        assert_non_null(t);
        t->request.max_body = 100;
        t->request.on_data = i % 2 == 0 ? NULL : keep_data;
        t->request.arg = &got;
        buf_init(&t->body, 101);
        buf_init(&got, 101);
        http_transfer_take_late(t, sv_from(bytes));
        CHECK_INT(t->status, rows[i / 2].status, bytes);
        CHECK_STR(t->content_type, rows[i / 2].type, bytes);
        CHECK_STR(i % 2 == 0 ? t->body.data : got.data, rows[i / 2].body, bytes);
        buf_done(&t->body);
    }
}

MAIN_THAT_MAY_HANG(run_both_ways(NULL, NULL))
