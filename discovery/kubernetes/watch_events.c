#include <stdio.h>

#include "discovery/kubernetes/object.h"
#include "discovery/kubernetes/watch_private.h"

/* The kind of a list with its quotes; in an error a longer one is cut. */
#define KIND_MAX 64

/* Reading on would lose an object: the request is ended, and repeated from before it. */
static void out_of_memory(struct watch *w)
{
    err_memory(&w->stream_err);
}

/* Keeps a string from the server unless it is empty. False if it is too long. */
static bool keep_string(struct watch *w, struct buf *b, const json_t *v)
{
    size_t len = json_string_length(v);
    if (len == 0) {
        return true;
    }
    if (len >= b->max) {
        return false;
    }
    buf_clear(b);
    if (!buf_append(b, json_string_value(v), len)) {
        out_of_memory(w);
    }
    return true;
}

void watch_on_list_metadata(void *arg, const json_t *metadata)
{
    struct watch *w = arg;
    /* A page without its continue token would pass for the end of the list. */
    if (!keep_string(w, &w->page_version, json_object_get(metadata, "resourceVersion")) ||
        !keep_string(w, &w->page_continue, json_object_get(metadata, "continue"))) {
        err_set(&w->stream_err, ERR_LIMIT,
                "the list's resourceVersion or continue token is too long (at most %d and %zu "
                "bytes)",
                WATCH_VERSION_MAX, WATCH_CONTINUE_MAX);
    }
}

/* An empty list of another kind would remove every target. */
void watch_on_list_kind(void *arg, struct sv text)
{
    struct watch *w = arg;
    const char *kind = w->options.kind;
    char want[KIND_MAX];
    if (kind == NULL) {
        return;
    }
    snprintf(want, sizeof(want), "\"%sList\"", kind);
    if (!sv_eq_str(text, want)) {
        struct sv shown = {text.p, text.n < KIND_MAX ? text.n : KIND_MAX};
        err_set(&w->stream_err, ERR_INPUT,
                "the answer is not a list of this resource: expected the "
                "kind %s, got %.*s",
                want, SV_ARG(shown));
    }
}

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

/* The bookmark that ends a streamed list. */
static bool is_end_of_list(const json_t *object)
{
    const json_t *annotations = json_object_get(json_object_get(object, "metadata"), "annotations");
    return sv_eq_str(object_string(annotations, WATCH_END_ANNOTATION), "true");
}

static void keep_version(struct watch *w, struct buf *version, const json_t *object)
{
    /* One that is too long is ignored: the watch continues from the one before. */
    (void)keep_string(w, version,
                      json_object_get(json_object_get(object, "metadata"), "resourceVersion"));
}

/* The last version stays until there is a new one: the next list must not be older. */
static void end_streamed_list(struct watch *w, const json_t *object)
{
    keep_version(w, &w->page_version, object);
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

/* An event of a streamed list. Its objects come in no order, so a watch cannot continue from their
 * versions. */
static void on_streamed(struct watch *w, enum discovery_event event, const json_t *object)
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

static void on_watched(struct watch *w, enum discovery_event event, const json_t *object)
{
    const struct watch_handler *h = &w->options.handler;
    if (event != EVENT_BOOKMARK && !h->object(h->arg, event, object)) {
        out_of_memory(w);
        return;
    }
    keep_version(w, &w->version, object);
}

static bool has_kind(const struct watch *w, const json_t *object)
{
    const json_t *kind = json_object_get(object, "kind");
    return w->options.kind == NULL || kind == NULL || sv_eq_str(object_text(kind), w->options.kind);
}

static void on_event(struct watch *w, const json_t *json)
{
    const struct watch_handler *h = &w->options.handler;
    struct sv type = object_string(json, "type");
    const json_t *object = json_object_get(json, "object");
    enum discovery_event event = event_of(type);
    if (event == EVENT_UNKNOWN) {
        h->other(h->arg, event, type);
        return;
    }
    if (!json_is_object(object)) {
        h->skipped(h->arg, SKIP_SYNTAX);
        return;
    }
    if (event == EVENT_ERROR) {
        api_status_read(object, &w->problem);
        h->other(h->arg, event, type);
        return;
    }
    if (!has_kind(w, object)) {
        h->skipped(h->arg, SKIP_WRONG_KIND);
        return;
    }
    if (event == EVENT_BOOKMARK) {
        h->other(h->arg, event, type);
    }
    w->events++;
    if (w->streaming) {
        on_streamed(w, event, object);
    } else {
        on_watched(w, event, object);
    }
}

void watch_on_object(void *arg, const json_t *object)
{
    struct watch *w = arg;
    const struct watch_handler *h = &w->options.handler;
    if (w->problem.present || w->stream_err.kind != ERR_NONE) {
        return;
    }
    if (w->watching || w->streaming) {
        on_event(w, object);
    } else if (!h->object(h->arg, EVENT_LISTED, object)) {
        out_of_memory(w);
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
