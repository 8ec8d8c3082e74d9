/* The whole scraper, with its loop on a separate thread, against an HTTP server on loopback. */
#include "tests/unit/lib/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "scraper/scraper.h"
#include "scraper/targets/target_private.h"

SCOPED_VALUE(scrape_status, scrape_status_done)

/* gzip of a minimal profile. */
static const unsigned char GZIP[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xe3, 0x62, 0xe1, 0x60,
    0x14, 0x60, 0x32, 0x62, 0x00, 0x00, 0xef, 0x9b, 0x73, 0x6f, 0x08, 0x00, 0x00, 0x00,
};
#define HUNG_MAX 64
#define PATIENCE_MS 30000

/* ---- the server ------------------------------------------------------------------------------ */

struct server {
    int fd;
    uint16_t port;
    pthread_t thread;
    atomic_uint requests;
    int hung[HUNG_MAX]; /* connections that are never answered */
    size_t n_hung;
};

static void send_all(int fd, const void *data, size_t n)
{
    const char *p = data;
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        p += sent;
        n -= (size_t)sent;
    }
}

static void respond(int fd, const char *head, const void *body, size_t n)
{
    char text[512];
    int len = snprintf(text, sizeof(text),
                       "HTTP/1.1 %s\r\nContent-Length: %zu\r\n"
                       "Connection: close\r\n\r\n",
                       head, n);
    send_all(fd, text, (size_t)len);
    send_all(fd, body, n);
}

#define RESPOND_TEXT(fd, head, text) respond((fd), (head), (text), sizeof(text) - 1)

/* False if the connection stays open. */
static bool serve(struct server *s, int fd, const char *path)
{
    static const char big[100000];
    if (strncmp(path, "/ok", 3) == 0) {
        respond(fd, "200 OK\r\nContent-Type: application/x-gzip", GZIP, sizeof(GZIP));
    } else if (strncmp(path, "/html", 5) == 0) {
        RESPOND_TEXT(fd, "200 OK\r\nContent-Type: application/octet-stream", "<html>login</html>");
    } else if (strncmp(path, "/cpu", 4) == 0) {
        RESPOND_TEXT(fd, "500 Internal Server Error",
                     "Could not enable CPU profiling: cpu profiling already in use\n");
    } else if (strncmp(path, "/redirect", 9) == 0) {
        RESPOND_TEXT(fd, "302 Found\r\nLocation: http://169.254.169.254/latest", "");
    } else if (strncmp(path, "/big", 4) == 0) {
        respond(fd, "200 OK", big, sizeof(big));
    } else if (strncmp(path, "/cut", 4) == 0) {
        static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n\x1f\x8b\x08";
        send_all(fd, head, sizeof(head) - 1);
    } else if (strncmp(path, "/hang", 5) == 0 && s->n_hung < HUNG_MAX) {
        s->hung[s->n_hung++] = fd;
        return false;
    } else {
        RESPOND_TEXT(fd, "404 Not Found", "404 page not found\n");
    }
    return true;
}

static void *server_main(void *arg)
{
    struct server *s = arg;
    for (;;) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            break; /* the socket was shut down */
        }
        char request[4096];
        size_t n = 0;
        ssize_t got;
        request[0] = '\0';
        while (n < sizeof(request) - 1 && strstr(request, "\r\n\r\n") == NULL &&
               (got = recv(fd, request + n, sizeof(request) - 1 - n, 0)) > 0) {
            n += (size_t)got;
            request[n] = '\0';
        }
        atomic_fetch_add(&s->requests, 1);
        if (n < 5 || serve(s, fd, request + 4)) {
            close(fd);
        }
    }
    for (size_t i = 0; i < s->n_hung; i++) {
        close(s->hung[i]);
    }
    return NULL;
}

