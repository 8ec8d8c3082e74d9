/* The internals of the list-and-watch machine; for discovery/kubernetes/watch*.c only.
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

/* The most bytes that are read of a response that is neither a list nor a watch. */
#define BODY_MAX ((size_t)16 * 1024)
#define QUERY_MAX ((size_t)256 * 1024)

/* The version that a list requests. */
enum list_from { FROM_ANY, FROM_NOT_OLDER, FROM_LATEST };
/* The division of a list into pages: left to the server; requested with a version; or requested
 * without a version, so that the list comes from etcd. */
enum list_pages { PAGES_ANY, PAGES_NOT_OLDER, PAGES_LATEST };

struct watch {
    struct watch_options options;
    struct json_stream *json;
    struct proto_stream *proto;
    struct arena *arena; /* memory of the object that is being processed */

    /* The position, from which a failed request is repeated. */
    bool watching;
    enum list_from from;
    bool unpaged;              /* the pages expired before they were read: list all at once */
    unsigned page;             /* number of pages of this list that have been read */
    struct buf version;        /* the last version seen */
    struct buf list_version;   /* version of the list's first page */
    struct buf continue_token; /* "" for the first page */
    bool no_streams;           /* the server never streams lists */
    bool forbidden;            /* a streamed list was refused with 403; perhaps all lists are */
    bool list_paged;           /* a streamed list failed: this one is paged */
    enum list_pages pages;     /* how this list is divided */
    int64_t json_until_ms;     /* requests before this time ask for JSON alone */
    unsigned json_step;        /* consecutive failures of protobuf, which determine that time */

    /* The time of the next request. */
    int64_t next_at;
    int64_t last_failure_ms;
    unsigned step;     /* consecutive failures, which determine the delay */
    unsigned refusals; /* consecutive responses to a watch that were no watch */

    /* The current request. */
    struct buf query;
    struct buf body; /* body of a response whose status was not 200 */
    struct buf page_version;
    struct buf page_continue;
    int64_t started_ms;
    int64_t progress_ms; /* when a streamed list last made progress */
    uint64_t received;   /* bytes of the list that have arrived */
    size_t events;
    size_t changes; /* events of a streamed list that do not belong to its beginning */
    bool streaming; /* the request streams a list, which has not ended */
    bool slow;
    bool stalled;
    long status;
    bool is_list;              /* the response has the form of a list rather than of a watch */
    bool json_only;            /* the request asks for JSON alone */
    bool any_data;             /* the response has a body */
    bool is_protobuf;          /* the body is in protobuf */
    bool is_json;              /* the body begins as JSON does */
    bool unreadable;           /* the body cannot be read, although it is not JSON */
    struct api_status problem; /* content of an ERROR event */
    struct err stream_err;
};

/* ---- watch.c --------------------------------------------------------------------------------- */

/* Continues after a complete list with a watch from w->version. */
void watch_listed(struct watch *w);

/* ---- watch_events.c -------------------------------------------------------------------------- */

/* Makes the streams, whose callbacks are those of the watch. False if out of memory. */
bool watch_make_streams(struct watch *w);
/* Prepares the stream that fits the response. */
void watch_begin_stream(struct watch *w);
void watch_feed_stream(struct watch *w, const char *data, size_t len);
bool watch_stream_complete(const struct watch *w);

void watch_on_skip(void *arg, enum discovery_skip why);

#endif
