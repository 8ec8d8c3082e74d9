/* Takes Kubernetes objects out of a stream of protobuf, one at a time, however it is chunked, as
 * json_stream.h does for JSON.
 *
 * A list is "k8s\0" and a message Unknown, whose typeMeta names the kind and whose raw is the list:
 * metadata and items. A watch sends frames: four bytes with the length, the first byte the highest,
 * and a message WatchEvent, whose object is "k8s\0" and an Unknown again. Never more than one
 * object is in memory. One that is too large or damaged is skipped and reported, and the stream
 * continues. One owner; the callbacks run within proto_stream_feed() and must not touch the stream.
 *
 * Reference: k8s.io/apimachinery/pkg/runtime, runtime/serializer/protobuf and apis/meta/v1.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_PROTO_STREAM_H
#define PROFPULL_DISCOVERY_KUBERNETES_PROTO_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "discovery/counters.h"

enum proto_stream_form { PROTO_STREAM_EVENTS, PROTO_STREAM_LIST };

/* The media type of a response in protobuf. */
#define PROTO_MEDIA_TYPE "application/vnd.kubernetes.protobuf"

/* If the length of a frame is this many times the limit of an object, the framing must have been
 * lost, and reading stops. */
#define PROTO_STREAM_RUNAWAY 8

struct proto_object {
    struct sv kind; /* "" if the object does not say it */
    struct sv message;
};

/* Opens the envelope of one object ("k8s\0" and Unknown). *ret has views of the bytes. False if
 * there is no envelope. */
bool proto_object_open(struct sv bytes, struct proto_object *ret);

struct proto_stream_options {
    size_t object_max; /* the most bytes of an item, of a frame, and of a list's metadata */
    /* The arguments of all functions are borrowed. on_kind is called before the items of a list. */
    void (*on_kind)(void *arg, struct sv kind);
    void (*on_metadata)(void *arg, struct sv message);
    void (*on_item)(void *arg, struct sv message);
    void (*on_event)(void *arg, struct sv type, const struct proto_object *object);
    void (*on_skip)(void *arg, enum discovery_skip why);
    void *arg;
};

struct proto_stream;

/* Makes a stream; NULL if out of memory. */
struct proto_stream *proto_stream_new(const struct proto_stream_options *options);
struct proto_stream *proto_stream_free(struct proto_stream *s);

/* Forgets an incomplete stream and prepares for a new one. */
void proto_stream_begin(struct proto_stream *s, enum proto_stream_form form);
/* Takes the next bytes. False if they are not such a stream: stop reading it. */
bool proto_stream_feed(struct proto_stream *s, const char *data, size_t len, struct err *err);
/* Returns true if the stream may end here: a list has ended; in a watch, no event is incomplete. */
bool proto_stream_complete(const struct proto_stream *s);

#endif
