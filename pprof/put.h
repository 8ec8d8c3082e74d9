/* A writer of protobuf fields: the counterpart of pprof/wire.h.
 *
 * The functions append to a buffer; failures are checked once at the end (buf_ok()). Any thread may
 * call them.
 */
#ifndef PROFPULL_PPROF_PUT_H
#define PROFPULL_PPROF_PUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "pprof/wire.h"

/* The most bytes of an encoded number. */
#define WIRE_NUMBER_MAX 10
/* The most bytes of a field's tag and a number. */
#define WIRE_HEAD_MAX (2 * WIRE_NUMBER_MAX)

/* Encodes a number; returns the count of its bytes. */
static inline size_t wire_encode(uint64_t value, unsigned char out[WIRE_NUMBER_MAX])
{
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (unsigned char)value;
    return n;
}

/* Returns the number of bytes that a number takes. */
static inline size_t wire_number_size(uint64_t value)
{
    return (70 - (size_t)__builtin_clzll(value | 1)) / 7;
}

/* Encodes the head of a field of size bytes; returns the count of its bytes. */
static inline size_t wire_encode_head(uint64_t field, size_t size, unsigned char out[WIRE_HEAD_MAX])
{
    size_t n = wire_encode(field << 3 | WIRE_BYTES, out);
    return n + wire_encode(size, out + n);
}

/* Encodes a field that is a number; returns the count of its bytes. */
static inline size_t wire_encode_number(uint64_t field, uint64_t value,
                                        unsigned char out[WIRE_HEAD_MAX])
{
    size_t n = wire_encode(field << 3 | WIRE_VARINT, out);
    return n + wire_encode(value, out + n);
}

static inline void wire_put_tagged(struct buf *out, uint64_t tag, uint64_t value)
{
    unsigned char bytes[WIRE_HEAD_MAX];
    /* Nearly always there is room, so that the bytes need not be copied. */
    bool fits = out->cap - out->len > WIRE_HEAD_MAX;
    unsigned char *at = fits ? (unsigned char *)out->data + out->len : bytes;
    size_t n = wire_encode(tag, at);
    n += wire_encode(value, at + n);
    if (fits) {
        buf_wrote(out, n);
    } else {
        buf_append(out, bytes, n);
    }
}

/* Appends a field that is a number. */
static inline void wire_put_number(struct buf *out, uint64_t field, uint64_t value)
{
    wire_put_tagged(out, field << 3 | WIRE_VARINT, value);
}

/* Appends the head of a field of n bytes, which the caller appends next. */
static inline void wire_put_head(struct buf *out, uint64_t field, size_t n)
{
    wire_put_tagged(out, field << 3 | WIRE_BYTES, n);
}

/* Appends a field of bytes: a string, a message, packed numbers. */
static inline void wire_put_bytes(struct buf *out, uint64_t field, const void *data, size_t n)
{
    /* Nearly always there is room: one step instead of two calls. An empty text may be NULL, which
     * memcpy() refuses. */
    if (data != NULL && n < out->cap - out->len && out->cap - out->len - n > WIRE_HEAD_MAX) {
        unsigned char *at = (unsigned char *)out->data + out->len;
        size_t head = wire_encode_head(field, n, at);
        memcpy(at + head, data, n);
        buf_wrote(out, head + n);
        return;
    }
    wire_put_head(out, field, n);
    buf_append(out, data, n);
}

/* Returns the bytes that a field of n bytes takes with its head, if its number is below 16. */
static inline size_t wire_bytes_size(size_t n)
{
    return 1 + wire_number_size(n) + n;
}

#endif
