/* The admin server over real sockets: pages, probes, the targets as JSON, and misbehaving clients.
 */
#include <jansson.h>

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "api/served.h"
#include "api/tables.h"
#include "base/clock.h"
#include "base/loop.h"
#include "pages/pages.h"
#include "tests/unit/lib/valid_config.h"
#include "tests/unit/server/server_rig.h"

struct fixture {
    struct metrics *metrics;
    struct intern *intern;
    struct loop *loop;
    struct scraper *scraper;
    struct served served;
    struct server *server;
    atomic_bool well;
};

static bool probe(void *arg, struct err *err)
{
    struct fixture *f = arg;
    return atomic_load(&f->well) || err_set(err, ERR_SYSTEM, "the network thread has not run");
}

static bool ready(void *arg, struct buf *text)
{
    struct fixture *f = arg;
    bool well = atomic_load(&f->well);
    buf_puts(text, well ? "pods in namespace b are missing" : "discovery has not read pods");
    return well;
}

static bool drop_profile(void *arg, struct profile *profile, uint64_t forward_to)
{
    (void)arg;
    (void)forward_to;
    profile_unref(profile);
    return true;
}

#define CONNECTIONS 64
#define CONNECTIONS_OF_ONE 16

static struct server_options options_of(struct fixture *f, const char *listen)
{
    static const struct route *const routes[] = {page_routes, API_TABLES, NULL};
    f->served = (struct served){
        .scraper = f->scraper, .version = "1.2.3", .healthy = probe, .ready = ready, .arg = f};
    return (struct server_options){
        .name = "admin",
        .listen = listen,
        .max_connections = CONNECTIONS,
        .max_connections_per_address = CONNECTIONS_OF_ONE,
        .request_timeout_ms = 10000,
        .answer_timeout_ms = 60000,
        .idle_timeout_ms = 60000,
        .bodies_max_bytes = 1 << 20,
        .query = {.threads = 1, .waiting_max = 1, .timeout_ms = 60000, .body_max = 1000},
        .sets = ROUTE_ADMIN | ROUTE_QUERY,
        .routes = routes,
        .metrics = f->metrics,
        .served = &f->served,
    };
}

static void fixture_begin(struct fixture *f)
{
    atomic_store(&f->well, true);
    struct err err = ERR_INIT;
    f->metrics = metrics_new();
    f->intern = intern_new();
    f->loop = loop_new(&err);
    assert_non_null(f->loop);
    struct scraper_options scraper = {.loop = f->loop,
                                      .intern = f->intern,
                                      .metrics = f->metrics,
                                      .n_jobs = 1,
                                      .on_profile = drop_profile};
    f->scraper = scraper_new(&scraper, &err);
    assert_non_null(f->scraper);
    struct server_options options = options_of(f, "127.0.0.1:0");
    f->server = server_rig_start(&options);
}

static void fixture_end(struct fixture *f)
{
    server_stop(f->server);
    loop_run_once(f->loop);
    scraper_free(f->scraper);
    loop_free(f->loop);
    intern_free(f->intern);
    metrics_free(f->metrics);
}

FIXTURE(fixture, fixture_begin, fixture_end)

static void connect_to(const struct fixture *f, int fd)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(server_port(f->server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct timeval patience = {.tv_sec = 20};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
}

/* Connects from an address of its own: 127.0.0.N. */
static int dial_from(const struct fixture *f, unsigned n)
{
    return client_dial_from(f->server, INADDR_LOOPBACK - 1 + n);
}

static int dial(const struct fixture *f)
{
    return dial_from(f, 1);
}

/* Asks for nothing more, and reads to the end of the connection. */
static void read_all(int fd, struct buf *out)
{
    char chunk[65536];
    ssize_t n;
    shutdown(fd, SHUT_WR);
    while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
        assert_true(buf_append(out, chunk, (size_t)n));
    }
    assert_true(n == 0 || errno != EAGAIN); /* the server has ended its answer */
}

/* Sends one request and returns the whole answer; the caller frees. */
static char *ask(const struct fixture *f, const char *method, const char *path)
{
    int fd = dial(f);
    struct buf text = testing_buf(REPLY_MAX);
    buf_printf(&text, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, path);
    assert_int_equal(write(fd, text.data, text.len), (ssize_t)text.len);
    buf_clear(&text);
    read_all(fd, &text);
    close(fd);
    return buf_take(&text, NULL);
}

