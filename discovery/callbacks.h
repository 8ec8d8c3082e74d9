/* Types of the callbacks that the user of discovery provides (discovery.h); for its sub-rooms. */
#ifndef PROFPULL_DISCOVERY_CALLBACKS_H
#define PROFPULL_DISCOVERY_CALLBACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* A permission that the API server denies to a source. */
struct discovery_forbidden {
    const char *verb;      /* "list" or "watch" */
    const char *resource;  /* "pods", "endpointslices", ... */
    const char *namespace; /* NULL: in the whole cluster */
};

/* The replicas that share the targets. With sharding.mode kubernetes sources are read only once the
 * members are known, so that the owner of each reported target is known, too. Pods owned by another
 * replica are not reported: their owner follows from their address alone. When one is assigned to
 * us, the pods are listed again. Everything is reported of sources whose targets may have another
 * address (allow_foreign_address), that other objects are joined to, or that have another role.
 * Calls come on the loop's thread. */
struct discovery_sharing {
    const char *self;    /* our own name; referenced */
    const char *self_ip; /* our own address, "" if unknown; referenced */
    /* The members, sorted, and our index among them (SIZE_MAX: none). Before anything else, and at
     * every change. */
    void (*on_members)(void *arg, const struct sv *names, size_t n, size_t self);
    /* The API server has accepted a request for the members, or a request has failed. */
    void (*on_reachable)(void *arg, bool reachable);
    /* The key by which the owner of the targets at an address is found; 0 if there is none (they
     * are reported like our own). NULL: everything is reported. */
    uint64_t (*key)(void *arg, const char *ip);
    /* Is a key ours, or about to be? Changes with on_members() only. NULL if key is. */
    bool (*is_assigned)(void *arg, uint64_t key);
    /* Pods of other replicas, and pods that are assigned to us but have not been read since; each
     * once for every job. NULL if key is. */
    void (*on_foreign)(void *arg, size_t foreign, size_t pending);
    void *arg;
};

#endif
