#include <stdio.h>

#include "discovery/kubernetes/object.h"
#include "discovery/kubernetes/watch_private.h"

/* The longest kind of a list, with its quotes; an error shows a longer one cut. */
#define KIND_MAX 64

/* Ends the request if memory ran out. It is repeated from before the current object, which would
 * otherwise be lost. */
static void out_of_memory(struct watch *w)
{
    err_memory(&w->stream_err);
}

/* Keeps a string from the server unless it is empty. False if it is too long. */
static bool keep_string(struct watch *w, struct buf *b, struct sv v)
{
    if (v.n == 0) {
        return true;
    }
    if (v.n >= b->max) {
        return false;
    }
    buf_clear(b);
    if (!buf_append(b, v.p, v.n)) {
        out_of_memory(w);
    }
    return true;
}

/* ---- one object, in either encoding ---------------------------------------------------------- */

/* The input from which an object is read. */
struct source {
    const json_t *json; /* NULL: protobuf */
    struct sv message;
};

/* Fills the zeroed struct at ret; false if the object is skipped. */
static bool read_source(struct watch *w, const struct source *from, const struct schema_row *rows,
                        void *ret)
{
    arena_reset(w->arena);
    enum discovery_skip why = from->json != NULL
                                  ? schema_read_json(rows, from->json, w->arena, ret)
                                  : schema_read_wire(rows, from->message, w->arena, ret);
    if (why != SKIP_NONE) {
        watch_on_skip(w, why);
    }
    return why == SKIP_NONE;
}

/* Returns true if a kind, "" if there is none, is the one that was requested. */
static bool is_right_kind(const struct watch *w, struct sv kind)
{
    return w->options.kind == NULL || kind.n == 0 || sv_eq_str(kind, w->options.kind) ||
           (w->options.metadata_only && sv_eq_str(kind, "PartialObjectMetadata"));
}

/* Gives the object the kind that was requested, so that readers never see PartialObjectMetadata. */
static void set_kind(const struct watch *w, struct kube_object *object)
{
    if (w->options.kind != NULL && is_right_kind(w, object->kind)) {
        object->kind = sv_from(w->options.kind);
    }
}

/* ---- a list ---------------------------------------------------------------------------------- */

struct list_metadata {
    struct sv version;
    struct sv next;
};

static const struct schema_row list_metadata_rows[] = {
    SCHEMA_MEMBER("resourceVersion", 2, TEXT, struct list_metadata, version),
    SCHEMA_MEMBER("continue", 3, TEXT, struct list_metadata, next),
    SCHEMA_END,
};

static void on_metadata(struct watch *w, const struct source *from)
{
    struct list_metadata metadata = {.version = SV(""), .next = SV("")};
    if (!read_source(w, from, list_metadata_rows, &metadata)) {
        return;
    }
    /* This must not fail unnoticed: without its continue token, a page would count as the end of
     * the list. */
    if (!keep_string(w, &w->page_version, metadata.version) ||
        !keep_string(w, &w->page_continue, metadata.next)) {
        err_set(&w->stream_err, ERR_LIMIT,
                "the list's resourceVersion or continue token is too long (at most %d and %zu "
                "bytes)",
                WATCH_VERSION_MAX, WATCH_CONTINUE_MAX);
    }
}

/* Checks the kind of a list, which has the quotes of JSON. An empty list of another kind would
 * remove every target. */
static void watch_on_kind_text(void *arg, struct sv text)
{
    struct watch *w = arg;
    const char *kind = w->options.kind;
    char want[KIND_MAX];
    if (kind == NULL) {
        return;
    }
    snprintf(want, sizeof(want), "\"%sList\"", kind);
    bool partial = w->options.metadata_only && sv_eq_str(text, "\"PartialObjectMetadataList\"");
    if (!sv_eq_str(text, want) && !partial) {
        struct sv shown = {text.p, text.n < KIND_MAX ? text.n : KIND_MAX};
        err_set(&w->stream_err, ERR_INPUT,
                "the answer is not a list of this resource: expected the "
                "kind %s, got %.*s",
                want, SV_ARG(shown));
    }
}

