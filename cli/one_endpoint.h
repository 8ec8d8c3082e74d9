/* One endpoint for a command that writes, taken from flags or from a configuration file.
 *
 * The writer gets a configuration with this endpoint alone. So a command uses neither the other
 * endpoints of the file, nor the parts that belong to a running `profpull run`.
 */
#ifndef PROFPULL_CLI_ONE_ENDPOINT_H
#define PROFPULL_CLI_ONE_ENDPOINT_H

#include <stdbool.h>

#include "base/err.h"
#include "config/config.h"

/* Points into itself, so it must not be moved. */
struct one_endpoint {
    struct config *owner;
    struct config_endpoint endpoint; /* a copy, which the caller may change before it is used */
    struct config config;            /* for writer_new() */
};

/* Makes an endpoint from flags, and checks it like an endpoint of a file. The error names the key
 * of the flag. */
bool one_endpoint_from_flags(struct one_endpoint *o, const struct config_endpoint_flags *flags,
                             struct err *err);
/* Takes the endpoint with a name; NULL: the only endpoint. Takes over config, also on failure. */
bool one_endpoint_from_config(struct one_endpoint *o, struct config *config, const char *name,
                              struct err *err);
void one_endpoint_done(struct one_endpoint *o);

#endif
