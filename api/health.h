/* `grpc.health.v1.Health/Check`: the health check of gRPC, which Kubernetes' gRPC probes, load
 * balancers and clients ask. Open to all, as /-/ready is. The streaming method Watch is not
 * implemented: clients then assume that the server is healthy, as the protocol says.
 */
#ifndef PROFPULL_API_HEALTH_H
#define PROFPULL_API_HEALTH_H

#include "server/routes.h"

extern const struct route health_routes[];

#endif
