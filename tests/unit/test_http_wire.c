/* The bytes that a connection has received. */
#include "tests/unit/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/wire.h"

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

/* What waits in the kernel's buffer is not ours yet: a peer that is faster than we are has sent no
 * more than it should. */
static void what_is_not_read_does_not_count(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_not_read_does_not_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
