/* Asks the API server for one pod by its name, past the namespaces and selectors of the jobs: for
 * those who wonder why no job was told of it.
 */
#ifndef PROFPULL_CLI_EXPLAIN_POD_LOOKUP_H
#define PROFPULL_CLI_EXPLAIN_POD_LOOKUP_H

#include "base/labels.h"
#include "base/loop.h"
#include "config/config.h"

struct lookup_options {
    const struct config *config; /* its first source of pods says which API server, with which
                                  * credentials; those with api_server do not count */
    struct loop *loop;           /* that does not run */
    struct intern *intern;
    const char *user_agent;
    const char *pod; /* NAMESPACE/NAME; nothing else is looked up */
    int64_t timeout_ms;
};

/* The labels of the pod's first label set: a reference, or NULL if there is no such pod, it has no
 * address, it may not be read, or no answer came in time. Runs the loop. */
struct labels *lookup_pod(const struct lookup_options *options);

#endif
