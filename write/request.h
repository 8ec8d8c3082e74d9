/* A profile as an HTTP request of its endpoint's protocol: URL, headers, and a body around bytes
 * that are sent from where they lie. Pure; any thread.
 */
#ifndef PROFPULL_WRITE_REQUEST_H
#define PROFPULL_WRITE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/clock.h"
#include "config/config.h"
#include "http/http.h"
#include "model/profile.h"
#include "write/series.h"
#include "write/write.h"

/* Headers of the protocol's own; those of the configuration come on top. */
#define REQUEST_OWN_HEADERS_MAX 4
#define REQUEST_URL_MAX ((size_t)64 * 1024)

struct request {
    const char *method; /* NULL: POST */
    struct buf url;
    struct buf head; /* of the body, before the profile */
    struct buf tail;
    struct http_part body[3];
    struct http_header *headers;
    size_t n_headers;
    struct http_header own[REQUEST_OWN_HEADERS_MAX]; /* of the protocol */
    struct buf values;                               /* of these, where they are not constant */
    size_t n_own;
    char content_type[128];
    char timeout[24];
    char tenant[SERIES_TENANT_MAX + 1];
    char *packed; /* sent in place of the profile's bytes; NULL: these */
    size_t packed_size;
    size_t n_messages; /* of many profiles: what the server counts; several for each */
};

enum request_status {
    REQUEST_OK,
    REQUEST_BAD_LABELS, /* nothing that the protocol could carry: DROP_LABELS */
    REQUEST_BAD_FORMAT, /* the protocol has no place for this format: DROP_FORMAT */
    REQUEST_BAD_TYPES,  /* nothing in it that the server would store: DROP_FORMAT */
    REQUEST_TOO_LARGE,  /* the protocol cannot carry the profile: DROP_REJECTED */
    REQUEST_DAMAGED,    /* the profile cannot be read: DROP_FORMAT */
    REQUEST_EMPTY,      /* no samples, which the server would refuse: DROP_EMPTY */
    REQUEST_MEMORY,
};

/* A multipart boundary: "profpull" and 32 hex digits, with the NUL. */
struct boundary {
    char text[8 + 32 + 1];
};
/* A random one; one for each destination is enough as long as it fits all profiles. */
void boundary_new(struct boundary *b, struct rng *rng);
/* True if the boundary does not occur in the profile. */
bool boundary_fits(const struct boundary *b, const void *data, size_t size);

struct request_input {
    const struct config_endpoint *endpoint;
    struct series *series; /* the protocol may drop labels from it */
    const struct profile *profile;
    struct sv plain;           /* it inflated; empty if that is not at hand */
    struct boundary *boundary; /* replaced by a new one if the profile happens to hold it */
    struct rng *rng;
};

/* Fills an uninitialised request; request_done() frees it whatever came out. It points into the
 * endpoint's configuration and the profile. */
enum request_status request_build(struct request *r, const struct request_input *in);
/* One of several profiles of one tenant in a request. */
struct request_part {
    const struct series *series;
    const struct profile *profile;
    enum request_status status; /* of this profile; it is in the request if it is REQUEST_OK */
};
/* The same for n > 0 profiles, and a protocol that has build_many. What comes back is about the
 * request: without a profile that it can carry it is none, and the status that of the first. */
enum request_status request_build_many(struct request *r, const struct config_endpoint *endpoint,
                                       struct request_part *parts, size_t n);
void request_done(struct request *r);

/* The tenant of a request: that of the label (empty: none) wins over the endpoint's, which wins
 * over a header of the configuration. Empty if the request names none. */
struct sv request_tenant(const struct config_endpoint *endpoint, struct sv label);

/* ---- for protocols --------------------------------------------------------------------------- */

/* Adds a header of the protocol's own; name and value are borrowed. */
void request_add_own(struct request *r, const char *name, const char *value);
/* Sets the URL: the endpoint's with the first of the protocol's paths, if it has any, and a query,
 * which may be empty. False if that is too long, or out of memory. */
bool request_set_url(struct request *r, const struct config_endpoint *endpoint,
                     const struct buf *query);

#endif
