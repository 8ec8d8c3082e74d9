/* Checks each endpoint of a configuration: whether it accepts a profile, and whether the profile
 * can be read back.
 *
 * One loop, on the caller's thread. Every endpoint has a writer of its own, so that an endpoint
 * that cannot even be opened fails alone. The spools and queues of the configuration are not used.
 */
#ifndef PROFPULL_CLI_VERIFY_VERIFY_H
#define PROFPULL_CLI_VERIFY_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"

struct verify_options {
    struct config *config;
    const char *only;             /* name of the only endpoint to check; NULL: all */
    const char *deepflow_querier; /* URL of DeepFlow's server; NULL: DeepFlow is not queried */
    int64_t timeout_ms;
    bool json; /* a line of JSON for each endpoint */
};

/* Prints a line for each endpoint on stdout, in the order of the configuration. False only if
 * nothing could be started. */
bool verify_run(const struct verify_options *options, bool *ret_all_work, struct err *err);

#endif
