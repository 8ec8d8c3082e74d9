/* A plain client for tests of our servers: bytes over a socket. */
#ifndef PROFPULL_TESTS_SERVER_CLIENT_H
#define PROFPULL_TESTS_SERVER_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/server.h"
#include "tests/unit/lib/testing.h"

#define REPLY_MAX (8 * 1024 * 1024)

/* Connects from an address of loopback, such as INADDR_LOOPBACK. */
static inline int client_dial_from(const struct server *server, in_addr_t host)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(server_port(server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct timeval patience = {.tv_sec = 60};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static inline int client_dial(const struct server *server)
{
    return client_dial_from(server, INADDR_LOOPBACK);
}

static inline void client_send(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads until this text has come. */
static inline void client_read_to(int fd, const char *part, struct buf *out)
{
    char byte;
    while (strstr(out->data, part) == NULL) {
        CHECK(read(fd, &byte, 1) == 1, "\"%s\" did not come: %s", part, out->data);
        assert_true(buf_putc(out, byte));
    }
}

/* Reads to the end of the connection. */
static inline void client_read_all(int fd, struct buf *out)
{
    char chunk[4096];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
        assert_true(buf_append(out, chunk, (size_t)n));
    }
    CHECK(n == 0 || errno == ECONNRESET, "no end of the connection: %s; read: %s", strerror(errno),
          out->data);
}

/* Sends bytes, asks for nothing more and returns all that comes; the caller frees. */
static inline char *client_ask(const struct server *server, const char *text)
{
    int fd = client_dial(server);
    struct buf out = testing_buf(REPLY_MAX);
    client_send(fd, text);
    client_read_all(fd, &out);
    close(fd);
    return buf_take(&out, NULL);
}

#endif
