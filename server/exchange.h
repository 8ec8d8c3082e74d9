/* One request to an API and its answer: what the handlers in api/ work with.
 *
 * A handler of a worker route (server/routes.h) is called on a thread of the pool for queries, with
 * the whole body read and decoded; it fills in the answer, which is sent when it returns. It may
 * block, within its deadline.
 */
#ifndef PROFPULL_SERVER_EXCHANGE_H
#define PROFPULL_SERVER_EXCHANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "model/receipt.h"
#include "server/request.h"
#include "server/server.h"

/* The result of waiting for a receipt. */
enum exchange_wait {
    EXCHANGE_SETTLED, /* everything is safe */
    EXCHANGE_LATE,    /* not by the deadline */
    EXCHANGE_FAILED,  /* the receipt says so */
};

struct exchange {
    const struct request *request;        /* method, path, parameters, headers */
    const struct server_options *options; /* the store, the log, ... */
    /* The body as it came on the wire, without chunks; Content-Encoding is the handler's (see
     * exchange_inflate()), because each API answers a bad one in its own words. */
    struct sv body;
    int64_t deadline_ms;          /* monotonic */
    const atomic_bool *cancelled; /* the client is gone */
    size_t bytes_max;             /* memory that the query may use */

    /* The answer: 200 with an empty body unless the handler says otherwise. */
    int status;
    const char *content_type; /* NULL: no such header */
    struct buf headers;       /* further ones, "Name: value\r\n" each */
    struct buf reply;

    /* NULL, or what an answer below 300 waits for after the handler has returned: a reference. The
     * wait holds no thread. */
    struct receipt *receipt;
    /* Called at the end of the wait, on the loop of the server. Must replace the answer if the wait
     * has failed; its headers are empty then. */
    void (*settle)(struct exchange *x, enum exchange_wait result);
};

/* The body without its Content-Encoding (none, identity or gzip) in *ret, a buffer that the caller
 * has made with its ceiling and frees; *ret_body is a view of it, or of the body. False with
 * ERR_INPUT (broken), ERR_LIMIT (larger than the ceiling) or ERR_REFUSED (another encoding). */
bool exchange_inflate(const struct exchange *x, struct buf *buf, struct sv *ret_body,
                      struct err *err);
/* Compresses the answer if the client takes gzip and it is worth it. */
void exchange_deflate(struct exchange *x);
/* Sets the status and a body of text. */
void exchange_text(struct exchange *x, int status, const char *content_type, struct sv text);

#endif
