/* The inside of the list-and-watch machine; for discovery/kubernetes/watch*.c only.
 *
 *   watch.c         the next request, and the result of the last one
 *   watch_events.c  the content of the stream: objects, versions, the end of a streamed list
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_WATCH_PRIVATE_H
#define PROFPULL_DISCOVERY_KUBERNETES_WATCH_PRIVATE_H

#include "discovery/kubernetes/api_status.h"
#include "discovery/kubernetes/json_stream.h"
#include "discovery/kubernetes/proto_stream.h"
#include "discovery/kubernetes/watch.h"

/* The part read of an answer that is neither a list nor a watch. */
#define BODY_MAX ((size_t)16 * 1024)
#define QUERY_MAX ((size_t)256 * 1024)

/* The version that a list requests. */
enum list_from { FROM_ANY, FROM_NOT_OLDER, FROM_LATEST };
/* The server's choice; asked for with a version; and without one, so that it comes from etcd. */
enum list_pages { PAGES_ANY, PAGES_NOT_OLDER, PAGES_LATEST };

struct watch {
    struct watch_options options;
    struct json_stream *json;
    struct proto_stream *proto;
    struct arena *arena; /* of the object that is being handled */

    /* The position: a failed request is repeated from here. */
    bool watching;
    enum list_from from;
    bool unpaged;              /* the pages expired before they were read: list all at once */
    unsigned page;             /* pages of this list that have been read */
    struct buf version;        /* the last one seen */
    struct buf list_version;   /* of the list's first page */
    struct buf continue_token; /* "" for the first page */
    bool no_streams;           /* the server never streams lists */
    bool forbidden;            /* a streamed list was refused with 403, as any list may be */
    bool list_paged;           /* a streamed list failed: this one is paged */
    enum list_pages pages;     /* how this list is divided */
    int64_t json_until_ms;     /* requests before this time ask for JSON alone */
    unsigned json_step;        /* consecutive failures of protobuf, for that time */

    /* The time of the next request. */
    int64_t next_at;
    int64_t last_failure_ms;
    unsigned step;     /* consecutive failures, for the delay */
    unsigned refusals; /* consecutive answers to a watch that were no watch */

    /* The current request. */
    struct buf query;
    struct buf body; /* of an answer that was not 200 */
    struct buf page_version;
    struct buf page_continue;
    int64_t started_ms;
    int64_t progress_ms; /* when a streamed list last made progress */
    uint64_t received;   /* bytes of a list */
    size_t events;
    size_t changes; /* events of a streamed list that do not belong to its beginning */
    bool streaming; /* it streams a list, which has not ended */
    bool slow;
    bool stalled;
    long status;
    bool is_list;              /* in form: it is not a watch */
    bool json_only;            /* it asks for JSON alone */
    bool any_data;             /* the response has a body, */
    bool is_protobuf;          /* in protobuf */
    bool is_json;              /* the body begins as JSON does */
    bool unreadable;           /* and cannot be followed, although it is not JSON */
    struct api_status problem; /* of an ERROR event */
    struct err stream_err;
};

/* ---- watch.c --------------------------------------------------------------------------------- */

/* The list is complete, at w->version: watch from there. */
void watch_listed(struct watch *w);

/* ---- watch_events.c -------------------------------------------------------------------------- */

/* The streams that call back to a watch. False if out of memory. */
bool watch_make_streams(struct watch *w);
/* Prepares the one that the answer needs. */
void watch_begin_stream(struct watch *w);
void watch_feed_stream(struct watch *w, const char *data, size_t len);
bool watch_stream_complete(const struct watch *w);

void watch_on_skip(void *arg, enum discovery_skip why);

#endif
