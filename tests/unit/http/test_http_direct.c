/* Requests that go without libcurl, as far as they differ. Everything else about them is in the
 * other tests of the HTTP client, which run both ways. */
#include "tests/unit/lib/http_server.h"

#include <netdb.h>

#include "http/private.h"

#define BIG ((size_t)16 * 1024 * 1024)
#define ACCEPTED OK_HEAD "Content-Length: 2\r\n\r\nhi"
#define CLOSING OK_HEAD "Content-Length: 2\r\nConnection: close\r\n\r\nhi"

/* ---- which ----------------------------------------------------------------------------------- */

static const struct http_header framing_header = {"Connection", "close"};
static const struct http_header host_header = {"host", "other"};
static const struct http_header plain_header = {"X-Scope-OrgID", "a"};

TEST(test_which_requests)
{
    static const struct {
        const char *name;
        bool direct;
        const char *url;
        struct http_settings settings;
        struct http_request request;
    } rows[] = {
        {.name = "GET", .direct = true},
        {.name = "POST", .direct = true, .request = {.method = "POST"}},
        {.name = "a user", .direct = true, .url = "http://u:p@127.0.0.1:1/"},
        {.name = "IPv6", .direct = true, .url = "http://[::1]:1/"},
        {.name = "TLS", .url = "https://127.0.0.1:1/"},
        {.name = "an address with a zone", .url = "http://[fe80::1%25lo]:1/"},
        {.name = "a proxy", .settings = {.proxy_url = "http://127.0.0.1:1"}},
        {.name = "a proxy for others",
         .direct = true,
         .settings = {.proxy_url = "http://127.0.0.1:1", .no_proxy = "127.0.0.1"}},
        {.name = "HTTP/2", .request = {.http2_only = true}},
        {.name = "HTTP/2 if there is TLS", .direct = true, .settings = {.enable_http2 = true}},
        {.name = "compressed", .request = {.accept_gzip = true}},
        {.name = "a watch", .request = {.detect_dead_peer = true}},
        {.name = "a signature",
         .settings = {.auth = HTTP_AUTH_S3, .username = "u", .password = "p", .region = "r"}},
        {.name = "a password",
         .direct = true,
         .settings = {.auth = HTTP_AUTH_BASIC, .username = "u", .password = "p"}},
        {.name = "a header",
         .direct = true,
         .settings = {.headers = &plain_header, .n_headers = 1}},
        {.name = "a host of one's own", .settings = {.headers = &host_header, .n_headers = 1}},
        {.name = "a header about framing", .request = {.headers = &framing_header, .n_headers = 1}},
    };
    SCOPED(fixture) f = fixture_new(1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(call) call = {0};
        struct http_request r = rows[i].request;
        r.url = rows[i].url != NULL ? rows[i].url : "http://127.0.0.1:1/";
        r.settings = &rows[i].settings;
        fixture_start(&f, &call, &r);
        CHECK_INT(call.transfer->easy == NULL, rows[i].direct, rows[i].name);
        fixture_wait(&f);
    }
}

TEST(test_addresses)
{
    static const struct {
        const char *addresses;
        bool takes;
    } rows[] = {
        {"192.0.2.1", true},
        {"2001:db8::1", true},
        {"[2001:db8::1]", true},
        {"192.0.2.1,192.0.2.2", false},
        {"[::1],127.0.0.1", false},
        {"fe80::1%lo", false},
        {"fe80::1", false},
        {"a.example", false},
        {"192.0.2", false},
        {"[]", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(direct_takes(rows[i].addresses), rows[i].takes, rows[i].addresses);
    }
}

static int look_up(const char *host, char **ret_addresses)
{
    *ret_addresses = strdup(strcmp(host, "two.test") == 0 ? "[::1],127.0.0.1" : "127.0.0.1");
    return *ret_addresses != NULL ? 0 : EAI_MEMORY;
}

/* libcurl knows how to try several addresses. */
TEST(test_names)
{
    static const char *const names[] = {"one.test", "two.test"};
    SCOPED(fixture) f = fixture_new_options(&(struct http_client_options){.lookup = look_up});
    f.server = server_new(server_hello, NULL);
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(f.url, sizeof(f.url), "http://%s:%u/", names[i % 2], f.server->port);
        fixture_do(&f, &f.call, &(struct http_request){.url = f.url});
        check_result(&f.call, HTTP_DONE, names[i % 2]);
        CHECK_INT(f.call.reused, i >= 2, names[i % 2]);
    }
    CHECK_INT(atomic_load(&f.server->accepted), 2, "one connection each");
    CHECK_INT(f.client->n_idle, 1, "handles of libcurl");
}

