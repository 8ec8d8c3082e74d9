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

/* A connection to ourselves. */
static void connect_pair(int *ret_client, int *ret_server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    *ret_client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(*ret_client, (struct sockaddr *)&address, size), 0);
    *ret_server = accept(listener, NULL, NULL);
    assert_true(*ret_server >= 0);
    close(listener);
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
    int client;
    int server;
    connect_pair(&client, &server);
    CHECK_INT(wire_received(client), 0, "");
    assert_int_equal(send(server, bytes, sizeof(bytes), 0), sizeof(bytes));
    CHECK_INT(wire_received(client), 0, "nothing was read");
    read_exactly(client, 10000);
    CHECK_INT(wire_received(client), 10000, "");
    read_exactly(client, sizeof(bytes) - 10000);
    CHECK_INT(wire_received(client), sizeof(bytes), "");
    close(server);
    close(client);
    CHECK_INT(wire_received(client), -1, "no connection");
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
    int client;
    int server;
    pthread_t thread;
    connect_pair(&client, &server);
    assert_int_equal(pthread_create(&thread, NULL, flood, &server), 0);
    for (size_t read_so_far = 0; read_so_far < FLOOD;) {
        for (int i = 0; i < 5; i++) {
            int64_t n = wire_received(client);
            assert_true(n == -1 || n == (int64_t)read_so_far);
        }
        size_t n = read_so_far + CHUNK < FLOOD ? CHUNK : FLOOD - read_so_far;
        read_exactly(client, n);
        read_so_far += n;
    }
    pthread_join(thread, NULL);
    CHECK_INT(wire_received(client), FLOOD, "");
    close(server);
    close(client);
}

TEST(input_is_seen_without_reading)
{
    int client;
    int server;
    connect_pair(&client, &server);
    CHECK_INT(wire_peek(client), WIRE_QUIET, "");
    assert_int_equal(send(server, "ab", 2, 0), 2);
    CHECK_INT(wire_peek(client), WIRE_BYTES, "two bytes");
    read_exactly(client, 1);
    CHECK_INT(wire_peek(client), WIRE_BYTES, "one of them");
    read_exactly(client, 1);
    CHECK_INT(wire_peek(client), WIRE_QUIET, "none");
    close(server);
    CHECK_INT(wire_peek(client), WIRE_ENDED, "");
    close(client);
    CHECK_INT(wire_peek(client), WIRE_ENDED, "no connection");
}

TEST(what_the_peer_has_not_received_is_seen)
{
    static const char bytes[65536];
    int client;
    int server;
    connect_pair(&client, &server);
    CHECK_INT(wire_is_unacknowledged(client), false, "");
    /* More than the peer's kernel holds. */
    while (send(client, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
        ;
    }
    CHECK_INT(wire_is_unacknowledged(client), true, "");
    close(server);
    close(client);
    CHECK_INT(wire_is_unacknowledged(client), false, "no connection");
}
