#include "http/wire.h"

#include <errno.h>
/* The header is <linux/tcp.h> and not glibc's, whose struct lacks tcpi_bytes_received. */
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* The most attempts to count. The two numbers come from two system calls, and bytes that arrive
 * between these would count as waiting but not as received. */
#define TRIES 16

/* Returns the number of all bytes that have arrived, or -1 if the kernel does not say. */
static int64_t arrived(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);
    const size_t end =
        offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received);
    bool known = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && size >= end &&
                 info.tcpi_bytes_received <= INT64_MAX;
    return known ? (int64_t)info.tcpi_bytes_received : -1;
}

int64_t wire_received(int fd)
{
    int64_t before = -1;
    int64_t total = arrived(fd);
    /* A fast peer fills the kernel's buffer with megabytes before we read any of them. The end of
     * the stream counts as a byte received, and not as one that waits. */
    int waiting = 0;
    for (int i = 0; i < TRIES && total >= 0 && total != before; i++) {
        if (ioctl(fd, SIOCINQ, &waiting) != 0 || waiting < 0) {
            return -1;
        }
        before = total;
        total = arrived(fd);
    }
    if (total < 0 || total != before) {
        return -1;
    }
    return waiting < total ? total - waiting : 0;
}

enum wire_input wire_peek(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return WIRE_QUIET;
    }
    return n > 0 ? WIRE_BYTES : WIRE_ENDED;
}

bool wire_is_unacknowledged(int fd)
{
    int bytes = 0;
    return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

int64_t wire_silent_ms(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);
    const size_t end =
        offsetof(struct tcp_info, tcpi_last_data_recv) + sizeof(info.tcpi_last_data_recv);
    bool known = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && size >= end;
    return known ? (int64_t)info.tcpi_last_data_recv : -1;
}