TEST_WITH(pages_and_statuses, setup, teardown)
{
    static const struct {
        const char *method, *path, *status, *part;
    } rows[] = {
        {"GET", "/-/healthy", "HTTP/1.1 200", "ok"},
        {"GET", "/-/ready", "HTTP/1.1 200", "ok\npods in namespace b are missing\n"},
        {"GET", "/links", "HTTP/1.1 200", "profpull 1.2.3"},
        {"GET", "/links", "HTTP/1.1 200", "<li><a href=\"/-/ready\">/-/ready</a> readiness: every"},
        {"GET", "/%2D/ready?x=1", "HTTP/1.1 200", "ok"},
        {"HEAD", "/metrics", "HTTP/1.1 200", "text/plain; version=0.0.4"},
        {"HEAD", "/api/v1/targets", "HTTP/1.1 200", "application/json"},
        {"GET", "/metrics", "HTTP/1.1 200", "profpull_admin_requests_total"},
        {"GET", "/metrics", "HTTP/1.1 200", "text/plain; version=0.0.4"},
        {"GET", "/nothing", "HTTP/1.1 404", "not found"},
        {"GET", "/metrics/../etc/passwd", "HTTP/1.1 404", "not found"},
        {"POST", "/metrics", "HTTP/1.1 405", "Allow: GET, HEAD\r\n"},
        {"BREW", "/metrics", "HTTP/1.1 405", "method not allowed"},
        {"GET", "//-/ready", "HTTP/1.1 200", "ok"},
        {"GET", "/pyroscope/metrics", "HTTP/1.1 404", "not found"},
        {"GET", "/api/v1/targets?helth=down", "HTTP/1.1 400",
         "{\"error\":\"unknown parameter \\\"helth\\\", did you mean \\\"health\\\"?: expected "
         "health, job, service, source, type\"}\n"},
        {"GET", "/api/v1/targets?health=dead", "HTTP/1.1 400",
         "health: expected one of unknown, up, down, absent, got \\\"dead\\\""},
        {"GET", "/api/v1/dropped?health=down", "HTTP/1.1 400", "expected job\"}"},
        {"GET", "/api/v1/destinations?name=x", "HTTP/1.1 400", "expected none"},
        {"POST", "/api/v1/targets?helth=down", "HTTP/1.1 405", "method not allowed"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED_MEMORY char *answer = ask(*state, rows[i].method, rows[i].path);
        CHECK_CONTAINS(answer, rows[i].status, rows[i].path);
        CHECK_CONTAINS(answer, rows[i].part, rows[i].path);
    }
}

TEST_ON(struct fixture *f, a_failing_probe_gives_the_reason)
{
    atomic_store(&f->well, false);
    SCOPED_MEMORY char *answer = ask(f, "GET", "/-/healthy");
    CHECK_CONTAINS(answer, "HTTP/1.1 503", "");
    CHECK_CONTAINS(answer, "the network thread has not run", "");
}

static const char config_text[] = "scrape_configs:\n"
                                  "  - job_name: 'jobs \"x\"'\n"
                                  "    scrape_interval: 1h\n"
                                  "    profiles:\n"
                                  "      process_cpu: {enabled: false}\n"
                                  "      block: {enabled: false}\n"
                                  "      goroutine: {enabled: false}\n"
                                  "    static_configs: [{targets: ['127.0.0.1:1']}]\n"
                                  "write: [{url: 'http://127.0.0.1:1'}]\n";

static struct config *parse_config(void)
{
    return valid_config("test.yaml", config_text, NULL);
}

/* n targets of one job that are not due soon. */
static void add_targets(struct fixture *f, size_t n)
{
    SCOPED(config) *config = parse_config();
    SCOPED(labels_builder) *b = labels_builder_new(f->intern);
    SCOPED_MEMORY struct target **targets = testing_memory(n * sizeof(struct target *));
    for (size_t i = 0; i < n; i++) {
        char address[64];
        snprintf(address, sizeof(address), "127.0.%zu.%zu:1", 1 + i / 250, 1 + i % 250);
        labels_builder_reset(b, NULL);
        labels_builder_set_str(b, "__address__", address);
        labels_builder_set_str(b, "note", "a\"b\\c\n");
        struct err err = ERR_INIT;
        targets[i] = target_new(config, 0, b, NULL, &err);
        CHECK_STR(err.msg, "", address);
        assert_non_null(targets[i]);
    }
    assert_true(scraper_set_group(f->scraper, 0, "static/0", targets, n));
    loop_run_once(f->loop);
}

/* Undoes chunked transfer coding in place. */
static void unchunk(char *body)
{
    char *in = body;
    char *out = body;
    for (;;) {
        char *end;
        unsigned long n = strtoul(in, &end, 16);
        assert_memory_equal(end, "\r\n", 2);
        if (n == 0) {
            break;
        }
        memmove(out, end + 2, n);
        out += n;
        in = end + 2 + n + 2;
    }
    *out = '\0';
}

static json_t *ask_targets(struct fixture *f, const char *path)
{
    SCOPED_MEMORY char *answer = ask(f, "GET", path);
    CHECK_CONTAINS(answer, "HTTP/1.1 200", path);
    CHECK_CONTAINS(answer, "application/json", path);
    char *body = strstr(answer, "\r\n\r\n");
    assert_non_null(body);
    unchunk(body + 4);
    json_error_t error;
    json_t *root = json_loads(body + 4, 0, &error);
    CHECK(root != NULL, "%s: not JSON at %d: %s", path, error.position, error.text);
    return root;
}

static size_t count_scrapes(struct fixture *f, const char *path)
{
    json_t *root = ask_targets(f, path);
    size_t n = json_array_size(json_object_get(json_object_get(root, "data"), "scrapes"));
    json_decref(root);
    return n;
}

TEST_ON(struct fixture *f, targets_as_json)
{
    CHECK_INT(count_scrapes(f, "/api/v1/targets"), 0, "none yet");
    add_targets(f, 300);
    CHECK_INT(count_scrapes(f, "/api/v1/targets"), 600, "all, over several pages");
    CHECK_INT(count_scrapes(f, "/api/v1/targets?health=unknown"), 600, "health=unknown");
    CHECK_INT(count_scrapes(f, "/api/v1/targets?health=down"), 0, "health=down");
    CHECK_INT(count_scrapes(f, "/api/v1/targets?job=jobs%20%22x%22"), 600, "job");
    CHECK_INT(count_scrapes(f, "/api/v1/targets?job=other"), 0, "other job");
    CHECK_INT(count_scrapes(f, "/api/v1/targets?job=&health="), 600, "as a form sends it");
    CHECK_INT(count_scrapes(f, "/api/v1/targets?source=static/0"), 600, "source");
    CHECK_INT(count_scrapes(f, "/api/v1/targets?type=mutex&health=unknown"), 300, "type");
    CHECK_INT(count_scrapes(f, "/api/v1/targets?service=nobody"), 0, "service");

    json_auto_t *root = ask_targets(f, "/api/v1/targets");
    json_t *first = json_array_get(json_object_get(json_object_get(root, "data"), "scrapes"), 0);
    CHECK_STR(json_string_value(json_object_get(first, "health")), "unknown", "health");
    CHECK_STR(json_string_value(json_object_get(first, "job")), "jobs \"x\"", "job");
    CHECK_STR(json_string_value(json_object_get(first, "source")), "static/0", "source");
    CHECK_STR(json_string_value(json_object_get(first, "service")), "unspecified", "service");
    CHECK_STR(json_string_value(json_object_get(first, "advice")), "", "advice");
    assert_true(json_is_null(json_object_get(first, "lastScrape")));
    assert_true(json_is_string(json_object_get(first, "nextDue")));
    json_t *labels = json_object_get(first, "labels");
    CHECK_STR(json_string_value(json_object_get(labels, "note")), "a\"b\\c\n", "escaping");
}

/* A client that hangs up during a long response does not affect the next one. */
TEST_ON(struct fixture *f, a_client_that_hangs_up)
{
    add_targets(f, 2000);
    for (int i = 0; i < 20; i++) {
        int fd = dial(f);
        static const char request[] = "GET /api/v1/targets HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
        char some[1000];
        assert_true(read(fd, some, sizeof(some)) > 0);
        close(fd);
    }
    CHECK_INT(count_scrapes(f, "/api/v1/targets"), 4000, "");
}

TEST_ON(struct fixture *f, headers_over_the_limit)
{
    int fd = dial(f);
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    buf_puts(&text, "GET /metrics HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 5000; i++) {
        buf_printf(&text, "X-%d: y\r\n", i);
    }
    buf_puts(&text, "\r\n");
    /* The server may close before it has read everything. */
    (void)!send(fd, text.data, text.len, MSG_NOSIGNAL);
    buf_clear(&text);
    read_all(fd, &text);
    CHECK_CONTAINS(text.data, "HTTP/1.1 431 ", "");
    close(fd);
    SCOPED_MEMORY char *answer = ask(f, "GET", "/-/healthy");
    CHECK_CONTAINS(answer, "HTTP/1.1 200", "afterwards");
}

/* ---- connections that take places ------------------------------------------------------------ */

/* Starts the server again with other limits. */
static void restart(struct fixture *f, int64_t request_ms, int64_t answer_ms, unsigned of_one)
{
    server_stop(f->server);
    struct server_options options = options_of(f, "127.0.0.1:0");
    options.request_timeout_ms = request_ms;
    options.answer_timeout_ms = answer_ms;
    options.max_connections_per_address = of_one;
    f->server = server_rig_start(&options);
}

static uint64_t ended(const struct fixture *f, const char *reason)
{
    char text[100];
    snprintf(text, sizeof(text), "profpull_admin_connections_ended_total{reason=\"%s\"}", reason);
    return testing_metric(f->metrics, text);
}

static void wait_for_metric(const struct fixture *f, const char *text, uint64_t want)
{
    for (int i = 0; testing_metric(f->metrics, text) != want; i++) {
        assert_true(i < 30000);
        usleep(1000);
    }
}

static void expect_healthy(const struct fixture *f, const char *when)
{
    SCOPED_MEMORY char *answer = ask(f, "GET", "/-/healthy");
    CHECK_CONTAINS(answer, "HTTP/1.1 200", when);
}

/* Many clients that take all places and send no more than a part of a request. */
TEST_ON(struct fixture *f, silent_connections)
{
    int fds[2 * CONNECTIONS];
    for (unsigned i = 0; i < 2 * CONNECTIONS; i++) {
        fds[i] = dial_from(f, 2 + i / CONNECTIONS_OF_ONE);
        assert_int_equal(write(fds[i], "GET", 3), 3);
    }
    expect_healthy(f, "while all places are taken");
    CHECK_INT(ended(f, "crowded"), CONNECTIONS + 1, "as many as had no place");
    CHECK_INT(ended(f, "same_address"), 0, "");
    for (unsigned i = 0; i < 2 * CONNECTIONS; i++) {
        close(fds[i]);
    }
    wait_for_metric(f, "profpull_admin_connections", 0);
}

/* The one that has the most places gives one up, and the oldest of its first. */
TEST_ON(struct fixture *f, the_greediest_address_makes_room)
{
    restart(f, 10000, 60000, CONNECTIONS);
    int others[10];
    int greedy[CONNECTIONS];
    for (unsigned i = 0; i < 10; i++) {
        others[i] = dial_from(f, 10 + i);
    }
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        greedy[i] = dial_from(f, 2);
    }
    wait_for_metric(f, "profpull_admin_connections_ended_total{reason=\"crowded\"}", 10);
    char byte;
    for (unsigned i = 0; i < 10; i++) {
        CHECK_INT(read(greedy[i], &byte, 1), 0, "the oldest ones are closed");
        static const char request[] = "GET /-/ready HTTP/1.1\r\n\r\n";
        SCOPED(buf) text = testing_buf(REPLY_MAX);
        assert_int_equal(write(others[i], request, sizeof(request) - 1), sizeof(request) - 1);
        read_all(others[i], &text);
        CHECK_CONTAINS(text.data, "HTTP/1.1 200", "the others are still served");
        close(others[i]);
    }
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        close(greedy[i]);
    }
}

