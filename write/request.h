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

/* The most headers that a protocol sets itself; the headers of the configuration are added to them.
 */
#define REQUEST_OWN_HEADERS_MAX 4
#define REQUEST_URL_MAX ((size_t)64 * 1024)

struct request {
    const char *method; /* NULL: POST */
    struct buf url;
    struct buf head; /* the part of the body before the profile */
    struct buf tail;
    struct http_part body[3];
    struct http_header *headers;
    size_t n_headers;
    struct http_header own[REQUEST_OWN_HEADERS_MAX]; /* the headers of the protocol */
    struct buf values;                               /* the values of `own` that are not constant */
    size_t n_own;
    char content_type[128];
    char timeout[24];
    char tenant[SERIES_TENANT_MAX + 1];
    char *packed; /* bytes that are sent in place of the profile's; NULL: the profile's are sent */
    size_t packed_size;
    /* For a request with many profiles: the messages that the server counts, several for each
     * profile. */
    size_t n_messages;
};

enum request_status {
    REQUEST_OK,
    REQUEST_BAD_LABELS, /* the protocol cannot carry these labels: DROP_LABELS */
    REQUEST_BAD_FORMAT, /* the protocol has no place for this format: DROP_FORMAT */
    REQUEST_BAD_TYPES,  /* the server would store none of its sample types: DROP_FORMAT */
    REQUEST_TOO_LARGE,  /* the protocol cannot carry the profile: DROP_REJECTED */
    REQUEST_DAMAGED,    /* the profile cannot be read: DROP_FORMAT */
    REQUEST_EMPTY,      /* no samples, which the server would refuse: DROP_EMPTY */
    REQUEST_MEMORY,
};

/* A multipart boundary: "profpull" and 32 hex digits, with the NUL. */
struct boundary {
    char text[8 + 32 + 1];
};
/* Makes a random boundary. One for each destination is enough as long as it occurs in no profile.
 */
void boundary_new(struct boundary *b, struct rng *rng);
/* Returns true if the boundary does not occur in the profile. */
bool boundary_fits(const struct boundary *b, const void *data, size_t size);

struct request_input {
    const struct config_endpoint *endpoint;
    struct series *series; /* the protocol may drop labels from it */
    const struct profile *profile;
    struct sv plain;           /* the profile inflated; empty if the caller does not have it */
    struct boundary *boundary; /* replaced by a new one if it happens to occur in the profile */
    struct rng *rng;
};

/* Fills an uninitialised request. Call request_done() whatever the result is. It points into the
 * endpoint's configuration and the profile. */
enum request_status request_build(struct request *r, const struct request_input *in);
/* One of several profiles of one tenant in a request. */
struct request_part {
    const struct series *series;
    const struct profile *profile;
    /* The status of this profile, which is in the request if this is REQUEST_OK. */
    enum request_status status;
};
/* The memory that a protocol keeps from request to request. Its owner is a destination, whose
 * thread makes the requests. Empty at first. */
struct request_memory {
    void *kept; /* NULL: nothing */
    void (*free)(void *kept);
};
void request_memory_done(struct request_memory *m);
/* Does the same for n > 0 profiles and a protocol that has build_many. The result is the status of
 * the request. If the request can carry none of the profiles, it is not made, and the result is the
 * status of the first profile. */
enum request_status request_build_many(struct request *r, const struct config_endpoint *endpoint,
                                       struct request_part *parts, size_t n,
                                       struct request_memory *memory);
void request_done(struct request *r);

/* Returns the tenant of a request: that of the label (empty: none), else that of the endpoint, else
 * that of a header in the configuration. Empty if the request names no tenant. */
struct sv request_tenant(const struct config_endpoint *endpoint, struct sv label);

/* ---- for protocols --------------------------------------------------------------------------- */

/* Adds a header of the protocol's own; name and value are borrowed. */
void request_add_own(struct request *r, const char *name, const char *value);
/* Sets the URL: that of the endpoint, with the first of the protocol's paths (if it has any) and a
 * query, which may be empty. Returns false if the URL is too long, or if memory runs out. */
bool request_set_url(struct request *r, const struct config_endpoint *endpoint,
                     const struct buf *query);

#endif
