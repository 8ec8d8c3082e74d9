/* Takes Kubernetes objects out of a byte stream, one at a time, however the stream is chunked.
 *
 * Two forms: a watch sends one object after the other; a list sends one object whose member "items"
 * holds them and whose "metadata" has the version and the token of the next page. Never more than
 * one object is in memory, as text or as a tree.
 *
 * A bad object (too large, too deep, not JSON) is skipped and reported, and the stream continues.
 * As in Go's decoder, invalid UTF-8 and lone surrogates become U+FFFD. One owner; the callbacks run
 * within json_stream_feed() and must not touch the stream.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_JSON_STREAM_H
#define PROFPULL_DISCOVERY_KUBERNETES_JSON_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "discovery/kubernetes/json_cut.h"

enum json_stream_form { JSON_STREAM_OBJECTS, JSON_STREAM_LIST };

/* If one object of a watch is this many times larger than the limit, the framing must have been
 * lost, and reading stops. */
#define JSON_STREAM_RUNAWAY 8

struct json_stream_options {
    size_t object_max; /* bytes of one object */
    unsigned depth_max;
    const struct schema_row *members; /* the members of an object that are needed; NULL: all */
    /* Takes one object, or one event of a watch; borrowed. */
    void (*on_object)(void *arg, const json_t *object);
    /* Takes the member "metadata" of a list; borrowed. */
    void (*on_metadata)(void *arg, const json_t *metadata);
    /* Takes the member "kind" of a list, as written ("\"PodList\""); borrowed. Empty if it is too
     * long to be kept. May be NULL. */
    void (*on_kind)(void *arg, struct sv text);
    void (*on_skip)(void *arg, enum discovery_skip why);
    void *arg;
};

struct json_stream;

/* Makes a stream, which references the list of members. NULL if out of memory. */
struct json_stream *json_stream_new(const struct json_stream_options *options);
struct json_stream *json_stream_free(struct json_stream *s);
/* Forgets an incomplete stream and prepares for a new one. */
void json_stream_begin(struct json_stream *s, enum json_stream_form form);
/* Takes the next bytes. False if the stream cannot be followed any longer: stop reading it. */
bool json_stream_feed(struct json_stream *s, const char *data, size_t len, struct err *err);
/* Returns true if the stream may end here: a list has ended and had items; in a watch, no object is
 * incomplete. */
bool json_stream_complete(const struct json_stream *s);

#endif
