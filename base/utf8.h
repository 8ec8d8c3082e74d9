/* Decoding of UTF-8 one character at a time, for what escapes text. Private to base. */
#ifndef PROFPULL_BASE_UTF8_H
#define PROFPULL_BASE_UTF8_H

#include <stdint.h>

#include "base/str.h"

/* What stands in for a byte that is not part of valid UTF-8. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"
#define UTF8_REPLACEMENT_RUNE UINT32_C(0xfffd)

/* The length in bytes of the character at the start of v (v.n > 0), and the character itself.
 * 0 if there is no valid one (RFC 3629); *ret_rune is UTF8_REPLACEMENT_RUNE then. */
size_t utf8_decode(struct sv v, uint32_t *ret_rune);

#endif
