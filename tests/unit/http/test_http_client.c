/* The HTTP client against a real server: requests, bodies, connections, cancelling. */
#include "tests/unit/lib/http_server.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include "http/private.h"

/* ---- one request ----------------------------------------------------------------------------- */

TEST(test_get)
{
    char text[URL_SIZE];
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    fixture_ask(&f, "/a/b?c=d", &(struct http_request){0});
    check_result(&f.call, HTTP_DONE, "");
    CHECK_INT(f.call.status, 200, "");
    CHECK_STR(f.call.body, "hello", "");
    CHECK_INT(f.call.body_len, 5, "");
    CHECK_STR(f.call.content_type, "text/plain", "");
    CHECK_STR(f.call.location, "", "");
    CHECK_INT(f.call.retry_after_ms, -1, "");
    CHECK_INT(f.call.reused, false, "");
    assert_true(f.call.start_ns > 0 && f.call.start_ns <= f.call.sent_ns &&
                f.call.sent_ns <= f.call.end_ns);
    assert_true(server_saw_text(f.server, "GET /a/b?c=d HTTP/1.1\r\n"));
    CHECK_STR(server_saw(f.server, "User-Agent", text, sizeof(text)), USER_AGENT, "");
    CHECK_STR(server_saw(f.server, "Accept-Encoding", text, sizeof(text)), "", "not asked for");
    CHECK_STR(server_saw(f.server, "Authorization", text, sizeof(text)), "", "");
    CHECK_INT(fixture_metric(&f, "profpull_http_requests_total{client=\"test\",result=\"ok\"}"), 1,
              "");
    CHECK_INT(fixture_metric(&f, "profpull_http_in_flight{client=\"test\"}"), 0, "");
    CHECK_INT(f.client->in_flight, 0, "");
}

TEST(test_headers_of_request_win)
{
    static const struct http_header common[] = {{"X-One", "settings"}, {"X-Two", "settings"}};
    static const struct http_header own[] = {
        {"x-two", "request"}, {"X-Empty", ""}, {"Accept-Encoding", "gzip"}, {"Host", "other:1"}};
    struct http_settings settings = {.headers = common, .n_headers = 2};
    char text[URL_SIZE];
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    fixture_ask(&f, "/",
                &(struct http_request){.settings = &settings, .headers = own, .n_headers = 4});
    check_result(&f.call, HTTP_DONE, "");
    CHECK_STR(server_saw(f.server, "X-One", text, sizeof(text)), "settings", "");
    CHECK_STR(server_saw(f.server, "X-Two", text, sizeof(text)), "request", "");
    CHECK_STR(server_saw(f.server, "Host", text, sizeof(text)), "other:1", "");
    CHECK_STR(server_saw(f.server, "Accept-Encoding", text, sizeof(text)), "gzip", "");
    assert_true(server_saw_text(f.server, "\r\nX-Empty:\r\n"));
    assert_false(server_saw_text(f.server, "X-Two: settings"));
}

TEST(test_bad_requests)
{
    static const struct http_header bad_header[] = {{"X", "a\r\nEvil: 1"}};
    static const struct http_header bad_name[] = {{"X: 1\r\nEvil", "a"}};
    static const struct http_part part = {"x", 1};
    static const struct {
        const char *name;
        struct http_request request;
        const char *error;
    } rows[] = {
        {"no scheme", {.url = "127.0.0.1:1/x"}, "expected an http or https URL"},
        {"ftp", {.url = "ftp://127.0.0.1/x"}, "expected an http or https URL"},
        {"file", {.url = "file:///etc/passwd"}, "expected an http or https URL"},
        {"empty", {.url = ""}, "expected an http or https URL"},
        {"no host", {.url = "http:///x"}, "expected an http or https URL"},
        {"port", {.url = "http://h:99999/"}, "expected an http or https URL"},
        {"space", {.url = "http://h/a b"}, "expected an http or https URL"},
        {"line feed", {.url = "http://h/a\nb"}, "expected an http or https URL"},
        {"method", {.url = "http://h/", .method = "PATCH"}, "got \"PATCH\""},
        {"body", {.url = "http://h/", .body = &part, .n_body = 1}, "expected POST or PUT"},
        {"header", {.url = "http://h/", .headers = bad_header, .n_headers = 1}, "header X: "},
        {"name", {.url = "http://h/", .headers = bad_name, .n_headers = 1}, "header (with control"},
    };
    SCOPED(fixture) f = fixture_new(4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fixture_do(&f, &f.call, &rows[i].request); /* asserts that on_done is called later */
        check_result(&f.call, HTTP_ERR_CONFIG, rows[i].name);
        CHECK_CONTAINS(f.call.error, rows[i].error, rows[i].name);
        CHECK_INT(f.call.status, 0, rows[i].name);
        CHECK_INT(f.call.sent_ns, 0, rows[i].name);
    }
}