static void server_start(struct server *s)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->fd >= 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(s->fd, 64), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&addr, &len), 0);
    s->port = ntohs(addr.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

static void server_stop(struct server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

/* ---- the scraper ----------------------------------------------------------------------------- */

struct fixture {
    struct server server;
    struct intern *intern;
    struct metrics *metrics;
    struct testing_log *log;
    struct labels_builder *b;
    struct loop *loop;
    struct loop_thread *thread;
    struct scraper *s;
    struct config_type types[1];
    struct config_job job;
    atomic_size_t profiles;
    atomic_size_t wrong; /* profiles that differ from what the server sent */
};

static bool on_profile(void *arg, struct profile *p, uint64_t forward_to)
{
    struct fixture *f = arg;
    bool right = p->size == sizeof(GZIP) && memcmp(p->data, GZIP, p->size) == 0 &&
                 forward_to == 1 && p->until_ns >= p->from_ns && p->from_ns > 0 &&
                 p->until_ns <= clock_wall_ns() + NS_PER_S;
    atomic_fetch_add(&f->wrong, !right);
    atomic_fetch_add(&f->profiles, 1);
    profile_unref(p);
    return true;
}

static void fixture_begin(struct fixture *f)
{
    server_start(&f->server);
    f->intern = intern_new();
    f->metrics = metrics_new();
    f->log = testing_log_new();
    f->b = labels_builder_new(f->intern);
    f->types[0] = (struct config_type){
        .key = "x",
        .name = "x",
        .path = "/ok",
        .enabled = true,
        .interval_ms = 50,
        .timeout_ms = 10000,
    };
    f->job = (struct config_job){
        .name = "job",
        .scheme = "http",
        .path_prefix = "",
        .types = f->types,
        .n_types = 1,
        .target_limit = 100,
        .body_size_limit = 50000,
        .forward_to = 1,
        .allow_special_address = true, /* the server of this test has one */
    };
    struct err err = ERR_INIT;
    f->loop = loop_new(&err);
    assert_non_null(f->loop);
    struct scraper_options options = {
        .loop = f->loop,
        .intern = f->intern,
        .log = testing_log(f->log),
        .metrics = f->metrics,
        .n_jobs = 1,
        .on_profile = on_profile,
        .arg = f,
    };
    f->s = scraper_new(&options, &err);
    CHECK_STR(err.msg, "", "scraper_new");
    f->thread = loop_thread_start(f->loop, "network", &err);
    assert_non_null(f->thread);
}

static void fixture_end(struct fixture *f)
{
    loop_thread_join(f->thread);
    scraper_free(f->s);
    loop_free(f->loop);
    server_stop(&f->server);
    CHECK_INT(atomic_load(&f->wrong), 0, "wrong profiles");
    labels_builder_free(f->b);
    metrics_free(f->metrics);
    intern_free(f->intern);
    testing_log_done(f->log);
}

FIXTURE(fixture, fixture_begin, fixture_end)

static struct target *make_target(struct fixture *f, const char *path)
{
    char address[64];
    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)f->server.port);
    labels_builder_reset(f->b, NULL);
    labels_builder_set_str(f->b, "__address__", address);
    labels_builder_set_str(f->b, "__profile_path__", path);
    struct err err = ERR_INIT;
    struct target *t = target_make(NULL, 0, &f->job, f->b, "127.0.0.1", &err);
    CHECK_STR(err.msg, "", path);
    return t;
}

static void set(struct fixture *f, const char *path)
{
    struct target *t = make_target(f, path);
    assert_true(scraper_set_group(f->s, 0, "s", &t, 1));
}

/* The status of the only scrape, once it has ended `done` times. */
static struct scrape_status wait_for(struct fixture *f, uint64_t done)
{
    struct scrape_status st = {.labels = NULL};
    for (int i = 0; i < PATIENCE_MS / 5; i++) {
        size_t cursor = 0;
        if (scraper_snapshot(f->s, &cursor, &st, 1) == 1) {
            if (st.successes + st.failures >= done) {
                return st;
            }
            scrape_status_done(&st);
        }
        usleep(5000);
    }
    fail_msg("the scrape has not ended %llu times within %d ms", (unsigned long long)done,
             PATIENCE_MS);
    return st;
}

TEST_ON(struct fixture *f, profiles_come)
{
    set(f, "/ok");
    SCOPED(scrape_status) st = wait_for(f, 3);
    CHECK_INT(st.health, SCRAPE_UP, "health");
    CHECK_INT(st.failures, 0, "failures");
    CHECK_INT(st.last_size, sizeof(GZIP), "size");
    CHECK_STR(labels_get(st.labels, SV("__name__")).p, "x", "labels");
    assert_true(atomic_load(&f->profiles) >= 3);
}

static void check_failure(struct fixture *f, const char *path, const char *reason,
                          const char *message)
{
    testing_log_expect(f->log, "scrape failed");
    set(f, path);
    SCOPED(scrape_status) st = wait_for(f, 1);
    CHECK_INT(st.health, SCRAPE_DOWN, path);
    CHECK_STR(reason_name(st.reason), reason, path);
    CHECK_CONTAINS(st.last_error, message, path);
    CHECK_INT(atomic_load(&f->profiles), 0, path);
}

