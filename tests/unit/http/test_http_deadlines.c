/* The limits of time of requests: each one ends, whatever its peer does and whatever it waits for;
 * and the watchdog, for when a timer is lost. */
#include "tests/unit/lib/http_server.h"

#include "http/private.h"

#define HOUR_NS (MS_PER_HOUR * NS_PER_MS)
#define OVERDUE "profpull_http_overdue_total{client=\"test\"}"
#define IN_FLIGHT "profpull_http_in_flight{client=\"test\"}"

/* A server whose connections the kernel accepts, and nobody else. */
struct silent {
    int fd;
    char url[URL_SIZE];
};

static struct silent silent_new(void)
{
    struct silent s;
    uint16_t port;
    s.fd = server_listen(&port);
    (void)snprintf(s.url, sizeof(s.url), "http://127.0.0.1:%u/", port);
    return s;
}

static void silent_done(struct silent *s)
{
    close(s->fd);
}
SCOPED_VALUE(silent, silent_done)

/* ---- limits ---------------------------------------------------------------------------------- */

#define SILENT 500
#define SILENT_MS 300

/* The limits of connecting and of the whole request are the same by default. */
TEST(test_every_silent_peer_times_out)
{
    SCOPED(silent) s = silent_new();
    SCOPED_MEMORY struct call *calls = testing_memory(SILENT * sizeof(*calls));
    SCOPED(fixture) f = fixture_new(8);
    for (size_t i = 0; i < SILENT; i++) {
        fixture_start(&f, &calls[i],
                      &(struct http_request){
                          .url = s.url, .timeout_ms = SILENT_MS, .connect_timeout_ms = SILENT_MS});
        if (i % 16 == 0) {
            loop_run_once(f.loop);
        }
    }
    fixture_wait(&f);
    for (size_t i = 0; i < SILENT; i++) {
        check_result(&calls[i], HTTP_ERR_TIMEOUT, "");
        assert_true(calls[i].end_ns - calls[i].start_ns >= SILENT_MS * NS_PER_MS);
        call_clear(&calls[i]);
    }
    CHECK_INT(fixture_metric(&f, IN_FLIGHT), 0, "");
}

static bool stop_loop(void *arg, const char *data, size_t len)
{
    (void)data;
    (void)len;
    struct call *call = arg;
    loop_stop(call->fixture->loop);
    return true;
}

static void send_half(struct server_conn *c)
{
    if (server_read_request(c) && server_send(c, OK_HEAD "Content-Length: 10\r\n\r\nhalf")) {
        server_wait_close(c);
    }
}

