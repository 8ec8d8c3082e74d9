#include "symbols/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/cage.h"
#include "symbols/channel.h"
#include "symbols/child.h"
#include "symbols/protocol.h"

/* The descriptor of the socket, in launcher and child: the first after the standard ones. */
#define SOCKET 3

/* Signals to a group of processes, as Ctrl-C is one, are for the agent: it still needs names for
 * what it writes before it ends. Faults stay as they are. */
static void block_signals(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                 SIGABRT, SIGSYS, SIGTRAP, SIGXCPU};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        (void)signal(faults[i], SIG_DFL);
        sigdelset(&all, faults[i]);
    }
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* Leaves the socket and /dev/null open. */
static bool keep_only(int socket)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool ok = dup2(socket, SOCKET) == SOCKET;
    for (int fd = 0; fd < SOCKET; fd++) {
#ifdef INSTRUMENTED
        /* Sanitizers report there. */
        if (fd == STDERR_FILENO) {
            continue;
        }
#endif
        if (null >= 0) {
            ok = ok && dup2(null, fd) == fd;
        } else {
            close(fd);
        }
    }
    closefrom(SOCKET + 1);
    return ok;
}

/* Makes the kernel end this process first when the system's memory is short, before the agent.
 * Without /proc nothing changes. */
static void offer_to_die(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
}

/* Ends the child, unless it has ended, and takes its status. */
static void end_child(pid_t *child, struct order_done *done)
{
    if (*child <= 0) {
        return;
    }
    pid_t gone;
    int status = 0;
    (void)kill(*child, SIGKILL);
    do {
        gone = waitpid(*child, &status, 0);
    } while (gone < 0 && errno == EINTR);
    *child = 0;
    done->ended = 1;
    done->wait_status = status;
}

static void run_child(int socket, const struct order *order)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(socket, SOCKET) != SOCKET) {
        _exit(CHILD_NO_LIMITS);
    }
    /* The launcher has no other descriptors, so the two ends came right after its own socket. */
    close(SOCKET + 1);
    close(SOCKET + 2);
    child_main(SOCKET, order);
}

/* Starts a child. Returns the agent's end of its socket, or -1. */
static int start_child(pid_t *child, const struct order *order, struct order_done *done)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        done->error = errno;
        return -1;
    }
    *child = fork();
    if (*child == 0) {
        run_child(ends[1], order);
    }
    close(ends[1]);
    if (*child < 0) {
        done->error = errno;
        close(ends[0]);
        return -1;
    }
    return ends[0];
}

void launcher_main(int socket)
{
    pid_t child = 0;
    struct order order;
    struct err err = ERR_INIT;
    (void)prctl(PR_SET_NAME, "symbols-launch");
    block_signals();
    if (!keep_only(socket)) {
        _exit(1);
    }
    offer_to_die();
    (void)cage_restrict(CAGE_LAUNCHER, &err);
    while (channel_receive(SOCKET, &order, sizeof(order), NULL, CHANNEL_FOREVER)) {
        struct order_done done = {.error = 0};
        end_child(&child, &done);
        int end = order.kind == ORDER_START ? start_child(&child, &order, &done) : -1;
        if (!channel_send(SOCKET, &done, sizeof(done), end, CHANNEL_FOREVER)) {
            break;
        }
        if (end >= 0) {
            close(end);
        }
    }
    struct order_done ignored;
    end_child(&child, &ignored);
    _exit(0);
}
