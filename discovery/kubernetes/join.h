/* Objects whose labels come from other objects as well: pods with the labels of their node,
 * endpoints with those of their service and pods, everything with those of its namespace.
 *
 * Holds the primary objects (those that have targets) and facts: the labels that other objects
 * contribute. Each primary is linked to the facts that it needs, also to those that are not known
 * yet, so that a change of a fact describes again exactly the primaries that depend on it. Nothing
 * is told before join_ready(): half-joined labels would come and go. Pure, one owner.
 *
 * What is joined to what is found in the labels of the primary itself (name of the node, of the
 * pod, of the service). A pod is only looked for in the namespace of the object that names it.
 *
 * Reference: Prometheus discovery/kubernetes (pod.go, endpoints.go, endpointslice.go).
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_JOIN_H
#define PROFPULL_DISCOVERY_KUBERNETES_JOIN_H

#include "base/metrics.h"
#include "discovery/kubernetes/object.h"
#include "discovery/kubernetes/store.h"

/* Targets of one primary with all that is joined. */
#define JOIN_TARGETS_MAX 20000

enum join_role { JOIN_ROLE_OTHER, JOIN_ROLE_POD, JOIN_ROLE_ENDPOINTS, JOIN_ROLE_SLICE };

enum join_kind { JOIN_NODE, JOIN_NAMESPACE, JOIN_SERVICE, JOIN_POD, JOIN_KINDS };

struct join_options {
    enum join_role role;
    bool uses[JOIN_KINDS];
    size_t max; /* primaries, and facts of each kind; new ones beyond are refused */
    struct intern *intern;
    struct metric_cell *too_many_labels; /* may be NULL */
    /* As in struct store_options: without an address, and never moved. */
    void (*on_change)(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip, bool moved);
    void *arg;
};

struct join;

/* The only one of the labels and annotations of objects that the join itself reads. */
#define JOIN_SERVICE_LABEL META "endpointslice_label_kubernetes_io_service_name"

struct join *join_new(const struct join_options *options); /* NULL if out of memory */
/* Tells nobody. Accepts NULL, returns NULL. */
struct join *join_free(struct join *j);
/* Primaries with targets. */
size_t join_count(const struct join *j);
/* Everything has been listed once: tells all, and every change from here on. False if out of
 * memory: call it again. */
bool join_ready(struct join *j);

/* Lists are told apart by a number of the caller's (`list`), one for each watch. */
void join_list_begin(struct join *j, unsigned list);
void join_list_end(struct join *j, unsigned list);

/* A primary as it is now, with t->shared. */
enum store_result join_put(struct join *j, unsigned list, const struct object_id *id,
                           const struct object_targets *t);
enum store_result join_remove(struct join *j, const struct object_id *id);

/* What an object contributes. */
struct join_fact {
    enum join_kind kind;
    struct labels *labels;             /* referenced anew */
    const struct object_targets *pods; /* JOIN_POD: the targets of its ports; else NULL */
    char family;                       /* JOIN_SERVICE: '4' or '6' if its slices of the other
                                        * family stand for the same endpoints; else 0 */
};
enum store_result join_fact_put(struct join *j, unsigned list, const struct object_id *id,
                                const struct join_fact *fact);
enum store_result join_fact_remove(struct join *j, enum join_kind kind, const struct object_id *id);

#endif
