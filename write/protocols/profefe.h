/* `POST /api/0/profiles`: profefe's API. The body is the profile as it is, the query describes it.
 * Pure; any thread.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_PROFEFE_H
#define PROFPULL_WRITE_PROTOCOLS_PROFEFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "write/readback.h"
#include "write/series.h"

#define PROFEFE_PATH "/api/0/profiles"
/* The most bytes of the encoded service name, and of the encoded labels: the request line has to
 * stay below the 8 KiB of common proxies. Labels that are worth least are dropped until they fit.
 */
#define PROFEFE_SERVICE_MAX ((size_t)1024)
#define PROFEFE_LABELS_MAX ((size_t)4096)
/* The most bytes of the instance, before it is encoded. */
#define PROFEFE_INSTANCE_MAX ((size_t)256)
/* The label that keeps the name of a type for which profefe has none ("other"). */
#define PROFEFE_TYPE_LABEL "profile_type"

/* Returns profefe's name for the type with this `__name__`: "cpu", "heap", "block", "mutex",
 * "goroutine", "threadcreate", else "other". profefe refuses all other names, such as "allocs".
 * Static storage. */
const char *profefe_type(struct sv name);

/* Writes the values of `__name__` that have this type into an empty buffer, as the alternatives of
 * a regex ("memory|heap|allocs"). type NULL: those of all types except "other". */
bool profefe_names(const char *type, struct buf *out);

/* Appends the query: service, instance_id, type, labels, created_at. Collectors of 2019 refuse a
 * profile without instance_id, later ones ignore it: it is the label `instance`, else the service.
 * The server decodes labels twice, so they are encoded twice: no character is lost. created_at
 * (UTC, without a zone) counts only for a profile that has no time of its own. The series must have
 * been built by the rules of this protocol; labels may be dropped from it. */
bool profefe_query(struct series *s, int64_t from_ns, struct buf *out);

/* Reads profiles back with GET /api/0/profiles. */
extern const struct readback readback_profefe;

#endif
