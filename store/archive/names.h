/* The names of the objects of an archive.
 *
 *     WRITER/data/20261122T130000Z-1h_HASH.db                   a sealed file of a store
 *     WRITER/index/20261122T130000Z-1h_HASH_BYTES_PROFILES.idx  makes it known (index.h)
 *     WRITER/heartbeat                                          heartbeat.h
 *     WRITER/catalogue                                          catalogue.h
 *
 * HASH is the beginning of the SHA-256 of the file, so that files with the same stretch never
 * overwrite each other, and a file that is uploaded twice has the same name twice. An object that
 * has no such name belongs to somebody else. These functions keep no state. Any thread.
 */
#ifndef PROFPULL_STORE_ARCHIVE_NAMES_H
#define PROFPULL_STORE_ARCHIVE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "store/private.h"

#define ARCHIVE_WRITER_SIZE 64
#define ARCHIVE_HASH_DIGITS 32
#define ARCHIVE_KEY_SIZE 384
#define ARCHIVE_HEARTBEAT "heartbeat"
#define ARCHIVE_CATALOGUE "catalogue"
#define ARCHIVE_DATA "data/"
#define ARCHIVE_INDEX "index/"

struct archive_name {
    struct store_name stretch;
    char hash[ARCHIVE_HASH_DIGITS + 1];
    uint64_t bytes;
    uint64_t profiles;
};

/* Returns true for a name that a writer may have: 1 to 63 letters, digits, ".", "_" and "-", which
 * does not begin with ".". */
bool archive_is_writer(struct sv text);
void archive_data_key(const char *writer, const struct archive_name *name,
                      char out[ARCHIVE_KEY_SIZE]);
void archive_index_key(const char *writer, const struct archive_name *name,
                       char out[ARCHIVE_KEY_SIZE]);
/* Take the part of a key after "WRITER/index/" or "WRITER/data/". The latter has no numbers. */
bool archive_index_parse(struct sv text, struct archive_name *ret);
bool archive_data_parse(struct sv text, struct archive_name *ret);

#endif
