/* A client of object stores: S3, servers with the same API, and Google Cloud Storage.
 *
 * All calls block until they are done or their deadline has passed, and any thread may make them,
 * up to `max_requests` at a time (others wait for their turn). One thread of the bucket runs the
 * requests on an HTTP client of its own; it also fetches and renews credentials (credentials.h).
 *
 * Keys are relative to the prefix of the URL: with "s3://b/profiles", the key "a/x.db" is the
 * object "profiles/a/x.db". A key is UTF-8 without control characters, has 1 to BUCKET_KEY_MAX
 * bytes with the prefix, and no empty, "." or ".." segment, which a proxy could change.
 *
 * Objects become visible whole or not at all: a PUT of one request is atomic, and so is the end of
 * a multipart upload. Overwriting is atomic too. A listing may show an object later than it can be
 * read, and may show one that is removed: callers must not depend on it.
 *
 * A failed request is tried again if that may help (BUCKET_SLOW_DOWN, BUCKET_TIMEOUT,
 * BUCKET_NETWORK, and BUCKET_BAD_ANSWER once), with exponential, randomized pauses, at most
 * `tries` times and never beyond the deadline. All operations may be repeated without harm.
 */
#ifndef PROFPULL_BUCKET_BUCKET_H
#define PROFPULL_BUCKET_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "bucket/settings.h"
#include "http/contents.h"

/* The longest key with its prefix, in bytes: the limit of S3 and of Google. */
#define BUCKET_KEY_MAX 1024
/* The longest ETag, with its quotes and the NUL. Multipart ETags of AWS have 40 bytes. */
#define BUCKET_ETAG_SIZE 128
/* Limits of S3 for parts of a multipart upload. The last part may be smaller. */
#define BUCKET_PART_MIN ((uint64_t)5 * 1024 * 1024)
#define BUCKET_PARTS_MAX 10000

/* The result of a call. Every result other than BUCKET_OK comes with an error that names the
 * object's URL (without secrets), what the server answered, and the remedy. */
enum bucket_result {
    BUCKET_OK,
    BUCKET_NOT_FOUND,   /* no such object, or no such upload */
    BUCKET_NO_BUCKET,   /* no such bucket, or another region's */
    BUCKET_DENIED,      /* wrong key, expired token, missing permission */
    BUCKET_CREDENTIALS, /* no credentials: their source cannot be reached or refuses */
    BUCKET_CHANGED,     /* the object no longer has the ETag that was asked for (412) */
    BUCKET_SLOW_DOWN,   /* 429, 503, 500 and 502: too many requests, or an overloaded server */
    BUCKET_TIMEOUT,     /* no response in time, or the deadline of the call has passed */
    BUCKET_FULL,        /* the quota is reached, or the server's disks are full */
    BUCKET_CLOCK,       /* the clocks of this machine and the server differ too much */
    BUCKET_NETWORK,     /* not reachable, TLS, or the connection broke within the response */
    BUCKET_BAD_ANSWER,  /* a response that no object store sends; or 200 to a range */
    BUCKET_REFUSED,     /* any other refusal */
    BUCKET_LIMIT,       /* a limit of the options, or of object stores */
    BUCKET_FILE,        /* the local file cannot be read, or has become shorter */
    BUCKET_STOPPED,     /* bucket_stop() */
    BUCKET_MEMORY,
    BUCKET_RESULTS,
};
/* Returns a short name for metrics: "ok", "not_found", "no_bucket", "denied", "credentials",
 * "changed", "slow_down", "timeout", "full", "clock", "network", "bad_answer", "refused", "limit",
 * "file", "stopped", "memory". */
const char *bucket_result_name(enum bucket_result r);
/* Returns true if the same call may succeed later without anybody's help: slow down, timeout,
 * network, full, bad answer and memory. */
bool bucket_result_passes(enum bucket_result r);

struct bucket;

struct bucket_options {
    const struct bucket_settings *settings; /* referenced: must outlive the bucket */
    const char *name;        /* label "bucket" of the metrics; copied. NULL: the URL's bucket */
    struct log *log;         /* may be NULL */
    struct metrics *metrics; /* may be NULL */
    struct http_contents *contents; /* credentials that are not in files; may be NULL */
    int64_t request_timeout_ms;     /* one try, beyond the time that its bytes take at 64 KiB/s;
                                       0 = 30 s */
    int64_t progress_timeout_ms;    /* a try without a byte sent or received; 0 = 10 s */
    unsigned tries;                 /* of one request; 0 = 5 */
    int64_t pause_min_ms;           /* before the second try; doubles; 0 = 200 ms */
    int64_t pause_max_ms;           /* 0 = 10 s */
    unsigned max_requests;          /* in flight; 0 = 16 */
    uint64_t part_bytes;            /* files above this are sent in parts; 0 = 8 MiB */
    uint64_t list_max;              /* entries of one bucket_list(); 0 = 1,000,000 */
    const struct credentials_world *world; /* for tests; NULL: the process (credentials.h) */
};

