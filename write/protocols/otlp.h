/* The protocol `otlp`: profiles as requests of OpenTelemetry's profiles signal over HTTP, many of
 * them in one.
 *
 * The messages are those of pprof/proto/otlp.proto, made of pprof as the Collector's
 * translator makes them: a message Profile for each sample type, all with the same stacks; one
 * dictionary for the request. A profile is one ResourceProfiles, because each has its own labels.
 * Pure functions and an encoder with one owner; any thread.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_OTLP_H
#define PROFPULL_WRITE_PROTOCOLS_OTLP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "config/config.h"
#include "model/profile.h"
#include "pprof/scratch.h"
#include "write/series.h"

/* The path of requests, which changes with the version of the messages. */
#define OTLP_PATH "/v1development/profiles"
#define OTLP_CONTENT_TYPE "application/x-protobuf"
#define OTLP_SCOPE "profpull"
/* The attribute of the scope that has the value of `__name__`. */
#define OTLP_TYPE_ATTRIBUTE "pprof.profile.name"

/* The most bytes of an inflated profile, and of the memory in which a request is made. */
#define OTLP_PROFILE_MAX ((size_t)32 * 1024 * 1024)
#define OTLP_WORK_MAX ((size_t)128 * 1024 * 1024)

/* Returns the resource attribute that a label becomes: by the endpoint's table, else by ours, else
 * the label's own name. Empty: the label is left out. */
struct sv otlp_attribute(const struct config_pairs *own, struct sv label);

struct otlp_encoder;

struct otlp_options {
    const struct config_pairs *attributes; /* the endpoint's table */
    bool original_payload;                 /* the profile's own bytes are sent as well */
    size_t work_max;
};

/* Returns an encoder for one request; NULL if out of memory. */
struct otlp_encoder *otlp_encoder_new(const struct otlp_options *o, struct err *err);
struct otlp_encoder *otlp_encoder_free(struct otlp_encoder *e); /* accepts NULL, returns NULL */
/* Begins another request, in the memory of the one before. Returns false if out of memory. */
bool otlp_encoder_reset(struct otlp_encoder *e, const struct otlp_options *o, struct err *err);
/* Returns the bytes that the encoder holds. */
size_t otlp_encoder_bytes(const struct otlp_encoder *e);

/* Adds a profile, gzip or plain. On failure, returns false and leaves the request as it was, with
 * ERR_INPUT for a damaged profile, ERR_LIMIT, or ERR_MEMORY. */
bool otlp_encoder_add(struct otlp_encoder *e, const struct series *s, const struct profile *p,
                      struct err *err);
/* Returns the number of messages `Profile` so far. Servers count these; each profile has several.
 */
size_t otlp_encoder_profiles(const struct otlp_encoder *e);
/* Appends the request. Returns false if memory runs out, or at the ceiling of the buffer. */
bool otlp_encoder_write(const struct otlp_encoder *e, struct buf *out, struct err *err);

#endif
