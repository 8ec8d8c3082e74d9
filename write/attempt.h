/* An attempt to send one profile to an endpoint; and the HTTP exchange that is used both for
 * requests with one profile (attempt.c) and for requests with many (batch.c). Private to these two
 * files; everything on the writer's loop. */
#ifndef PROFPULL_WRITE_ATTEMPT_H
#define PROFPULL_WRITE_ATTEMPT_H

#include <stdatomic.h>

#include "bucket/credentials.h"
#include "write/destination.h"
#include "write/grpc.h"
#include "write/request.h"

struct attempt;

/* A request over HTTP, and its response. */
struct exchange {
    struct request request;
    struct http_transfer *transfer; /* while it is under way */
    struct http_client *http;
    /* For a bucket with credentials that are fetched: the wait for them, and the settings with
     * them. */
    struct credentials *credentials;
    struct credentials_use use;
    struct credentials_keys *keys;
    struct http_settings settings;
    enum http_result result;
    long status;
    const struct config_endpoint *config; /* the configuration of its attempts */
    const struct protocol *protocol;
    void (*on_answer)(void *arg, const struct answer *answer);
    void *arg;
    struct buf reply; /* the first ANSWER_BODY_MAX bytes */
    size_t reply_bytes;
    struct grpc_end end;
};

void exchange_init(struct exchange *x);
/* Returns true if the exchange waits for credentials or for its response. */
bool exchange_is_running(const struct exchange *x);
/* Cancels the transfer if there is one. */
void exchange_done(struct exchange *x);
/* Sends x->request with the settings of a, one of its attempts. on_answer is called once, after
 * this call has returned. Returns false if out of memory. */
bool exchange_start(struct exchange *x, const struct attempt *a,
                    void (*on_answer)(void *arg, const struct answer *answer), void *arg);

struct attempt {
    struct destination *destination; /* NULL: abandoned */
    const struct config *owner;      /* a reference, or NULL: the owner of `config` */
    /* The configuration when the attempt began, which it keeps to its end. */
    const struct config_endpoint *config;
    const struct protocol *protocol;
    TAILQ_ENTRY(attempt) link;
    /* While it waits for other profiles to share its request (batch.c). */
    TAILQ_ENTRY(attempt) waits;
    struct send_item *item;
    /* A reference of its own, because the writing of a file may outlive the item. */
    struct profile *profile;
    /* The profile that is sent: the same, or one with other labels in its samples. */
    struct profile *outgoing;
    bool unlooked; /* it is sent unchanged: the labels of its samples were not examined */
    struct series series;
    int64_t start_ms;
    struct answer answer;
    struct exchange exchange; /* HTTP: the request that carries this profile alone */
    /* For a destination that is not HTTP: */
    struct work work;
    struct sink *sink;
    struct delivery delivery;
    atomic_bool abandoned; /* a delivery that has not begun need not begin */
};

void attempt_free(struct attempt *a);
/* Ends an attempt: the queue, the metrics and the log get its answer, and it is freed. The caller
 * pumps the destination afterwards. result is for the metric; x is the request that carried the
 * profile. */
void attempt_settle(struct attempt *a, const char *result, const struct exchange *x);
/* Drops the profile of an attempt that cannot be sent, and frees the attempt. */
void attempt_drop(struct attempt *a, enum request_status status);

#endif
