#include "http/wire.h"

/* This header and not that of glibc, which stops before the member. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

int64_t wire_received(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);
    const size_t end =
        offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < end ||
        info.tcpi_bytes_received > INT64_MAX) {
        return -1;
    }
    return (int64_t)info.tcpi_bytes_received;
}