TEST_ON(struct fixture *f, connections_of_one_address)
{
    int fds[40];
    for (unsigned i = 0; i < 40; i++) {
        fds[i] = dial(f);
    }
    wait_for_metric(f, "profpull_admin_connections_ended_total{reason=\"same_address\"}", 24);
    CHECK_INT(testing_metric(f->metrics, "profpull_admin_connections"), CONNECTIONS_OF_ONE, "");
    expect_healthy(f, "from the same address");
    for (unsigned i = 0; i < 40; i++) {
        close(fds[i]);
    }
}

/* A byte now and then does not keep a connection. */
TEST_ON(struct fixture *f, a_request_in_drips)
{
    restart(f, 300, 60000, CONNECTIONS);
    int fd = dial(f);
    while (send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
        usleep(20000);
    }
    close(fd);
    CHECK_INT(ended(f, "slow_request"), 1, "");
}

/* Nor does reading a little of the answer now and then. */
TEST_ON(struct fixture *f, an_answer_in_sips)
{
    add_targets(f, 4000);
    restart(f, 10000, 300, CONNECTIONS);
    int fds[33];
    int small = 2048;
    static const char request[] = "GET /api/v1/targets HTTP/1.1\r\n\r\n";
    for (unsigned i = 0; i < 33; i++) {
        fds[i] = dial_from(f, 2);
        setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
        assert_int_equal(write(fds[i], request, sizeof(request) - 1), sizeof(request) - 1);
    }
    expect_healthy(f, "while they do not read");
    while (ended(f, "slow_answer") < 33) {
        char some[16];
        for (unsigned i = 0; i < 33; i++) {
            (void)!recv(fds[i], some, sizeof(some), MSG_DONTWAIT);
        }
        usleep(20000);
    }
    for (unsigned i = 0; i < 33; i++) {
        close(fds[i]);
    }
}

