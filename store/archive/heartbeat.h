/* The heartbeat object of a writer: two lines of text, the version of the archive and the id of the
 * process that wrote it. The time that counts is the one at which the bucket got it. Any thread.
 */
#ifndef PROFPULL_STORE_ARCHIVE_HEARTBEAT_H
#define PROFPULL_STORE_ARCHIVE_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define HEARTBEAT_MAX 256
#define HEARTBEAT_ID_MAX 64

/* Writes a heartbeat; returns its length. */
size_t heartbeat_format(const char *id, char out[HEARTBEAT_MAX]);
/* Reads a heartbeat. False if it is none. A later version may have more lines. */
bool heartbeat_parse(struct sv text, uint64_t *ret_version, struct sv *ret_id);

#endif