static void answer_head(struct server_conn *c)
{
    while (server_read_request(c)) {
        server_send(c, OK_HEAD "Content-Length: 99999999\r\n\r\n");
    }
}

TEST(test_head)
{
    SCOPED(fixture) f = fixture_with(1, answer_head, NULL);
    const struct http_request r = {.method = "HEAD", .max_body = 10};
    fixture_ask(&f, "/", &r);
    check_result(&f.call, HTTP_DONE, "the length is not that of a body");
    assert_true(server_saw_text(f.server, "HEAD / HTTP/1.1"));
    fixture_ask(&f, "/", &r);
    CHECK_INT(f.call.reused, true, "nothing was left on the connection");
}

/* ---- bodies that we send --------------------------------------------------------------------- */

#define UPLOAD_MAX ((size_t)4 * 1024 * 1024)

struct upload {
    char bytes[UPLOAD_MAX];
    size_t len;
};

static void take_upload(struct server_conn *c)
{
    struct upload *up = server_arg(c);
    char length[32];
    uint64_t n;
    while (server_read_request(c)) {
        if (!server_header(c->head, "Content-Length", length, sizeof(length)) ||
            !parse_u64(sv_from(length), UPLOAD_MAX, &n) || !server_read_body(c, up->bytes, n)) {
            return;
        }
        up->len = n;
        server_send(c, "HTTP/1.1 204 No Content\r\n\r\n");
    }
}

TEST(test_scattered_body)
{
    static const char *const methods[] = {"POST", "PUT"};
    static const struct http_header type[] = {{"Content-Type", "multipart/form-data"}};
    SCOPED_MEMORY struct upload *up = calloc(1, sizeof(*up));
    SCOPED_MEMORY char *big = malloc(UPLOAD_MAX);
    SCOPED_MEMORY char *whole = malloc(UPLOAD_MAX);
    assert_true(up && big && whole);
    for (size_t i = 0; i < UPLOAD_MAX; i++) {
        big[i] = (char)(i * 7 ^ i >> 8);
    }
    struct http_part parts[] = {{"head\0er", 7}, {NULL, 0}, {big, 3000001},
                                {"", 0},         {"-", 1},  {big + 5, 70000}};
    size_t len = 0;
    for (size_t i = 0; i < 6; i++) {
        if (parts[i].len > 0) {
            memcpy(whole + len, parts[i].data, parts[i].len);
        }
        len += parts[i].len;
    }
    char text[URL_SIZE];
    SCOPED(fixture) f = fixture_with(1, take_upload, up);
    for (size_t i = 0; i < 4; i++) {
        struct http_request r = {.method = methods[i % 2],
                                 .headers = type,
                                 .n_headers = i / 2,
                                 .body = parts,
                                 .n_body = 6};
        up->len = 0;
        fixture_ask(&f, "/up", &r);
        check_result(&f.call, HTTP_DONE, methods[i % 2]);
        CHECK_INT(f.call.status, 204, "");
        CHECK_INT(up->len, len, methods[i % 2]);
        assert_memory_equal(up->bytes, whole, len);
        /* libcurl adds nothing to an upload by itself. */
        CHECK_STR(server_saw(f.server, "Expect", text, sizeof(text)), "", methods[i % 2]);
        CHECK_STR(server_saw(f.server, "Transfer-Encoding", text, sizeof(text)), "",
                  methods[i % 2]);
        CHECK_STR(server_saw(f.server, "Content-Type", text, sizeof(text)),
                  i / 2 ? "multipart/form-data" : "", methods[i % 2]);
    }
    CHECK_INT(atomic_load(&f.server->accepted), 1, "one connection for all");
}

