/* Writes errors that the server itself reports, in the format of an API: for the member `errors` of
 * a route.
 */
#ifndef PROFPULL_API_ROUTE_ERRORS_H
#define PROFPULL_API_ROUTE_ERRORS_H

#include "server/routes.h"

/* Writes {"code":"unavailable","message":"..."}. */
route_error_writer connect_route_error;
/* Writes {"code":503,"error":"..."}. */
route_error_writer profefe_route_error;

#endif
