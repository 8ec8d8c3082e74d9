/* Objects that take labels from other objects as well: pods from their node, endpoints from their
 * service and pods, everything from its namespace.
 *
 * Holds the primary objects (those that have targets) and facts: the labels that other objects
 * contribute. Each primary is linked to the facts that it needs, known or not yet known, so that a
 * change of a fact affects exactly the primaries that depend on it. Nothing of a list is reported
 * before its join_ready(): half-joined labels would come and go. A target that has, or takes over,
 * more labels than a target may have is left out; the others are not affected. Pure, one owner.
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

/* Targets of one primary, joined. */
#define JOIN_TARGETS_MAX 20000

enum join_kind { JOIN_NODE, JOIN_NAMESPACE, JOIN_SERVICE, JOIN_POD, JOIN_KINDS };

struct join_options {
    const struct kube_join_labels *labels; /* of the role; referenced */
    bool uses[JOIN_KINDS];                 /* the kinds of objects that are joined */
    unsigned n_lists;                      /* watches, which have the numbers below this */
    size_t max; /* primaries, and facts of each kind; further ones are refused */
    /* The lists are of the whole cluster. Else pods are joined within their namespace only, because
     * those of another one may not be known. */
    bool everywhere;
    struct intern *intern;
    /* n targets of a primary are left out because of too many labels, theirs or those of an object
     * that is joined to them; the first of them refers to the pod ("" if to none). May be NULL. */
    void (*on_left_out)(void *arg, const char *key, struct sv pod, size_t n);
    /* Same as in struct store_options; moved is always false. */
    void (*on_change)(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip, bool moved);
    void *arg;
};

struct join;

struct join *join_new(const struct join_options *options); /* NULL if out of memory */
/* Reports nothing. Accepts NULL, returns NULL. */
struct join *join_free(struct join *j);
/* Primaries with targets. */
size_t join_count(const struct join *j);
/* Calls fn with the key of each of them. */
void join_each(const struct join *j, void (*fn)(void *arg, struct sv key), void *arg);
/* All that the primaries of a list need has been listed once: reports them, and from now on every
 * change. False if out of memory: call it again. */
bool join_ready(struct join *j, unsigned list);

/* `list` is the number of a watch. What a list does not name by its end is removed. */
void join_list_begin(struct join *j, unsigned list);
void join_list_end(struct join *j, unsigned list);

/* The current state of a primary, with t->shared. */
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
    uint64_t content;                  /* as in struct object_targets */
    bool too_many_labels;              /* and no labels: targets that need it are left out */
    struct labels *labels;             /* the join takes a reference of its own */
    const struct object_targets *pods; /* JOIN_POD: the targets of its ports; else NULL */
    char family;                       /* JOIN_SERVICE: '4' or '6', the only family whose slices
                                        * have targets; 0 if all slices have */
};
enum store_result join_fact_put(struct join *j, unsigned list, const struct object_id *id,
                                const struct join_fact *fact);
/* Returns true if an object contributes nothing because it has too many labels. */
bool join_fact_is_refused(const struct join *j, enum join_kind kind, const struct object_id *id);
enum store_result join_fact_remove(struct join *j, enum join_kind kind, const struct object_id *id);

#endif
