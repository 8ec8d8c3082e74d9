/* Private to verify.c and verify_ask.c. */
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

/* One endpoint on trial. */
struct trial {
    struct verify *verify;
    struct one_endpoint to;
    const struct readback *how; /* NULL: not at all */
    struct writer *writer;
    struct loop_timer *again;
    struct http_transfer *transfer; /* the question */
    struct buf url;
    struct buf body;
    char *service;
    int64_t sent_ms; /* monotonic: when it was accepted; 0: not yet */
    int64_t wait_ms;
    bool done;
    bool works;
    char text[ERR_MSG_MAX];
    const char *advice;
    char last[ERR_MSG_MAX]; /* what the last question failed at; "": not found */
};

struct verify {
    const struct verify_options *options;
    struct loop *loop;
    struct intern *intern;
    struct worker_pool *workers;
    struct http_client *http; /* for questions */
    struct loop_timer *deadline;
    struct trial *trials;
    size_t n_trials;
    size_t printed;
    size_t looks; /* in the hands of workers */
    char id[17];
    int64_t time_ns;
    char *data; /* the profile, gzip */
    size_t size;
};

/* The trial is over; the first time counts. advice: static, "" for none. */
void verify_finish(struct trial *t, bool works, const char *advice, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints what is ready in order, and ends the loop when all is. */
void verify_print(struct verify *v);
/* Asks for the profile, over and over until it is found or the deadline comes. */
void verify_ask(struct trial *t);

#endif
