/* The pods of profpull itself in a cluster: those of the chart and the manifests, which have the
 * label app.kubernetes.io/name=profpull, or those of a workload that a person names.
 */
#ifndef PROFPULL_CLI_CLUSTER_AGENTS_H
#define PROFPULL_CLI_CLUSTER_AGENTS_H

#include "cli/cluster/pods.h"

/* The flags that choose pods of profpull. */
struct agents_flags {
    struct cluster_flags cluster;
    const char *namespace; /* NULL: all namespaces, or the context's if not all may be listed */
    bool in_cluster;       /* --cluster */
};

/* clang-format off: rows of a table. `at` is the member of args that is a struct agents_flags. */
#define AGENTS_FLAGS(args, at)                                                                     \
    FLAG(BOOL, "cluster", 0, args, at.in_cluster, NULL,                                            \
         "the profpull that runs in the cluster of the kubeconfig, through its API server; "       \
         "`kubectl profpull` sets it"),                                                            \
        FLAG(TEXT, "namespace", 'n', args, at.namespace, "NAME",                                   \
             "with --cluster: the namespace of profpull; by default all are searched"),            \
        CLUSTER_FLAGS(args, at.cluster)
/* clang-format on */

/* A connection to the cluster, and the pods that run there. */
struct agents {
    struct arena *arena;
    struct cluster_access access;
    struct cluster *cluster;
    json_t *list; /* has a list `items` with at least one pod, each of which has an address */
};

/* Finds the pods. operand: KIND/NAME or KIND/NAMESPACE/NAME; NULL: those with the label. */
bool agents_find(const struct agents_flags *flags, const char *operand, int64_t timeout_ms,
                 struct agents *ret, struct err *err);
void agents_done(struct agents *a);
size_t agents_count(const struct agents *a);
const json_t *agents_at(const struct agents *a, size_t i);
/* Returns the number of the pod's admin port: the one named "admin", or 4041. */
unsigned agents_port(const json_t *pod);
/* Fetches a page of a pod's admin server. Any status is a success, see cluster_ask(). */
bool agents_get(struct cluster *c, const json_t *pod, const char *path, struct sv query,
                struct cluster_answer *ret, struct err *err);

#endif
