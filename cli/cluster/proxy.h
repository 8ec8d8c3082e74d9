/* A profile of a pod, fetched through the API server's pod proxy
 * (/api/v1/namespaces/NAMESPACE/pods/NAME:PORT/proxy/...), so that a person whose machine cannot
 * reach the pods' network can scrape them. It needs the permissions to list pods and to get
 * pods/proxy. A program that listens on the loopback address of its pod cannot be reached in this
 * way.
 */
#ifndef PROFPULL_CLI_CLUSTER_PROXY_H
#define PROFPULL_CLI_CLUSTER_PROXY_H

#include "cli/cluster/pods.h"
#include "config/config.h"

struct proxy_options {
    struct cluster *cluster;
    const json_t *pods; /* a list with at least one pod (pods.h) */
    /* The rules that say which port and path have the profile, as for discovered pods. */
    const struct config *config;
    const char *job;                /* only the rules of this job; NULL: all jobs */
    const struct config_type *type; /* the type to fetch */
    const char *port;               /* a number or a name; NULL: the port that the rules choose */
    uint64_t seconds;               /* sampling time of types that sample */
    size_t max_body;                /* bytes */
};

struct proxy_result {
    char pod[2 * PODS_NAME_MAX + 2]; /* NAMESPACE/NAME */
    char *url;                       /* that of the pod, for people to read */
    struct cluster_answer answer;
    bool is_status; /* the response is an error of the API server, not one of the pod */
};
void proxy_result_done(struct proxy_result *r);

/* Chooses a pod and a port, and fetches the profile. The response may have any status. Prints on
 * stderr that it waits for a sampling type. */
bool proxy_fetch(const struct proxy_options *options, struct proxy_result *ret, struct err *err);

/* Fetches a page of a pod's port. path begins with a slash; query may be empty. */
bool proxy_get(struct cluster *c, const char *namespace, const char *name, const char *port,
               const char *path, struct sv query, struct cluster_answer *ret, struct err *err);

#endif