TEST(test_no_progress)
{
    static const struct {
        const char *name;
        server_handler *handler;
        const char *error;
        bool answers; /* the limit begins when some of the body is there */
    } rows[] = {
        {"never answers", server_wait_close, "no response within 60ms", false},
        {"stops in the body", send_half, "nothing more of the response within 60ms", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(fixture) f = fixture_with(1, rows[i].handler, NULL);
        fixture_start_path(
            &f, &f.call, "/",
            &(struct http_request){.timeout_ms = MS_PER_HOUR,
                                   .progress_timeout_ms = rows[i].answers ? MS_PER_HOUR : 60,
                                   .on_data = rows[i].answers ? stop_loop : NULL});
        if (rows[i].answers) {
            loop_run(f.loop);
            f.call.transfer->request.progress_timeout_ms = 60;
            http_deadline_arm(f.call.transfer);
        }
        fixture_wait(&f);
        check_result(&f.call, HTTP_ERR_TIMEOUT, rows[i].name);
        CHECK_CONTAINS(f.call.error, rows[i].error, rows[i].name);
    }
}

/* The limit counts from the last byte and not from the request. */
TEST(test_bytes_are_progress)
{
    SCOPED(fixture) f = fixture_with(1, send_half, NULL);
    fixture_start_path(
        &f, &f.call, "/",
        &(struct http_request){.progress_timeout_ms = MS_PER_HOUR, .on_data = stop_loop});
    struct http_transfer *t = f.call.transfer;
    loop_run(f.loop);
    assert_true(t->sent_ns > 0 && t->progress_ns > t->sent_ns);
    http_watchdog_run(f.client, t->progress_ns + HOUR_NS);
    http_watchdog_run(f.client, t->progress_ns + HOUR_NS + NS_PER_S);
    CHECK_INT(t->end_ns, 0, "not overdue");
    http_watchdog_run(f.client, t->progress_ns + HOUR_NS + NS_PER_S + 1);
    fixture_wait(&f);
    check_result(&f.call, HTTP_ERR_TIMEOUT, "");
    CHECK_INT(f.call.status, 200, "");
}

/* ---- waiting for a token --------------------------------------------------------------------- */

struct gate {
    atomic_bool open;
    atomic_uint asked;
};

static void issue_late(struct server_conn *c)
{
    struct gate *gate = server_arg(c);
    char body[256], length[16] = "0";
    while (server_read_request(c)) {
        (void)server_header(c->head, "Content-Length", length, sizeof(length));
        if (!server_read_body(c, body, strtoul(length, NULL, 10))) {
            return;
        }
        atomic_fetch_add(&gate->asked, 1);
        while (!atomic_load(&gate->open)) {
            usleep(1000);
        }
        server_send(c, OK_HEAD "Content-Length: 20\r\n\r\n{\"access_token\":\"t\"}");
    }
}

static void open_gate(struct call *call)
{
    atomic_store((atomic_bool *)call->then_arg, true);
}

/* A request that is over while it waits takes nothing from the others that wait for the token. */
TEST(test_deadline_while_waiting_for_a_token)
{
    struct gate gate = {.asked = 0};
    SCOPED(call) first = {.then = open_gate, .then_arg = &gate.open}, second = {0};
    char token_url[URL_SIZE];
    SCOPED(server) *tokens = server_new(issue_late, &gate);
    struct http_oauth2 oauth2 = {.client_id = "me",
                                 .client_secret = "s3cret",
                                 .token_url = server_url(tokens, "/token", token_url)};
    struct http_settings settings = {.auth = HTTP_AUTH_OAUTH2, .oauth2 = &oauth2};
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    fixture_start_path(&f, &first, "/",
                       &(struct http_request){.settings = &settings, .timeout_ms = 60});
    fixture_start_path(&f, &second, "/", &(struct http_request){.settings = &settings});
    fixture_wait(&f);
    check_result(&first, HTTP_ERR_TIMEOUT, "");
    CHECK_CONTAINS(first.error, "no connection within 60ms", "");
    check_result(&second, HTTP_DONE, "");
    CHECK_INT(atomic_load(&gate.asked), 1, "one fetch for both");
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

/* A request for an hour whose timer is lost. */
static struct http_transfer *start_lost(struct fixture *f, const char *url,
                                        const struct http_settings *settings)
{
    fixture_start(
        f, &f->call,
        &(struct http_request){.url = url, .settings = settings, .timeout_ms = MS_PER_HOUR});
    loop_timer_cancel(f->call.transfer->deadline);
    return f->call.transfer;
}

/* Not yet at a second past the deadline, and right after it. */
static void check_watchdog(struct fixture *f, const char *row)
{
    struct call *call = &f->call;
    int64_t deadline_ns = call->transfer->start_ns + HOUR_NS;
    /* The limit of connecting is not what is tested. */
    call->transfer->request.connect_timeout_ms = 2 * MS_PER_HOUR;
    http_watchdog_run(f->client, deadline_ns + NS_PER_S);
    CHECK_INT(call->transfer->end_ns, 0, row);
    http_watchdog_run(f->client, deadline_ns + NS_PER_S + 1);
    fixture_wait(f);
    check_result(call, HTTP_ERR_TIMEOUT, row);
    CHECK_INT(fixture_metric(f, OVERDUE), 1, row);
    CHECK_INT(fixture_metric(f, IN_FLIGHT), 0, row);
}

TEST(test_watchdog_ends_one_in_libcurl)
{
    SCOPED(silent) s = silent_new();
    SCOPED(fixture) f = fixture_new(1);
    start_lost(&f, s.url, NULL);
    check_watchdog(&f, "in libcurl");
}

TEST(test_watchdog_ends_one_that_is_pending)
{
    SCOPED(silent) s = silent_new();
    SCOPED(fixture) f = fixture_new_libcurl(1);
    f.client->shards[0].busy = true;
    struct http_transfer *t = start_lost(&f, s.url, NULL);
    f.client->shards[0].busy = false;
    assert_ptr_equal(t->list, &f.client->shards[0].pending);
    check_watchdog(&f, "pending");
}

TEST(test_watchdog_frees_a_cancelled_one)
{
    SCOPED(silent) s = silent_new();
    SCOPED(fixture) f = fixture_new_libcurl(1);
    struct http_transfer *t = start_lost(&f, s.url, NULL);
    int64_t deadline_ns = t->start_ns + HOUR_NS;
    f.client->shards[0].busy = true;
    http_cancel(t);
    f.client->shards[0].busy = false;
    CHECK_INT(fixture_metric(&f, IN_FLIGHT), 1, "");
    http_watchdog_run(f.client, deadline_ns + NS_PER_S + 1);
    CHECK_INT(fixture_metric(&f, IN_FLIGHT), 0, "");
    CHECK_INT(fixture_metric(&f, OVERDUE), 1, "");
    CHECK_INT(f.call.done, 0, "a cancelled one has no end");
}

/* The fetch is the only other transfer, next in the list, and is cancelled on the way. */
TEST(test_watchdog_ends_one_that_waits_for_its_token)
{
    SCOPED(silent) s = silent_new();
    struct http_oauth2 oauth2 = {.client_id = "me", .client_secret = "s3cret", .token_url = s.url};
    struct http_settings settings = {.auth = HTTP_AUTH_OAUTH2, .oauth2 = &oauth2};
    SCOPED(fixture) f = fixture_new(1);
    start_lost(&f, s.url, &settings);
    assert_true(f.call.transfer->needs_token);
    CHECK_INT(fixture_metric(&f, IN_FLIGHT), 2, "with the fetch");
    TAILQ_NEXT(f.call.transfer, all_link)->request.timeout_ms = 2 * MS_PER_HOUR;
    TAILQ_NEXT(f.call.transfer, all_link)->request.connect_timeout_ms = 2 * MS_PER_HOUR;
    check_watchdog(&f, "without a token");
}

TEST(test_overdue_ones_are_counted_by_the_timer_too)
{
    SCOPED(silent) s = silent_new();
    SCOPED(fixture) f = fixture_new(1);
    fixture_start(&f, &f.call, &(struct http_request){.url = s.url, .timeout_ms = 60});
    /* The loop seems to have been held meanwhile. */
    f.call.transfer->start_ns -= 2 * NS_PER_S;
    fixture_wait(&f);
    check_result(&f.call, HTTP_ERR_TIMEOUT, "");
    CHECK_INT(fixture_metric(&f, OVERDUE), 1, "");
}

MAIN_THAT_MAY_HANG(run_both_ways(NULL, NULL))