/* ---- the request ----------------------------------------------------------------------------- */

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of the last head, sorted, without the first one. */
static void get_lines(struct server *s, char *out, size_t size)
{
    char *lines[64], *rest = NULL;
    char head[SERVER_HEAD_MAX];
    size_t n = 0, len = 0;
    pthread_mutex_lock(&s->lock);
    memcpy(head, s->last_head, sizeof(head));
    pthread_mutex_unlock(&s->lock);
    for (char *l = strtok_r(head, "\r\n", &rest); l != NULL; l = strtok_r(NULL, "\r\n", &rest)) {
        assert_true(n < 64);
        lines[n++] = l;
    }
    assert_true(n > 0);
    qsort(lines + 1, n - 1, sizeof(lines[0]), compare_lines);
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(out + len, size - len, "%s\n", lines[i]);
        assert_true(len < size);
    }
}

/* Leaves it to the client to close the connection. */
static void say_more(struct server_conn *c)
{
    if (server_read_request(c)) {
        server_send(c, server_arg(c));
        server_wait_close(c);
    }
}

/* Servers see the same request either way. */
TEST(test_requests_are_those_of_libcurl)
{
    static const struct http_part part = {"abc", 3};
    static const struct http_header many[] = {{"X-Empty", ""},
                                              {"user-agent", "mine"},
                                              {"X-Colon", "a:"},
                                              {"X-Semicolon", "a;"},
                                              {"Accept", "application/x"},
                                              {"Content-Type", "application/y; charset=z"}};
    static const struct {
        const char *path;
        struct http_settings settings;
        struct http_request request;
    } rows[] = {
        {.path = "/debug/pprof/heap?seconds=14&a=%20b"},
        {.path = ""},
        {.path = "?a=b"},
        {.path = "/a/../b//c/."},
        {.path = "/x#fragment"},
        {.path = "/", .settings = {.headers = many, .n_headers = 6}},
        {.path = "/", .request = {.method = "HEAD"}},
        {.path = "/", .request = {.method = "DELETE"}},
        {.path = "/", .request = {.method = "POST", .body = &part, .n_body = 1}},
        {.path = "/", .request = {.method = "PUT"}},
        {.path = "/",
         .settings = {.headers = many, .n_headers = 6},
         .request = {.method = "PUT", .body = &part, .n_body = 1}},
        {.path = "/",
         .settings = {.auth = HTTP_AUTH_BASIC, .username = "u:", .password = "p\xc3\xa9?"}},
        {.path = "/", .settings = {.auth = HTTP_AUTH_BASIC, .username = "u"}},
        {.path = "/", .settings = {.auth = HTTP_AUTH_HEADER, .credentials = "t"}},
    };
    SCOPED(server) *s = server_new(say_more, CLOSING);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char seen[2][4096];
        for (int with = 0; with < 2; with++) {
            SCOPED(fixture) f = (with ? fixture_new_libcurl : fixture_new)(1);
            struct http_request r = rows[i].request;
            r.url = server_url(s, rows[i].path, f.url);
            r.settings = &rows[i].settings;
            fixture_do(&f, &f.call, &r);
            check_result(&f.call, HTTP_DONE, rows[i].path);
            CHECK_INT(f.client->n_idle, with, "handles of libcurl");
            get_lines(s, seen[with], sizeof(seen[with]));
        }
        CHECK_STR(seen[0], seen[1], rows[i].path);
    }
}

static void check_body(struct server_conn *c)
{
    bool *same = server_arg(c);
    SCOPED_MEMORY char *body = testing_memory(BIG);
    if (server_read_request(c) && server_read_body(c, body, BIG)) {
        *same = true;
        for (size_t i = 0; i < BIG; i++) {
            *same &= body[i] == (char)(i % 251);
        }
        server_send(c, ACCEPTED);
    }
}

