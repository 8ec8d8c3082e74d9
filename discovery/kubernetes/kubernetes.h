/* One kubernetes source: the objects of its role, joined with what it attaches.
 *
 * Listens to the reflectors (reflector.h) of its role's resource and of those that are joined to
 * it, one for the whole cluster or one for each namespace; makes targets of the objects (pod.h and
 * its sisters); tells changes. Objects that nothing is joined to are only kept as hashes (store.h),
 * others with their labels (join.h). On the loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_KUBERNETES_H
#define PROFPULL_DISCOVERY_KUBERNETES_KUBERNETES_H

#include "config/config.h"
#include "discovery/kubernetes/reflector.h"
#include "model/group.h"

struct kubernetes;
struct discovery_sharing;

struct kubernetes_options {
    const struct config_kubernetes *config; /* referenced */
    struct kube_access access;              /* what it points to is referenced */
    const void *server_id;                  /* see struct reflector_options */
    struct reflectors *reflectors;          /* outlive this */
    struct intern *intern;
    /* An object as it is now, with the source "pod/<namespace>/<name>"; the job is not set. */
    void (*on_change)(void *arg, const struct target_group *group);
    /* Who has which pods (only key and claims are called); those of others are left to them before
     * any label is made. Referenced. NULL: nothing is left. */
    const struct discovery_sharing *sharing;
    /* kubernetes_left() or kubernetes_awaited() has changed. NULL if sharing is. */
    void (*on_left)(void *arg);
    /* Whether a label can have an effect; those that cannot are not made. NULL: all are made. */
    bool (*wants_label)(void *arg, struct sv name);
    /* Once: everything has been listed. */
    void (*on_synced)(void *arg);
    void *arg;
};

/* Sends nothing yet. An error says what is wrong with the configuration. */
struct kubernetes *kubernetes_new(const struct kubernetes_options *options, struct err *err);
/* After the reflectors. Accepts NULL, returns NULL. */
struct kubernetes *kubernetes_free(struct kubernetes *k);
/* Objects that have targets now. */
size_t kubernetes_count(const struct kubernetes *k);
/* Pods that are left to other replicas; pods that have become ours and have not been read since. */
size_t kubernetes_left(const struct kubernetes *k);
size_t kubernetes_awaited(const struct kubernetes *k);
/* The owners have changed: tells what is not ours any more as gone, and has what has become ours
 * listed again within that time. */
void kubernetes_review(struct kubernetes *k, int64_t within_ms);

#endif
