/* Lists and watches one Kubernetes resource: decides the next request, and interprets its response.
 *
 * This is a state machine without IO: the driver asks when the next request is due (watch_next_at),
 * gets its query (watch_begin), feeds status and bytes (watch_head, watch_data) and reports how it
 * ended (watch_end). Objects come out through a handler. Time and randomness come in from outside.
 *
 * The rules are those of client-go's reflector:
 *   - The first list accepts any version ("0": from the server's cache). A later list must be no
 *     older than the last version seen. After "expired" or "too large resource version", the list
 *     is a quorum read (""). If a list names a version, the server answers from its cache, and does
 *     not divide the list into pages.
 *   - A list that breaks off, makes no progress, or is refused as too much work (504, 413) is
 *     requested again in pages: first with a limit and "not older than", which newer servers page,
 *     and if that fails, as a quorum read, which all servers page. This holds for this list only.
 *   - If the server supports it, a list is streamed (sendInitialEvents): its objects are the first
 *     events of a watch, up to a bookmark that marks the end of the list, and the same watch then
 *     continues. If a server refuses this (400, 403, 422), or if the list makes no progress, lists
 *     are paged from then on; after any other failure only this list is paged.
 *   - A watch continues from the last version seen, over any number of connections. Only an expired
 *     version (410), or WATCH_FAILURES_MAX consecutive responses that are no watch, lead to a new
 *     list: a server that is unreachable, or throttles (429), costs no list.
 *   - A failed request is repeated from where it was; so is a page of a list. The delay is 0.8 s,
 *     doubled up to 30 s, times a random factor from 1 to 2. It starts over when nothing has failed
 *     for two minutes, and is never below Retry-After. Watches begin at least one second apart.
 *   - Versions are opaque strings. No object is lost because memory ran out.
 *   - A list of another kind than requested is an error, and an event with an object of another
 *     kind does not change the version.
 *   - Requests accept protobuf, and JSON as the second choice; the response decides. If a server
 *     refuses this (406, 415), or if its protobuf cannot be read, requests ask for JSON alone for a
 *     while (WATCH_JSON_MIN_MS).
 *
 * One owner. Functions of the handler run within watch_data() and watch_end() and must not call
 * back.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_WATCH_H
#define PROFPULL_DISCOVERY_KUBERNETES_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "discovery/counters.h"
#include "discovery/kubernetes/types.h"
#include "http/http.h"

#define WATCH_PAGE_LIMIT 500
/* The time that the server is asked to keep a watch open, in seconds: a random value in [min,
 * max]. */
#define WATCH_TIMEOUT_MIN_S 300
#define WATCH_TIMEOUT_MAX_S 600
/* Our own timeout of a watch is this much longer. */
#define WATCH_TIMEOUT_SLACK_MS 30000
/* A list, or a page of it, that brings no byte for this time is given up. There is no short limit
 * for the whole request, and the API server itself ends requests for lists after a minute. */
#define WATCH_LIST_PROGRESS_MS 120000
/* A list that takes this long, or has this many bytes after inflating, is given up even if it makes
 * progress. */
#define WATCH_LIST_TIMEOUT_MS 3600000
#define WATCH_LIST_BYTES_MAX ((uint64_t)16 * 1024 * 1024 * 1024)
/* If a streamed list has not ended after the first time, it is reported as slow. After the second
 * time without progress, it is given up. Objects that are sent as added are progress; changes are
 * not, because a server that does not support streamed lists sends changes for ever. */
#define WATCH_STREAM_SLOW_MS 10000
#define WATCH_STREAM_PROGRESS_MS 60000
/* The annotation that is "true" on the bookmark at the end of a streamed list. */
#define WATCH_END_ANNOTATION "k8s.io/initial-events-end"
/* A watch that ends within this time without an event has failed. It is also the shortest time
 * between the beginnings of two watches. */
#define WATCH_SHORT_MS 1000
#define WATCH_BACKOFF_MIN_MS 800
#define WATCH_BACKOFF_MAX_MS 30000
#define WATCH_BACKOFF_RESET_MS 120000
/* A longer Retry-After is cut to this. */
#define WATCH_RETRY_AFTER_MAX_MS 300000
#define WATCH_FAILURES_MAX 5
/* After a response in protobuf that cannot be read, or a 406 or 415, requests ask for JSON alone
 * for this long, which doubles with each failure in a row, up to the maximum. Protobuf is tried
 * again because one address may stand for several servers, which are upgraded one by one, and
 * because JSON costs three times as much CPU. */
#define WATCH_JSON_MIN_MS 60000
#define WATCH_JSON_MAX_MS 3600000
/* A longer version or continue token is rejected. */
#define WATCH_VERSION_MAX 4096
#define WATCH_CONTINUE_MAX ((size_t)64 * 1024)

enum watch_relist {
    WATCH_RELIST_EXPIRED,   /* the version is older than the server's history */
    WATCH_RELIST_TOO_LARGE, /* the version is newer than what the server has */
    WATCH_RELIST_PAGE,      /* a list's continue token has expired */
    WATCH_RELIST_FAILURES,  /* WATCH_FAILURES_MAX consecutive failures of the watch */
    WATCH_RELIST_GAINED,    /* watch_relist() was called */
};
/* "expired", "too_large", "page_expired", "failures", "gained". */
const char *watch_relist_name(enum watch_relist reason);

