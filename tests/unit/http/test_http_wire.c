/* The bytes that a connection has received. */
#include "tests/unit/lib/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/wire.h"

#define FLOOD ((size_t)64 * 1024 * 1024)
#define CHUNK ((size_t)64 * 1024)

/* The ends of a connection to ourselves. */
struct ends {
    int client, server;
};

static struct ends connect_ends(void)
{
    struct ends e;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    e.client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(e.client, (struct sockaddr *)&address, size), 0);
    e.server = accept(listener, NULL, NULL);
    assert_true(e.server >= 0);
    close(listener);
    return e;
}

static void read_exactly(int fd, size_t n)
{
    char junk[4096];
    while (n > 0) {
        ssize_t got = read(fd, junk, n < sizeof(junk) ? n : sizeof(junk));
        assert_true(got > 0);
        n -= (size_t)got;
    }
}

/* Bytes that wait in the kernel's buffer do not count yet: a peer that is faster than we are has
 * sent no more than it should. */
TEST(what_is_not_read_does_not_count)
{
    static const char bytes[30000];
    struct ends e = connect_ends();
    CHECK_INT(wire_received(e.client), 0, "");
    assert_int_equal(send(e.server, bytes, sizeof(bytes), 0), sizeof(bytes));
    CHECK_INT(wire_received(e.client), 0, "nothing was read");
    read_exactly(e.client, 10000);
    CHECK_INT(wire_received(e.client), 10000, "");
    read_exactly(e.client, sizeof(bytes) - 10000);
    CHECK_INT(wire_received(e.client), sizeof(bytes), "");
    close(e.server);
    close(e.client);
    CHECK_INT(wire_received(e.client), -1, "no connection");
}

static void *flood(void *arg)
{
    static const char bytes[256 * 1024];
    const int *fd = arg;
    for (size_t left = FLOOD; left > 0;) {
        ssize_t n = send(*fd, bytes, sizeof(bytes) < left ? sizeof(bytes) : left, MSG_NOSIGNAL);
        assert_true(n > 0);
        left -= (size_t)n;
    }
    return NULL;
}

/* Bytes may arrive at any moment of the reading of the numbers: none of them is taken for one that
 * was received before. */
TEST(what_arrives_meanwhile_does_not_count)
{
    pthread_t thread;
    struct ends e = connect_ends();
    assert_int_equal(pthread_create(&thread, NULL, flood, &e.server), 0);
    for (size_t read_so_far = 0; read_so_far < FLOOD;) {
        for (int i = 0; i < 5; i++) {
            int64_t n = wire_received(e.client);
            assert_true(n == -1 || n == (int64_t)read_so_far);
        }
        size_t n = read_so_far + CHUNK < FLOOD ? CHUNK : FLOOD - read_so_far;
        read_exactly(e.client, n);
        read_so_far += n;
    }
    pthread_join(thread, NULL);
    CHECK_INT(wire_received(e.client), FLOOD, "");
    close(e.server);
    close(e.client);
}

TEST(input_is_seen_without_reading)
{
    struct ends e = connect_ends();
    CHECK_INT(wire_peek(e.client), WIRE_QUIET, "");
    assert_int_equal(send(e.server, "ab", 2, 0), 2);
    CHECK_INT(wire_peek(e.client), WIRE_BYTES, "two bytes");
    read_exactly(e.client, 1);
    CHECK_INT(wire_peek(e.client), WIRE_BYTES, "one of them");
    read_exactly(e.client, 1);
    CHECK_INT(wire_peek(e.client), WIRE_QUIET, "none");
    close(e.server);
    CHECK_INT(wire_peek(e.client), WIRE_ENDED, "");
    close(e.client);
    CHECK_INT(wire_peek(e.client), WIRE_ENDED, "no connection");
}

TEST(what_the_peer_has_not_received_is_seen)
{
    static const char bytes[65536];
    struct ends e = connect_ends();
    CHECK_INT(wire_is_unacknowledged(e.client), false, "");
    /* More than the peer's kernel holds. */
    while (send(e.client, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
        ;
    }
    CHECK_INT(wire_is_unacknowledged(e.client), true, "");
    close(e.server);
    close(e.client);
    CHECK_INT(wire_is_unacknowledged(e.client), false, "no connection");
}
