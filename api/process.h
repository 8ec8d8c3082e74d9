/* The state of the process: health, readiness, metrics, targets as JSON, and the page of links.
 * Routes of the admin server.
 */
#ifndef PROFPULL_API_PROCESS_H
#define PROFPULL_API_PROCESS_H

#include "server/routes.h"

extern const struct route process_routes[];

#endif
