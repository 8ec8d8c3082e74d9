/* A growable byte buffer with a mandatory ceiling.
 *
 * Everything whose size the outside decides is collected in one of these. Appending past the
 * ceiling, or out of memory, fails, frees what was held and makes the buffer sticky: later appends
 * fail too, so a run of appends needs one check at its end (buf_ok()). The data is always
 * NUL-terminated (the NUL is not counted) and may hold NULs itself; an empty buffer has a valid
 * data pointer. One owner, no locking.
 */
#ifndef PROFPULL_BASE_BUF_H
#define PROFPULL_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
    /* Readable; written by buf_* only. */
    char *data;
    size_t len;
    /* Private. */
    size_t cap;
    size_t max;
    bool failed;
    bool too_big;
};

/* max: most bytes that the buffer may ever hold. Allocates nothing. */
void buf_init(struct buf *b, size_t max);
/* Frees the storage; the buffer is empty and usable again with the same ceiling. */
void buf_done(struct buf *b);
/* buf_done() for secrets: zeroes the storage first. (Storage left behind by growing is not.) */
void buf_wipe(struct buf *b);
/* Forgets the content and a failure, keeps the storage. */
void buf_clear(struct buf *b);
/* Makes room for at least n bytes in all (capped at the ceiling). A hint: never fails the buffer.
 */
void buf_reserve(struct buf *b, size_t n);

bool buf_append(struct buf *b, const void *data, size_t len);
bool buf_putc(struct buf *b, char c);
bool buf_puts(struct buf *b, const char *s);
bool buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* False after any append has failed since buf_init() or buf_clear(). */
bool buf_ok(const struct buf *b);
/* True when the failure was the ceiling and not memory. */
bool buf_too_big(const struct buf *b);

/* Hands the storage to the caller, who frees it with free(); the buffer is empty afterwards.
 * NULL if the buffer has failed. *ret_len may be NULL. Shrinks the storage to its content. */
char *buf_take(struct buf *b, size_t *ret_len);

#endif
