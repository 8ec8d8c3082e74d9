/* Allocations that fail: see failing_malloc.h. */
#include "tests/unit/lib/failing_malloc.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>

/* The allocator of the build: libc's, or that of the sanitizer. */
#ifdef SANITIZED
#define UNDERLYING(name) __interceptor_##name
#else
#define UNDERLYING(name) __libc_##name
#endif
void *UNDERLYING(malloc)(size_t size);
void *UNDERLYING(calloc)(size_t n, size_t size);
void *UNDERLYING(realloc)(void *p, size_t size);

/* With the linker's --wrap=f, a call of f() in our objects is a call of __wrap_f(), and __real_f()
 * is f(). The list is the Makefile's FAILING_MALLOC. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
int __real_vasprintf(char **ret, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
json_t *__real_json_loadb(const char *data, size_t n, size_t flags, json_error_t *error);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_vasprintf(char **ret, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/* The forms of the two functions above with _FORTIFY_SOURCE. */
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
json_t *__wrap_json_loadb(const char *data, size_t n, size_t flags, json_error_t *error);

/* ---- which one fails ------------------------------------------------------------------------- */

static _Thread_local struct {
    size_t left; /* allocations until the one that fails */
    enum failing whose;
    bool armed;
    bool failed;
} state;

/* Counts one allocation, seen where it is ours (FAIL_OURS) or where the process makes it. */
static bool fails(enum failing seen)
{
    if (!state.armed || state.failed || state.whose != seen) {
        return false;
    }
    if (state.left > 0) {
        state.left--;
        return false;
    }
    state.failed = true;
    errno = ENOMEM;
    return true;
}

void failing_malloc(enum failing whose, size_t n)
{
    state.left = n;
    state.whose = whose;
    state.armed = true;
    state.failed = false;
}

bool failing_malloc_stop(void)
{
    state.armed = false;
    return state.failed;
}

bool failing_malloc_failed(void)
{
    return state.failed;
}

bool failing_malloc_pause(void)
{
    bool armed = state.armed;
    state.armed = false;
    return armed;
}

void failing_malloc_resume(bool armed)
{
    state.armed = armed;
}

bool failing_malloc_now(void)
{
    return fails(FAIL_OURS);
}

size_t failing_malloc_each(enum failing whose, void (*scenario)(bool *ret_complete))
{
    for (size_t n = 0;; n++) {
        bool complete = false;
        failing_malloc(whose, n);
        scenario(&complete);
        if (!failing_malloc_stop()) {
            return complete ? n : 0;
        }
    }
}

/* ---- allocations of ours --------------------------------------------------------------------- */

void *__wrap_malloc(size_t size)
{
    return fails(FAIL_OURS) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails(FAIL_OURS) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails(FAIL_OURS) ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
    return fails(FAIL_OURS) ? NULL : __real_reallocarray(p, n, size);
}

char *__wrap_strdup(const char *s)
{
    return fails(FAIL_OURS) ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
    return fails(FAIL_OURS) ? NULL : __real_strndup(s, n);
}

int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
    return fails(FAIL_OURS) ? -1 : __real_vasprintf(ret, format, args);
}

int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args)
{
    (void)flag;
    return __wrap_vasprintf(ret, format, args);
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = __wrap_vasprintf(ret, format, args);
    va_end(args);
    return n;
}

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
    (void)flag;
    va_list args;
    va_start(args, format);
    int n = __wrap_vasprintf(ret, format, args);
    va_end(args);
    return n;
}

json_t *__wrap_json_loadb(const char *data, size_t n, size_t flags, json_error_t *error)
{
    return fails(FAIL_OURS) ? NULL : __real_json_loadb(data, n, flags, error);
}

/* ---- allocations of the process -------------------------------------------------------------- */

void *malloc(size_t size)
{
    return fails(FAIL_ALL) ? NULL : UNDERLYING(malloc)(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(FAIL_ALL) ? NULL : UNDERLYING(calloc)(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails(FAIL_ALL) ? NULL : UNDERLYING(realloc)(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes);
}
