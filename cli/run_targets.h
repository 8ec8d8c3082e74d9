/* Makes the configuration of `profpull run --target`: a few programs, every built-in type that they
 * have, and a store for the pages. Any thread.
 */
#ifndef PROFPULL_CLI_RUN_TARGETS_H
#define PROFPULL_CLI_RUN_TARGETS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/flags.h"

/* Appends the configuration as YAML. targets: HOST:PORT, which is also the name of the service, or
 * SERVICE=HOST:PORT. data: the directory of the store. The error names the wrong target. */
bool run_targets_config(const struct flag_list *targets, const char *data, struct buf *out,
                        struct err *err);

#endif
