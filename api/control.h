/* Actions of operators on the running process: read its configuration again, change the level of
 * the log. Rows of the admin server; POST only.
 */
#ifndef PROFPULL_API_CONTROL_H
#define PROFPULL_API_CONTROL_H

#include "server/routes.h"

extern const struct route control_routes[];

#endif
