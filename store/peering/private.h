/* Declarations that the sources of peering share. */
#ifndef PROFPULL_STORE_PEERING_PRIVATE_H
#define PROFPULL_STORE_PEERING_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/loop.h"
#include "store/peering/message.h"
#include "store/peering/peering.h"

/* Settings in use, with a count of references: peers and requests refer to them. */
struct peering_setup {
    atomic_uint refs;
    struct peering_settings settings;
};
struct peering_setup *peering_setup_ref(struct peering_setup *s);
struct peering_setup *peering_setup_unref(struct peering_setup *s); /* accepts NULL */

struct peer {
    atomic_uint refs;
    struct peering_setup *setup; /* a reference */
    char *url;
    /* The lock of the peering guards the members below. */
    char instance[PEERING_ID_SIZE]; /* "": it has not answered yet */
    bool is_self;
    bool failed;           /* its last request has failed */
    int64_t down_until_ms; /* it is not asked until then */
    struct err why;
};

/* A call while it runs. */
struct peering_exchange {
    struct peering_call *call;
    struct peering *peering;
    struct loop_task task;
    TAILQ_ENTRY(peering_exchange) link;
    struct http_transfer *transfer;
    int64_t timeout_ms;
    int64_t began_ms;
    char *url;
    struct http_part part;
    bool done; /* under the lock */
};
TAILQ_HEAD(peering_exchanges, peering_exchange);

struct peering {
    struct peering_options options;
    char id[PEERING_ID_SIZE];
    /* Made with the first peers; they live as long as the peering. */
    struct loop *loop;
    struct loop_thread *thread;
    struct http_client *http;
    struct lookups *lookups;
    struct loop_timer *timer;
    struct loop_task begin_task; /* posted while begin_posted is set */
    struct loop_task stop_task;
    struct peering_exchanges exchanges; /* of the loop's thread */
    bool ending;                        /* of the loop's thread */
    bool looking_up;                    /* of the loop's thread */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    bool stopped;
    bool begin_posted;
    struct peering_setup *setup;
    struct peer **peers;
    size_t n_peers;
    char *members; /* addresses of the members, with commas between them; NULL: not known */
    bool known;    /* the peers are known, perhaps none */
    bool cut;      /* there are more than PEERING_PEERS_MAX */
    struct err lookup_err;

    struct metric *requests; /* by result */
    struct metric_cell *bytes;
    struct metric_cell *seconds;
};

/* Runs an exchange on the loop's thread (its `task`). */
void peering_exchange_run(struct loop_task *task);
/* Ends all exchanges (`stop_task`). */
void peering_exchange_stop(struct loop_task *task);
/* Replaces the peers by those with these URLs; peers that stay keep their state. Takes over the
 * URLs. */
void peering_replace(struct peering *p, struct peering_setup *setup, char **urls, size_t n,
                     bool cut);
/* Does that for a list of addresses with commas between them. */
void peering_use_addresses(struct peering *p, struct peering_setup *setup, const char *list,
                           uint16_t port);
/* Looks up the name of the settings, if there is one (`begin_task`). */
void peering_lookup_begin(struct loop_task *task);
void peering_lookup_on_timer(void *arg);
void peering_lookup_on_done(void *arg, int code, char *addresses);
/* The lookup_fn of the product, which returns more addresses than lookup_getaddrinfo(). */
int peering_getaddrinfo(const char *host, char **ret_addresses);
/* Makes the URL of a peer; NULL if out of memory. */
char *peering_url(const struct peering_settings *s, struct sv host, uint16_t port);

#endif
