/* A watch that ends a test program that hangs (a lost wake-up), and not one that a busy machine
 * runs slowly. main() of a program that may hang calls hang_watch() first. */
#ifndef PROFPULL_TESTS_UNIT_LIB_HANG_H
#define PROFPULL_TESTS_UNIT_LIB_HANG_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

/* Seconds between two looks. */
#define HANG_LOOK_S 120
/* CPU time that a program uses at least between two looks if it does not hang. Its timers and idle
 * servers use less. */
#define HANG_CPU_MS 50
/* A program that is not done by then waits for itself. */
#define HANG_LOOKS_MAX 10

/* Returns true if a program hangs that has used this CPU time since the last look. */
static inline bool hang_is(clock_t used, int looks)
{
    return used < (clock_t)CLOCKS_PER_SEC / 1000 * HANG_CPU_MS || looks >= HANG_LOOKS_MAX;
}

static inline void hang_look(int signal_number)
{
    static clock_t seen;
    static int looks;
    clock_t now = clock();
    bool hangs = hang_is(now - seen, ++looks);
    seen = now;
    if (hangs) {
        (void)signal(signal_number, SIG_DFL);
        (void)raise(signal_number);
    }
    (void)alarm(HANG_LOOK_S);
}

static inline void hang_watch(void)
{
    struct sigaction action = {.sa_handler = hang_look, .sa_flags = SA_RESTART};
    (void)sigaction(SIGALRM, &action, NULL);
    (void)alarm(HANG_LOOK_S);
}

#endif
