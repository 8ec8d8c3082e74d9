/* The part `sample_type_config` of `POST /ingest`: how a server stores the sample types of a
 * profile.
 *
 * The servers' parser stores a sample type only if its mapping has it, and the part replaces the
 * mapping. By default it has samples (as CPU), inuse_*, goroutine, and as counters that need a
 * previous profile alloc_*, contentions and delay. A Pyroscope since 1.0 stores all of them and
 * takes `__name__` from the mapping; DeepFlow answers 200 and drops what the mapping does not have.
 * So the part is made from the profile's own sample types. Pure; any thread.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_SAMPLE_TYPES_H
#define PROFPULL_WRITE_PROTOCOLS_SAMPLE_TYPES_H

#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "pprof/summary.h"

/* The longest name of a sample type that can be described, in bytes. */
#define SAMPLE_TYPE_MAX ((size_t)256)

/* Appends JSON that describes n sample types of a profile with this `__name__`; nothing if the
 * default mapping is right. Returns how many of them such a server stores: 0 for names that are not
 * UTF-8 or too long, which JSON cannot match. */
size_t sample_types_config(struct sv name, const struct pprof_value_type *types, size_t n,
                           struct buf *out);
/* Does the same for the sample types that a Go profile with this `__name__` has. If the name is not
 * that of a built-in type, appends nothing and returns false. */
bool sample_types_builtin(struct sv name, struct buf *out);

#endif
