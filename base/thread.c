#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

/* All signals except faults of the thread itself: if these were blocked, the kernel would kill the
 * process without running a handler, and the sanitizers could not report. */
static void signals_to_block(sigset_t *ret_set)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigfillset(ret_set);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        sigdelset(ret_set, faults[i]);
    }
}

bool thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *), void *arg,
                  struct err *err)
{
    char short_name[THREAD_NAME_MAX + 1];
    sigset_t block, before;
    pthread_t thread;

    /* The thread inherits the mask, so it never runs with signals unblocked. */
    signals_to_block(&block);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    errno = pthread_create(&thread, NULL, fn, arg);
    bool started = errno == 0;
    if (!started) {
        err_sys(err, "cannot start thread %s", name);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
        return false;
    }
    (void)snprintf(short_name, sizeof(short_name), "%s", name);
    pthread_setname_np(thread, short_name);
    *ret_thread = thread;
    return true;
}
