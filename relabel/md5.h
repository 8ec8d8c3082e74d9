/* MD5 (RFC 1321): the hash behind the action hashmod. Not for anything that must be secure. */
#ifndef PROFPULL_RELABEL_MD5_H
#define PROFPULL_RELABEL_MD5_H

#include <stdint.h>

#include "base/str.h"

#define MD5_BYTES 16

void md5(struct sv message, uint8_t digest[MD5_BYTES]);

#endif
