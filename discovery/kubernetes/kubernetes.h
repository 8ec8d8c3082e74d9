/* One kubernetes source: it reports the objects of its role, joined with the objects whose metadata
 * it attaches.
 *
 * Listens to the reflectors (reflector.h) of its role's resource and of the joined resources, one
 * for the whole cluster or one for each namespace, builds targets of the objects (roles.h) and
 * reports changes. Objects that nothing is joined to are kept as hashes (store.h), others with
 * their labels (join.h); these are reported only after the joined resources have been listed: those
 * in their namespace, and those of the whole cluster (nodes, namespaces). Everything runs on the
 * loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_KUBERNETES_H
#define PROFPULL_DISCOVERY_KUBERNETES_KUBERNETES_H

#include "config/config.h"
#include "discovery/kubernetes/reflector.h"
#include "discovery/kubernetes/store.h"
#include "model/group.h"

struct kubernetes;

struct kubernetes_options {
    const struct config_kubernetes *config; /* referenced */
    struct kube_access access;              /* its pointers are referenced */
    const void *server_id;                  /* see struct reflector_options */
    struct reflectors *reflectors;          /* outlive this */
    struct intern *intern;
    /* Takes the current state of an object, with the source "pod/<namespace>/<name>"; the job is
     * not set. */
    void (*on_change)(void *arg, const struct target_group *group);
    /* Says which replica has which pods; only key and is_assigned are called. Pods of other
     * replicas are foreign (store.h), so their labels are not built. Referenced. NULL: no pod is
     * foreign. */
    const struct discovery_sharing *sharing;
    /* Called when the foreign or pending pods in kubernetes_counts() have changed. NULL if
     * `sharing` is NULL. */
    void (*on_counts)(void *arg);
    /* Called when a list has been read, so that kubernetes_synced() may have changed. May be
     * NULL. */
    void (*on_listed)(void *arg);
    /* Returns true if a label can have an effect; other labels are not built. NULL: all are
     * built. */
    bool (*wants_label)(void *arg, struct sv name);
    void *arg;
};

/* Makes a source; sends nothing yet. An error says what is wrong with the configuration. */
struct kubernetes *kubernetes_new(const struct kubernetes_options *options, struct err *err);
/* Starts to list and watch. A resource that another source watches already is listed again. */
void kubernetes_start(struct kubernetes *k);
/* Frees a source; reports nothing. Call reflectors_prune() afterwards. Accepts NULL, returns
 * NULL. */
struct kubernetes *kubernetes_free(struct kubernetes *k);
struct store_counts kubernetes_counts(const struct kubernetes *k);
/* Returns the state of the resources that the source reads; appends the reason if it cannot read
 * one. */
enum source_state kubernetes_state(const struct kubernetes *k, struct buf *why);
/* Returns true if every list has been read, so that all objects have been reported. */
bool kubernetes_synced(const struct kubernetes *k);
/* Calls fn with the source ("pod/<namespace>/<name>") of each object that has been reported, and
 * has targets. */
void kubernetes_each(const struct kubernetes *k, void (*fn)(void *arg, const char *source),
                     void *arg);
/* Call it when the owners have changed. Objects that are no longer ours are reported as removed. If
 * pods of others have become ours, the pods are listed again within within_ms milliseconds. */
void kubernetes_reassign(struct kubernetes *k, int64_t within_ms);

#endif
