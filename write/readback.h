/* Reads back a profile that `verify` has sent; each protocol has its own requests for it. Pure; any
 * thread. */
#ifndef PROFPULL_WRITE_READBACK_H
#define PROFPULL_WRITE_READBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* The label that identifies the profile. */
#define READBACK_LABEL "verify_id"
#define READBACK_SERVICE "profpull-verify"
#define READBACK_FUNCTION "profpull.verify"
#define READBACK_TYPE "process_cpu"

struct json_t;

struct readback_query {
    const char *base_url; /* the URL of the server that is queried */
    const char *service;
    const char *id; /* the value of READBACK_LABEL */
    int64_t from_ns;
    int64_t until_ns;
};

struct readback {
    /* Appends path and query to the URL, and the body of the request. If the body stays empty, the
     * request is a GET. */
    void (*ask)(const struct readback_query *q, struct buf *url, struct buf *body);
    /* Returns true if the response, a JSON object, holds the profile. */
    bool (*holds)(const struct json_t *answer);
    /* Another request, which shows if anything of the tenant can be read at all, and the check of
     * its response. NULL: there is none. */
    void (*ask_empty)(struct buf *url, struct buf *body);
    bool (*is_empty)(const struct json_t *answer);
    /* True if a response may be the profile itself: profefe's collectors of 2019 send it.
     */
    bool may_be_profile;
    /* True if 204 and 404 mean that no profile was found (yet), and say nothing about the path. */
    bool no_profile_is_404;
    /* True if the endpoint itself cannot be queried. Then the user names another server, which gets
     * a query without the endpoint's credentials, for a service that only this profile has in place
     * of the label. */
    bool elsewhere;
    /* For a destination that is a directory: appends the directory that holds the profile. NULL for
     * a server. */
    bool (*directory)(const char *url, struct sv service, struct sv type, struct buf *out);
};

#endif
