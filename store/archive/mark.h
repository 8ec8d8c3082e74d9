/* The mark beside a database (`NAME.db-archive`): the file must not change any more, because it is
 * being uploaded, or was. It has the hash of the file, which is a part of the names of its objects.
 *
 * The mark is written and synced before the first byte is uploaded. After a crash the same bytes
 * are therefore uploaded again under the same names. A mark that a crash has cut off still counts.
 */
#ifndef PROFPULL_STORE_ARCHIVE_MARK_H
#define PROFPULL_STORE_ARCHIVE_MARK_H

#include <stdbool.h>

#include "base/err.h"
#include "store/archive/names.h"

/* Returns true if the database has a mark. The hash is "" if the mark is damaged. */
bool mark_read(const char *path, char ret_hash[ARCHIVE_HASH_DIGITS + 1]);
bool mark_write(const char *path, const char *hash, struct err *err);

#endif