/* Lets the process open one more descriptor, and no further one. Returns the limit before. */
static struct rlimit leave_one_descriptor(void)
{
    if (getenv("PROFPULL_VALGRIND") != NULL) {
        skip(); /* scripts/valgrind.sh: it has a limit of its own */
    }
    struct rlimit before;
    int lowest = dup(STDIN_FILENO);
    assert_true(lowest >= 0);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit limit = {.rlim_cur = (rlim_t)lowest + 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

/* The test's end of the connection takes the last descriptor: the server's end takes that of the
 * oldest connection. */
TEST_ON(struct fixture *f, no_descriptor_is_left)
{
    int fds[5];
    for (unsigned i = 0; i < 5; i++) {
        fds[i] = dial_from(f, 2);
    }
    wait_for_metric(f, "profpull_admin_connections", 5);
    struct rlimit before = leave_one_descriptor();
    expect_healthy(f, "without a descriptor");
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK_INT(ended(f, "crowded"), 1, "");
    for (unsigned i = 0; i < 5; i++) {
        close(fds[i]);
    }
}

/* The server's end takes the last one, and keeps it. */
TEST_ON(struct fixture *f, the_last_descriptor)
{
    static const char request[] = "GET /-/healthy HTTP/1.1\r\n\r\n";
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct rlimit before = leave_one_descriptor();
    connect_to(f, fd);
    wait_for_metric(f, "profpull_admin_connections", 1);
    assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
    read_all(fd, &text);
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK_CONTAINS(text.data, "HTTP/1.1 200", "");
    CHECK_INT(ended(f, "crowded"), 0, "");
    close(fd);
}

/* With no connection to end, it is accepted once there are descriptors again. */
TEST_ON(struct fixture *f, no_descriptor_for_a_while)
{
    static const char request[] = "GET /-/healthy HTTP/1.1\r\n\r\n";
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    struct rlimit before = leave_one_descriptor();
    int fd = dial(f);
    assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    CHECK_INT(poll(&readable, 1, 300), 0, "no answer yet");
    setrlimit(RLIMIT_NOFILE, &before);
    read_all(fd, &text);
    CHECK_CONTAINS(text.data, "HTTP/1.1 200", "");
    close(fd);
}

/* ---- requests in other forms ----------------------------------------------------------------- */

TEST_ON(struct fixture *f, forms_of_requests)
{
    static const struct {
        const char *request, *status, *part;
    } rows[] = {
        {"GET /-/ready HTTP/1.1\n\n", "HTTP/1.1 200", "ok"},
        {"GET /-/ready HTTP/1.0\r\n\r\n", "HTTP/1.1 200", "Content-Length: "},
        {"GET http://host:1/-/ready?x HTTP/1.1\r\n\r\n", "HTTP/1.1 200", "ok"},
        {"GET /-/ready#part HTTP/1.1\r\n\r\n", "HTTP/1.1 200", "ok"},
        {"GET /api/v1/targets HTTP/1.0\r\n\r\n", "HTTP/1.1 200", "\r\n\r\n{\"status\""},
        {"GET /-/ready HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200", "ok"},
        {"GET /-/ready HTTP/1.1\r\nConnection: close\r\n\r\nGET /-/healthy HTTP/1.1\r\n\r\n",
         "HTTP/1.1 200", "Connection: close\r\n"},
        {"GET /%2 HTTP/1.1\r\n\r\n", "HTTP/1.1 404", "not found"},
        {"GET /metrics%00 HTTP/1.1\r\n\r\n", "HTTP/1.1 404", "not found"},
        {"GET metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "Bad Request"},
        {"GET /metrics\r\n\r\n", "HTTP/1.1 400", "Bad Request"},
        {"GET /metrics HTTP/2\r\n\r\n", "HTTP/1.1 400", "Bad Request"},
        {"\r\n\r\n", "HTTP/1.1 400", "Bad Request"},
        {"\x16\x03\x01 no tls\n\n", "HTTP/1.1 400", "Bad Request"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fd = dial(f);
        SCOPED(buf) text = testing_buf(REPLY_MAX);
        assert_int_equal(write(fd, rows[i].request, strlen(rows[i].request)),
                         strlen(rows[i].request));
        read_all(fd, &text);
        CHECK_CONTAINS(text.data, rows[i].status, rows[i].request);
        CHECK_CONTAINS(text.data, rows[i].part, rows[i].request);
        close(fd);
    }
}

/* In pieces of one byte, and with the writing side closed after it, as `nc -N` does. */
TEST_ON(struct fixture *f, a_request_in_pieces)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    int fd = dial(f);
    SCOPED(buf) text = testing_buf(REPLY_MAX);
    for (size_t i = 0; i + 1 < sizeof(request); i++) {
        assert_int_equal(write(fd, request + i, 1), 1);
        usleep(500);
    }
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    read_all(fd, &text);
    CHECK_CONTAINS(text.data, "profpull_admin_requests_total 1", "");
    close(fd);
}

/* ":0" and ":PORT" mean every address of the machine. */
TEST_ON(struct fixture *f, addresses_without_a_host)
{
    char listen[32] = ":0";
    int port = 0;
    for (int i = 0; i < 2; i++) {
        struct server_options options = options_of(f, listen);
        struct err err = ERR_INIT;
        struct server *s = server_start(&options, &err);
        CHECK_STR(err.msg, "", listen);
        assert_non_null(s);
        assert_true(server_port(s) > 0 && (port == 0 || server_port(s) == port));
        port = server_port(s);
        server_stop(s);
        snprintf(listen, sizeof(listen), ":%d", port);
    }
}

TEST_ON(struct fixture *f, addresses_that_cannot_be_bound)
{
    static const struct text_case rows[] = {
        {"nonsense", "admin server on nonsense: expected"},
        {":", "admin server on :: expected"},
        {":99999", "admin server on :99999: expected"},
        {"example.com:80", "admin server on example.com:80: expected an IP address and a port"},
        {"127.0.0.1", "expected host:port"},
        {"192.0.2.1:80", "cannot listen: Cannot assign requested address: this machine does not "
                         "have the address; choose another one with --listen"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct server_options options = options_of(f, rows[i].text);
        options.listen_option = "--listen";
        struct err err = ERR_INIT;
        assert_null(server_start(&options, &err));
        CHECK_CONTAINS(err.msg, rows[i].want, rows[i].text);
    }
    char taken[32];
    snprintf(taken, sizeof(taken), "127.0.0.1:%d", server_port(f->server));
    struct server_options options = options_of(f, taken);
    struct err err = ERR_INIT;
    assert_null(server_start(&options, &err));
    CHECK_CONTAINS(err.msg, "Address already in use", taken);
}
