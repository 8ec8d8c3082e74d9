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

/* The probe of one endpoint. */
struct probe {
    struct work search; /* searches the files of a file endpoint */
    bool found;         /* the search has found the profile */
    struct verify *verify;
    struct one_endpoint to;
    const struct readback *how; /* NULL: profiles cannot be read back */
    struct writer *writer;
    struct loop_timer *retry_timer;
    struct buf url;
    struct buf body;
    char *service;
    int64_t sent_ms; /* monotonic time at which it was accepted; 0: not yet */
    int64_t wait_ms;
    bool done;
    bool works;
    char text[ERR_MSG_MAX];
    const char *advice;
    char last[ERR_MSG_MAX]; /* why the last query failed; "": it has found nothing */
    bool asks_empty;        /* the query in flight asks whether the tenant is empty */
    bool asked_empty;
    bool empty; /* the tenant had nothing when it was asked */
};

struct verify {
    const struct verify_options *options;
    struct loop *loop;
    struct intern *intern;
    struct worker_pool *workers;
    struct http_client *http; /* client for the queries */
    struct loop_timer *deadline;
    bool extended; /* the deadline was extended, for empty tenants */
    struct stores *stores;
    struct probe *probes;
    size_t n_probes;
    size_t printed;
    size_t searches; /* searches that workers run at the moment */
    char id[17];
    int64_t time_ns;
    char *data; /* the profile as gzip */
    size_t size;
};

/* Ends a probe; only the first call has an effect. advice is static, "" for none. */
void verify_finish(struct probe *probe, bool works, const char *advice, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints the finished probes in order, and stops the loop after the last. */
void verify_print(struct verify *v);
/* Looks for the profile of a struct probe, repeatedly until it is found or the deadline passes. */
void verify_ask(void *arg);

#endif
