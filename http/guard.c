#include "http/guard.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "http/wire.h"

struct guard {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t wake;
    bool closed;
    int cut;       /* the socket that was shut down during this call; -1: none */
    uint64_t call; /* counts calls; the current one if n_fds is not 0 */
    clockid_t cpu_clock;
    bool has_clock;
    size_t n_fds;
    int fds[GUARD_SOCKETS_MAX]; /* -1: closed */

    /* State when the thread first checked the call. */
    uint64_t seen_call;
    int64_t seen_cpu_ns;
    int64_t seen_bytes[GUARD_SOCKETS_MAX];
};

/* ---- the thread ------------------------------------------------------------------------------ */

static int64_t cpu_ns(const struct guard *g)
{
    struct timespec ts;
    return clock_gettime(g->cpu_clock, &ts) == 0 ? ts.tv_sec * NS_PER_S + ts.tv_nsec : 0;
}

static void look_first(struct guard *g)
{
    g->seen_call = g->call;
    g->seen_cpu_ns = cpu_ns(g);
    for (size_t i = 0; i < g->n_fds; i++) {
        g->seen_bytes[i] = g->fds[i] >= 0 ? wire_received(g->fds[i]) : -1;
    }
}

/* Shuts down the busiest socket. The caller holds the lock, so that the number cannot become
 * another socket's. */
static void cut_busiest(struct guard *g)
{
    int busiest = -1;
    /* After a cut, the call may only be busy with bytes that it has read already, and then no other
     * peer is to blame. */
    int64_t most = g->cut >= 0 ? 0 : -1;
    for (size_t i = 0; i < g->n_fds; i++) {
        /* The count is unknown (-1) if bytes arrive while it is taken; that connection is the
         * busiest. */
        int64_t now = g->fds[i] >= 0 ? wire_received(g->fds[i]) : 0;
        int64_t bytes = g->fds[i] < 0 ? -1 : now < 0 ? INT64_MAX : now - g->seen_bytes[i];
        if (bytes > most) {
            most = bytes;
            busiest = g->fds[i];
        }
    }
    if (busiest >= 0) {
        (void)shutdown(busiest, SHUT_RDWR);
        /* The kernel may hold megabytes of frames, which would be read before the end. */
        (void)recv(busiest, NULL, INT_MAX, MSG_TRUNC | MSG_DONTWAIT);
        g->cut = busiest;
    }
}

static void look(struct guard *g)
{
    if (g->n_fds == 0 || !g->has_clock) {
        return;
    }
    if (g->seen_call != g->call) {
        look_first(g);
    } else if (cpu_ns(g) - g->seen_cpu_ns >= GUARD_CPU_MS * NS_PER_MS) {
        cut_busiest(g);
        look_first(g); /* another connection may be cut next */
    }
}

static void *thread_main(void *arg)
{
    struct guard *g = arg;
    pthread_mutex_lock(&g->lock);
    while (!g->closed) {
        struct timespec at;
        int64_t until_ns = clock_mono_ns() + GUARD_LOOK_MS * NS_PER_MS;
        at.tv_sec = (time_t)(until_ns / NS_PER_S);
        at.tv_nsec = (long)(until_ns % NS_PER_S);
        if (pthread_cond_timedwait(&g->wake, &g->lock, &at) == ETIMEDOUT) {
            look(g);
        }
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* ---- the loop's side ------------------------------------------------------------------------- */

struct guard *guard_new(struct err *err)
{
    struct guard *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        err_memory(err);
        return NULL;
    }
    pthread_mutex_init(&g->lock, NULL);
    clock_cond_init(&g->wake);
    if (!thread_start(&g->thread, "guard", thread_main, g, err)) {
        pthread_cond_destroy(&g->wake);
        pthread_mutex_destroy(&g->lock);
        free(g);
        return NULL;
    }
    return g;
}

struct guard *guard_free(struct guard *g)
{
    if (g == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&g->lock);
    g->closed = true;
    pthread_cond_signal(&g->wake);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    pthread_cond_destroy(&g->wake);
    pthread_mutex_destroy(&g->lock);
    free(g);
    return NULL;
}

void guard_enter(struct guard *g, const struct guard_socket *sockets, size_t n)
{
    if (g == NULL) {
        return;
    }
    pthread_mutex_lock(&g->lock);
    if (!g->has_clock) {
        /* The loop's thread is only known here. */
        g->has_clock = pthread_getcpuclockid(pthread_self(), &g->cpu_clock) == 0;
    }
    g->call++;
    g->cut = -1;
    g->n_fds = n < GUARD_SOCKETS_MAX ? n : GUARD_SOCKETS_MAX;
    for (size_t i = 0; i < g->n_fds; i++) {
        g->fds[i] = sockets[i].fd;
    }
    pthread_mutex_unlock(&g->lock);
}

int guard_leave(struct guard *g)
{
    if (g == NULL) {
        return -1;
    }
    pthread_mutex_lock(&g->lock);
    g->n_fds = 0;
    int cut = g->cut;
    pthread_mutex_unlock(&g->lock);
    return cut;
}

void guard_forget(struct guard *g, int fd)
{
    if (g == NULL) {
        return;
    }
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->n_fds; i++) {
        g->fds[i] = g->fds[i] == fd ? -1 : g->fds[i];
    }
    pthread_mutex_unlock(&g->lock);
}