/* Makes the client and starts its thread; sends nothing. NULL and err on failure. */
struct bucket *bucket_new(const struct bucket_options *o, struct err *err);
/* Ends all calls of other threads with BUCKET_STOPPED; later calls end in the same way. Any thread.
 */
void bucket_stop(struct bucket *b);
/* Stops the bucket, and frees it. No call may be in progress. Accepts NULL, returns NULL. */
struct bucket *bucket_free(struct bucket *b);
/* Returns "s3://BUCKET/PREFIX" as configured, for messages. */
const char *bucket_url(const struct bucket *b);

/* In all calls: deadline_ms is a monotonic instant (base/clock.h), 0 for none but the limits of the
 * options; err may be NULL. Results are written only with BUCKET_OK. */

struct bucket_object {
    const char *key; /* relative to the prefix; NUL-terminated */
    bool is_prefix;  /* with a delimiter: the common beginning of keys, with the delimiter at its
                        end; size, etag and time are not set */
    uint64_t size;   /* bytes */
    char etag[BUCKET_ETAG_SIZE]; /* with its quotes; "" if the server gave none */
    int64_t modified_ns;         /* wall clock, whole seconds or milliseconds; 0: unknown */
};

struct bucket_list {
    const char *prefix;      /* of keys; NULL: all */
    const char *start_after; /* only keys that sort after this one; NULL: all */
    char delimiter;          /* '/' lists one level, as a directory; 0: all levels */
    unsigned page;           /* entries that are asked for at once; 0 = 1,000, the most */
};
/* Lists objects, in byte order of their keys on S3 itself; with a delimiter, the objects of a page
 * come before its prefixes. Calls fn with each entry on the calling thread; the entry is valid
 * until fn returns. fn returns false to end the listing (BUCKET_OK). Objects whose keys this client
 * could not ask for (see above) are skipped and counted in profpull_bucket_foreign_keys_total. */
enum bucket_result bucket_list(struct bucket *b, const struct bucket_list *l,
                               bool (*fn)(void *arg, const struct bucket_object *o), void *arg,
                               int64_t deadline_ms, struct err *err);

/* Asks for size, ETag and time of an object. ret->key is `key`. */
enum bucket_result bucket_head(struct bucket *b, const char *key, int64_t deadline_ms,
                               struct bucket_object *ret, struct err *err);

struct bucket_range {
    uint64_t offset;
    size_t len;       /* bytes of `into`; at least 1 */
    void *into;       /* written by the bucket's thread until the call returns; its contents are
                         undefined unless the result is BUCKET_OK */
    const char *etag; /* read only from the object that has this ETag; NULL: from any */
};
struct bucket_read {
    size_t len;                  /* less than asked for only at the end of the object */
    uint64_t total;              /* the size of the object */
    char etag[BUCKET_ETAG_SIZE]; /* "" if the server gave none */
};
/* Reads a range. A range that begins at or after the end gives BUCKET_REFUSED (416). A server that
 * ignores the range and answers 200 is cut off before its body is read: BUCKET_BAD_ANSWER. */
enum bucket_result bucket_get(struct bucket *b, const char *key, const struct bucket_range *r,
                              int64_t deadline_ms, struct bucket_read *ret, struct err *err);

/* Stores an object of at most part_bytes bytes by one request. */
enum bucket_result bucket_put(struct bucket *b, const char *key, const void *data, size_t len,
                              int64_t deadline_ms, struct err *err);
/* Stores len bytes of a file from an offset on as an object: by one request up to part_bytes, else
 * as a multipart upload, whose parts are read one after the other (part_bytes of memory). A failed
 * upload is aborted, by a request of its own within 10 s, even if the deadline has passed; if that
 * fails too, its parts stay in the bucket until bucket_abort_uploads(). The file must not change.
 */
enum bucket_result bucket_put_file(struct bucket *b, const char *key, int fd, uint64_t offset,
                                   uint64_t len, int64_t deadline_ms, struct err *err);

/* Removes an object. It is no error if there is none. */
enum bucket_result bucket_delete(struct bucket *b, const char *key, int64_t deadline_ms,
                                 struct err *err);

/* Aborts the multipart uploads of keys with this prefix (NULL: all) that were begun before a time
 * (wall clock), so that their parts no longer take space. ret_n may be NULL. */
enum bucket_result bucket_abort_uploads(struct bucket *b, const char *prefix, int64_t before_ns,
                                        int64_t deadline_ms, size_t *ret_n, struct err *err);

#endif
