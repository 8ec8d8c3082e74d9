/* Joins objects with others whose labels they take over: pods with their node, endpoints with their
 * service and pods, all objects with their namespace.
 *
 * The join holds primaries (the objects that have targets) and facts (the labels that other objects
 * contribute). Each primary is linked to the facts that it needs, known or not yet known, so that a
 * change of a fact affects exactly the primaries that depend on it. Primaries of a list are
 * reported only after join_ready() for that list, since labels that are joined in part would change
 * soon after. A target that has, or takes over, more labels than a target may have is left out; the
 * others are not affected. Pure, one owner.
 *
 * The names of the joined objects are read from labels of the primary itself (struct
 * kube_join_labels). A pod is looked up in the namespace that the reference names, else in that of
 * the object.
 *
 * Reference: Prometheus discovery/kubernetes (pod.go, endpoints.go, endpointslice.go).
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_JOIN_H
#define PROFPULL_DISCOVERY_KUBERNETES_JOIN_H

#include "discovery/kubernetes/object.h"
#include "discovery/kubernetes/roles.h"
#include "discovery/kubernetes/store.h"

/* The most targets of one primary after joining. */
#define JOIN_TARGETS_MAX 20000

enum join_kind { JOIN_NODE, JOIN_NAMESPACE, JOIN_SERVICE, JOIN_POD, JOIN_KINDS };

struct join_options {
    /* the labels that name joined objects, by role; referenced */
    const struct kube_join_labels *labels;
    bool uses[JOIN_KINDS]; /* the kinds of objects that are joined */
    unsigned n_lists;      /* number of watches, which are numbered from 0 */
    size_t max; /* the most primaries, and the most facts of each kind; further ones are refused */
    /* True if the lists are of the whole cluster. Otherwise pods are joined within their namespace
     * only, because those of another namespace may not be known. */
    bool everywhere;
    struct intern *intern;
    /* Reports that n targets of a primary are left out because they, or an object that is joined to
     * them, have too many labels. pod: the pod of the first of them, "" if it has none. May be
     * NULL. */
    void (*on_left_out)(void *arg, const char *key, struct sv pod, size_t n);
    /* Same as in struct store_options; moved is always false. */
    void (*on_change)(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip, bool moved);
    void *arg;
};

struct join;

struct join *join_new(const struct join_options *options); /* NULL if out of memory */
/* Frees the join; reports nothing. Accepts NULL, returns NULL. */
struct join *join_free(struct join *j);
/* Returns the number of primaries with targets. */
size_t join_count(const struct join *j);
/* Calls fn with the key of each primary with targets. */
void join_each(const struct join *j, void (*fn)(void *arg, struct sv key), void *arg);
/* Reports the primaries of a list, and every change from then on. Call it when all facts that they
 * need have been listed once. False if out of memory: call it again. */
bool join_ready(struct join *j, unsigned list);

/* Begin and end a list; `list` is the number of a watch. Objects that the list does not name by its
 * end are removed. */
void join_list_begin(struct join *j, unsigned list);
void join_list_end(struct join *j, unsigned list);

/* Stores the current state of a primary, including t->shared. */
enum store_result join_put(struct join *j, unsigned list, const struct object_id *id,
                           const struct object_targets *t);
enum store_result join_remove(struct join *j, const struct object_id *id);
/* Returns true if a primary (a fact) with this content is stored already; it counts as put then. */
bool join_has(struct join *j, unsigned list, const struct object_id *id, uint64_t content);
bool join_fact_has(struct join *j, unsigned list, enum join_kind kind, const struct object_id *id,
                   uint64_t content);

/* The contribution of an object to the targets of others. */
struct join_fact {
    enum join_kind kind;
    uint64_t content; /* as in struct object_targets */
    /* it has no labels for that reason, and targets that need it are left out */
    bool too_many_labels;
    struct labels *labels;             /* the join takes a reference of its own */
    const struct object_targets *pods; /* for JOIN_POD the targets of its ports; otherwise NULL */
    /* for JOIN_SERVICE: '4' or '6' if only slices of this family have targets; otherwise 0 */
    char family;
};
enum store_result join_fact_put(struct join *j, unsigned list, const struct object_id *id,
                                const struct join_fact *fact);
/* Returns true if an object contributes nothing because it has too many labels. */
bool join_fact_is_refused(const struct join *j, enum join_kind kind, const struct object_id *id);
enum store_result join_fact_remove(struct join *j, enum join_kind kind, const struct object_id *id);

#endif
