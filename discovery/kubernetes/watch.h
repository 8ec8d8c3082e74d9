/* Lists and watches one Kubernetes resource: decides the next request, and interprets its answer.
 *
 * A state machine without IO: the driver asks when the next request is due (watch_next_at), gets
 * its query (watch_begin), feeds status and bytes (watch_head, watch_data) and reports how it ended
 * (watch_end). Objects come out through a handler. Time and randomness come in from outside.
 *
 * The rules are those of client-go's reflector:
 *   - The first list accepts any version ("0": from the server's cache), a later one must be no
 *     older than the last version seen, and one after "expired" or "too large resource version" is
 * a quorum read (""). With a version the server answers from its cache, and not in pages.
 *   - A list that breaks off, makes no progress, or is refused as too much work (504, 413) is read
 * in smaller pieces: with a limit and "not older than", which newer servers page; if that fails, as
 *     a quorum read, which all servers page. This holds for this list only.
 *   - Where the server can, a list is streamed (sendInitialEvents): it comes as the first events of
 *     a watch, up to a bookmark that marks its end, and that watch continues. If a server refuses
 *     this (400, 403, 422), or makes no progress before that, lists are paged from then on;
 *     after any other failure only this list is paged.
 *   - A watch continues from the last version seen, over any number of connections. Only an expired
 *     version (410), or WATCH_FAILURES_MAX consecutive answers that are no watch, lead to a new
 *     list: a server that is unreachable, or throttles (429), costs no list.
 *   - A failed request is repeated where it was, a page of a list too. Delays: 0.8 s doubled up to
 *     30 s, times a random 1 to 2, starting over when nothing has failed for two minutes, and never
 *     below Retry-After. Watches begin at least one second apart.
 *   - Versions are opaque strings. No object is lost because memory ran out.
 *   - What says to be of another kind than asked for is no list, and its event moves no version.
 *   - Objects are asked for in protobuf, or else in JSON, and come in what the answer says. A
 * server that refuses this (406, 415), or whose protobuf cannot be followed, is asked for JSON
 * alone from then on.
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
/* How long the server should keep a watch open, in seconds: random in [min, max]. */
#define WATCH_TIMEOUT_MIN_S 300
#define WATCH_TIMEOUT_MAX_S 600
/* Our own timeout is this much later. */
#define WATCH_TIMEOUT_SLACK_MS 30000
/* A list, or a page of it, may take long as long as it makes progress: without a byte for so long
 * it is given up. The API server ends the requests for lists after a minute by itself. */
#define WATCH_LIST_PROGRESS_MS 120000
/* And this long, or this large after it has been inflated, it is given up though it goes on. */
#define WATCH_LIST_TIMEOUT_MS 3600000
#define WATCH_LIST_BYTES_MAX ((uint64_t)16 * 1024 * 1024 * 1024)
/* Without the end of a streamed list: when to report that it is late, and after which time without
 * progress to give up. Objects that are sent as added are progress, changes are not: a server that
 * does not know of streamed lists sends these for ever. */
#define WATCH_STREAM_SLOW_MS 10000
#define WATCH_STREAM_PROGRESS_MS 60000
/* "true" on the bookmark that ends a streamed list. */
#define WATCH_END_ANNOTATION "k8s.io/initial-events-end"
/* A watch that ends earlier without an event has failed; also the minimum between two watches. */
#define WATCH_SHORT_MS 1000
#define WATCH_BACKOFF_MIN_MS 800
#define WATCH_BACKOFF_MAX_MS 30000
#define WATCH_BACKOFF_RESET_MS 120000
/* A longer Retry-After is cut to this. */
#define WATCH_RETRY_AFTER_MAX_MS 300000
#define WATCH_FAILURES_MAX 5
/* After a response in protobuf that cannot be read, or a 406 or 415, requests ask for JSON alone
 * for this long; twice as long each time in a row, up to the maximum. An address may be that of
 * several servers, which are replaced one by one; and JSON costs three times as much CPU. */
#define WATCH_JSON_MIN_MS 60000
#define WATCH_JSON_MAX_MS 3600000
/* A longer version or continue token is rejected. */
#define WATCH_VERSION_MAX 4096
#define WATCH_CONTINUE_MAX ((size_t)64 * 1024)

