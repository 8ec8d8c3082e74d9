/* Replaces malloc() and its relatives in the program that includes this, in front of glibc's, so
 * that the allocations of everything in it can be made to fail.
 *
 * The sanitizers replace them too: in their builds SANITIZED is defined and there is nothing to
 * test.
 */
#ifndef PROFPULL_TESTS_FAILING_MALLOC_H
#define PROFPULL_TESTS_FAILING_MALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#ifndef SANITIZED

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static long countdown = -1; /* allocations until one fails; negative: none does */

static bool fails(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails() ? NULL : __libc_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
    return fails() ? NULL : __libc_realloc(p, n * size);
}

#endif

#endif
