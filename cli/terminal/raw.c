#include "cli/terminal/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"

/* The alternate screen, without a cursor; and back. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[0m\033[?25h\033[?1049l"

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

static void caught_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++) {
        sigaddset(set, caught[i]);
    }
}

/* ---- modes ----------------------------------------------------------------------------------- */

static bool set_raw(const struct raw_terminal *r)
{
    struct termios raw = r->saved;
    raw.c_iflag &= (tcflag_t) ~(tcflag_t)(ICRNL | IXON | ISTRIP | INLCR | IGNCR);
    raw.c_lflag &= (tcflag_t) ~(tcflag_t)(ECHO | ICANON | IEXTEN); /* Ctrl-C stays a signal */
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    return tcsetattr(r->tty, TCSAFLUSH, &raw) == 0 && write_all(r->tty, ENTER, strlen(ENTER));
}

static void restore(int tty, const struct termios *saved)
{
    (void)write_all(tty, LEAVE, strlen(LEAVE));
    (void)tcsetattr(tty, TCSAFLUSH, saved);
}

/* ---- the guard ------------------------------------------------------------------------------- */

/* The guard's whole life, in a child: only system calls. A byte in the pipe means that the terminal
 * is restored already; the end of the pipe without one, that the process could not do so. */
static void guard_main(const struct raw_terminal *r, int pipe_end)
{
    char byte;
    ssize_t n;
    (void)setsid(); /* signals for the process group do not reach it, nor may it be stopped */
    do {
        n = read(pipe_end, &byte, 1);
    } while (n < 0 && errno == EINTR);
    if (n == 0) {
        restore(r->tty, &r->saved);
    }
    _exit(0);
}

static bool start_guard(struct raw_terminal *r, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return err_sys(err, "cannot make a pipe");
    }
    r->guard_pid = fork();
    if (r->guard_pid < 0) {
        err_sys(err, "cannot start a process");
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (r->guard_pid == 0) {
        close(ends[1]);
        guard_main(r, ends[0]);
    }
    close(ends[0]);
    r->guard = ends[1];
    return true;
}

static void end_guard(struct raw_terminal *r)
{
    (void)write_all(r->guard, "x", 1);
    close(r->guard);
    while (waitpid(r->guard_pid, NULL, 0) < 0 && errno == EINTR) {
        ;
    }
}

/* ---- beginning and ending -------------------------------------------------------------------- */

static void close_all(struct raw_terminal *r)
{
    if (r->signals >= 0) {
        close(r->signals);
    }
    if (r->tty >= 0) {
        close(r->tty);
    }
    (void)sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
}

bool raw_begin(struct raw_terminal *r, struct err *err)
{
    sigset_t set;
    *r = (struct raw_terminal){.signals = -1, .guard = -1};
    (void)sigprocmask(SIG_BLOCK, NULL, &r->old_mask);
    r->tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (r->tty < 0 || tcgetattr(r->tty, &r->saved) != 0) {
        err_sys(err, "there is no terminal for --interactive: /dev/tty");
        close_all(r);
        return false;
    }
    caught_set(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r->signals < 0 || !start_guard(r, err)) {
        if (r->signals < 0) {
            err_sys(err, "cannot read signals");
        }
        close_all(r);
        return false;
    }
    if (!set_raw(r)) {
        err_sys(err, "cannot change the mode of the terminal");
        raw_end(r);
        return false;
    }
    return true;
}

void raw_end(struct raw_terminal *r)
{
    restore(r->tty, &r->saved);
    end_guard(r);
    close_all(r);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Stops the process as Ctrl-Z does, with the terminal as it was. Returns when it goes on. */
static void stop(const struct raw_terminal *r)
{
    restore(r->tty, &r->saved);
    (void)raise(SIGSTOP);
    (void)set_raw(r);
}

static enum raw_event take_signal(const struct raw_terminal *r, int *ret_signal)
{
    struct signalfd_siginfo info;
    if (read(r->signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return RAW_TIMEOUT;
    }
    if (info.ssi_signo == (uint32_t)SIGTSTP) {
        stop(r);
    }
    if (info.ssi_signo == (uint32_t)SIGTSTP || info.ssi_signo == (uint32_t)SIGWINCH) {
        return RAW_RESIZED;
    }
    *ret_signal = (int)info.ssi_signo;
    return RAW_END;
}

enum raw_event raw_wait(struct raw_terminal *r, int timeout_ms, char *bytes, size_t size,
                        size_t *ret_n, int *ret_signal)
{
    struct pollfd fds[] = {{.fd = r->tty, .events = POLLIN}, {.fd = r->signals, .events = POLLIN}};
    *ret_signal = 0;
    *ret_n = 0;
    int ready = poll(fds, 2, timeout_ms);
    if (ready < 0) {
        return errno == EINTR ? RAW_TIMEOUT : RAW_END;
    }
    if (ready == 0) {
        return RAW_TIMEOUT;
    }
    if (fds[1].revents != 0) {
        return take_signal(r, ret_signal);
    }
    ssize_t n = read(r->tty, bytes, size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return RAW_TIMEOUT;
    }
    if (n <= 0) {
        return RAW_END;
    }
    *ret_n = (size_t)n;
    return RAW_BYTES;
}
