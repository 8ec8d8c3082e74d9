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

/* The replicas that share the targets. With sharding.mode kubernetes, sources are read only after
 * the members are known, so that each reported target has a known owner. Pods that another replica
 * owns are not reported, because the owner of a pod follows from its address alone. When such a pod
 * is assigned to this replica, the pods are listed again. Sources report all their objects if rules
 * may give targets another address (allow_foreign_address), if other objects are joined to theirs,
 * or if their role is not pod. Functions are called on the loop's thread. */
struct discovery_sharing {
    const char *self;    /* our own name; referenced */
    const char *self_ip; /* our own address, "" if unknown; referenced */
    /* Reports the members, sorted, and our index among them (SIZE_MAX if we are not a member). It
     * is called before any target is reported, and at every change. */
    void (*on_members)(void *arg, const struct sv *names, size_t n, size_t self);
    /* Receives the first address of each member, our own included, before each on_members(). A
     * member with an address of IPv4 and one of IPv6 has both. May be NULL. */
    void (*on_addresses)(void *arg, const struct sv *addresses, size_t n);
    /* Reports that the API server has accepted a request for the members, or that a request has
     * failed. */
    void (*on_reachable)(void *arg, bool reachable);
    /* Returns the key that determines the owner of the targets at an address; 0 if there is none,
     * and then the targets are reported like our own. NULL: everything is reported. */
    uint64_t (*key)(void *arg, const char *ip);
    /* Returns true if the targets with this key are assigned to us, or are about to be. The result
     * changes only at on_members(). NULL if `key` is NULL. */
    bool (*is_assigned)(void *arg, uint64_t key);
    /* Reports the number of pods of other replicas, and of pods that are assigned to us but have
     * not been read since. A pod counts once for every job. NULL if `key` is NULL. */
    void (*on_foreign)(void *arg, size_t foreign, size_t pending);
    void *arg;
};

#endif
