/* Makes allocations fail, one at a time, to test what happens when memory runs out.
 *
 * A program that includes this header is linked with failing_malloc.o and with the linker's --wrap
 * for every function that allocates (see the Makefile), so that the product is tested as it is
 * built. It works in all builds, those with sanitizers included. Only the thread that arms the
 * allocator sees failures; each thread has a state of its own.
 *
 *     failing_malloc(FAIL_OURS, n);      // the allocation after the next n fails, once
 *     bool ok = what_is_tested();
 *     bool failed = failing_malloc_stop();
 */
#ifndef PROFPULL_TESTS_FAILING_MALLOC_H
#define PROFPULL_TESTS_FAILING_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Whose allocations fail. */
enum failing {
    /* Allocations of the product and of the test fail: malloc(), calloc(), realloc(),
     * reallocarray(), strdup(), strndup(), asprintf(), vasprintf(), and json_loadb() as a whole.
     * The test hands them to a library (curl_global_init_mem(), for example) to include what it
     * allocates. */
    FAIL_OURS,
    /* Every malloc(), calloc(), realloc() and reallocarray() in the process, in the libraries and
     * in libc too. Under valgrind, which replaces malloc() in its own way, scripts/valgrind.sh must
     * name the program. */
    FAIL_ALL,
};

/* Arms the allocator: n allocations of this thread succeed, the next one fails, and those after it
 * succeed again. */
void failing_malloc(enum failing whose, size_t n);
/* No allocation fails from here on. True if one has failed since failing_malloc(). */
bool failing_malloc_stop(void);
/* True if the allocation has failed; false if it is still to come, or if nothing is armed. */
bool failing_malloc_failed(void);

/* Between these two, allocations succeed and are not counted: for what the test itself needs.
 * failing_malloc_resume() takes the value that failing_malloc_pause() gave, so that pairs nest. */
bool failing_malloc_pause(void);
void failing_malloc_resume(bool armed);

/* For a fake in the test that stands for something that allocates: counts as one allocation of
 * ours, and is true if this is the one that fails. */
bool failing_malloc_now(void);

/* Runs the scenario with the first allocation failing, then with the second, and so on, until no
 * allocation is left to fail. The scenario checks what it got each time and sets *ret_complete if
 * all was done; leaks and overruns are found by the sanitizers. Returns the number of runs in which
 * an allocation failed; 0 if even the last run, without a failure, was not complete. */
size_t failing_malloc_each(enum failing whose, void (*scenario)(bool *ret_complete));

#endif
