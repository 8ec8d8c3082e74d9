/* Finds one pod by its name, outside of the namespaces and selectors of the jobs: to explain why no
 * job discovered it. Pure.
 */
#ifndef PROFPULL_CLI_EXPLAIN_POD_LOOKUP_H
#define PROFPULL_CLI_EXPLAIN_POD_LOOKUP_H

#include "config/config.h"

/* Walks the sources of pods in a configuration. Zeroed, it begins with the first. */
struct pod_source_cursor {
    size_t job;
    size_t next;
};
/* The next source, of jobs[at->job]; NULL past the last. */
const struct config_source *pod_source_next(const struct config *config,
                                            struct pod_source_cursor *at);

/* The longest name of an object in Kubernetes. */
#define POD_LOOKUP_NAME_MAX 253

/* A configuration with one job and one source, which discovers one pod and nothing else. Points
 * into itself: must not be moved. */
struct pod_lookup {
    struct config config;
    struct config_job job;
    struct config_source source;
    struct config_selector selector;
    const char *namespaces[1];
    char namespace[POD_LOOKUP_NAME_MAX + 1];
    char field[POD_LOOKUP_NAME_MAX + sizeof("metadata.name=")];
};

/* The first source of pods in config, which must outlive *l, names the API server and the
 * credentials; sources with api_server are ignored. False if there is none, or if pod is not of the
 * form NAMESPACE/NAME. */
bool pod_lookup_init(struct pod_lookup *l, const struct config *config, const char *pod);

#endif
