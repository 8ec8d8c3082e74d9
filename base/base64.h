/* Base64 with the standard alphabet (RFC 4648, 4). Any thread. */
#ifndef PROFPULL_BASE_BASE64_H
#define PROFPULL_BASE_BASE64_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* Appends the decoded text: the standard alphabet with padding; white space between the characters
 * is allowed (folded YAML). False on anything else, or when out is full. */
bool base64_decode(struct sv text, struct buf *out);
/* Appends v in base64, in one line. False when out is full. */
bool base64_encode(struct sv v, struct buf *out);

#endif