TEST_WITH(not_found, setup, teardown)
{
    check_failure(*state, "/none", "http_404", "HTTP 404: 404 page not found");
}

TEST_WITH(html, setup, teardown)
{
    check_failure(*state, "/html", "not_pprof_html", "an HTML page");
}

TEST_WITH(cpu_in_use, setup, teardown)
{
    check_failure(*state, "/cpu", "cpu_in_use", "HTTP 500: Could not enable CPU profiling");
}

TEST_ON(struct fixture *f, redirect_elsewhere)
{
    f->job.http.follow_redirects = true;
    check_failure(f, "/redirect", "redirect", "");
}

TEST_WITH(redirect_not_followed, setup, teardown)
{
    check_failure(*state, "/redirect", "redirect", "HTTP 302 to http://169.254.169.254/latest");
}

TEST_WITH(too_large, setup, teardown)
{
    check_failure(*state, "/big", "too_large", "");
}

TEST_WITH(cut_off, setup, teardown)
{
    check_failure(*state, "/cut", "cut", "");
}

TEST_ON(struct fixture *f, no_answer)
{
    f->types[0].timeout_ms = 200;
    check_failure(f, "/hang", "timeout", "");
}

TEST_ON(struct fixture *f, nobody_listens)
{
    uint16_t port = f->server.port;
    f->server.port = 1;
    check_failure(f, "/ok", "connect", "");
    f->server.port = port;
}

/* Groups change, snapshots are taken and the scraper stops while transfers run. */
TEST_ON(struct fixture *f, threads)
{
    static const char *const paths[] = {"/ok1", "/ok2", "/ok3", "/hang"};
    f->job.sample_max = 1; /* one process: all are kept */
    testing_log_expect(f->log, "duplicate scrape set aside");
    for (int i = 0; i < 200; i++) {
        char source[16];
        snprintf(source, sizeof(source), "s%d", i % 7);
        struct target *targets[3];
        size_t n = (size_t)(i % 4);
        for (size_t k = 0; k < n; k++) {
            targets[k] = make_target(f, paths[(size_t)i % 2 + k]);
        }
        assert_true(scraper_set_group(f->s, 0, source, targets, n));
        struct scrape_status st[8];
        size_t cursor = 0;
        size_t got = scraper_snapshot(f->s, &cursor, st, 8);
        for (size_t k = 0; k < got; k++) {
            scrape_status_done(&st[k]);
        }
        struct sampled_service sampled[4];
        CHECK_INT(scraper_sampled(f->s, sampled, 4), 0, "nothing is left out");
        usleep(1000);
    }
    while (testing_metric(f->metrics, "profpull_targets_refused_total{reason=\"duplicate\"}") ==
           0) {
        usleep(1000); /* the loop has not come to the updates yet */
    }
    scraper_stop(f->s);
    scraper_stop(f->s);
    struct target *late = make_target(f, "/ok");
    assert_true(scraper_set_group(f->s, 0, "late", &late, 1));
}

/* Updates posted after the loop has ended are dropped without a leak. */
TEST(freed_before_the_loop_runs)
{
    struct err err = ERR_INIT;
    struct intern *in = intern_new();
    struct loop *loop = loop_new(&err);
    struct scraper_options options = {
        .loop = loop, .intern = in, .n_jobs = 1, .on_profile = on_profile};
    struct scraper *s = scraper_new(&options, &err);
    assert_non_null(s);
    struct fixture f = {.types = {{.key = "x",
                                   .name = "x",
                                   .path = "/ok",
                                   .enabled = true,
                                   .interval_ms = 50,
                                   .timeout_ms = 1000}}};
    f.job = (struct config_job){.name = "j",
                                .scheme = "http",
                                .path_prefix = "",
                                .types = f.types,
                                .n_types = 1,
                                .allow_special_address = true};
    f.b = labels_builder_new(in);
    f.server.port = 1;
    struct target *t = make_target(&f, "/ok");
    assert_true(scraper_set_group(s, 0, "s", &t, 1));
    scraper_stop(s);
    scraper_free(s);
    loop_free(loop);
    labels_builder_free(f.b);
    intern_free(in);
    options.intern = NULL;
    assert_null(scraper_new(&options, &err));
    CHECK_CONTAINS(err.msg, "no string table", "error");
}