/* More than a socket takes at once, in more parts than are sent at once, some of them empty. */
TEST(test_large_scattered_body)
{
    enum { PARTS = 64 };
    struct http_part parts[PARTS];
    bool same = false;
    SCOPED_MEMORY char *body = testing_memory(BIG);
    for (size_t i = 0; i < BIG; i++) {
        body[i] = (char)(i % 251);
    }
    for (size_t i = 0; i < PARTS; i++) {
        size_t pair = i / 2 * (BIG / (PARTS / 2));
        parts[i] = (struct http_part){body + pair, i % 2 ? BIG / (PARTS / 2) : 0};
    }
    SCOPED(fixture) f = fixture_with(1, check_body, &same);
    fixture_ask(&f, "/", &(struct http_request){.method = "POST", .body = parts, .n_body = PARTS});
    check_result(&f.call, HTTP_DONE, "");
    assert_true(same);
}

/* ---- answers before the body was sent -------------------------------------------------------- */

static void answer_first(struct server_conn *c)
{
    const char *answer = server_arg(c);
    SCOPED_MEMORY char *body = testing_memory(BIG);
    if (server_read_request(c)) {
        server_send(c, answer);
        usleep(20000); /* the client has it before the rest of the body */
        (void)server_read_body(c, body, BIG);
    }
}

static void answer_and_reset(struct server_conn *c)
{
    if (server_read_request(c)) {
        server_send(c, server_arg(c));
        usleep(20000);
        server_reset(c);
    }
}

TEST(test_answers_before_the_body)
{
#define REFUSED "HTTP/1.1 429 Too Many\r\nContent-Length: 4\r\n\r\nbusy"
    static const struct {
        const char *name;
        server_handler *handler;
        const char *answer;
        enum http_result result;
        long status;
    } rows[] = {
        {"accepted, then read", answer_first, ACCEPTED, HTTP_ERR_PROTOCOL, 200},
        {"accepted and not read", answer_and_reset, ACCEPTED, HTTP_ERR_PROTOCOL, 200},
        {"refused, then read", answer_first, REFUSED, HTTP_DONE, 429},
        {"refused and not read", answer_and_reset, REFUSED, HTTP_DONE, 429},
    };
    SCOPED_MEMORY char *body = testing_memory(BIG);
    struct http_part part = {body, BIG};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(fixture) f = fixture_with(1, rows[i].handler, rows[i].answer);
        fixture_ask(&f, "/", &(struct http_request){.method = "POST", .body = &part, .n_body = 1});
        check_result(&f.call, rows[i].result, rows[i].name);
        CHECK_INT(f.call.status, rows[i].status, rows[i].name);
    }
}

/* ---- kept connections ------------------------------------------------------------------------ */

static void run_until_closed(struct fixture *f)
{
    for (int i = 0; i < 10000 && f->client->n_open > 0; i++) {
        loop_run_once(f->loop);
        usleep(1000);
    }
    CHECK_INT(f->client->n_open, 0, "connections");
}

TEST(test_too_old_ones_are_closed)
{
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    fixture_get(&f, &f.call, f.server, NULL);
    int64_t now_ns = clock_mono_ns();
    direct_prune(f.client->direct, now_ns);
    CHECK_INT(f.client->n_open, 1, "");
    direct_prune(f.client->direct, now_ns + DIRECT_IDLE_MAX_NS);
    CHECK_INT(f.client->n_open, 0, "");
    fixture_get(&f, &f.call, f.server, NULL);
    check_result(&f.call, HTTP_DONE, "");
    CHECK_INT(f.call.reused, false, "");
}

/* The connection is closed as soon as the server has closed it, and if nobody can know what the
 * bytes on it belong to. */
TEST(test_bad_ones_are_closed)
{
    static const struct {
        const char *name;
        server_handler *handler;
        const char *answer;
    } rows[] = {
        {"closed by the server", server_answer, ACCEPTED},
        {"more than the answer", say_more, ACCEPTED ACCEPTED},
        {"an end that was announced", say_more, CLOSING},
        {"HTTP/1.0", say_more, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(fixture) f = fixture_with(1, rows[i].handler, rows[i].answer);
        fixture_get(&f, &f.call, f.server, NULL);
        check_result(&f.call, HTTP_DONE, rows[i].name);
        run_until_closed(&f);
        fixture_get(&f, &f.call, f.server, NULL);
        check_result(&f.call, HTTP_DONE, rows[i].name);
        CHECK_INT(f.call.reused, false, rows[i].name);
    }
}

MAIN_THAT_MAY_HANG(testing_run("tests", NULL, NULL))
