/* Answers DeepFlow's query of profiles from the store: POST /v1/profile/ProfileTracing.
 *
 * Request and response are JSON. The response has columns, as that of DeepFlow's servers since June
 * 2024; with ?format=list it is a list of nodes, as that of earlier servers. Handlers run on the
 * threads for queries.
 */
#ifndef PROFPULL_API_DEEPFLOW_H
#define PROFPULL_API_DEEPFLOW_H

#include "server/routes.h"

/* Limit of a question, in bytes after inflating. */
#define DEEPFLOW_BODY_MAX ((size_t)1024 * 1024)
/* Limit of the services that a question without app_service may be about. */
#define DEEPFLOW_SERVICES_MAX 10

extern const struct route deepflow_routes[];

#endif
