#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

/* ---- in a child process ---------------------------------------------------------------------- */

static void ask_stat(const char *path)
{
    struct stat st;
    (void)stat(path, &st);
}

static void ask_open(const char *path)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
    }
}

/* Waits for a child that has answered. A child in a system call that does not return may not end at
 * once, even if it is killed, so nothing waits for it. */
static void reap(pid_t child, bool answered)
{
    if (!answered) {
        (void)kill(child, SIGKILL);
    }
    while (waitpid(child, NULL, answered ? 0 : WNOHANG) < 0 && errno == EINTR) {
        ;
    }
}

/* Returns true if the call returns in time in a child. The end of the child closes the pipe. */
static bool returns_in_child(void (*ask)(const char *path), const char *path, int64_t ms)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return true;
    }
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        ask(path);
        _exit(0);
    }
    close(ends[1]);
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    bool answered = child < 0 || poll(&p, 1, (int)ms) != 0;
    if (child > 0) {
        reap(child, answered);
    }
    close(ends[0]);
    return answered;
}

bool disk_answers_child(const char *path, int64_t ms)
{
    return returns_in_child(ask_stat, path, ms);
}

bool disk_hanging_root(const char *path, char *ret, size_t size, int64_t ms)
{
    size_t n = strlen(path);
    if (n >= size || path[0] != '/') {
        return false;
    }
    memcpy(ret, path, n + 1);
    while (strcmp(ret, "/") != 0 && !disk_answers_child(ret, ms)) {
        if (returns_in_child(ask_open, ret, ms)) {
            return true;
        }
        char *slash = strrchr(ret, '/');
        slash[slash == ret ? 1 : 0] = '\0';
    }
    return false;
}

/* ---- on a thread ----------------------------------------------------------------------------- */

/* A question that the asking and the answering thread share. The last one to leave frees it. */
struct question {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool answered;
    bool left; /* the asking thread no longer waits */
    char path[];
};

static void question_free(struct question *q)
{
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static void *disk_main(void *arg)
{
    struct question *q = arg;
    ask_stat(q->path);
    pthread_mutex_lock(&q->lock);
    q->answered = true;
    bool left = q->left;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    if (left) {
        question_free(q);
    }
    return NULL;
}

static struct question *question_new(const char *path)
{
    size_t n = strlen(path);
    struct question *q = calloc(1, sizeof(*q) + n + 1);
    if (q == NULL) {
        return NULL;
    }
    memcpy(q->path, path, n + 1);
    pthread_mutex_init(&q->lock, NULL);
    clock_cond_init(&q->changed);
    return q;
}

bool disk_answers(const char *path, int64_t ms)
{
    struct question *q = question_new(path);
    pthread_t thread;
    int64_t ns = clock_mono_ns() + ms * NS_PER_MS;
    struct timespec until = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    if (q == NULL || !thread_start(&thread, "disk", disk_main, q, NULL)) {
        free(q);
        return true;
    }
    pthread_mutex_lock(&q->lock);
    int rc = 0;
    while (!q->answered && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&q->changed, &q->lock, &until);
    }
    bool answered = q->answered;
    q->left = true;
    pthread_mutex_unlock(&q->lock);
    if (answered) {
        pthread_join(thread, NULL);
        question_free(q);
    } else {
        pthread_detach(thread);
    }
    return answered;
}
