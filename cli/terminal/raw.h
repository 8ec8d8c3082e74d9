/* A terminal in raw mode: keys arrive one by one and are not echoed, and the alternate screen hides
 * the shell's output.
 *
 * The terminal is restored however the process ends. The process itself restores it before it ends,
 * and when a signal stops or ends it: these signals are blocked and read from a descriptor, so no
 * handler runs. A guard, a child that waits for the end of a pipe, restores it if the process could
 * not, because it was killed or has crashed. One thread, one object at a time.
 */
#ifndef PROFPULL_CLI_TERMINAL_RAW_H
#define PROFPULL_CLI_TERMINAL_RAW_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

#include "base/err.h"

struct raw_terminal {
    int tty; /* /dev/tty: standard input may be the profile */
    int signals;
    int guard; /* the pipe to the guard */
    pid_t guard_pid;
    sigset_t old_mask;
    struct termios saved;
};

/* Enters raw mode. False with err if there is no terminal; then nothing has changed. */
bool raw_begin(struct raw_terminal *r, struct err *err);
/* Restores the terminal and the signals. */
void raw_end(struct raw_terminal *r);

enum raw_event {
    RAW_BYTES,   /* *ret_n bytes were read */
    RAW_TIMEOUT, /* nothing came within timeout_ms */
    RAW_RESIZED, /* the size has changed, or the process was stopped and goes on: draw again */
    RAW_END,     /* the terminal is gone, or a signal asks to end: *ret_signal, or 0 */
};
/* Waits for keys and signals. timeout_ms: -1 waits without a limit. If a signal stops the process
 * (Ctrl-Z), the terminal is restored meanwhile. */
enum raw_event raw_wait(struct raw_terminal *r, int timeout_ms, char *bytes, size_t size,
                        size_t *ret_n, int *ret_signal);

#endif
