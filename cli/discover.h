/* Discovery for one command: reads every source once, and prints the targets or the reasons. */
#ifndef PROFPULL_CLI_DISCOVER_H
#define PROFPULL_CLI_DISCOVER_H

#include "cli/cluster/cluster.h"
#include "cli/cmd.h"

struct discover_args {
    struct cmd_config_flags config;
    struct cluster_flags cluster;
    bool explain;
    bool json;       /* with `pod`: the report as JSON */
    const char *pod; /* NULL: all pods */
    /* Reads nothing but the pod, if `pod` is NAMESPACE/NAME, and makes it an error if the pod is
     * not scraped. */
    bool only_pod;
    int64_t timeout_ms;
};

/* Runs discovery, and prints what the arguments ask for. Returns the exit code. */
int discover_run(const struct discover_args *args);

#endif