TEST(test_empty_body)
{
    static const char *const methods[] = {"POST", "PUT"};
    static const struct http_part nothing[] = {{NULL, 0}};
    SCOPED_MEMORY struct upload *up = testing_memory(sizeof(*up));
    char text[URL_SIZE];
    SCOPED(fixture) f = fixture_with(1, take_upload, up);
    for (size_t i = 0; i < 4; i++) {
        up->len = 99;
        fixture_ask(
            &f, "/up",
            &(struct http_request){.method = methods[i % 2], .body = nothing, .n_body = i / 2});
        check_result(&f.call, HTTP_DONE, methods[i % 2]);
        CHECK_INT(up->len, 0, methods[i % 2]);
        CHECK_STR(server_saw(f.server, "Content-Length", text, sizeof(text)), "0", methods[i % 2]);
    }
}

/* Answers before the body has been read and closes, so that the kernel resets the connection. */
static void refuse_early(struct server_conn *c)
{
    if (server_read_request(c)) {
        server_send(c,
                    "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
    }
}

TEST(test_early_answer_counts)
{
    SCOPED_MEMORY char *big = testing_memory((size_t)16 * 1024 * 1024);
    struct http_part part = {big, (size_t)16 * 1024 * 1024};
    SCOPED(fixture) f = fixture_with(1, refuse_early, NULL);
    for (int i = 0; i < 20; i++) {
        fixture_ask(
            &f, "/",
            &(struct http_request){.method = i % 2 ? "POST" : "PUT", .body = &part, .n_body = 1});
        check_result(&f.call, HTTP_DONE, i % 2 ? "POST" : "PUT");
        CHECK_INT(f.call.status, 413, "");
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

TEST(test_connections_are_reused)
{
    SCOPED(fixture) f = fixture_with(8, server_hello, NULL);
    for (int i = 0; i < 10; i++) {
        fixture_get(&f, &f.call, f.server, NULL);
        check_result(&f.call, HTTP_DONE, "");
        CHECK_INT(f.call.reused, i > 0, "");
    }
    CHECK_INT(atomic_load(&f.server->accepted), 1, "found again whatever the number of shards");
    CHECK_INT(fixture_metric(&f, "profpull_http_connections_total{client=\"test\",kind=\"new\"}"),
              1, "");
    CHECK_INT(
        fixture_metric(&f, "profpull_http_connections_total{client=\"test\",kind=\"reused\"}"), 9,
        "");
}

#define HOSTS 12

struct hosts {
    struct server *at[HOSTS];
};

static struct hosts hosts_new(void)
{
    struct hosts hosts;
    for (int i = 0; i < HOSTS; i++) {
        hosts.at[i] = server_new(server_hello, NULL);
    }
    return hosts;
}

static void hosts_free(struct hosts *hosts)
{
    for (int i = 0; i < HOSTS; i++) {
        server_free(hosts->at[i]);
    }
}
SCOPED_VALUE(hosts, hosts_free)

/* Requests to each of the hosts in turn, twice; returns how many connections were made. */
static unsigned ask_all_twice(struct fixture *f, const struct hosts *hosts)
{
    unsigned accepted = 0;
    for (int i = 0; i < 2 * HOSTS; i++) {
        fixture_get(f, &f->call, hosts->at[i % HOSTS], NULL);
        check_result(&f->call, HTTP_DONE, "");
    }
    for (int i = 0; i < HOSTS; i++) {
        accepted += atomic_load(&hosts->at[i]->accepted);
    }
    return accepted;
}

/* The limits are those of the client: hosts that fall into one shard may have more of them. */
TEST(test_limits_of_connections_are_for_all_shards_together)
{
    static const struct {
        unsigned idle, all, made, most;
        const char *what;
    } cases[] = {
        {HOSTS, 0, HOSTS, HOSTS, "idle ones: one for each host"},
        {0, HOSTS, HOSTS, HOSTS, "all: one for each host"},
        {0, 1, 0, 5, "few: one for each shard, and one too many until the next request"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(hosts) hosts = hosts_new();
        const struct http_client_options options = {
            .shards = 4, .max_idle_connections = cases[i].idle, .max_connections = cases[i].all};
        SCOPED(fixture) f = fixture_new_options(&options);
        unsigned made = ask_all_twice(&f, &hosts);
        if (cases[i].made > 0) {
            CHECK_INT(made, cases[i].made, cases[i].what);
        }
        assert_true(f.client->n_open <= cases[i].most);
    }
}

/* New transfers are spread over more handles; those in flight stay where they are. */
TEST(test_more_connections_get_more_shards)
{
    static const struct {
        size_t expected;
        unsigned used;
    } cases[] = {{0, 2}, {512, 2}, {513, 4}, {1025, 8}, {1024, 8}, {100, 8}, {4096, 8}};
    SCOPED(hosts) hosts = hosts_new();
    const struct http_client_options options = {.shards = 2, .max_shards = 15};
    SCOPED(fixture) f = fixture_new_options(&options);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        http_client_expect(f.client, cases[i].expected);
        CHECK_INT(f.client->n_used, cases[i].used, "");
        (void)ask_all_twice(&f, &hosts);
    }
}

/* Closes a kept connection when its second request has been sent. */
static void close_on_second(struct server_conn *c)
{
    char body[5];
    for (int i = 0; server_read_request(c); i++) {
        if (i == 1) {
            server_reset(c);
            return;
        }
        if (strncmp(c->head, "POST", 4) == 0) {
            server_read_body(c, body, sizeof(body));
        }
        server_send(c, OK_HEAD "Content-Length: 5\r\n\r\nhello");
    }
}

TEST(test_request_on_dead_connection_is_repeated)
{
    static const struct http_part parts[] = {{"ab", 2}, {"cde", 3}};
    const struct http_request post = {.method = "POST", .body = parts, .n_body = 2};
    SCOPED(fixture) f = fixture_with(1, close_on_second, NULL);
    for (unsigned i = 0; i < 8; i++) {
        fixture_ask(&f, "/", i % 2 ? &post : &(struct http_request){0});
        check_result(&f.call, HTTP_DONE, i % 2 ? "POST" : "GET");
        CHECK_STR(f.call.body, "hello", "");
        CHECK_INT(f.call.reused, false, "each second request needed a fresh connection");
    }
    CHECK_INT(atomic_load(&f.server->accepted), 8, "");
    CHECK_INT(atomic_load(&f.server->requests), 15, "seven of them came twice");
}

/* Works on the second request for a while, and closes the connection without an answer. */
static void close_late_on_second(struct server_conn *c)
{
    for (int i = 0; server_read_request(c); i++) {
        if (i == 1) {
            usleep((HTTP_REPEAT_MAX_MS + 100) * 1000);
            return;
        }
        server_send(c, OK_HEAD "Content-Length: 5\r\n\r\nhello");
    }
}

/* A request on which a server has worked for long before it closed the connection is not repeated:
 * a CPU profile that the target's WriteTimeout forbids would be taken twice. */
TEST(test_late_cut_is_not_repeated)
{
    SCOPED(fixture) f = fixture_with(1, close_late_on_second, NULL);
    fixture_ask(&f, "/", &(struct http_request){0});
    check_result(&f.call, HTTP_DONE, "first");
    fixture_ask(&f, "/", &(struct http_request){0});
    check_result(&f.call, HTTP_ERR_CUT, "second");
    CHECK_CONTAINS(f.call.error, "the connection broke before a response", "");
    CHECK_INT(atomic_load(&f.server->requests), 2, "not a third time");
}

/* ---- many at once ---------------------------------------------------------------------------- */

#define PARALLEL 300

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t open;
    unsigned waiting;
};

/* Answers only when all requests have arrived: they were in flight together. */
static void wait_for_all(struct server_conn *c)
{
    struct gate *gate = server_arg(c);
    if (!server_read_request(c)) {
        return;
    }
    pthread_mutex_lock(&gate->lock);
    if (++gate->waiting >= PARALLEL) {
        pthread_cond_broadcast(&gate->open);
    }
    while (gate->waiting < PARALLEL) {
        pthread_cond_wait(&gate->open, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
    server_send(c, OK_HEAD "Content-Length: 2\r\n\r\nhi");
    server_wait_close(c);
}

TEST(test_many_in_parallel)
{
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .open = PTHREAD_COND_INITIALIZER};
    SCOPED_MEMORY struct call *calls = testing_memory(PARALLEL * sizeof(*calls));
    SCOPED(fixture) f = fixture_with(16, wait_for_all, &gate);
    for (unsigned i = 0; i < PARALLEL; i++) {
        /* Many hosts, so that all shards are used. */
        (void)snprintf(f.url, sizeof(f.url), "http://127.0.%u.%u:%u/", i / 250, i % 250 + 1,
                       f.server->port);
        fixture_start(&f, &calls[i], &(struct http_request){.url = f.url});
    }
    CHECK_INT(f.client->in_flight, PARALLEL, "");
    fixture_wait(&f);
    for (unsigned i = 0; i < PARALLEL; i++) {
        check_result(&calls[i], HTTP_DONE, "");
        CHECK_STR(calls[i].body, "hi", "");
        call_clear(&calls[i]);
    }
    CHECK_INT(f.client->in_flight, 0, "");
    assert_true(f.client->n_idle <= HTTP_EASY_SPARE + 1);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void stream_lines(struct server_conn *c)
{
    while (server_read_request(c)) {
        server_send(c, OK_HEAD "Content-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 100; i++) {
            if (!server_send(c, "5\r\nline\n\r\n")) {
                return;
            }
        }
        server_send(c, "0\r\nX-Trailer: 1\r\n\r\n");
    }
}

/* The record of a stream, found through the call's then_arg. */
struct stream {
    size_t bytes;
    size_t stop_after; /* 0 = never */
    long status;
    char type[16];
    bool refuse_head;
};

static bool stream_head(void *arg, long status, const char *content_type)
{
    struct stream *st = ((struct call *)arg)->then_arg;
    st->status = status;
    (void)snprintf(st->type, sizeof(st->type), "%s", content_type);
    return !st->refuse_head;
}

static bool stream_data(void *arg, const char *data, size_t len)
{
    struct stream *st = ((struct call *)arg)->then_arg;
    for (size_t i = 0; i < len; i++, st->bytes++) {
        if (data[i] != "line\n"[st->bytes % 5]) {
            return false;
        }
    }
    return st->stop_after == 0 || st->bytes < st->stop_after;
}

/* Fields of the head and trailers, in order. */
static void append_field(void *arg, struct sv name, struct sv value)
{
    struct buf *text = ((struct call *)arg)->then_arg;
    buf_printf(text, "%.*s=%.*s;", SV_ARG(name), SV_ARG(value));
}

TEST(test_fields)
{
    SCOPED(buf) text = testing_buf(1024);
    SCOPED(fixture) f = fixture_with(1, stream_lines, NULL);
    f.call.then_arg = &text;
    fixture_ask(&f, "/", &(struct http_request){.max_body = 1000, .on_field = append_field});
    check_result(&f.call, HTTP_DONE, "fields");
    assert_string_equal(text.data, "Content-Type=a/b;Transfer-Encoding=chunked;X-Trailer=1;");
}

TEST(test_streams)
{
    static const struct {
        const char *name;
        struct stream stream;
        enum http_result result;
    } rows[] = {
        {"whole", {0}, HTTP_DONE},
        {"stopped in the body", {.stop_after = 1}, HTTP_ERR_ABORTED},
        {"stopped at the head", {.refuse_head = true}, HTTP_ERR_ABORTED},
        {"whole again", {0}, HTTP_DONE},
    };
    SCOPED(fixture) f = fixture_with(1, stream_lines, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stream st = rows[i].stream;
        f.call.then_arg = &st;
        fixture_ask(
            &f, "/",
            &(struct http_request){.max_body = 1, .on_head = stream_head, .on_data = stream_data});
        check_result(&f.call, rows[i].result, rows[i].name);
        CHECK_INT(st.status, 200, rows[i].name);
        CHECK_INT(f.call.status, 200, rows[i].name);
        CHECK_STR(st.type, "a/b", rows[i].name);
        CHECK_INT(f.call.body_len, 0, rows[i].name);
        if (rows[i].result == HTTP_DONE) {
            CHECK_INT(st.bytes, 500, rows[i].name);
        }
    }
}

/* ---- cancelling and starting from callbacks
 * ------------------------------------------------------ */

/* /wait never answers. */
static void answer_or_wait(struct server_conn *c)
{
    while (server_read_request(c)) {
        if (strncmp(c->head, "GET /wait", 9) == 0) {
            server_wait_close(c);
            return;
        }
        server_send(c, OK_HEAD "Content-Length: 5\r\n\r\nhello");
    }
}

static void cancel_call(struct call *call)
{
    http_cancel(call->transfer);
    call->transfer = NULL;
    call->fixture->waiting--;
}

static int socket_option(curl_socket_t fd, int level, int option)
{
    int value = -1;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(fd, level, option, &value, &len), 0);
    return value;
}

/* The client's end of its one connection to the server. */
static int client_socket(const struct server *s)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t len = sizeof(peer);
        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET &&
            ntohs(peer.sin_port) == s->port) {
            return fd;
        }
    }
    fail_msg("no connection");
    return -1;
}

