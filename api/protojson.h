/* Reads and writes messages of protobuf, as bytes and as JSON, by their descriptors: one codec for
 * all messages.
 *
 * JSON follows protobuf's mapping ("protojson"): names in lowerCamelCase, 64-bit integers as
 * strings, bytes in base64, enums by name, and members with their default value left out. When JSON
 * is read, names may also be those of the .proto file, numbers may be strings and strings numbers,
 * and null stands for the default. Unknown members are ignored, and an unknown name of an enum is
 * 0. Messages must not have maps or fields with presence; those with a oneof can only be read.
 * Pure; any thread.
 */
#ifndef PROFPULL_API_PROTOJSON_H
#define PROFPULL_API_PROTOJSON_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Limit of the values (and keys) of a JSON text. */
#define PROTOJSON_VALUES_MAX 500000

/* Returns true if a JSON text has at most PROTOJSON_VALUES_MAX values. To be checked before a text
 * is parsed, because a value takes far more memory than its text. */
bool protojson_fits(struct sv json);

/* Read a message with its strings into the arena, from JSON or from bytes. NULL with ERR_INPUT if
 * the text or the bytes are not such a message; ERR_LIMIT at the limit of the arena or out of
 * memory. */
ProtobufCMessage *protojson_read(struct sv json, const ProtobufCMessageDescriptor *d,
                                 struct arena *arena, struct err *err);
ProtobufCMessage *protojson_read_bytes(struct sv bytes, const ProtobufCMessageDescriptor *d,
                                       struct arena *arena, struct err *err);

/* The form that bytes have in JSON. */
enum protojson_bytes { PROTOJSON_BASE64, PROTOJSON_TEXT, PROTOJSON_HEX };
/* Reads JSON in which some fields of bytes have another form than base64: bytes_of says which. */
ProtobufCMessage *
protojson_read_as(struct sv json, const ProtobufCMessageDescriptor *d, struct arena *arena,
                  enum protojson_bytes (*bytes_of)(const ProtobufCFieldDescriptor *),
                  struct err *err);

/* Append a message, as JSON or as bytes. In JSON, invalid UTF-8 in strings is repaired; a message
 * that is written as bytes must not have invalid strings. False at the limit of out or out of
 * memory. */
bool protojson_write(const ProtobufCMessage *m, struct buf *out);
bool protojson_write_bytes(const ProtobufCMessage *m, struct buf *out);

/* Makes an empty message; NULL at the limit of the arena. */
void *protojson_new(struct arena *arena, const ProtobufCMessageDescriptor *d);
/* Makes a NUL-terminated copy of a view, as a string of a message: invalid UTF-8 and NULs become
 * U+FFFD. NULL at the limit of the arena. */
char *protojson_string(struct arena *arena, struct sv v);

#endif