static void watch_on_kind(void *arg, struct sv kind)
{
    char text[KIND_MAX];
    int n = snprintf(text, sizeof(text), "\"%.*s\"", (int)(kind.n < KIND_MAX ? kind.n : KIND_MAX),
                     kind.p);
    watch_on_kind_text(arg, (struct sv){text, (size_t)n < sizeof(text) ? (size_t)n : KIND_MAX - 1});
}

/* Returns true if the rest of the stream is ignored, because of an ERROR event or an error. */
static bool is_over(const struct watch *w)
{
    return w->problem.present || w->stream_err.kind != ERR_NONE;
}

static void on_item(struct watch *w, const struct source *from)
{
    const struct watch_handler *h = &w->options.handler;
    struct kube_object object = {.kind = SV("")};
    if (is_over(w) || !read_source(w, from, w->options.rows, &object)) {
        return;
    }
    set_kind(w, &object);
    if (!h->object(h->arg, EVENT_LISTED, &object)) {
        out_of_memory(w);
    }
}

/* ---- a watch --------------------------------------------------------------------------------- */

static enum discovery_event event_of(struct sv type)
{
    static const char *const names[EVENT_UNKNOWN] = {
        [EVENT_ADDED] = "ADDED",       [EVENT_MODIFIED] = "MODIFIED", [EVENT_DELETED] = "DELETED",
        [EVENT_BOOKMARK] = "BOOKMARK", [EVENT_ERROR] = "ERROR",
    };
    int event = 0;
    while (event < EVENT_UNKNOWN && !sv_eq_str(type, names[event])) {
        event++;
    }
    return (enum discovery_event)event;
}

/* Returns true for the bookmark that ends a streamed list. */
static bool is_end_of_list(const struct kube_object *object)
{
    struct sv value = object_pair(&object->metadata.annotations, SV(WATCH_END_ANNOTATION));
    return sv_eq_str(value, "true");
}

/* Ends a streamed list. If its bookmark has no usable version, the last one stays, because the next
 * list must not be older. */
static void end_streamed_list(struct watch *w, const struct kube_object *object)
{
    (void)keep_string(w, &w->page_version, object->metadata.version);
    if (w->stream_err.kind != ERR_NONE) {
        return;
    }
    if (w->page_version.len == 0) {
        err_set(&w->stream_err, ERR_INPUT,
                "the end of the streamed list has no resourceVersion of 1-%d bytes",
                WATCH_VERSION_MAX);
        return;
    }
    buf_clear(&w->version);
    if (!buf_append(&w->version, w->page_version.data, w->page_version.len)) {
        buf_clear(&w->version);
        out_of_memory(w);
        return;
    }
    w->streaming = false;
    watch_listed(w);
}

/* Processes an event of a streamed list. Its objects arrive in no order, so a watch cannot continue
 * from their versions. */
static void on_streamed(struct watch *w, enum discovery_event event,
                        const struct kube_object *object)
{
    const struct watch_handler *h = &w->options.handler;
    if (event == EVENT_BOOKMARK) {
        w->changes++;
        if (is_end_of_list(object)) {
            end_streamed_list(w, object);
        }
        return;
    }
    w->changes += event == EVENT_ADDED ? 0 : 1;
    if (!h->object(h->arg, event == EVENT_DELETED ? event : EVENT_LISTED, object)) {
        out_of_memory(w);
    }
}

static void on_watched(struct watch *w, enum discovery_event event,
                       const struct kube_object *object)
{
    const struct watch_handler *h = &w->options.handler;
    if (event != EVENT_BOOKMARK && !h->object(h->arg, event, object)) {
        out_of_memory(w);
        return;
    }
    /* A version that is too long is ignored: the watch continues from the previous one. */
    (void)keep_string(w, &w->version, object->metadata.version);
}

