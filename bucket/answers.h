/* Reads the responses of object stores: listings, errors and uploads in XML. Pure functions; any
 * thread.
 */
#ifndef PROFPULL_BUCKET_ANSWERS_H
#define PROFPULL_BUCKET_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "bucket/bucket.h"

/* ---- errors ---------------------------------------------------------------------------------- */

#define BUCKET_CODE_SIZE 64
#define BUCKET_MESSAGE_SIZE 256

/* <Error><Code>..</Code><Message>..</Message><Region>..</Region></Error>. Other elements are not
 * read, because some of them repeat the request with its credentials. */
struct bucket_refusal {
    char code[BUCKET_CODE_SIZE]; /* "" if the body is not an error */
    char message[BUCKET_MESSAGE_SIZE];
    char place[BUCKET_CODE_SIZE]; /* region or endpoint of the bucket; "" if the body has none */
};
/* Returns false, with all texts empty, if the body is not an error. Texts that are too long are
 * cut. A body whose end is missing is read as far as it goes. */
bool bucket_read_refusal(struct sv body, struct bucket_refusal *ret);

/* The meaning of a code or a status. */
struct bucket_meaning {
    enum bucket_result result;
    const char *advice; /* the remedy; NULL: it passes by itself, or the message says all */
};
/* Returns true for the codes of expired or unknown keys: a request with other keys may succeed. */
bool bucket_code_is_about_keys(const char *code);
/* Returns the meaning of a refusal by its code and, if that is unknown, by its status. google: the
 * advice is for credentials of Google. */
struct bucket_meaning bucket_meaning_of(const char *code, long status, bool google);

/* ---- listings -------------------------------------------------------------------------------- */

struct bucket_listed {
    struct sv key; /* with the bucket's prefix, decoded */
    bool is_prefix;
    uint64_t size;
    struct sv etag;
    int64_t modified_ns;
    struct sv upload; /* of an upload: its id */
};

struct bucket_page {
    bool truncated;
    char *next;        /* the token or key of the next page; NULL: none. Owned, free() */
    char *next_upload; /* of uploads */
    size_t entries;
};
void bucket_page_done(struct bucket_page *p);

/* Calls fn with each entry of a ListBucketResult (version 2) in the order of the text; fn may be
 * NULL. Stops without a failure when fn returns false. Returns false if the body is not such a list
 * (err has the reason) or memory runs out. Call bucket_page_done() in any case. */
bool bucket_read_list(struct sv body, bool (*fn)(void *arg, const struct bucket_listed *entry),
                      void *arg, struct bucket_page *ret, struct err *err);
/* Does the same with the uploads of a ListMultipartUploadsResult; modified_ns is the time at which
 * an upload was begun. */
bool bucket_read_uploads(struct sv body, bool (*fn)(void *arg, const struct bucket_listed *entry),
                         void *arg, struct bucket_page *ret, struct err *err);
/* Appends the UploadId of an InitiateMultipartUploadResult. */
bool bucket_read_upload_id(struct sv body, struct buf *out, struct err *err);
/* Returns true if the body is a CompleteMultipartUploadResult. */
bool bucket_is_complete(struct sv body);

#endif