/* A watch makes TCP detect a dead peer: after 15 s without data, within 30 s. */
TEST(test_dead_peer_options)
{
    SCOPED(call) waiting = {0};
    SCOPED(fixture) f = fixture_with_libcurl(answer_or_wait);
    fixture_get(&f, &f.call, f.server, NULL);
    int fd = client_socket(f.server);
    CHECK_INT(socket_option(fd, SOL_SOCKET, SO_KEEPALIVE), 0, "not asked for");
    fixture_start_path(&f, &waiting, "/wait", &(struct http_request){.detect_dead_peer = true});
    /* No callback marks the moment when the client begins to wait. */
    for (int i = 0; i < 10000 && socket_option(fd, SOL_SOCKET, SO_KEEPALIVE) == 0; i++) {
        loop_run_once(f.loop);
        usleep(1000);
    }
    CHECK_INT(atomic_load(&f.server->accepted), 1, "on a connection that was made without");
    CHECK_INT(socket_option(fd, SOL_SOCKET, SO_KEEPALIVE), 1, "");
    CHECK_INT(socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 15, "");
    CHECK_INT(socket_option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5, "");
    CHECK_INT(socket_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000, "");
    cancel_call(&waiting);
}

struct pair {
    struct call *other; /* to be cancelled */
    struct call *next;  /* to be started */
    const char *url;
};

