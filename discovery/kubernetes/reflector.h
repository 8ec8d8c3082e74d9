/* Follows one resource of one API server, for any number of listeners.
 *
 * The reflector drives the state machine of discovery/kubernetes/watch.h, which decides the next
 * request: it sends the requests, arms the timers, counts, and logs changes of state. Roles and
 * jobs that need the same objects (resource, namespace, selectors, server) share one reflector. On
 * the loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_REFLECTOR_H
#define PROFPULL_DISCOVERY_KUBERNETES_REFLECTOR_H

#include "base/clock.h"
#include "discovery/callbacks.h"
#include "discovery/counters.h"
#include "discovery/kubernetes/access.h"
#include "discovery/kubernetes/object.h"
#include "discovery/kubernetes/roles.h"
#include "discovery/kubernetes/store.h"
#include "discovery/kubernetes/watch.h"
#include "discovery/sources.h"
#include "http/http.h"

/* The pace of reflector_relist(): this many lists may follow at once, then one each period (in
 * milliseconds). */
#define RELIST_BURST 3
#define RELIST_PERIOD_MS 30000

struct reflector_listener {
    struct reflector_listener *next; /* private, as is the next member */
    enum { LISTENER_IDLE, LISTENER_WAITING, LISTENER_CALLED } state;
    /* Says that a list begins. Objects that it does not name by its end are gone. May be called
     * again before list_end, if the list starts over. */
    void (*list_begin)(void *arg);
    void (*list_end)(void *arg);
    /* Takes the current state of an object; NULL: it was deleted. If it returns STORE_NO_MEMORY,
     * the object is delivered again later. */
    enum store_result (*object)(void *arg, const struct object_id *id,
                                const struct kube_object *object);
    /* Says whether the known state is current: the API server has accepted a request, or a request
     * has failed. Called repeatedly. May be NULL. */
    void (*reachable)(void *arg, bool reachable);
    void *arg;
};

struct reflector_options {
    const struct kube_resource *resource;
    struct kube_access access; /* what it points to is referenced */
    const char *namespace;     /* NULL: all; copied */
    const char *selectors;     /* as in struct watch_options; copied */
    const void *server_id;     /* identifies the server; only compared, never dereferenced */
};

struct reflector;

/* The environment of reflectors, which outlives them. */
struct reflector_env {
    struct loop *loop;
    struct http_client *http;
    struct log *log;
    const struct discovery_counters *counters;
    struct rng *rng;
    /* See struct discovery_options. */
    int64_t list_progress_ms;
    void (*on_forbidden)(void *arg, const struct discovery_forbidden *what);
    /* Called when the result of reflector_state() may have changed. NULL if on_forbidden is
     * NULL. */
    void (*on_progress)(void *arg);
    void *arg;
};

struct kube_login;

/* The reflectors of one discovery; only `env` is set at first. */
struct reflectors {
    struct reflector_env env;
    struct reflector *first;
    struct kube_login *logins; /* logins to servers that have a plugin for credentials */
};

/* Returns the reflector for these options, and creates it if needed. NULL if out of memory. */
struct reflector *reflectors_get(struct reflectors *all, const struct reflector_options *options);
/* Frees the reflectors without a listener, and ends their requests. */
void reflectors_prune(struct reflectors *all);

/* Returns the state of the resource; appends the reason if it cannot be read. */
enum source_state reflector_state(const struct reflector *r, struct buf *why);

/* The number of lists that have not been read since the start, by reason. */
struct reflectors_unread {
    /* lists that have not been requested, or whose request failed and is repeated */
    size_t pending;
    /* the server refuses the list (403) or does not have it (404); it is repeated, too */
    size_t refused;
};
struct reflectors_unread reflectors_unread(const struct reflectors *all);
/* Ends all requests and frees all reflectors. */
void reflectors_free(struct reflectors *all);
/* Lists again for all listeners, although the objects have not changed. The list begins within
 * within_ms milliseconds, at a random moment, so that replicas spread their requests. Several calls
 * need only one list that begins after the last call. After RELIST_BURST lists in a row there is
 * one every RELIST_PERIOD_MS. Failed lists are retried as always. */
void reflector_relist(struct reflector *r, int64_t within_ms);
/* Adds a listener, which is referenced until reflector_unlisten(), or until the reflector is freed.
 * It is not called before reflector_follow(). */
void reflector_listen(struct reflector *r, struct reflector_listener *listener);
/* Starts to call the listener. A new list begins at once, because the listener has seen no earlier
 * one. */
void reflector_follow(struct reflector *r, struct reflector_listener *listener);
/* Removes a listener. Do not call it within a function of the listener. */
void reflector_unlisten(struct reflector *r, struct reflector_listener *listener);

#endif
