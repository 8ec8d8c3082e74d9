/* One endpoint for a command that writes: made of flags, or taken out of a configuration file.
 *
 * The writer is given a configuration in which it stands alone, so that a command touches neither
 * the other endpoints of the file nor what belongs to a running `profpull run`.
 */
#ifndef PROFPULL_CLI_ONE_ENDPOINT_H
#define PROFPULL_CLI_ONE_ENDPOINT_H

#include <stdbool.h>

#include "base/err.h"
#include "config/config.h"

/* What stands on the command line; NULL where nothing does. */
struct endpoint_flags {
    const char *url;
    const char *protocol;
    const char *tenant;
    const char *username;
    const char *password_file;
    const char *bearer_token_file;
    const char *ca_file;
    bool insecure_skip_verify;
};

/* Points into itself: must not be moved. */
struct one_endpoint {
    struct config *owner;
    struct config_endpoint endpoint; /* a copy, which the caller may change before it is used */
    struct config config;            /* for writer_new() */
};

/* Judged by the room that judges configuration files, with its defaults. The error names the flag's
 * key. */
bool one_endpoint_from_flags(struct one_endpoint *o, const struct endpoint_flags *flags,
                             struct err *err);
/* The endpoint of that name; NULL: the only one. Takes over config, also on failure. */
bool one_endpoint_from_config(struct one_endpoint *o, struct config *config, const char *name,
                              struct err *err);
void one_endpoint_done(struct one_endpoint *o);

#endif
