/* Reads a profile back from a server: makes the query, and interprets the response. Pure; any
 * thread.
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

/* Limit of a response in bytes. */
#define READBACK_BODY_MAX ((size_t)1024 * 1024)

/* Returns how profiles are read back from an endpoint; NULL if that is impossible. */
const struct readback *readback_of(const struct config_endpoint *endpoint);

/* Appends the URL and the body of the query. If the body is empty, the query is a GET. False if out
 * of memory. */
bool readback_request(const struct readback *how, const struct readback_query *q, struct buf *url,
                      struct buf *body);

/* Makes the request that asks whether the tenant is empty. Only for servers that have such a
 * request. */
bool readback_empty_request(const struct readback *how, const char *base_url, struct buf *url,
                            struct buf *body);
/* Returns true if the response says that the tenant is empty. */
bool readback_says_empty(const struct readback *how, long status, struct sv body);

enum readback_verdict {
    READBACK_FOUND,
    READBACK_NOT_YET,    /* query again */
    READBACK_IMPOSSIBLE, /* the server cannot be queried; err has the reason */
};
enum readback_verdict readback_check(const struct readback *how, long status, struct sv body,
                                     struct err *err);

/* Appends a pprof CPU profile, not compressed, with one sample in READBACK_FUNCTION. */
bool readback_profile(int64_t time_ns, int64_t duration_ns, struct buf *out);

#endif
