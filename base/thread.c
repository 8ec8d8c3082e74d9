#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Makes the set of all signals except faults of the thread itself. If faults were blocked, the
 * kernel would kill the process without running a handler, and the sanitizers could not report
 * them. */
static void signals_to_block(sigset_t *ret_set)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigfillset(ret_set);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        sigdelset(ret_set, faults[i]);
    }
}

struct start {
    void *(*fn)(void *);
    void *arg;
    char name[THREAD_NAME_MAX + 1];
};

/* Sets the name of the calling thread. To name another thread, the C library would write a file of
 * /proc, which the sandbox refuses. */
static void *run_named(void *arg)
{
    const struct start start = *(struct start *)arg;
    free(arg);
    pthread_setname_np(pthread_self(), start.name);
    return start.fn(start.arg);
}

/* Starts the thread. Returns 0 or an errno. */
static int create(pthread_t *ret_thread, struct start *start)
{
    sigset_t block, before;
    /* The thread inherits the mask, so it never runs with signals unblocked. */
    signals_to_block(&block);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    int rc = pthread_create(ret_thread, NULL, run_named, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

bool thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *), void *arg,
                  struct err *err)
{
    struct start *start = malloc(sizeof(*start));
    if (start == NULL) {
        err_set(err, ERR_MEMORY, "out of memory for thread %s", name);
        return false;
    }
    *start = (struct start){.fn = fn, .arg = arg};
    (void)snprintf(start->name, sizeof(start->name), "%s", name);
    errno = create(ret_thread, start);
    if (errno != 0) {
        err_sys(err, "cannot start thread %s", name);
        free(start);
        return false;
    }
    return true;
}

void thread_lower(void)
{
    /* In Linux, 0 is the calling thread, not the whole process. A process may have been started
     * with a lower priority than this. */
    if (getpriority(PRIO_PROCESS, 0) < THREAD_LOW_NICE) {
        (void)setpriority(PRIO_PROCESS, 0, THREAD_LOW_NICE);
    }
}
