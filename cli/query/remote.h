/* A server to which a command sends one request after the other.
 *
 * It has a loop and an HTTP client of its own, on the caller's thread. Errors name the URL. If the
 * server failed, they are of kind ERR_NETWORK or ERR_REFUSED.
 */
#ifndef PROFPULL_CLI_QUERY_REMOTE_H
#define PROFPULL_CLI_QUERY_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"

/* Limit of a response in bytes. */
#define REMOTE_BODY_MAX ((size_t)512 * 1024 * 1024)
#define REMOTE_HEADERS_MAX 4

struct remote;
struct http_header;
struct json_t;

/* Makes the object. The flags must outlive it. */
struct remote *remote_new(const struct config_endpoint_flags *flags, int64_t timeout_ms,
                          struct err *err);
struct remote *remote_free(struct remote *r); /* accepts NULL, returns NULL */
/* Returns the URL as the user gave it. */
const char *remote_url(const struct remote *r);

/* Returns "N; REASON" if a response since the start was not complete, because the server could not
 * read all parts; NULL otherwise. The first such response is also reported on standard error. */
const char *remote_partial(const struct remote *r);

struct remote_request {
    const char *path;         /* appended to the URL */
    struct sv query;          /* encoded; may be empty */
    const char *content_type; /* NULL: the request is a GET, otherwise a POST of the body */
    struct sv body;
    /* Further headers, at most REMOTE_HEADERS_MAX. */
    const struct http_header *headers;
    size_t n_headers;
    long *ret_status;    /* not NULL: gets the status, and the body of any status is returned */
    bool nothing_is_404; /* statuses 404 and 204 mean that nothing was found */
};

/* Sends a request. *ret gets the body of a response with status 200; it is empty if nothing was
 * found. The caller has not initialised *ret, and frees it. */
bool remote_fetch(struct remote *r, const struct remote_request *q, struct buf *ret,
                  struct err *err);
/* Sends a request whose response is JSON. NULL with err on failure; NULL without err if nothing was
 * found. The caller releases the result. */
struct json_t *remote_fetch_json(struct remote *r, const struct remote_request *q, struct err *err);

#endif
