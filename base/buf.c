/* Invariants between calls: len <= max; data[len] is NUL; cap includes the NUL, and is 0 exactly if
 * nothing is allocated and data is the shared empty string; a failed buffer is empty. */
#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 64

/* The data of a buffer that has allocated nothing. It is never written, because cap is 0. */
static char *empty_string(void)
{
    return (char *)(uintptr_t) "";
}

void buf_init(struct buf *b, size_t max)
{
    /* Sums of a length and a capacity must not overflow. */
    if (max > SIZE_MAX / 4) {
        max = SIZE_MAX / 4;
    }
    *b = (struct buf){.data = empty_string(), .max = max};
}

static void release(struct buf *b)
{
    if (b->cap > 0) {
        free(b->data);
    }
    b->data = empty_string();
    b->len = 0;
    b->cap = 0;
}

void buf_done(struct buf *b)
{
    release(b);
    b->failed = false;
    b->too_big = false;
}

void buf_wipe(struct buf *b)
{
    if (b->cap > 0) {
        explicit_bzero(b->data, b->cap);
    }
    buf_done(b);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->cap > 0) {
        b->data[0] = '\0';
    }
    b->failed = false;
    b->too_big = false;
}

static bool fail(struct buf *b, bool too_big)
{
    release(b);
    b->failed = true;
    b->too_big = too_big;
    return false;
}

static bool set_cap(struct buf *b, size_t cap)
{
    char *data = realloc(b->cap > 0 ? b->data : NULL, cap);
    if (data == NULL) {
        return false;
    }
    if (b->cap == 0) {
        data[0] = '\0';
    }
    b->data = data;
    b->cap = cap;
    return true;
}

/* Makes room for n more bytes and the NUL, or fails the buffer. */
static bool grow(struct buf *b, size_t n)
{
    if (b->failed) {
        return false;
    }
    if (n > b->max - b->len) {
        return fail(b, true);
    }
    size_t need = b->len + n + 1;
    if (need <= b->cap) {
        return true;
    }
    size_t cap = b->cap == 0 ? FIRST_CAP : b->cap;
    while (cap < need) {
        cap *= 2;
    }
    if (cap > b->max + 1) {
        cap = b->max + 1;
    }
    return set_cap(b, cap) || fail(b, false);
}

void buf_reserve(struct buf *b, size_t n)
{
    if (n > b->max) {
        n = b->max;
    }
    if (!b->failed && n + 1 > b->cap) {
        (void)set_cap(b, n + 1);
    }
}

char *buf_room(struct buf *b, size_t n)
{
    size_t more = n > b->len ? n - b->len : 0;
    return more < b->cap - b->len || grow(b, more) ? b->data + b->len : NULL;
}

void buf_wrote(struct buf *b, size_t n)
{
    b->len += n;
    b->data[b->len] = '\0';
}

bool buf_append(struct buf *b, const void *data, size_t len)
{
    /* Nearly always there is room. A failed buffer has none, so that it fails here. */
    if (len >= b->cap - b->len && !grow(b, len)) {
        return false;
    }
    if (len > 0) {
        memcpy(b->data + b->len, data, len);
        b->len += len;
    }
    b->data[b->len] = '\0';
    return true;
}

bool buf_putc(struct buf *b, char c)
{
    return buf_append(b, &c, 1);
}

bool buf_puts(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

bool buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool ok = buf_vprintf(b, fmt, ap);
    va_end(ap);
    return ok;
}

bool buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0) {
        return fail(b, false);
    }
    if (!grow(b, (size_t)n)) {
        return false;
    }
    (void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
    return true;
}

bool buf_ok(const struct buf *b)
{
    return !b->failed;
}

bool buf_too_big(const struct buf *b)
{
    return b->too_big;
}

char *buf_take(struct buf *b, size_t *ret_len)
{
    /* An empty buffer may have no storage yet, but the caller needs something to free. */
    if (b->failed || (b->cap == 0 && !grow(b, 0))) {
        return NULL;
    }
    size_t len = b->len;
    char *data = b->data;
    if (b->cap > len + 1) {
        char *smaller = realloc(data, len + 1);
        if (smaller != NULL) {
            data = smaller;
        }
    }
    b->cap = 0; /* the storage is the caller's now */
    release(b);
    if (ret_len != NULL) {
        *ret_len = len;
    }
    return data;
}
