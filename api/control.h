/* Actions of operators on the running process: read the configuration again, change the level of
 * the log. Routes of the admin server; POST only.
 */
#ifndef PROFPULL_API_CONTROL_H
#define PROFPULL_API_CONTROL_H

#include "server/routes.h"

extern const struct route control_routes[];

#endif
