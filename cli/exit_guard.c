#include "cli/exit_guard.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

struct guard {
    int64_t until_ms;
    int code;
};

static void *guard_main(void *arg)
{
    struct guard *g = arg;
    struct timespec until = clock_timespec(g->until_ms);
    int code = g->code;
    free(g);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
        ;
    }
    (void)fprintf(stderr, "profpull: a thread hangs, probably in a call of a disk: ending without "
                          "it\n");
    _exit(code);
}

void exit_guard_start(int64_t ms, int code)
{
    struct guard *g = malloc(sizeof(*g));
    pthread_t thread;
    if (g == NULL) {
        return;
    }
    *g = (struct guard){.until_ms = clock_mono_ms() + ms, .code = code};
    if (!thread_start(&thread, "exit-guard", guard_main, g, NULL)) {
        free(g);
        return;
    }
    pthread_detach(thread);
}
