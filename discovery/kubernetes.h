/* Watches the pods of one API server for one or more sources that want the same.
 *
 * The driver around discovery/watch.h (what to ask next), discovery/pod.h (what a pod stands for)
 * and discovery/store.h (what has changed): makes the requests, arms the timers, counts and logs
 * changes of state. One watch for the whole cluster, or one for each namespace. On the loop's
 * thread.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_H
#define PROFPULL_DISCOVERY_KUBERNETES_H

#include "base/clock.h"
#include "base/http.h"
#include "discovery/counters.h"
#include "discovery/discovery.h"
#include "discovery/kube_access.h"

struct kubernetes;

struct kubernetes_options {
    const struct config_kubernetes *config; /* referenced */
    struct kube_access access;              /* what it points to is referenced */
    struct loop *loop;
    struct http_client *http;
    struct intern *intern;
    struct log *log;
    const struct discovery_counters *counters; /* referenced */
    struct rng *rng;
    /* A pod ("namespace/name") as it is now; n 0: it is gone. */
    void (*on_change)(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip);
    /* Once: every namespace has been listed. */
    void (*on_synced)(void *arg);
    void *arg;
};

/* Sends nothing yet. An error says what is wrong with the configuration. */
struct kubernetes *kubernetes_new(const struct kubernetes_options *options, struct err *err);
void kubernetes_start(struct kubernetes *k);
/* Ends all requests. Accepts NULL, returns NULL. */
struct kubernetes *kubernetes_free(struct kubernetes *k);
/* Pods that have targets now. */
size_t kubernetes_count(const struct kubernetes *k);

#endif
