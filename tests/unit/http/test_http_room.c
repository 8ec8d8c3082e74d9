/* Responses whose body is read only when the caller has memory for it. */
#include "tests/unit/lib/http_server.h"

#include "http/private.h"

#define BODY ((size_t)3 * 1024 * 1024)

/* A request whose body asks for memory. */
struct guest {
    struct call call;
    size_t granted; /* what the next question is answered with */
    size_t asked;   /* the last question */
    size_t first;   /* and the first one */
    uint64_t announced;
    unsigned questions;
};

static void guest_done(struct guest *g)
{
    call_clear(&g->call);
}
SCOPED_VALUE(guest, guest_done)

static size_t guest_on_room(void *arg, size_t len, uint64_t announced)
{
    struct guest *g = arg;
    g->asked = len;
    g->first = g->questions == 0 ? len : g->first;
    g->announced = announced;
    g->questions++;
    return g->granted;
}

static void send_zeros(struct server_conn *c, size_t n)
{
    static const char zeros[64 * 1024];
    for (size_t sent = 0; sent < n && server_send_bytes(c, zeros, sizeof(zeros));) {
        sent += sizeof(zeros);
    }
}

static void answer_with_length(struct server_conn *c)
{
    char head[128];
    while (server_read_request(c)) {
        snprintf(head, sizeof(head), OK_HEAD "Content-Length: %zu\r\n\r\n", BODY);
        if (server_send(c, head)) {
            send_zeros(c, BODY);
        }
    }
}

static void answer_without_length(struct server_conn *c)
{
    if (server_read_request(c) && server_send(c, OK_HEAD "Connection: close\r\n\r\n")) {
        send_zeros(c, BODY);
    }
}

static void start_guest(struct fixture *f, struct guest *g)
{
    fixture_start_path(f, &g->call, "/",
                       &(struct http_request){
                           .max_body = 2 * BODY, .timeout_ms = 60000, .on_room = guest_on_room});
}

static void turn(struct fixture *f, struct guest *g, unsigned questions)
{
    while (g->call.done == 0 && g->questions < questions) {
        loop_run_once(f->loop);
    }
}

/* A body with a length asks for all of it once. Until it is granted, nothing but the first piece is
 * read, and other transfers go on. */
TEST(test_waits_at_its_head)
{
    SCOPED(guest) waits = {.granted = 0};
    SCOPED(guest) reads = {.granted = BODY};
    SCOPED(fixture) f = fixture_with(2, answer_with_length, NULL);
    start_guest(&f, &waits);
    turn(&f, &waits, 1);
    CHECK_INT(waits.asked, BODY, "its Content-Length");
    CHECK_INT(waits.announced, BODY, "");
    CHECK_INT(f.client->n_starved, 1, "");
    start_guest(&f, &reads);
    while (reads.call.done == 0) {
        loop_run_once(f.loop);
    }
    check_result(&reads.call, HTTP_DONE, "the other one");
    CHECK_INT(reads.questions, 1, "");
    CHECK_INT(waits.call.done, 0, "it waits");
    assert_true(fixture_metric(&f, "profpull_http_body_bytes{client=\"test\"}") < 256 * 1024);
    http_grant(waits.call.transfer, BODY);
    fixture_wait(&f);
    check_result(&waits.call, HTTP_DONE, "it got its memory");
    CHECK_INT(waits.call.body_len, BODY, "");
    CHECK_INT(f.client->n_starved, 0, "");
}

/* A body without a length asks again whenever it outgrows what it got. */
TEST(test_grows)
{
    SCOPED(guest) g = {.granted = 100000};
    SCOPED(fixture) f = fixture_with(1, answer_without_length, NULL);
    start_guest(&f, &g);
    turn(&f, &g, 1);
    CHECK_INT(g.first, 1, "a byte");
    assert_true(g.announced == UINT64_MAX);
    unsigned waits = 0;
    while (g.call.done == 0) {
        if (f.client->n_starved > 0) {
            assert_true(g.asked > g.granted);
            g.granted = 2 * g.asked;
            http_grant(g.call.transfer, g.granted);
            waits++;
        }
        loop_run_once(f.loop);
    }
    assert_true(waits >= 4);
    check_result(&g.call, HTTP_DONE, "");
    CHECK_INT(g.call.body_len, BODY, "");
}

/* A body that can never be granted ends at its head. A transfer that is cancelled or times out
 * gives everything back. */
TEST(test_ends_while_it_waits)
{
    SCOPED(guest) never = {.granted = HTTP_ROOM_NEVER};
    SCOPED(guest) late = {.granted = 0};
    SCOPED(guest) gone = {.granted = 0};
    SCOPED(fixture) f = fixture_with(1, answer_with_length, NULL);
    start_guest(&f, &never);
    fixture_wait(&f);
    check_result(&never.call, HTTP_ERR_NO_ROOM, "never");
    fixture_start_path(
        &f, &late.call, "/",
        &(struct http_request){.max_body = BODY, .timeout_ms = 300, .on_room = guest_on_room});
    fixture_wait(&f);
    check_result(&late.call, HTTP_ERR_TIMEOUT, "it waited in vain");
    CHECK_INT(f.client->n_starved, 0, "");
    start_guest(&f, &gone);
    turn(&f, &gone, 1);
    CHECK_INT(f.client->n_starved, 1, "");
    http_cancel(gone.call.transfer);
    CHECK_INT(f.client->n_starved, 0, "");
    CHECK_INT(f.client->in_flight, 0, "");
}

/* An error page asks for nothing. */
TEST(test_error_pages)
{
    SCOPED(guest) g = {.granted = 0};
    const char *page = "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello";
    SCOPED(fixture) f = fixture_with(1, server_answer, page);
    start_guest(&f, &g);
    fixture_wait(&f);
    check_result(&g.call, HTTP_DONE, "");
    CHECK_STR(g.call.body, "hello", "");
    CHECK_INT(g.questions, 0, "");
}

MAIN_THAT_MAY_HANG(run_both_ways(NULL, NULL))
