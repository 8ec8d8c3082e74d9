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

/* Bytes of one part of a file's path. */
#define FILE_PART_MAX 100
/* A name without its extension, with the NUL. */
#define FILE_STEM_SIZE (32 + 1 + FILE_PART_MAX + 1)

/* Makes a part of a path of any text: [A-Za-z0-9._-] stay, ":" becomes "-", every other character
 * "_", as does a leading dot; "unknown" if there is nothing. Writes at most FILE_PART_MAX bytes and
 * a NUL. */
void file_path_part(struct sv v, char out[FILE_PART_MAX + 1]);
/* "20261121T032334.123Z_10.1.2.3-6060" */
void file_stem(const struct series *s, const struct profile *p, char out[FILE_STEM_SIZE]);
/* "pb.gz", "jfr" or "jfr.gz" */
const char *file_extension(const struct profile *p);
/* Returns true if the file of a profile is compressed and the profile is not. Tools expect plain
 * pprof to be compressed; a recording is stored as it is. */
bool file_is_plain(const struct profile *p);

/* Appends the members "from" and "until" of a JSON object; as members other than the first begin
 * with a comma. */
void file_put_times(const struct profile *p, struct buf *out);
/* The same with "tenant", if there is one, and "labels". */
void file_put_labels(const struct series *s, struct buf *out);

#endif
