/* push.v1.PushRequest on the wire: one series with one sample.
 *
 *     PushRequest      { repeated RawProfileSeries series = 1; }
 *     RawProfileSeries { repeated LabelPair labels = 1; repeated RawSample samples = 2; }
 *     RawSample        { bytes raw_profile = 1; string ID = 2; }
 *     LabelPair        { string name = 1; string value = 2; }
 *
 * Sizes are computed from the inside out, so that only the bytes around the profile are written
 * here; the profile itself is sent from where it lies. One series in a request keeps the response
 * unambiguous. The ID is made from the profile, so that a server's log shows which requests carried
 * the same one. Pure; any thread.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_PUSH_H
#define PROFPULL_WRITE_PROTOCOLS_PUSH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "write/readback.h"
#include "write/series.h"

#define PUSH_PATH "/push.v1.PusherService/Push"
#define PUSH_CONTENT_TYPE "application/proto"
/* The most bytes of a profile. Protocol buffers end at 2 GiB; this is far more than any server
 * accepts. */
#define PUSH_PROFILE_MAX ((size_t)1 << 30)

/* Length of a UUID as text. */
#define PUSH_ID_LENGTH 36

/* Writes the ID of a profile, and a NUL: a UUID (version 8) that depends only on the bytes of the
 * profile, and so is the same in every attempt, in every process and on every machine. */
void push_id(struct sv profile, char out[PUSH_ID_LENGTH + 1]);

/* The request is prefix + the profile's bytes + suffix. id: see push_id(). Returns false if a
 * buffer is full or profile_size is over PUSH_PROFILE_MAX. */
bool push_encode(const struct series *s, size_t profile_size, const char *id, struct buf *prefix,
                 struct buf *suffix);

/* Reads profiles back with SelectMergeStacktraces of a Pyroscope's querier, in JSON. */
extern const struct readback readback_pyroscope;

#endif