enum watch_relist {
    WATCH_RELIST_EXPIRED,   /* the version is older than the server's history */
    WATCH_RELIST_TOO_LARGE, /* the version is newer than what the server has */
    WATCH_RELIST_PAGE,      /* a list's continue token has expired */
    WATCH_RELIST_FAILURES,  /* WATCH_FAILURES_MAX */
    WATCH_RELIST_GAINED,    /* watch_relist() */
};
/* "expired", "too_large", "page_expired", "failures", "gained". */
const char *watch_relist_name(enum watch_relist reason);

struct watch_handler {
    /* A list begins: objects that it does not name by its end are gone. May be called again before
     * list_end (the list starts over). */
    void (*list_begin)(void *arg);
    void (*list_end)(void *arg);
    /* LISTED, ADDED, MODIFIED or DELETED, with its object (borrowed). False if memory ran out: the
     * request is then ended and repeated, so that the object comes again. */
    bool (*object)(void *arg, enum discovery_event event, const struct kube_object *object);
    /* The rest is for counting and logging. BOOKMARK, ERROR, UNKNOWN; type as received. */
    void (*other)(void *arg, enum discovery_event event, struct sv type);
    void (*skipped)(void *arg, enum discovery_skip why);
    void (*relist)(void *arg, enum watch_relist reason);
    /* A streamed list has not ended within WATCH_STREAM_SLOW_MS. */
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
    const struct schema_row *rows; /* the members that are read of an object */
    /* The kind of the objects ("Pod"). A list that says to be of another kind than "PodList" is an
     * error; an event with an object of another kind is skipped, its version included. A kind that
     * is missing counts as right. NULL: any. Referenced. */
    const char *kind;
    bool metadata_only; /* ask for nothing else: the objects may be of the kind
                         * PartialObjectMetadata */
    /* Instead of WATCH_LIST_PROGRESS_MS, WATCH_STREAM_PROGRESS_MS and WATCH_LIST_BYTES_MAX. 0:
     * these.
     */
    int64_t progress_ms;
    uint64_t list_bytes_max;
};

struct watch;

struct watch *watch_new(const struct watch_options *options); /* NULL if out of memory */
struct watch *watch_free(struct watch *w);

/* When the next request is due (monotonic ms). Meaningless between begin and end. */
int64_t watch_next_at(const struct watch *w);

struct watch_request {
    bool is_watch;
    const char *query;  /* without the question mark; valid until the next watch_begin() */
    const char *accept; /* the header Accept; static */
    int64_t timeout_ms;
    int64_t progress_timeout_ms; /* without a byte; 0: none */
};
/* Begins the next request. False if out of memory: call again later (watch_next_at). */
bool watch_begin(struct watch *w, int64_t now_ms, struct watch_request *ret);
/* The head of the answer has arrived; content_type as received, NULL if there is none. */
void watch_head(struct watch *w, long status, const char *content_type);
/* Returns true if the body of the current response is in protobuf: as Content-Type says, until the
 * first bytes of the body show it. */
bool watch_is_protobuf(const struct watch *w);
/* Bytes of the body. False: stop reading, and end the request. */
bool watch_data(struct watch *w, int64_t now_ms, const char *data, size_t len);

/* When watch_tick() is due during the request (monotonic ms); INT64_MAX: never. */
int64_t watch_tick_at(const struct watch *w);
/* False: the request has stalled; cancel it and end with HTTP_ERR_ABORTED. */
bool watch_tick(struct watch *w, int64_t now_ms);

/* How the transfer ended, as http/http.h reports it. */
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
    WATCH_UNREACHABLE,  /* no answer */
    WATCH_UNSUPPORTED,  /* the server does not stream lists: pages follow */
    WATCH_NO_PROTOBUF,  /* nor protobuf that can be read: the request is repeated for JSON */
    WATCH_FAILED,       /* any other answer, or an incomplete one */
};
/* "ok", "expired", "throttled", "forbidden", "not_found", "unauthorized", "unreachable",
 * "unsupported", "no_protobuf", "failed". */
const char *watch_result_name(enum watch_result result);

/* Ends the current request. On anything but WATCH_DONE *err has a sentence (the server's message,
 * cut to a reasonable length). */
enum watch_result watch_end(struct watch *w, const struct watch_outcome *outcome, int64_t now_ms,
                            struct err *err);

/* Lists again, no older than the last version seen, although nothing is wrong: the next request is
 * a list. The caller cancels a running watch, without watch_end(). False if a list is already being
 * read or retried; not within the handler. */
bool watch_relist(struct watch *w);

#endif
