/* The guard of calls that do not come back, and what happens to those who cause them. */
#include "tests/unit/lib/http_server.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>

#include "http/private.h"

/* ---- the guard ------------------------------------------------------------------------------- */

/* Two connections to a server: to one it sends without end. */
struct pair {
    struct guard *guard;
    struct server *server;
    int quiet;
    int busy;
};

static void send_to_second(struct server_conn *c)
{
    char junk[4096] = {0};
    if (c->number == 1) {
        server_wait_close(c);
        return;
    }
    while (server_send_bytes(c, junk, sizeof(junk))) {
        ;
    }
}

static int connect_to(const struct server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(s->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void pair_init(struct pair *p)
{
    struct err err = ERR_INIT;
    p->guard = guard_new(&err);
    assert_non_null(p->guard);
    p->server = server_new(send_to_second, NULL);
    p->quiet = connect_to(p->server);
    while (atomic_load(&p->server->accepted) == 0) {
        usleep(1000);
    }
    p->busy = connect_to(p->server);
}

static void pair_done(struct pair *p)
{
    close(p->quiet);
    close(p->busy);
    server_free(p->server);
    guard_free(p->guard);
}
SCOPED_VALUE(pair, pair_done)

static int64_t cpu_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * MS_PER_S + ts.tv_nsec / NS_PER_MS;
}

/* Reads, like a call of libcurl, until the connection ends or so much CPU has been used. */
static bool read_to_end(int fd, int64_t limit_ms)
{
    char bytes[4096];
    int64_t until_ms = cpu_ms() + limit_ms;
    ssize_t n = 1;
    while (n > 0 && cpu_ms() < until_ms) {
        n = recv(fd, bytes, sizeof(bytes), 0);
    }
    return n <= 0;
}

SETUP_OF(pair)

TEST_ON(struct pair *p, test_the_busiest_connection_is_cut)
{
    const struct guard_socket sockets[] = {{.fd = p->quiet}, {.fd = p->busy}};
    guard_enter(p->guard, sockets, 2);
    assert_true(read_to_end(p->busy, 60 * MS_PER_S));
    CHECK_INT(guard_leave(p->guard), p->busy, "");
    CHECK_INT(send(p->quiet, "x", 1, MSG_NOSIGNAL), 1, "the other one is whole");
    const struct guard_socket none[] = {{.fd = p->quiet}};
    guard_enter(p->guard, none, 1);
    CHECK_INT(guard_leave(p->guard), -1, "the next call");
}

static void use_cpu(int64_t ms)
{
    int64_t until_ms = cpu_ms() + ms;
    while (cpu_ms() < until_ms) {
        ;
    }
}

/* libcurl may take seconds for what the kernel holds. */
TEST_ON(struct pair *p, test_what_the_kernel_holds_is_discarded)
{
    char byte;
    int waiting = 0;
    const struct guard_socket sockets[] = {{.fd = p->busy}};
    while (waiting < 64 * 1024) {
        assert_int_equal(ioctl(p->busy, FIONREAD, &waiting), 0);
        usleep(1000);
    }
    struct pollfd end = {.fd = p->busy, .events = POLLRDHUP};
    guard_enter(p->guard, sockets, 1);
    while (poll(&end, 1, 0) == 0) {
        ;
    }
    CHECK_INT(guard_leave(p->guard), p->busy, "");
    assert_true(recv(p->busy, &byte, 1, MSG_DONTWAIT) <= 0);
}

/* Another connection is not to blame for what the call does with the bytes that it has read. */
TEST_ON(struct pair *p, test_quiet_connections_are_not_cut_after_a_busy_one)
{
    const struct guard_socket sockets[] = {{.fd = p->quiet}, {.fd = p->busy}};
    guard_enter(p->guard, sockets, 2);
    assert_true(read_to_end(p->busy, 60 * MS_PER_S));
    use_cpu(2 * (GUARD_CPU_MS + 2 * GUARD_LOOK_MS));
    CHECK_INT(guard_leave(p->guard), p->busy, "");
    CHECK_INT(send(p->quiet, "x", 1, MSG_NOSIGNAL), 1, "the other one is whole");
}

/* Calls that follow each other, and waiting, are no reason. */
TEST_ON(struct pair *p, test_short_calls_and_waiting_are_not_cut)
{
    const struct guard_socket sockets[] = {{.fd = p->busy}};
    for (int i = 0; i < 30; i++) {
        guard_enter(p->guard, sockets, 1);
        assert_false(read_to_end(p->busy, GUARD_CPU_MS / 20));
        CHECK_INT(guard_leave(p->guard), -1, "short");
    }
    guard_enter(p->guard, sockets, 1);
    usleep((GUARD_CPU_MS + 3 * GUARD_LOOK_MS) * 1000);
    CHECK_INT(guard_leave(p->guard), -1, "waiting");
}

/* The number of a closed socket may be another's. */
TEST_ON(struct pair *p, test_closed_sockets_are_not_cut)
{
    const struct guard_socket sockets[] = {{.fd = p->busy}};
    guard_enter(p->guard, sockets, 1);
    guard_forget(p->guard, p->busy);
    assert_false(read_to_end(p->busy, GUARD_CPU_MS + 3 * GUARD_LOOK_MS));
    CHECK_INT(guard_leave(p->guard), -1, "");
    guard_enter(NULL, sockets, 1);
    guard_forget(NULL, 1);
    CHECK_INT(guard_leave(NULL), -1, "no guard");
}

/* ---- offenders ------------------------------------------------------------------------------- */

TEST(test_offenders_are_not_asked)
{
    struct url parts;
    struct err err = ERR_INIT;
    SCOPED(server) *other = server_new(server_hello, NULL);
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    assert_true(url_parse(server_url(f.server, "/", f.url), &parts, &err));
    offenders_add(f.client->offenders, url_origin_hash(&parts), clock_mono_ms());
    fixture_get(&f, &f.call, f.server, NULL);
    check_result(&f.call, HTTP_ERR_PROTOCOL, "");
    CHECK_CONTAINS(f.call.error, "no request for another ", "");
    CHECK_CONTAINS(f.call.error, "its last response blocked all other requests", "");
    CHECK_INT(atomic_load(&f.server->accepted), 0, "");
    fixture_get(&f, &f.call, other, NULL);
    check_result(&f.call, HTTP_DONE, "another port");
    /* The offence seems to be that long ago. */
    offenders_add(f.client->offenders, url_origin_hash(&parts),
                  clock_mono_ms() - OFFENDERS_PAUSE_MS);
    fixture_get(&f, &f.call, f.server, NULL);
    check_result(&f.call, HTTP_DONE, "over");
    url_done(&parts);
}

TEST(test_offenders_are_limited)
{
    struct offenders *o = offenders_new();
    assert_non_null(o);
    for (uint64_t i = 0; i < OFFENDERS_MAX; i++) {
        offenders_add(o, i, 1000);
    }
    CHECK_INT(offenders_left_ms(o, OFFENDERS_MAX - 1, 1000), OFFENDERS_PAUSE_MS, "");
    offenders_add(o, OFFENDERS_MAX, 1000);
    CHECK_INT(offenders_left_ms(o, OFFENDERS_MAX, 1000), 0, "one too many");
    CHECK_INT(offenders_left_ms(o, 0, 1000 + OFFENDERS_PAUSE_MS), 0, "over");
    offenders_add(o, OFFENDERS_MAX, 1000 + OFFENDERS_PAUSE_MS);
    CHECK_INT(offenders_left_ms(o, OFFENDERS_MAX, 1001 + OFFENDERS_PAUSE_MS),
              OFFENDERS_PAUSE_MS - 1, "there is room again");
    offenders_free(o);
}

/* ---- the watch over these tests -------------------------------------------------------------- */

/* A busy machine may give a test a few hundredths of a processor, and then two minutes are little.
 */
TEST(test_slow_programs_do_not_hang)
{
    const clock_t second = CLOCKS_PER_SEC;
    CHECK_INT(hang_is(0, 1), true, "waits for nothing");
    CHECK_INT(hang_is(second / 100, 1), true, "its timers run");
    CHECK_INT(hang_is(second, 1), false, "works slowly");
    CHECK_INT(hang_is(second, HANG_LOOKS_MAX - 1), false, "works slowly still");
    CHECK_INT(hang_is(second * HANG_LOOK_S, HANG_LOOKS_MAX), true, "works without end");
}

MAIN_THAT_MAY_HANG(testing_run("tests", NULL, NULL))
