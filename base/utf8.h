/* UTF-8 (RFC 3629): no surrogates, no overlong forms, nothing above U+10FFFF. Any thread may call
 * these functions. */
#ifndef PROFPULL_BASE_UTF8_H
#define PROFPULL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sv.h"

/* The length of the longest character in bytes. */
#define UTF8_BYTES_MAX 4
/* Replaces a byte that is not part of valid UTF-8. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"
#define UTF8_REPLACEMENT_RUNE UINT32_C(0xfffd)

/* Decodes the character at the start of v, which must not be empty. Returns its length in bytes, or
 * 0 with UTF8_REPLACEMENT_RUNE if v does not begin with a valid character. */
size_t utf8_decode(struct sv v, uint32_t *ret_rune);
/* Writes a rune, which must be at most U+10FFFF and no surrogate. Returns its length in bytes. */
size_t utf8_encode(uint32_t rune, char out[UTF8_BYTES_MAX]);

bool utf8_valid(struct sv v);
/* Returns v without the byte order mark (U+FEFF) that editors of Windows put at the start of a
 * file. */
struct sv utf8_without_mark(struct sv v);
/* Returns the length of the longest prefix of v that has at most max bytes and cuts no character in
 * two. */
size_t utf8_prefix(struct sv v, size_t max);
/* Appends v with each invalid byte replaced by U+FFFD, as Go does. Returns false if out is full. */
bool utf8_repair(struct sv v, struct buf *out);

#endif
