/* Makes a configuration that finds one pod by its name, whatever namespaces and selectors the jobs
 * have, in order to explain why no job has discovered it. Pure.
 */
#ifndef PROFPULL_CLI_EXPLAIN_POD_LOOKUP_H
#define PROFPULL_CLI_EXPLAIN_POD_LOOKUP_H

#include "config/config.h"

/* Walks through the sources of pods in a configuration. A zeroed cursor begins with the first one.
 */
struct pod_source_cursor {
    size_t job;
    size_t next;
};
/* Returns the next source, which belongs to jobs[at->job]; NULL past the last one. */
const struct config_source *pod_source_next(const struct config *config,
                                            struct pod_source_cursor *at);

/* The longest name of an object in Kubernetes. */
#define POD_LOOKUP_NAME_MAX 253

/* A configuration with one job and one source, which discovers a single pod. It points into itself,
 * so it must not be moved. */
struct pod_lookup {
    struct config config;
    struct config_job job;
    struct config_source source;
    struct config_selector selector;
    const char *namespaces[1];
    char namespace[POD_LOOKUP_NAME_MAX + 1];
    char field[POD_LOOKUP_NAME_MAX + sizeof("metadata.name=")];
};

/* Makes the configuration. The first source of pods in config names the API server and the
 * credentials; config must outlive *l. Sources with api_server are ignored. False if there is no
 * source, or if pod does not have the form NAMESPACE/NAME. */
bool pod_lookup_init(struct pod_lookup *l, const struct config *config, const char *pod);

#endif
