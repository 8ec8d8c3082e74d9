/* The catalogue of a writer: the indexes of its newest days in one object, so that a reader with an
 * empty cache reads all of them by one request.
 *
 * It begins with a line of text that has the version. Then come, for each index, its key, its ETag
 * and its bytes. A reader takes an entry only if the bucket lists an index of this key and ETag, so
 * a catalogue that is late, missing or damaged costs requests and nothing else. The bytes come from
 * outside.
 */
#ifndef PROFPULL_STORE_ARCHIVE_CATALOGUE_H
#define PROFPULL_STORE_ARCHIVE_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* Limit of a catalogue. */
#define CATALOGUE_MAX ((size_t)16 * 1024 * 1024)

struct catalogue_entry {
    struct sv key; /* of the index, with its writer */
    struct sv etag;
    struct sv bytes;
};

/* Appends the first line. */
bool catalogue_begin(struct buf *out);
bool catalogue_put(const struct catalogue_entry *e, struct buf *out);
/* Checks the first line, and sets *ret to the rest. */
bool catalogue_open(struct sv text, struct sv *ret);
/* Takes the next entry from the rest. False at the end, and if the rest is damaged. */
bool catalogue_next(struct sv *rest, struct catalogue_entry *ret);

#endif
