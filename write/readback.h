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
    const char *base_url; /* of the server that is asked */
    const char *service;
    const char *id; /* the value of READBACK_LABEL */
    int64_t from_ns;
    int64_t until_ns;
};

struct readback {
    /* Appends path and query to the URL, and a body; without a body it is a GET. */
    void (*ask)(const struct readback_query *q, struct buf *url, struct buf *body);
    /* Returns true if the answer, an object, holds the profile. */
    bool (*holds)(const struct json_t *answer);
    /* Another question, whether anything of the tenant can be read at all, and what its answer
     * says. NULL: there is none. */
    void (*ask_empty)(struct buf *url, struct buf *body);
    bool (*is_empty)(const struct json_t *answer);
    /* Returns true for an answer that is the profile itself: collectors of profefe send it (2019).
     */
    bool may_be_profile;
    /* 204 and 404 say that nothing was found (yet), and nothing about the path. */
    bool no_profile_is_404;
    /* The endpoint itself answers no questions: a server is asked that the user names, without the
     * endpoint's credentials, and for a service of the profile's own in place of the label. */
    bool elsewhere;
    /* Not asked, but found: appends the directory that holds the profile. NULL for a server. */
    bool (*directory)(const char *url, struct sv service, struct sv type, struct buf *out);
};

#endif
