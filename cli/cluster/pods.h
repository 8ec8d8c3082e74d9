/* The pods that a person names on the command line: a pod itself, or the pods of a Deployment,
 * StatefulSet, DaemonSet, ReplicaSet, Job or Service.
 */
#ifndef PROFPULL_CLI_CLUSTER_PODS_H
#define PROFPULL_CLI_CLUSTER_PODS_H

#include "base/labels.h"
#include "cli/cluster/cluster.h"

/* The longest name of an object in Kubernetes. */
#define PODS_NAME_MAX 253

struct pods_kind;

/* A name such as "pod/shop/cart-1", "deploy/cart". */
struct pods_name {
    const struct pods_kind *kind;
    struct sv namespace; /* "": none is given */
    struct sv name;
};

/* Returns true if an object or a namespace of Kubernetes may have this name. */
bool pods_is_object_name(struct sv name);
/* Returns true if the text begins with a kind that is known and a slash. */
bool pods_is_name(const char *text);
/* Parses KIND/NAME or KIND/NAMESPACE/NAME; views of the text. The error says what is expected. */
bool pods_parse(const char *text, struct pods_name *ret, struct err *err);
/* Returns true if the kind is "pod" or one of its other forms. */
bool pods_is_pod(const struct pods_name *name);

/* Lists the pods, as an object of JSON with a list `items` that is not empty. namespace: used if
 * the name has none. NULL with an error, also if there is none. The caller decrefs it. */
json_t *pods_of(struct cluster *c, const struct pods_name *name, const char *namespace,
                struct err *err);
/* Lists the pods that a label selector chooses; namespace NULL: in the whole cluster. The list may
 * be empty. */
json_t *pods_selected(struct cluster *c, const char *namespace, struct sv selector,
                      struct err *err);
/* Lists the pod with this name: a list of one, or an empty one. */
json_t *pods_named(struct cluster *c, struct sv namespace, struct sv name, struct err *err);

/* Appends the selector of an object of this kind, as a query has it: "app=cart,tier in (a,b)";
 * nothing if it has none. */
void pods_put_selector(const struct pods_name *name, const json_t *object, struct buf *out);

/* Appends why a pod does not run or has no address, as far as its status says so: `its phase is
 * Pending (Unschedulable: 0/3 nodes are available)`. */
void pods_describe(const json_t *pod, struct buf *out);
/* Returns true if the pod has an address. */
bool pods_has_address(const json_t *pod);
/* Returns metadata.name or metadata.namespace; "" if there is none. */
const char *pods_meta(const json_t *pod, const char *member);

#endif
