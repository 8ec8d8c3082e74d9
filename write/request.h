/* A profile as an HTTP request of its endpoint's protocol: URL, headers, and a body around bytes
 * that are sent from where they lie. Pure; any thread.
 */
#ifndef PROFPULL_WRITE_REQUEST_H
#define PROFPULL_WRITE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "config/config.h"
#include "http/http.h"
#include "model/profile.h"
#include "write/protocols/ingest.h"
#include "write/series.h"
#include "write/write.h"

/* The protocol's own headers; those of the configuration come on top. */
#define REQUEST_HEADERS_MAX 4
#define REQUEST_URL_MAX ((size_t)64 * 1024)

struct request {
    struct buf url;
    struct buf head; /* of the body, before the profile */
    struct buf tail;
    struct http_part body[3];
    struct http_header *headers;
    size_t n_headers;
    char content_type[128];
    char timeout[24];
    char tenant[SERIES_TENANT_MAX + 1];
};

enum request_status {
    REQUEST_OK,
    REQUEST_BAD_LABELS, /* nothing that the protocol could carry: DROP_LABELS */
    REQUEST_BAD_FORMAT, /* the protocol has no place for this format: DROP_FORMAT */
    REQUEST_TOO_LARGE,  /* the protocol cannot carry the profile: DROP_REJECTED */
    REQUEST_EMPTY,      /* no samples, which the server would refuse: DROP_EMPTY */
    REQUEST_MEMORY,
};

/* Fills an uninitialised request; request_done() frees it whatever came out. It points into the
 * endpoint's configuration and the profile. The boundary is replaced by a new one if the profile
 * happens to hold it. */
enum request_status request_build(struct request *r, const struct config_endpoint *endpoint,
                                  struct series *s, const struct profile *p,
                                  struct ingest_boundary *boundary, struct rng *rng);
void request_done(struct request *r);

#endif