static void on_event(struct watch *w, struct sv type, struct sv kind, const struct source *from)
{
    const struct watch_handler *h = &w->options.handler;
    enum discovery_event event = event_of(type);
    struct kube_object object = {.kind = SV("")};
    if (event == EVENT_UNKNOWN) {
        h->other(h->arg, event, type);
        return;
    }
    if (event == EVENT_ERROR) {
        struct kube_status status = {.message = SV("")};
        if (read_source(w, from, api_status_rows, &status)) {
            api_status_set(&status, &w->problem);
            h->other(h->arg, event, type);
        }
        return;
    }
    if (!is_right_kind(w, kind)) {
        h->skipped(h->arg, SKIP_WRONG_KIND);
        return;
    }
    if (!read_source(w, from, w->options.rows, &object)) {
        return;
    }
    set_kind(w, &object);
    if (event == EVENT_BOOKMARK) {
        h->other(h->arg, event, type);
    }
    w->events++;
    if (w->streaming) {
        on_streamed(w, event, &object);
    } else {
        on_watched(w, event, &object);
    }
}

/* ---- the streams ----------------------------------------------------------------------------- */

static struct sv text_of(const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);
    return json_is_string(v) ? (struct sv){json_string_value(v), json_string_length(v)} : SV("");
}

static void watch_on_json_event(struct watch *w, const json_t *json)
{
    const json_t *object = json_object_get(json, "object");
    struct sv type = text_of(json, "type");
    if (is_over(w)) {
        return;
    }
    if (!json_is_object(object) && event_of(type) != EVENT_UNKNOWN) {
        w->options.handler.skipped(w->options.handler.arg, SKIP_SYNTAX);
        return;
    }
    on_event(w, type, text_of(object, "kind"), &(struct source){.json = object});
}

static void watch_on_json(void *arg, const json_t *json)
{
    struct watch *w = arg;
    if (w->is_list) {
        on_item(w, &(struct source){.json = json});
    } else {
        watch_on_json_event(w, json);
    }
}

static void watch_on_json_metadata(void *arg, const json_t *metadata)
{
    on_metadata(arg, &(struct source){.json = metadata});
}

static void watch_on_item(void *arg, struct sv message)
{
    on_item(arg, &(struct source){.message = message});
}

static void watch_on_metadata(void *arg, struct sv message)
{
    on_metadata(arg, &(struct source){.message = message});
}

static void watch_on_event(void *arg, struct sv type, const struct proto_object *object)
{
    struct watch *w = arg;
    if (!is_over(w)) {
        on_event(w, type, object->kind, &(struct source){.message = object->message});
    }
}

void watch_on_skip(void *arg, enum discovery_skip why)
{
    struct watch *w = arg;
    w->options.handler.skipped(w->options.handler.arg, why);
    if (why == SKIP_MEMORY && w->stream_err.kind == ERR_NONE) {
        out_of_memory(w);
    }
}

bool watch_make_streams(struct watch *w)
{
    const struct watch_options *o = &w->options;
    w->arena = schema_arena_new();
    w->json = json_stream_new(&(struct json_stream_options){
        .object_max = o->object_max,
        .depth_max = o->depth_max,
        .members = o->rows,
        .on_object = watch_on_json,
        .on_metadata = watch_on_json_metadata,
        .on_kind = watch_on_kind_text,
        .on_skip = watch_on_skip,
        .arg = w,
    });
    w->proto = proto_stream_new(&(struct proto_stream_options){
        .object_max = o->object_max,
        .on_kind = watch_on_kind,
        .on_metadata = watch_on_metadata,
        .on_item = watch_on_item,
        .on_event = watch_on_event,
        .on_skip = watch_on_skip,
        .arg = w,
    });
    return w->arena != NULL && w->json != NULL && w->proto != NULL;
}

void watch_begin_stream(struct watch *w)
{
    if (w->is_protobuf) {
        proto_stream_begin(w->proto, w->is_list ? PROTO_STREAM_LIST : PROTO_STREAM_EVENTS);
    } else {
        json_stream_begin(w->json, w->is_list ? JSON_STREAM_LIST : JSON_STREAM_OBJECTS);
    }
}

void watch_feed_stream(struct watch *w, const char *data, size_t len)
{
    if (w->is_protobuf) {
        w->unreadable = !proto_stream_feed(w->proto, data, len, &w->stream_err);
    } else {
        json_stream_feed(w->json, data, len, &w->stream_err);
        w->unreadable = !w->is_json && w->stream_err.kind != ERR_NONE;
    }
}

bool watch_stream_complete(const struct watch *w)
{
    return w->is_protobuf ? proto_stream_complete(w->proto) : json_stream_complete(w->json);
}
