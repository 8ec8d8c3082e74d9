/* One request to an API and its response. Handlers in api/ read the one and fill in the other.
 *
 * A handler of a worker route (server/routes.h) is called on a thread of the pool for queries,
 * after the whole body was read; it fills in the response, which is sent when it returns. It may
 * block, within its deadline.
 */
#ifndef PROFPULL_SERVER_EXCHANGE_H
#define PROFPULL_SERVER_EXCHANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/partial.h"
#include "base/str.h"
#include "model/receipt.h"
#include "server/request.h"
#include "server/server.h"

/* The result of waiting for a receipt. */
enum exchange_wait {
    EXCHANGE_SETTLED, /* all profiles of the receipt are safe */
    EXCHANGE_LATE,    /* the deadline has passed */
    EXCHANGE_FAILED,  /* the receipt reports a failure */
};

/* The header of a response that is not complete: how many parts are missing, and why the first one
 * is. */
#define EXCHANGE_PARTIAL "X-Profpull-Partial"

struct exchange {
    const struct request *request;        /* method, path, parameters, headers */
    const struct server_options *options; /* the store, the log, ... */
    /* The body as sent, without the framing of chunks. The handler decodes Content-Encoding (see
     * exchange_inflate()), because each API words the error for a broken body itself. */
    struct sv body;
    int64_t deadline_ms;          /* monotonic */
    const atomic_bool *cancelled; /* becomes true when the client is gone */
    size_t bytes_max;             /* memory that the query may use */

    /* The response: 200 with an empty body unless the handler sets something else. */
    int status;
    const char *content_type; /* NULL: no such header */
    struct buf headers;       /* further headers, "Name: value\r\n" each */
    struct buf reply;
    struct buf trailers; /* headers after the body, likewise; HTTP/1.0 does not send them */

    bool fails; /* the response reports a failure, as one with a status from 300 does */

    /* Notes the parts that are missing in the response. If there are any, a header says so
     * (EXCHANGE_PARTIAL). NULL: nothing is noted. */
    struct partial *partial;

    /* A reference to a receipt, or NULL. A response that reports no failure is sent when the
     * receipt is settled, after the handler has returned. No thread waits meanwhile. */
    struct receipt *receipt;
    /* Called at the end of the wait, on the loop of the server. If the wait has failed, it must
     * replace the response, whose headers are empty then. */
    void (*settle)(struct exchange *x, enum exchange_wait result);
};

/* Decodes the Content-Encoding of the body (none, identity or gzip). buf is initialised by the
 * caller with a limit, and the caller frees it; *ret_body is a view of buf, or of the body itself.
 * False with ERR_INPUT (broken), ERR_LIMIT (larger than the limit of buf) or ERR_REFUSED (another
 * encoding). */
bool exchange_inflate(const struct exchange *x, struct buf *buf, struct sv *ret_body,
                      struct err *err);
/* Decodes a body whose coding is the value of a header, named for the error; otherwise as
 * exchange_inflate(). */
bool exchange_decode(const char *header, struct sv coding, struct sv body, struct buf *buf,
                     struct sv *ret_body, struct err *err);
/* Appends the header of a response that is not complete. */
void exchange_mark_partial(struct exchange *x);
/* Adds the member "partial" to a response that is one object of JSON, if parts are missing in it:
 * {"parts": their number, "why": the reason of the first one}. For formats whose readers skip
 * members that they do not know. */
void exchange_add_partial(struct exchange *x);
/* Compresses the response if the client accepts gzip and the response is large enough. */
void exchange_deflate(struct exchange *x);
/* Sets the status and a body of text. */
void exchange_text(struct exchange *x, int status, const char *content_type, struct sv text);

#endif
