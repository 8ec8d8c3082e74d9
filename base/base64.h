/* Base64 with the standard alphabet (RFC 4648, section 4). Any thread may call these functions. */
#ifndef PROFPULL_BASE_BASE64_H
#define PROFPULL_BASE_BASE64_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* Appends the decoded text, which must be padded. White space between the characters is allowed,
 * because folded YAML has it. Returns false for any other text, or if out is full. */
bool base64_decode(struct sv text, struct buf *out);
/* Appends v in base64, in one line. Returns false if out is full. */
bool base64_encode(struct sv v, struct buf *out);

#endif
