/* Keeps up with one resource of one API server, for any number of listeners.
 *
 * The driver around discovery/kubernetes/watch.h (what to ask next): makes the requests, arms the
 * timers, counts, and logs changes of state. Roles and jobs that want the same objects (resource,
 * namespace, selectors, server) share one. On the loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_REFLECTOR_H
#define PROFPULL_DISCOVERY_KUBERNETES_REFLECTOR_H

#include "base/clock.h"
#include "discovery/counters.h"
#include "discovery/discovery.h"
#include "discovery/kubernetes/access.h"
#include "discovery/kubernetes/object.h"
#include "discovery/kubernetes/watch.h"
#include "http/http.h"

/* Lists that reflector_relist() asks for: so many at once, then one each period. */
#define RELIST_BURST 3
#define RELIST_PERIOD_MS 30000

enum kube_resource {
    RESOURCE_PODS,
    RESOURCE_NODES,
    RESOURCE_NAMESPACES,
    RESOURCE_SERVICES,
    RESOURCE_ENDPOINTS,
    RESOURCE_SLICES,
    RESOURCE_INGRESSES,
    RESOURCE_COUNT,
};

/* Is it in namespaces? */
bool kube_resource_namespaced(enum kube_resource r);

enum reflector_event { OBJECT_LISTED, OBJECT_PUT, OBJECT_GONE };
enum reflector_result { REFLECTOR_UNCHANGED, REFLECTOR_CHANGED, REFLECTOR_NO_MEMORY };

struct reflector_listener {
    struct reflector_listener *next; /* private */
    /* A list begins: what it does not name by its end is gone. May come again before list_end. */
    void (*list_begin)(void *arg);
    void (*list_end)(void *arg);
    /* On REFLECTOR_NO_MEMORY the object comes once more, later. */
    enum reflector_result (*object)(void *arg, enum reflector_event event,
                                    const struct object_id *id, const json_t *object);
    /* May be NULL. The API server has accepted a request, or one has failed: whether what is known
     * can be taken for current. Said again and again. */
    void (*reachable)(void *arg, bool reachable);
    void *arg;
};

struct reflector_options {
    enum kube_resource resource;
    struct kube_access access; /* what it points to is referenced */
    const char *namespace;     /* NULL: all; referenced */
    const char *selectors;     /* as in struct watch_options; copied */
    const void *server_id;     /* only reflectors of the same are shared; compared, not read */
};

struct reflector;
struct server_login;

/* What reflectors work with; all of it outlives them. */
struct reflector_env {
    struct loop *loop;
    struct http_client *http;
    struct log *log;
    const struct discovery_counters *counters;
    struct rng *rng;
    /* See struct discovery_options. */
    void (*on_forbidden)(void *arg, const struct discovery_forbidden *what);
    void *arg;
};

/* The reflectors of one discovery; only `env` is set at first. */
struct reflectors {
    struct reflector_env env;
    struct reflector *first;
    struct server_login *logins; /* one for each server that has an exec plugin */
};

/* The reflector for these options, a new one if there is none yet; before the loop runs. NULL if
 * out of memory. */
struct reflector *reflectors_get(struct reflectors *all, const struct reflector_options *options);
void reflectors_start(struct reflectors *all);
/* Ends all requests and frees all. */
void reflectors_free(struct reflectors *all);
/* What the objects stand for has changed, not the objects: lists once more within that time (a
 * random moment of it, so that replicas do not all ask at once), for all listeners. Of many calls a
 * list that begins after the last one is enough; after a few in a row there is one every
 * RELIST_PERIOD_MS. While lists fail they are tried again, as ever. */
void reflector_relist(struct reflector *r, int64_t within_ms);
/* The listener is referenced until the reflector is freed. */
void reflector_listen(struct reflector *r, struct reflector_listener *listener);

#endif
