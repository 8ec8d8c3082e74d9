#include "symbols/channel.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* Room for one descriptor, aligned as the kernel wants it. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* Returns true if the error of a call that does not wait means that it has to wait. */
static bool must_wait(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* Waits until the socket is ready. Returns false with ETIMEDOUT at the deadline. */
static bool wait_for(int socket, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms == CHANNEL_FOREVER ? -1 : deadline_ms - clock_mono_ms();
        if (deadline_ms != CHANNEL_FOREVER && left <= 0) {
            errno = ETIMEDOUT;
            return false;
        }
        struct pollfd p = {.fd = socket, .events = events};
        int rc = poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left);
        if (rc > 0) {
            return true;
        }
        if (rc < 0 && errno != EINTR) {
            return false;
        }
    }
}

static ssize_t send_some(int socket, const char *data, size_t n, int passed)
{
    union control control;
    /* sendmsg() does not write to the data. */
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (passed >= 0) {
        memset(&control, 0, sizeof(control));
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &passed, sizeof(passed));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool channel_send(int socket, const void *data, size_t n, int passed, int64_t deadline_ms)
{
    const char *at = data;
    while (n > 0) {
        ssize_t sent = send_some(socket, at, n, passed);
        if (sent > 0) {
            at += sent;
            n -= (size_t)sent;
            passed = -1;
        } else if ((sent < 0 && !must_wait(errno)) || !wait_for(socket, POLLOUT, deadline_ms)) {
            return false;
        }
    }
    return true;
}

/* Returns the descriptor of a message, or -1. */
static int passed_by(struct msghdr *message)
{
    int passed = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
            c->cmsg_len == CMSG_LEN(sizeof(int))) {
            memcpy(&passed, CMSG_DATA(c), sizeof(passed));
        }
    }
    return passed;
}

static ssize_t receive_some(int socket, char *data, size_t n, int *ret_passed)
{
    union control control;
    struct iovec part = {.iov_base = data, .iov_len = n};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int passed = got < 0 ? -1 : passed_by(&message);
    if (passed >= 0 && ret_passed != NULL && *ret_passed < 0) {
        *ret_passed = passed;
    } else if (passed >= 0) {
        close(passed);
    }
    return got;
}

/* Receives all bytes; a descriptor that comes stays in *ret_passed also on failure. */
static bool receive_all(int socket, char *at, size_t n, int *ret_passed, int64_t deadline_ms)
{
    while (n > 0) {
        ssize_t got = receive_some(socket, at, n, ret_passed);
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        } else if (got == 0) {
            errno = 0;
            return false;
        } else if (!must_wait(errno) || !wait_for(socket, POLLIN, deadline_ms)) {
            return false;
        }
    }
    return true;
}

bool channel_receive(int socket, void *data, size_t n, int *ret_passed, int64_t deadline_ms)
{
    if (ret_passed != NULL) {
        *ret_passed = -1;
    }
    bool ok = receive_all(socket, data, n, ret_passed, deadline_ms);
    if (!ok && ret_passed != NULL && *ret_passed >= 0) {
        int error = errno;
        close(*ret_passed);
        *ret_passed = -1;
        errno = error;
    }
    return ok;
}
