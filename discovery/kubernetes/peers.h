/* Finds the replicas of this program that share the targets: the endpoints of their headless
 * Service.
 *
 * Watches the EndpointSlices of one Service. A member is an endpoint that is ready and not
 * terminating. Its name is that of its pod (targetRef), else its hostname, else its first address:
 * every replica reads the same name from the same object. Members are reported when the first list
 * is complete and at every change from then on, never from an incomplete list. Everything runs on
 * the loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_PEERS_H
#define PROFPULL_DISCOVERY_KUBERNETES_PEERS_H

#include "base/clock.h"
#include "config/config.h"
#include "discovery/kubernetes/reflector.h"

/* The most endpoints of the Service; further ones are ignored, counted and logged. */
#define PEERS_MAX 1000

/* ---- from slices to members (pure) ----------------------------------------------------------- */

struct peer_set;

struct peer_set_options {
    const char *self;    /* our own name; referenced */
    const char *self_ip; /* our own address, "" if unknown: for endpoints without a pod; referenced
                          */
};

struct peer_set *peer_set_new(const struct peer_set_options *options); /* NULL if out of memory */
struct peer_set *peer_set_free(struct peer_set *s); /* accepts NULL, returns NULL */
/* Stores the current state of a slice. False if out of memory: nothing has changed. */
bool peer_set_put(struct peer_set *s, const struct object_id *id, const struct kube_slice *slice);
void peer_set_remove(struct peer_set *s, const struct object_id *id);
/* Begins a list: slices that are not put before its end are removed then. */
void peer_set_list_begin(struct peer_set *s);
void peer_set_list_end(struct peer_set *s);

struct peers_now {
    const struct sv *names; /* sorted, each once */
    size_t n;
    size_t self;    /* index of our own name, or SIZE_MAX */
    size_t ignored; /* number of members beyond PEERS_MAX */
};
/* Returns all members of all slices; valid until the next call. False if out of memory. */
bool peer_set_now(struct peer_set *s, struct peers_now *ret);

/* Returns the first address of each member in each slice, in no particular order; valid until the
 * next change. The caller frees the array. NULL if out of memory. */
struct sv *peer_set_addresses(const struct peer_set *s, size_t *ret_n);

/* ---- the watch ------------------------------------------------------------------------------- */

struct peers;

struct peers_options {
    const struct config_sharding *config; /* referenced */
    struct kube_access access;            /* what it points to is referenced */
    /* our name and address, and on_reachable(); referenced */
    const struct discovery_sharing *sharing;
    struct reflector_env env;
    void (*on_members)(void *arg, const struct sv *names, size_t n, size_t self);
    void *arg;
};

/* Makes the watch of the members. The namespace of the Service may be unknown, which is an
 * error. */
struct peers *peers_new(const struct peers_options *options, struct err *err);
void peers_start(struct peers *p);
/* Return the state of the list of members; see reflector_state() and reflectors_unread(). */
enum source_state peers_state(const struct peers *p, struct buf *why);
struct reflectors_unread peers_unread(const struct peers *p);
struct peers *peers_free(struct peers *p); /* accepts NULL, returns NULL */

#endif
