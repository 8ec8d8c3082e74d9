/* Finds one pod by its name, whatever namespaces and selectors the jobs have: to explain why no job
 * has discovered it, or to read nothing but this pod.
 */
#ifndef PROFPULL_CLI_EXPLAIN_POD_LOOKUP_H
#define PROFPULL_CLI_EXPLAIN_POD_LOOKUP_H

#include "base/arena.h"
#include "base/labels.h"
#include "cli/cluster/cluster.h"
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

/* Splits NAMESPACE/NAME; false if the text is a pattern or a part of a name. */
bool pod_name_split(const char *pod, struct sv *ret_namespace, struct sv *ret_name);

#define POD_LOOKUP_STATE_MAX 700

/* A pod as the API server describes it. */
struct pod_found {
    bool exists;
    bool has_address;
    struct labels *labels;            /* a reference; NULL unless the pod exists */
    char state[POD_LOOKUP_STATE_MAX]; /* its phase, and why it does not run */
};

/* Asks the API server of the first source of pods for a pod with the exact name NAMESPACE/NAME.
 * local: see struct discovery_options. False without an error if there is no source or the name is
 * not exact. */
bool pod_lookup(const struct config *config, const struct cluster_access *local,
                struct intern *intern, const char *pod, int64_t timeout_ms, struct pod_found *ret,
                struct err *err);

/* Returns a configuration whose jobs have the same slots and rules, and read nothing but this pod:
 * sources of other roles, and those that do not watch its namespace, are left out. Memory comes
 * from the arena, and config must outlive the result. NULL if the name is not exact or memory runs
 * out. The caller unrefs it. */
struct config *pod_narrow(const struct config *config, const char *pod, struct arena *arena);

#endif
