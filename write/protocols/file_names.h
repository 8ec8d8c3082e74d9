/* The names that profiles have as files, in a directory or in a bucket:
 *
 *     <service_name>/<type>/<end of the profile, UTC>_<instance>.pb.gz
 *     default_api/memory/20261121T032334.123Z_10.1.2.3-6060.pb.gz
 *
 * and what is written beside them. Pure; any thread.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_FILE_NAMES_H
#define PROFPULL_WRITE_PROTOCOLS_FILE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "model/profile.h"
#include "write/series.h"

/* The most bytes of one part of a file's path. */
#define FILE_PART_MAX 100
/* A name without its extension, with the NUL. */
#define FILE_STEM_SIZE (32 + 1 + FILE_PART_MAX + 1)

/* Turns any text into a part of a path: [A-Za-z0-9._-] stay, ":" becomes "-", a leading dot and
 * every other character become "_". An empty text becomes "unknown". Writes at most FILE_PART_MAX
 * bytes and a NUL. */
void file_path_part(struct sv v, char out[FILE_PART_MAX + 1]);
/* Writes the name without its extension: "20261121T032334.123Z_10.1.2.3-6060". */
void file_stem(const struct series *s, const struct profile *p, char out[FILE_STEM_SIZE]);
/* Returns the extension: "pb.gz", "jfr" or "jfr.gz". */
const char *file_extension(const struct profile *p);
/* Returns true if the file of a profile is compressed and the profile is not. Tools expect plain
 * pprof to be compressed; a recording is stored as it is. */
bool file_is_plain(const struct profile *p);

/* Appends the members "from" and "until" of a JSON object, each with a comma before it. */
void file_put_times(const struct profile *p, struct buf *out);
/* Does the same with the members "tenant" (if there is one) and "labels". */
void file_put_labels(const struct series *s, struct buf *out);

#endif
