/* Asking a server for the profile that it has just been sent: how to ask, and what its answer
 * means. Pure; any thread. */
#ifndef PROFPULL_CLI_VERIFY_READBACK_H
#define PROFPULL_CLI_VERIFY_READBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"

/* The label that finds the profile again. */
#define READBACK_LABEL "verify_id"
#define READBACK_SERVICE "profpull-verify"
#define READBACK_FUNCTION "profpull.verify"
#define READBACK_TYPE "process_cpu"
/* An answer is read up to here. */
#define READBACK_BODY_MAX ((size_t)1024 * 1024)

enum readback_kind {
    READBACK_PYROSCOPE, /* SelectMergeStacktraces of its querier, in JSON */
    READBACK_DEEPFLOW,  /* ProfileTracing of the server behind the agent */
    READBACK_PROFEFE,   /* GET /api/0/profiles */
    READBACK_FILE,
};

/* DeepFlow is known by the path of its agent, the others by their protocol. */
enum readback_kind readback_kind_of(const struct config_endpoint *endpoint);

struct readback_query {
    enum readback_kind kind;
    const char *base_url; /* of the endpoint, or of the DeepFlow server */
    const char *service;
    const char *id;
    int64_t from_ns;
    int64_t until_ns;
};

/* Appends the URL and the body; without a body it is a GET. False if out of memory. */
bool readback_request(const struct readback_query *q, struct buf *url, struct buf *body);

enum readback_verdict {
    READBACK_FOUND,
    READBACK_NOT_YET,    /* ask again */
    READBACK_IMPOSSIBLE, /* it cannot be asked there: err says why */
};
enum readback_verdict readback_judge(enum readback_kind kind, long status, struct sv body,
                                     struct err *err);

/* Appends a pprof CPU profile, not compressed, with one sample in READBACK_FUNCTION. */
bool readback_profile(int64_t time_ns, int64_t duration_ns, struct buf *out);

#endif
