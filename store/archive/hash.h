/* The hash that is a part of the name of an object: the beginning of the SHA-256 of its bytes.
 *
 * All functions are pure except archive_hash_file(), which reads a file. Any thread may call them.
 */
#ifndef PROFPULL_STORE_ARCHIVE_HASH_H
#define PROFPULL_STORE_ARCHIVE_HASH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/archive/names.h"

/* Writes the digits of a SHA-256. */
void archive_hash_format(const unsigned char *sum, char ret[ARCHIVE_HASH_DIGITS + 1]);

/* Computes the hash of the first `size` bytes of a file. False with the reason in err, which may be
 * NULL. */
bool archive_hash_file(int fd, uint64_t size, char ret[ARCHIVE_HASH_DIGITS + 1], struct err *err);

#endif
