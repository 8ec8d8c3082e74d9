/* A server that a command asks, one request after the other.
 *
 * A loop and an HTTP client of its own, on the caller's thread. Errors name the URL, and are of
 * kind ERR_NETWORK or ERR_REFUSED if the other side failed.
 */
#ifndef PROFPULL_CLI_QUERY_REMOTE_H
#define PROFPULL_CLI_QUERY_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"

/* Bytes of an answer. */
#define REMOTE_BODY_MAX ((size_t)512 * 1024 * 1024)

struct remote;
struct json_t;

/* The flags outlive it. */
struct remote *remote_new(const struct config_endpoint_flags *flags, int64_t timeout_ms,
                          struct err *err);
struct remote *remote_free(struct remote *r); /* accepts NULL, returns NULL */
/* Returns the URL as the user gave it. */
const char *remote_url(const struct remote *r);

struct remote_request {
    const char *path;         /* added to the URL */
    struct sv query;          /* encoded; may be empty */
    const char *content_type; /* NULL: a GET, else a POST of the body */
    struct sv body;
    bool nothing_is_404; /* 404 and 204 say that nothing was found */
};

/* The body of an answer with status 200 in *ret, which the caller has not initialised and frees;
 * empty if nothing was found. */
bool remote_fetch(struct remote *r, const struct remote_request *q, struct buf *ret,
                  struct err *err);
/* The same for JSON; NULL with err, or without if nothing was found. The caller releases it. */
struct json_t *remote_fetch_json(struct remote *r, const struct remote_request *q, struct err *err);

#endif
