/* Asks the API server for one pod by its name, outside of the namespaces and selectors of the jobs:
 * to explain why no job discovered it.
 */
#ifndef PROFPULL_CLI_EXPLAIN_POD_LOOKUP_H
#define PROFPULL_CLI_EXPLAIN_POD_LOOKUP_H

#include "base/labels.h"
#include "base/loop.h"
#include "config/config.h"

/* Walks the sources of pods in a configuration. Zeroed, it begins with the first. */
struct pod_source_cursor {
    size_t job;
    size_t next;
};
/* The next source, of jobs[at->job]; NULL past the last. */
const struct config_source *pod_source_next(const struct config *config,
                                            struct pod_source_cursor *at);

struct lookup_options {
    /* Its first source of pods names the API server and the credentials; sources with api_server
     * are ignored. */
    const struct config *config;
    struct loop *loop; /* not running */
    struct intern *intern;
    const char *user_agent;
    const char *pod; /* NAMESPACE/NAME; nothing else is looked up */
    int64_t timeout_ms;
};

/* A reference to the pod's first label set, or NULL if there is no such pod, it has no address, it
 * may not be read, or no answer came in time. Runs the loop. */
struct labels *lookup_pod(const struct lookup_options *options);

#endif
