/* Reading a profile back from a server: the query, and what its response means. Pure; any thread.
 */
#ifndef PROFPULL_CLI_VERIFY_READBACK_H
#define PROFPULL_CLI_VERIFY_READBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "write/readback.h"

/* The longest response that is read. */
#define READBACK_BODY_MAX ((size_t)1024 * 1024)

/* NULL: profiles cannot be read back from this endpoint. */
const struct readback *readback_of(const struct config_endpoint *endpoint);

/* Appends the URL and the body; without a body it is a GET. False if out of memory. */
bool readback_request(const struct readback *how, const struct readback_query *q, struct buf *url,
                      struct buf *body);

/* The same for the question whether the tenant is empty; only if the server has one. */
bool readback_empty_request(const struct readback *how, const char *base_url, struct buf *url,
                            struct buf *body);
/* Returns true if the response says that the tenant is empty. */
bool readback_says_empty(const struct readback *how, long status, struct sv body);

enum readback_verdict {
    READBACK_FOUND,
    READBACK_NOT_YET,    /* query again */
    READBACK_IMPOSSIBLE, /* the server cannot be queried: err says why */
};
enum readback_verdict readback_check(const struct readback *how, long status, struct sv body,
                                     struct err *err);

/* Appends a pprof CPU profile, not compressed, with one sample in READBACK_FUNCTION. */
bool readback_profile(int64_t time_ns, int64_t duration_ns, struct buf *out);

#endif