struct watch_handler {
    /* Says that a list begins. Objects that it does not name by its end are gone. May be called
     * again before list_end, if the list starts over. */
    void (*list_begin)(void *arg);
    void (*list_end)(void *arg);
    /* Takes an event LISTED, ADDED, MODIFIED or DELETED with its object (borrowed). If it returns
     * false because memory ran out, the request is ended and repeated, so that the object is
     * delivered again. */
    bool (*object)(void *arg, enum discovery_event event, const struct kube_object *object);
    /* The functions from here on are for counting and logging. `other` takes BOOKMARK, ERROR and
     * UNKNOWN; type as received. */
    void (*other)(void *arg, enum discovery_event event, struct sv type);
    void (*skipped)(void *arg, enum discovery_skip why);
    void (*relist)(void *arg, enum watch_relist reason);
    /* Says that a streamed list has not ended within WATCH_STREAM_SLOW_MS. */
    void (*slow)(void *arg);
    void *arg;
};

struct watch_options {
    struct watch_handler handler;
    struct rng *rng;
    /* Selectors, percent-encoded: "labelSelector=a%3Db&fieldSelector=..." or "". Referenced. */
    const char *selectors;
    size_t object_max;
    unsigned depth_max;
    const struct schema_row *rows; /* the members of an object that are read */
    /* The kind of the objects ("Pod"). A list that claims another kind than "PodList" is an error.
     * An event whose object claims another kind is skipped, and its version is ignored. A missing
     * kind is accepted. NULL: any kind. Referenced. */
    const char *kind;
    /* asks for metadata alone: the objects may have the kind PartialObjectMetadata */
    bool metadata_only;
    /* Replacements for WATCH_LIST_PROGRESS_MS and WATCH_STREAM_PROGRESS_MS, and for
     * WATCH_LIST_BYTES_MAX; 0: no replacement. */
    int64_t progress_ms;
    uint64_t list_bytes_max;
};

struct watch;

struct watch *watch_new(const struct watch_options *options); /* NULL if out of memory */
struct watch *watch_free(struct watch *w);

/* Returns the time at which the next request is due (monotonic ms). It has no meaning between begin
 * and end. */
int64_t watch_next_at(const struct watch *w);

struct watch_request {
    bool is_watch;
    const char *query;  /* without the question mark; valid until the next watch_begin() */
    const char *accept; /* the header Accept; static */
    int64_t timeout_ms;
    int64_t progress_timeout_ms; /* longest time without a byte; 0: no limit */
};
/* Begins the next request. False if out of memory: call again later (watch_next_at). */
bool watch_begin(struct watch *w, int64_t now_ms, struct watch_request *ret);
/* Takes the head of the response. content_type: as received, NULL if there is none. */
void watch_head(struct watch *w, long status, const char *content_type);
/* Returns true if the body of the current response is in protobuf. Content-Type decides until the
 * first bytes of the body have arrived, which then decide. */
bool watch_is_protobuf(const struct watch *w);
/* Takes bytes of the body. If it returns false, stop reading and end the request. */
bool watch_data(struct watch *w, int64_t now_ms, const char *data, size_t len);

/* Returns the time at which watch_tick() is due during a request (monotonic ms); INT64_MAX:
 * never. */
int64_t watch_tick_at(const struct watch *w);
/* Checks the progress of a request. False if it has stalled: cancel it, and call watch_end() with
 * HTTP_ERR_ABORTED. */
bool watch_tick(struct watch *w, int64_t now_ms);

/* The result of the transfer, as http/http.h reports it. */
struct watch_outcome {
    enum http_result result;
    long status;
    int64_t retry_after_ms; /* -1 if none */
    const char *error;
};

enum watch_result {
    WATCH_DONE,         /* a page, a list or a watch succeeded */
    WATCH_EXPIRED,      /* 410, or too large a version: a list follows */
    WATCH_THROTTLED,    /* 429 */
    WATCH_FORBIDDEN,    /* 403 */
    WATCH_NOT_FOUND,    /* 404: the server does not have the resource, or the namespace */
    WATCH_UNAUTHORIZED, /* 401 */
    WATCH_UNREACHABLE,  /* no response */
    WATCH_UNSUPPORTED,  /* the server does not stream lists: pages follow */
    /* the server sends no protobuf, or none that can be read: JSON is requested */
    WATCH_NO_PROTOBUF,
    WATCH_FAILED, /* any other response, or an incomplete one */
};
/* "ok", "expired", "throttled", "forbidden", "not_found", "unauthorized", "unreachable",
 * "unsupported", "no_protobuf", "failed". */
const char *watch_result_name(enum watch_result result);

/* Ends the current request. Unless the result is WATCH_DONE, *err has the reason: a sentence, or
 * the server's message, cut to a reasonable length. */
enum watch_result watch_end(struct watch *w, const struct watch_outcome *outcome, int64_t now_ms,
                            struct err *err);

/* Makes the next request a list, no older than the last version seen, although nothing is wrong.
 * The caller cancels a running watch without calling watch_end(). False if a list is already being
 * read or retried. Do not call it within the handler. */
bool watch_relist(struct watch *w);

#endif
