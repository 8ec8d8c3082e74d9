/* A server that runs gets other options: connections stay, and each request is answered by those
 * that count when it comes. */
#include "tests/unit/server/server_rig.h"

#include <stdatomic.h>

#include "api/served.h"

/* ---- a server with two routes of its own ----------------------------------------------------- */

static void reply_version(struct connection *c, const struct request *r,
                          const struct server_options *options)
{
    (void)r;
    connection_reply(c, STATUS_OK, "text/plain", sv_from(options->served->version));
}

/* Held until the test lets go. */
static atomic_bool *gate_of(struct exchange *x)
{
    return x->options->served->arg;
}

static void work_version(struct exchange *x)
{
    while (!atomic_load(gate_of(x)) && !atomic_load(x->cancelled)) {
        (void)usleep(1000);
    }
    buf_puts(&x->reply, x->options->served->version);
}

static const struct route routes[] = {
    {.path = "/now", .set = ROUTE_ADMIN, .handle = reply_version},
    {.path = "/slow", .set = ROUTE_ADMIN, .work = work_version},
    {.path = NULL},
};

static const struct route *const tables[] = {routes, NULL};

struct world {
    struct testing_log *log;
    struct metrics *metrics;
    atomic_bool gate;
    struct server *server;
    /* How often the options of each version were released: at the latest by teardown(). */
    atomic_int first;
    atomic_int second;
    struct served served[2]; /* of the first version and the second */
};

/* Counts the owners that are released when nobody uses their options any more. */
static void count(void *owner)
{
    atomic_int *released = owner;
    atomic_fetch_add(released, 1);
}

static struct server_options options_of(struct world *w, const char *version, atomic_int *released)
{
    const struct server_work work = {
        .threads = 2, .waiting_max = 2, .timeout_ms = 60000, .bytes_max = 1 << 20, .body_max = 100};
    struct served *served = &w->served[released == &w->second];
    *served = (struct served){.version = version, .arg = &w->gate};
    return (struct server_options){.name = "admin",
                                   .listen = "127.0.0.1:0",
                                   .sets = ROUTE_ADMIN,
                                   .max_connections = 8,
                                   .max_connections_per_address = 8,
                                   .request_timeout_ms = 60000,
                                   .answer_timeout_ms = 60000,
                                   .idle_timeout_ms = 60000,
                                   .bodies_max_bytes = 1000,
                                   .query = work,
                                   .receive = work,
                                   .routes = tables,
                                   .log = testing_log(w->log),
                                   .metrics = w->metrics,
                                   .served = served,
                                   .release = count,
                                   .owner = released};
}

static void start(struct world *w, const struct server_options *options)
{
    w->server = server_rig_start(options);
}

static int setup(void **state)
{
    static struct world w;
    w = (struct world){.log = testing_log_new(), .metrics = metrics_new()};
    atomic_init(&w.gate, false);
    atomic_init(&w.first, 0);
    atomic_init(&w.second, 0);
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    server_stop(w->server);
    metrics_free(w->metrics);
    testing_log_done(w->log);
    return 0;
}

/* Asks on a connection that is kept, and waits for the end of the body. */
static void ask(int fd, const char *more, const char *want)
{
    char text[512];
    SCOPED(buf) out = testing_buf(REPLY_MAX);
    buf_puts(&out, "");
    (void)snprintf(text, sizeof(text), "GET /now HTTP/1.1\r\nHost: h\r\n%s\r\n", more);
    client_send(fd, text);
    client_read_to(fd, want, &out);
}

static void change(struct world *w, const struct server_options *next)
{
    struct err err = ERR_INIT;
    struct server_setup *setup = server_prepare(w->server, next, &err);
    CHECK_STR(err.msg, "", "");
    assert_non_null(setup);
    server_commit(w->server, setup);
}

static void wait_for(const atomic_int *n, int want)
{
    for (int i = 0; i < 60000 && atomic_load(n) != want; i++) {
        (void)usleep(1000);
    }
    CHECK_INT(atomic_load(n), want, "released");
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST_ON(struct world *w, test_connections_stay)
{
    const struct http_settings access = {
        .auth = HTTP_AUTH_HEADER, .auth_type = "Bearer", .credentials = "token"};
    struct server_options o = options_of(w, "version one", &w->first);
    start(w, &o);
    int fd = client_dial(w->server);
    ask(fd, "", "version one");
    o = options_of(w, "version two", &w->second);
    o.access = &access;
    change(w, &o);
    wait_for(&w->first, 1);
    ask(fd, "", "expected the credentials of this server");
    ask(fd, "Authorization: Bearer token\r\n", "version two");
    close(fd);
    CHECK_INT(atomic_load(&w->second), 0, "in use");
    w->server = server_stop(w->server);
    CHECK_INT(atomic_load(&w->second), 1, "");
}

/* A request in work is answered by the options that it began with, which live as long. */
TEST_ON(struct world *w, test_work_keeps_its_options)
{
    struct server_options o = options_of(w, "version one", &w->first);
    SCOPED(buf) out = testing_buf(REPLY_MAX);
    buf_puts(&out, "");
    start(w, &o);
    int slow = client_dial(w->server);
    client_send(slow, "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    while (testing_metric(w->metrics, "profpull_api_requests_pending{api=\"query\"}") == 0) {
        (void)usleep(1000);
    }
    o = options_of(w, "version two", &w->second);
    change(w, &o);
    int fd = client_dial(w->server);
    ask(fd, "", "version two");
    CHECK_INT(atomic_load(&w->first), 0, "a request is worked on by them");
    atomic_store(&w->gate, true);
    client_read_to(slow, "version one", &out);
    wait_for(&w->first, 1);
    close(slow);
    close(fd);
}

TEST_ON(struct world *w, test_errors_change_nothing)
{
    struct err err = ERR_INIT;
    struct server_options o = options_of(w, "version one", &w->first);
    start(w, &o);
    o = options_of(w, "version two", &w->second);
    o.max_connections = 9;
    assert_null(server_prepare(w->server, &o, &err));
    CHECK_STR(err.msg,
              "admin server: max_connections: cannot change while the program runs: restart it",
              "");
    o = options_of(w, "version two", &w->second);
    o.tls = (struct server_tls){.cert_file = "/nowhere/cert.pem", .key_file = "/nowhere/key.pem"};
    err = (struct err)ERR_INIT;
    assert_null(server_prepare(w->server, &o, &err));
    CHECK_CONTAINS(err.msg, "/nowhere/cert.pem", "");
    o = options_of(w, "version two", &w->second);
    err = (struct err)ERR_INIT;
    server_discard(server_prepare(w->server, &o, &err));
    CHECK_INT(atomic_load(&w->second), 3, "all that was not used is released");
    int fd = client_dial(w->server);
    ask(fd, "", "version one");
    close(fd);
}
