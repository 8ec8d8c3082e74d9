#include "http/wire.h"

/* <linux/tcp.h> and not that of glibc, which stops before the member. */
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
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
    /* A fast peer fills the kernel's buffer with megabytes before we read any of them. The end of
     * the stream counts as a byte received, and not as one that waits. */
    int waiting = 0;
    if (ioctl(fd, SIOCINQ, &waiting) != 0 || waiting < 0) {
        return -1;
    }
    int64_t total = (int64_t)info.tcpi_bytes_received;
    return waiting < total ? total - waiting : 0;
}
