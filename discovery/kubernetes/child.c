#include "discovery/kubernetes/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

/* This header comes last, because it defines macros whose names base/ uses. */
#include <event2/event.h>

/* The time that a child gets to end after it has closed its outputs, in milliseconds. */
#define REAP_MS 10

struct stream {
    struct child *child;
    int fd; /* -1 after its end */
    struct event *event;
    struct buf text;
};

struct child {
    struct child_options options;
    pid_t pid; /* 0 after it has been reaped */
    struct stream out;
    struct stream errors;
    struct loop_timer *timer;
    int64_t deadline_ms;
    enum child_end end; /* why it was killed; CHILD_EXITED if it was not killed */
};

/* ---- reading and ending ---------------------------------------------------------------------- */

static void stream_close(struct stream *s)
{
    if (s->event != NULL) {
        event_free(s->event);
        s->event = NULL;
    }
    if (s->fd >= 0) {
        close(s->fd);
        s->fd = -1;
    }
}

static void kill_all(struct child *p)
{
    /* If the group cannot be killed, the child alone is: the group may not exist yet, or may no
     * longer be the child's. */
    if (kill(-p->pid, SIGKILL) != 0) {
        kill(p->pid, SIGKILL);
    }
}

static void stop(struct child *p, enum child_end why)
{
    if (p->end == CHILD_EXITED) {
        p->end = why;
        kill_all(p);
    }
}

static void give_up(struct child *p, enum child_end why)
{
    stop(p, why);
    /* The pipes are closed here, because a process that has left the group may keep their other
     * ends open. */
    stream_close(&p->out);
    stream_close(&p->errors);
    loop_timer_after(p->timer, 0);
}

static void finish(struct child *p, int status)
{
    enum child_end end = p->end;
    int value = 0;
    if (end == CHILD_EXITED && WIFEXITED(status)) {
        value = WEXITSTATUS(status);
    } else if (end == CHILD_EXITED) {
        end = CHILD_SIGNALED;
        value = WTERMSIG(status);
    }
    struct sv out = {p->out.text.data, p->out.text.len};
    struct sv errors = {p->errors.text.data, p->errors.text.len};
    p->options.on_done(p->options.arg, end, value, out, errors);
}

/* Reaps the child after both outputs have ended. */
static void reap(struct child *p)
{
    int status = 0;
    pid_t got = waitpid(p->pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) {
        int64_t now = clock_mono_ms();
        if (now >= p->deadline_ms) {
            stop(p, CHILD_TIMEOUT);
        }
        loop_timer_at(p->timer, now + REAP_MS);
        return;
    }
    if (got < 0 && p->end == CHILD_EXITED) {
        p->end = CHILD_LOST;
    }
    p->pid = 0;
    finish(p, status);
}

static void child_on_timer(void *arg)
{
    struct child *p = arg;
    if (p->out.fd < 0 && p->errors.fd < 0) {
        reap(p);
    } else {
        give_up(p, CHILD_TIMEOUT);
    }
}

/* Keeps a part of the output. False if stdout exceeds its limit; stderr is cut. */
static bool keep(struct stream *s, const char *data, size_t n)
{
    size_t room = s->text.max - s->text.len;
    if (s == &s->child->errors && n > room) {
        n = room;
    }
    return buf_append(&s->text, data, n);
}

static void child_on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct stream *s = arg;
    struct child *p = s->child;
    char data[4096];
    ssize_t n = read(fd, data, sizeof(data));
    if (n > 0) {
        if (!keep(s, data, (size_t)n)) {
            give_up(p, buf_too_big(&s->text) ? CHILD_TOO_MUCH : CHILD_LOST);
        }
        return;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    stream_close(s);
    if (p->out.fd < 0 && p->errors.fd < 0) {
        loop_timer_after(p->timer, 0);
    }
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Creates a pipe and keeps its reading end. */
static bool stream_open(struct child *p, struct stream *s, int *ret_write_fd)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return false;
    }
    *ret_write_fd = fds[1];
    s->child = p;
    s->fd = fds[0];
    errno = ENOMEM;
    if (fcntl(s->fd, F_SETFL, O_NONBLOCK) != 0) {
        return false;
    }
    s->event = event_new(loop_event_base(p->options.loop), s->fd, EV_READ | EV_PERSIST,
                         child_on_readable, s);
    return s->event != NULL && event_add(s->event, NULL) == 0;
}

static int set_actions(posix_spawn_file_actions_t *actions, int out_fd, int err_fd)
{
    int error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    error = error != 0 ? error : posix_spawn_file_actions_adddup2(actions, out_fd, 1);
    error = error != 0 ? error : posix_spawn_file_actions_adddup2(actions, err_fd, 2);
    return error != 0 ? error : posix_spawn_file_actions_addclosefrom_np(actions, 3);
}

/* Sets the child's attributes: it must inherit neither the signals that our threads block, nor
 * those that the program ignores. */
static int set_attributes(posix_spawnattr_t *attr)
{
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                   POSIX_SPAWN_SETPGROUP);
    error = error != 0 ? error : posix_spawnattr_setsigmask(attr, &none);
    error = error != 0 ? error : posix_spawnattr_setsigdefault(attr, &all);
    return error != 0 ? error : posix_spawnattr_setpgroup(attr, 0);
}

static int spawn(struct child *p, int out_fd, int err_fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attr);
    if (error == 0) {
        error = set_actions(&actions, out_fd, err_fd);
        error = error != 0 ? error : set_attributes(&attr);
        /* The parameters of posix_spawn() lack const; it changes nothing. */
        error = error != 0 ? error
                           : posix_spawnp(&p->pid, p->options.argv[0], &actions, &attr,
                                          (char *const *)(uintptr_t)p->options.argv,
                                          (char *const *)(uintptr_t)p->options.envp);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int start(struct child *p)
{
    int out_fd = -1;
    int err_fd = -1;
    int error = 0;
    if (!stream_open(p, &p->out, &out_fd) || !stream_open(p, &p->errors, &err_fd)) {
        error = errno;
    } else {
        error = spawn(p, out_fd, err_fd);
    }
    if (out_fd >= 0) {
        close(out_fd);
    }
    if (err_fd >= 0) {
        close(err_fd);
    }
    if (error != 0) {
        p->pid = 0;
    }
    return error;
}

struct child *child_start(const struct child_options *options, int *ret_errno)
{
    struct child *p = calloc(1, sizeof(*p));
    *ret_errno = ENOMEM;
    if (p == NULL) {
        return NULL;
    }
    p->options = *options;
    p->out.fd = -1;
    p->errors.fd = -1;
    buf_init(&p->out.text, options->stdout_max);
    buf_init(&p->errors.text, CHILD_STDERR_MAX);
    p->timer = loop_timer_new(options->loop, child_on_timer, p);
    if (p->timer != NULL) {
        *ret_errno = start(p);
    }
    if (*ret_errno != 0) {
        return child_free(p);
    }
    p->deadline_ms = clock_mono_ms() + options->timeout_ms;
    loop_timer_at(p->timer, p->deadline_ms);
    return p;
}

struct child *child_free(struct child *p)
{
    if (p == NULL) {
        return NULL;
    }
    if (p->pid > 0) {
        kill_all(p);
        /* This wait is short, because SIGKILL cannot be delayed. */
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    stream_close(&p->out);
    stream_close(&p->errors);
    loop_timer_free(p->timer);
    buf_wipe(&p->out.text);
    buf_done(&p->errors.text);
    free(p);
    return NULL;
}
