/* One kubernetes source: the objects of its role, joined with those that it attaches.
 *
 * Listens to the reflectors (reflector.h) of its role's resource and of the joined resources, one
 * for the whole cluster or one for each namespace, builds targets of the objects (roles.h) and
 * reports changes. Objects that nothing is joined to are kept as hashes (store.h), others with
 * their labels (join.h); these are reported when all that is joined to them has been listed in
 * their namespace, and in the whole cluster where it is not in namespaces. On the loop's thread.
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
    struct kube_access access;              /* what it points to is referenced */
    const void *server_id;                  /* see struct reflector_options */
    struct reflectors *reflectors;          /* outlive this */
    struct intern *intern;
    /* The current state of an object, with the source "pod/<namespace>/<name>"; the job is not set.
     */
    void (*on_change)(void *arg, const struct target_group *group);
    /* Who has which pods; only key and is_assigned are called. Pods of other replicas are foreign
     * (store.h): their labels are not built. Referenced. NULL: none is foreign. */
    const struct discovery_sharing *sharing;
    /* The foreign or the pending pods in kubernetes_counts() have changed. NULL if sharing is. */
    void (*on_counts)(void *arg);
    /* A list has been read: kubernetes_synced() may have changed. May be NULL. */
    void (*on_listed)(void *arg);
    /* Returns true if a label can have an effect; others are not built. NULL: all are built. */
    bool (*wants_label)(void *arg, struct sv name);
    void *arg;
};

/* Sends nothing yet. An error says what is wrong with the configuration. */
struct kubernetes *kubernetes_new(const struct kubernetes_options *options, struct err *err);
/* Lists and watches, or lists again what others watch already. */
void kubernetes_start(struct kubernetes *k);
/* Reports nothing; reflectors_prune() next. Accepts NULL, returns NULL. */
struct kubernetes *kubernetes_free(struct kubernetes *k);
struct store_counts kubernetes_counts(const struct kubernetes *k);
/* Returns the state of the resources that it listens to; appends the reason if one cannot be read.
 */
enum source_state kubernetes_state(const struct kubernetes *k, struct buf *why);
/* Returns true if every list has been read, so that all objects have been reported. */
bool kubernetes_synced(const struct kubernetes *k);
/* Calls fn with the source ("pod/<namespace>/<name>") of each object that has been reported, and
 * has targets. */
void kubernetes_each(const struct kubernetes *k, void (*fn)(void *arg, const char *source),
                     void *arg);
/* The owners have changed: reports objects that are no longer ours as removed, and lists again
 * within that time if others have become ours. */
void kubernetes_reassign(struct kubernetes *k, int64_t within_ms);

#endif