static void act(struct call *call)
{
    struct pair *pair = call->then_arg;
    if (pair->other != NULL && pair->other->transfer != NULL) {
        cancel_call(pair->other);
    }
    if (pair->next != NULL && pair->next->fixture == NULL) {
        fixture_start(call->fixture, pair->next, &(struct http_request){.url = pair->url});
    }
}

static bool act_on_data(void *arg, const char *data, size_t len)
{
    (void)data;
    (void)len;
    act(arg);
    return true;
}

static bool act_on_head(void *arg, long status, const char *content_type)
{
    (void)status;
    (void)content_type;
    act(arg);
    return true;
}

TEST(test_cancel_and_start_from_callbacks)
{
    static const char *const rows[] = {"on_head", "on_data", "on_done"};
    for (size_t i = 0; i < 6; i++) {
        /* In one shard and in many: libcurl must not be entered from its own callbacks. */
        SCOPED(call) waiting = {0}, next = {0};
        SCOPED(fixture) f = fixture_with(i < 3 ? 1 : 16, answer_or_wait, NULL);
        struct pair pair = {.other = &waiting, .next = &next, .url = i == 4 ? "nonsense" : f.url};
        struct http_request r = {0};
        fixture_start_path(&f, &waiting, "/wait", &r);
        f.call.then_arg = &pair;
        if (i % 3 == 0) {
            r.on_head = act_on_head;
        } else if (i % 3 == 1) {
            r.on_data = act_on_data;
        } else {
            f.call.then = act;
        }
        fixture_ask(&f, "/", &r);
        check_result(&f.call, HTTP_DONE, rows[i % 3]);
        check_result(&next, i == 4 ? HTTP_ERR_CONFIG : HTTP_DONE, rows[i % 3]);
        CHECK_INT(waiting.done, 0, "cancelled: no on_done");
        CHECK_INT(f.client->in_flight, 0, rows[i % 3]);
    }
}

