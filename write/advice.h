/* Advice about an endpoint that does not accept profiles, in one sentence. Pure. */
#ifndef PROFPULL_WRITE_ADVICE_H
#define PROFPULL_WRITE_ADVICE_H

#include <stdbool.h>

#include "config/config.h"
#include "http/http.h"

/* Returns true if a retry cannot succeed before somebody changes the configuration or the server.
 */
bool advice_is_final(enum http_result result, long status);

/* Returns the advice for a result; "" if there is none. Static storage. */
const char *advice_for(const struct config_endpoint *endpoint, enum http_result result,
                       long status);

#endif
