/* Advice about an endpoint that does not accept profiles, in one sentence. Pure. */
#ifndef PROFPULL_WRITE_ADVICE_H
#define PROFPULL_WRITE_ADVICE_H

#include <stdbool.h>

#include "config/config.h"
#include "http/http.h"

/* True if a retry cannot succeed before somebody changes something. */
bool advice_is_final(enum http_result result, long status);

/* "" if there is nothing to say. Static storage. */
const char *advice_for(const struct config_endpoint *endpoint, enum http_result result,
                       long status);

#endif
