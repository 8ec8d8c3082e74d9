/* DeepFlow's query of profiles over the store: POST /v1/profile/ProfileTracing.
 *
 * The question and its answer are JSON. Answers are columns, as those of servers since June 2024;
 * with ?format=list they are the list of nodes of older ones. Handlers run on the threads for
 * queries.
 */
#ifndef PROFPULL_API_DEEPFLOW_H
#define PROFPULL_API_DEEPFLOW_H

#include "server/routes.h"

/* Bytes of a question, inflated. */
#define DEEPFLOW_BODY_MAX ((size_t)1024 * 1024)
/* Services that a question without app_service may be about. */
#define DEEPFLOW_SERVICES_MAX 10

extern const struct route deepflow_routes[];

#endif