/* Two transfers end in the same turn, and the first one cancels the second before its on_done. */
TEST(test_cancel_of_an_ended_one)
{
    SCOPED(call) second = {0};
    struct pair pair = {.other = &second};
    SCOPED(call) first = {.then = act, .then_arg = &pair};
    SCOPED(fixture) f = fixture_new(1);
    fixture_start(&f, &first, &(struct http_request){.url = "bad"});
    fixture_start(&f, &second, &(struct http_request){.url = "bad"});
    fixture_wait(&f);
    CHECK_INT(first.done, 1, "");
    CHECK_INT(second.done, 0, "");
    CHECK_INT(f.client->in_flight, 0, "");
}

TEST(test_cancel_at_once)
{
    SCOPED(call) call = {0};
    SCOPED(fixture) f = fixture_with(1, answer_or_wait, NULL);
    fixture_start_path(&f, &call, "/", &(struct http_request){0});
    cancel_call(&call);
    fixture_start(&f, &call, &(struct http_request){.url = "bad"});
    cancel_call(&call);
    fixture_ask(&f, "/", &(struct http_request){0});
    check_result(&f.call, HTTP_DONE, "the neighbour");
    CHECK_INT(call.done, 0, "");
}

struct retry {
    unsigned left;
    struct call again;
};

