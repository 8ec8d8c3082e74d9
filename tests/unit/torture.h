/* Makes the allocations of code that is included behind this header fail one after the other.
 *
 *     #include "tests/unit/torture.h"
 *     #include "base/buf.c"      // its malloc() is now torture_malloc()
 *
 * torture() runs a scenario with the first allocation failing, then with the second, and so on,
 * until one run needs no more than succeed. The scenario checks what it got each time; what it
 * leaks or overruns is for the sanitizers to find.
 */
#ifndef PROFPULL_TESTS_TORTURE_H
#define PROFPULL_TESTS_TORTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* How many allocations succeed before one fails. One object for each test program, on purpose: the
 * allocator has no parameter to carry it. */
static struct {
    size_t left;
    bool armed;
    bool failed;
} torture_state;

static bool torture_fails(void)
{
    if (!torture_state.armed || torture_state.failed) {
        return false;
    }
    torture_state.failed = torture_state.left == 0;
    torture_state.left -= !torture_state.failed;
    return torture_state.failed;
}

static inline void *torture_malloc(size_t size)
{
    return torture_fails() ? NULL : malloc(size);
}

static inline void *torture_calloc(size_t count, size_t size)
{
    return torture_fails() ? NULL : calloc(count, size);
}

static inline void *torture_realloc(void *p, size_t size)
{
    return torture_fails() ? NULL : realloc(p, size);
}

/* Exactly one allocation fails in each run. Returns how many runs had a failure. */
static inline size_t torture(void (*scenario)(bool *ret_complete))
{
    for (size_t n = 0;; n++) {
        bool complete = false;
        torture_state.left = n;
        torture_state.armed = true;
        torture_state.failed = false;
        scenario(&complete);
        torture_state.armed = false;
        if (!torture_state.failed) {
            return complete ? n : 0;
        }
    }
}

/* With parameters, so that __attribute__((malloc)) stays what it is. */
#define malloc(size) torture_malloc(size)
#define calloc(count, size) torture_calloc(count, size)
#define realloc(p, size) torture_realloc(p, size)

#endif
