/* Messages of protobuf as bytes and as JSON, by their descriptors: one codec for all of them.
 *
 * JSON follows the mapping of protobuf ("protojson"): names in lowerCamelCase, 64-bit integers as
 * strings, bytes in base64, enums by name, and members that have their default are left out. What
 * is read may also use the names of the .proto file, numbers for strings and strings for numbers,
 * null for any default; unknown members are ignored, and an unknown name of an enum is 0. Messages
 * have neither maps, oneofs nor fields with presence. Pure; any thread.
 */
#ifndef PROFPULL_API_PROTOJSON_H
#define PROFPULL_API_PROTOJSON_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* A JSON text with more values (and keys) is refused. */
#define PROTOJSON_VALUES_MAX 500000

/* Read a message, from JSON or from bytes, into the arena, its strings included. NULL with
 * ERR_INPUT if the text or the bytes are no such message, ERR_LIMIT at the limit of the arena or
 * out of memory. */
ProtobufCMessage *protojson_read(struct sv json, const ProtobufCMessageDescriptor *d,
                                 struct arena *arena, struct err *err);
ProtobufCMessage *protojson_read_bytes(struct sv bytes, const ProtobufCMessageDescriptor *d,
                                       struct arena *arena, struct err *err);

/* Append a message, as JSON or as bytes. JSON has strings with invalid UTF-8 repaired; a message
 * that is written as bytes must not have such strings. False at the limit of out or out of memory.
 */
bool protojson_write(const ProtobufCMessage *m, struct buf *out);
bool protojson_write_bytes(const ProtobufCMessage *m, struct buf *out);

/* An empty message; NULL at the ceiling of the arena. */
void *protojson_new(struct arena *arena, const ProtobufCMessageDescriptor *d);
/* A NUL-terminated copy of a view as a string of a message: invalid UTF-8 and NULs become U+FFFD.
 * NULL at the ceiling of the arena. */
char *protojson_string(struct arena *arena, struct sv v);

#endif
