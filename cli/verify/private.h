/* Private to verify.c, ask.c and finish.c. */
#ifndef PROFPULL_CLI_VERIFY_PRIVATE_H
#define PROFPULL_CLI_VERIFY_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/labels.h"
#include "base/loop.h"
#include "base/worker.h"
#include "cli/one_endpoint.h"
#include "cli/verify/readback.h"
#include "cli/verify/verify.h"
#include "http/http.h"
#include "write/write.h"

struct verify;

/* The check of one endpoint. */
struct probe {
    struct work search; /* of the files of a file endpoint */
    bool found;         /* by the search */
    struct verify *verify;
    struct one_endpoint to;
    const struct readback *how; /* NULL: profiles cannot be read back */
    struct writer *writer;
    struct loop_timer *retry_timer;
    struct buf url;
    struct buf body;
    char *service;
    int64_t sent_ms; /* monotonic: when it was accepted; 0: not yet */
    int64_t wait_ms;
    bool done;
    bool works;
    char text[ERR_MSG_MAX];
    const char *advice;
    char last[ERR_MSG_MAX]; /* why the last query failed; "": not found */
    bool asks_empty;        /* the query under way is whether the tenant is empty */
    bool asked_empty;
    bool empty; /* nothing of the tenant could be read when it was asked */
};

struct verify {
    const struct verify_options *options;
    struct loop *loop;
    struct intern *intern;
    struct worker_pool *workers;
    struct http_client *http; /* for queries */
    struct loop_timer *deadline;
    bool extended; /* the deadline, for empty tenants */
    struct stores *stores;
    struct probe *probes;
    size_t n_probes;
    size_t printed;
    size_t searches; /* that workers are running */
    char id[17];
    int64_t time_ns;
    char *data; /* the profile, gzip */
    size_t size;
};

/* Ends a probe; the first call counts. advice: static, "" for none. */
void verify_finish(struct probe *probe, bool works, const char *advice, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints the finished probes in order, and stops the loop after the last. */
void verify_print(struct verify *v);
/* Looks for the profile of a struct probe, repeatedly until it is found or the deadline passes. */
void verify_ask(void *arg);

#endif
