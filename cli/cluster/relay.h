/* A server on the loopback address of this machine that shows the pages of a pod, each of which it
 * fetches through the API server with the credentials of the kubeconfig. So a browser, which has no
 * such credentials, can open them. It answers GET only, and ends with the process.
 */
#ifndef PROFPULL_CLI_CLUSTER_RELAY_H
#define PROFPULL_CLI_CLUSTER_RELAY_H

#include "cli/cluster/agents.h"

struct relay;

/* Starts the server on a free port. agents must outlive it, and nobody else may use its cluster
 * meanwhile. */
struct relay *relay_start(struct agents *agents, const json_t *pod, struct err *err);
/* Returns the port on 127.0.0.1. */
unsigned relay_port(const struct relay *r);
struct relay *relay_stop(struct relay *r); /* accepts NULL, returns NULL */

#endif
