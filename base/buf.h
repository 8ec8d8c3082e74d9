/* A growable byte buffer with a mandatory ceiling.
 *
 * All data whose size is decided outside the program is collected in such buffers. An append that
 * exceeds the ceiling or runs out of memory frees the content and fails. All later appends fail as
 * well, so a run of appends needs one check at its end (buf_ok()). The data is always
 * NUL-terminated (the NUL is not counted) and may contain NULs; an empty buffer has a valid data
 * pointer. A buffer has one owner and no lock.
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

/* Prepares an empty buffer; allocates nothing. max: the ceiling in bytes. */
void buf_init(struct buf *b, size_t max);
/* Frees the storage; the buffer is empty and usable again, with the same ceiling. */
void buf_done(struct buf *b);
/* Frees the storage of a secret like buf_done(), and zeroes it first. Storage that growing has
 * already freed is not zeroed. */
void buf_wipe(struct buf *b);
/* Empties the buffer and clears a failure; keeps the storage. */
void buf_clear(struct buf *b);
/* Makes room for n bytes in all, or up to the ceiling. This is a hint: the buffer does not fail if
 * there is no memory. */
void buf_reserve(struct buf *b, size_t n);

bool buf_append(struct buf *b, const void *data, size_t len);
bool buf_putc(struct buf *b, char c);
bool buf_puts(struct buf *b, const char *s);
bool buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Makes room for n bytes in all, and returns the place after the content. Bytes that are written
 * there become content by buf_wrote(). Returns NULL if the buffer fails. */
char *buf_room(struct buf *b, size_t n);
/* Adds n bytes, which were written to the room, to the content. */
void buf_wrote(struct buf *b, size_t n);

/* Returns false if an append has failed since buf_init() or buf_clear(). */
bool buf_ok(const struct buf *b);
/* Returns true if the buffer failed at its ceiling and not for lack of memory. */
bool buf_too_big(const struct buf *b);

/* Passes the storage, shrunk to its content, to the caller, who frees it with free(). Afterwards
 * the buffer is empty. Returns NULL if the buffer has failed. ret_len may be NULL. */
char *buf_take(struct buf *b, size_t *ret_len);

#endif
