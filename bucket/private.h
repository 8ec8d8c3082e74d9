/* The inside of the bucket client; for bucket/ and its tests only.
 *
 *   bucket.c       the client: its thread, turns, tries and pauses
 *   exchange.c     one request on the loop's thread: credentials, transfer, reply
 *   objects.c      list, head, get, put, delete
 *   uploads.c      files: one request or a multipart upload
 *   answers.c      listings and uploads in XML; refusals.c: errors and their remedies
 *   xml.c          the scanner
 *   credentials.c  sources of credentials and their renewal
 *
 * A call lives on the stack of the thread that makes it. The loop's thread owns it between
 * loop_post() and `done`.
 */
#ifndef PROFPULL_BUCKET_PRIVATE_H
#define PROFPULL_BUCKET_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/loop.h"
#include "bucket/answers.h"
#include "bucket/bucket.h"
#include "bucket/credentials.h"
#include "http/http.h"

/* The longest URL of a request: the server, a key, and a query with a prefix, a token and a key,
 * all percent-encoded. */
#define BUCKET_REQUEST_URL_MAX ((size_t)24 * 1024)
/* The most bytes of a response in XML. A page of 1,000 keys of 1,024 bytes, each percent-encoded,
 * takes 4 MiB. */
#define BUCKET_ANSWER_MAX ((size_t)8 * 1024 * 1024)
/* The most bytes that are read of an error. */
#define BUCKET_ERROR_MAX ((size_t)64 * 1024)
#define BUCKET_HEADERS_MAX 8
/* Metadata by which a multipart upload recognises its own object. */
#define BUCKET_MARK_AMAZON "x-amz-meta-profpull-upload"
#define BUCKET_MARK_GOOGLE "x-goog-meta-profpull-upload"
#define BUCKET_MARK_SIZE 40
/* Bytes a second that a request may count on beyond its time limit. */
#define BUCKET_SLOWEST ((int64_t)64 * 1024)

enum bucket_operation {
    BUCKET_LIST,
    BUCKET_HEAD,
    BUCKET_GET,
    BUCKET_PUT,
    BUCKET_DELETE,
    BUCKET_UPLOAD_BEGIN,
    BUCKET_UPLOAD_PART,
    BUCKET_UPLOAD_COMPLETE,
    BUCKET_UPLOAD_ABORT,
    BUCKET_UPLOAD_LIST,
    BUCKET_OPERATIONS,
};

/* The response to one request. */
struct bucket_reply {
    enum bucket_result result;
    struct err err; /* valid unless result is BUCKET_OK */
    bool final;     /* another try cannot help */
    bool renewable; /* the keys were refused, and others may come */
    enum http_result http;
    long status;
    char code[BUCKET_CODE_SIZE]; /* of the refusal; "" if none */
    char etag[BUCKET_ETAG_SIZE];
    uint64_t length; /* Content-Length; UINT64_MAX if none */
    bool ranged;     /* the response has Content-Range, which sets the next three */
    uint64_t first;
    uint64_t last;
    uint64_t total;
    int64_t modified_ns;
    int64_t retry_after_ms;      /* -1: none */
    char mark[BUCKET_MARK_SIZE]; /* metadata of this client's uploads; "" if none */
    struct buf body;             /* the body, if it does not go to `into`, or the error */
    size_t got;                  /* bytes in `into` */
};

struct bucket_call {
    /* The request; set by the caller. */
    enum bucket_operation op;
    const char *method;
    const char *key; /* for messages; NULL: the bucket */
    struct buf url;
    struct http_header headers[BUCKET_HEADERS_MAX];
    size_t n_headers;
    const void *data; /* the body */
    size_t len;
    void *into; /* gets the body of the response; NULL: reply.body does */
    size_t into_len;
    int64_t deadline_ms;
    char digest[65]; /* SHA-256 of the body in hexadecimal digits; set by bucket_call_run() */
    char md5[32];    /* of the body in base64; "" if there is none */

    struct bucket_reply reply;

    /* State of the loop's thread. */
    struct bucket *bucket;
    struct loop_task task;
    TAILQ_ENTRY(bucket_call) link; /* in `calls` of the bucket */
    int64_t start_ns;
    struct credentials_use use;
    struct loop_timer *timer; /* ends a wait for credentials */
    struct credentials_keys *keys;
    struct http_transfer *transfer;
    bool overflow; /* the response is longer than `into` */
    bool ignored;  /* the server ignores ranges */
    bool done;     /* under the lock of the bucket */
    pthread_cond_t finished;
};
TAILQ_HEAD(bucket_calls, bucket_call);

struct bucket {
    struct bucket_options options; /* with the defaults filled in */
    bool google;
    char *name;
    char *root;   /* URL of the bucket, without a slash at its end */
    char *prefix; /* of keys: "" or "PREFIX/" */
    struct loop *loop;
    struct loop_thread *thread;
    struct http_client *http;
    struct credentials *credentials;
    struct loop_task stop_task;
    struct bucket_calls calls; /* of the loop's thread */
    bool ending;               /* of the loop's thread: every call ends at once */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* a turn is free, or the bucket was stopped */
    unsigned turns;         /* requests in flight */
    bool stopped;
    struct rng rng;

    struct metric *requests;
    struct metric *seconds;
    struct metric_cell *bytes_in;
    struct metric_cell *bytes_out;
    struct metric_cell *retries;
    struct metric_cell *foreign;
};

/* ---- bucket.c -------------------------------------------------------------------------------- */

/* Begins a call for an object (key NULL: for the bucket). Its URL is that of the object. On failure
 * the call needs no bucket_call_done(). */
enum bucket_result bucket_call_init(struct bucket_call *c, struct bucket *b,
                                    enum bucket_operation op, const char *key, struct err *err);
void bucket_call_done(struct bucket_call *c);
/* Appends a parameter to the URL. Parameters must come in the order of their names: the signature
 * of libcurl before 8.3 takes them as they are. */
void bucket_call_param(struct bucket_call *c, const char *name, struct sv value);
/* Adds a header, whose strings must live as long as the call. */
void bucket_call_header(struct bucket_call *c, const char *name, const char *value);
/* Sends the request until it succeeds, another try cannot help, or tries or time are over. */
enum bucket_result bucket_call_run(struct bucket_call *c, int64_t deadline_ms, struct err *err);
/* Sets the error "URL: ..." for an object of the bucket. Returns result. */
enum bucket_result bucket_fail(const struct bucket *b, const char *key, enum bucket_result result,
                               struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Returns true if a key is within the limits of bucket.h. */
bool bucket_key_valid(const struct bucket *b, struct sv key);
/* Returns true if a listed key begins with the prefix of the bucket and with the one that was asked
 * for (NULL: none). *ret is the key without that of the bucket. A server may ignore prefixes. */
bool bucket_own_key(const struct bucket *b, const char *asked, struct sv listed, struct sv *ret);
const char *bucket_operation_name(enum bucket_operation op);
/* Waits; returns false if the bucket is stopped meanwhile or the deadline comes first. */
bool bucket_pause(struct bucket *b, int64_t ms, int64_t deadline_ms);

/* ---- exchange.c ------------------------------------------------------------------------------ */

/* Runs a call on the loop's thread (its `task`). */
void bucket_exchange_run(struct loop_task *task);
/* Ends all calls with BUCKET_STOPPED (the bucket's `stop_task`). */
void bucket_exchange_stop(struct loop_task *task);

#endif