static void start_bad_again(struct call *call)
{
    struct retry *retry = call->then_arg;
    struct fixture *f = call->fixture;
    if (retry->left == 0) {
        return;
    }
    retry->left--;
    call_clear(&retry->again);
    retry->again.then = start_bad_again;
    retry->again.then_arg = retry;
    fixture_start(f, &retry->again, &(struct http_request){.url = "bad"});
}

struct turns {
    struct loop_timer *timer;
    unsigned count;
};

static void count_turn(void *arg)
{
    struct turns *turns = arg;
    turns->count++;
    loop_timer_at(turns->timer, 0);
}

/* A transfer that fails at once and is started again by its on_done does not block others. */
TEST(test_failing_at_once_does_not_stop_the_loop)
{
    struct turns turns = {0};
    struct retry retry = {.left = 50};
    SCOPED(fixture) f = fixture_new(1);
    turns.timer = loop_timer_new(f.loop, count_turn, &turns);
    assert_non_null(turns.timer);
    loop_timer_at(turns.timer, 0);
    f.call.then = start_bad_again;
    f.call.then_arg = &retry;
    fixture_do(&f, &f.call, &(struct http_request){.url = "bad"});
    CHECK_INT(retry.left, 0, "");
    assert_true(turns.count >= 25); /* about once for each attempt, and not once for all */
    loop_timer_free(turns.timer);
    call_clear(&retry.again);
}

