/* The limits of the launcher and of the child that reads files of strangers: memory, CPU time, core
 * files, and a filter of system calls of their own. Private to symbols/; both are processes with
 * one thread.
 */
#ifndef PROFPULL_SYMBOLS_CAGE_H
#define PROFPULL_SYMBOLS_CAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum cage_kind {
    CAGE_LAUNCHER, /* starts and ends processes */
    CAGE_CHILD,    /* memory, files that it already has, one socket */
};

/* Limits this process. memory: the most bytes of address space; 0: none. cpu_s: seconds of CPU
 * until the kernel ends the process; 0: no limit. Returns false with a reason if a limit cannot be
 * set. */
bool cage_limit(uint64_t memory, uint64_t cpu_s, struct err *err);

/* Forbids, for good, all system calls that a process of this kind does not need, and gaining
 * privileges. Returns false with a reason if the kernel or the architecture cannot do it.
 * Instrumented builds make calls of their own: there it does nothing. */
bool cage_restrict(enum cage_kind kind, struct err *err);

#endif