static void refuse_new(struct call *call)
{
    assert_null(http_start(call->fixture->client,
                           &(struct http_request){.url = "http://127.0.0.1:1/", .max_body = 1}));
}

TEST(test_free_aborts)
{
    struct call calls[3] = {{0}};
    SCOPED(fixture) f = fixture_with(4, answer_or_wait, NULL);
    for (size_t i = 0; i < 3; i++) {
        calls[i].then = i < 2 ? refuse_new : NULL;
        fixture_start(
            &f, &calls[i],
            &(struct http_request){.url = i < 2 ? server_url(f.server, "/wait", f.url) : "bad"});
    }
    loop_run_once(f.loop);
    assert_null(http_client_free(f.client));
    f.client = NULL;
    check_result(&calls[0], HTTP_ERR_ABORTED, "");
    check_result(&calls[1], HTTP_ERR_ABORTED, "");
    check_result(&calls[2], HTTP_ERR_CONFIG, "had ended before");
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(calls[i].done, 1, "");
        call_clear(&calls[i]);
    }
}

/* ---- what may go wrong with the machine ------------------------------------------------------ */

TEST(test_no_descriptors_left)
{
    struct rlimit limit, low;
    SCOPED(fixture) f = fixture_with(2, server_hello, NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int next = fcntl(0, F_DUPFD_CLOEXEC, 3); /* the lowest free number */
    assert_true(next > 0);
    close(next);
    low = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int i = 0; i < 3; i++) {
        fixture_get(&f, &f.call, f.server, NULL);
        CHECK_STR(http_result_name(f.call.result), "descriptors", "no socket to be had");
        CHECK_CONTAINS(f.call.error, "no file descriptor left", "");
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    fixture_get(&f, &f.call, f.server, NULL);
    check_result(&f.call, HTTP_DONE, "afterwards");
}

static const char *refuse_loopback(const char *ip)
{
    return strcmp(ip, "127.0.0.1") == 0 ? "a loopback address" : NULL;
}

static const char *refuse_none(const char *ip)
{
    (void)ip;
    return NULL;
}

/* A request is not sent to a server with the wrong address, neither on a new connection nor on one
 * that was kept. */
TEST(test_refused_address)
{
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    for (int kept = 0; kept < 2; kept++) {
        fixture_ask(&f, "/x", &(struct http_request){.refuses_address = refuse_loopback});
        check_result(&f.call, HTTP_ERR_ADDRESS, kept == 0 ? "a new connection" : "a kept one");
        CHECK_CONTAINS(f.call.error, "the name resolves to a loopback address", "error");
        fixture_ask(&f, "/x", &(struct http_request){.refuses_address = refuse_none});
        check_result(&f.call, HTTP_DONE, "allowed");
    }
    CHECK_INT(atomic_load(&f.server->requests), 2, "requests that were sent");
}

TEST(test_rebuild_of_a_shard)
{
    SCOPED(call) waiting = {0};
    SCOPED(fixture) f = fixture_with_libcurl(answer_or_wait);
    fixture_start_path(&f, &waiting, "/wait", &(struct http_request){0});
    loop_run_once(f.loop);
    testing_log_expect(f.log, "an HTTP client was rebuilt");
    http_shard_rebuild(&f.client->shards[0], CURLM_INTERNAL_ERROR);
    fixture_ask(&f, "/", &(struct http_request){0});
    check_result(&waiting, HTTP_ERR_CUT, "");
    CHECK_CONTAINS(waiting.error, "the transfer was lost", "");
    check_result(&f.call, HTTP_DONE, "");
    CHECK_INT(fixture_metric(&f, "profpull_http_rebuilds_total{client=\"test\"}"), 1, "");
}

MAIN_THAT_MAY_HANG(run_both_ways(NULL, NULL))
