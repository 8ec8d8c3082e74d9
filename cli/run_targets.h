/* The configuration of `profpull run --target`: some programs, every built-in type that they have,
 * and a store that the pages show. Any thread.
 */
#ifndef PROFPULL_CLI_RUN_TARGETS_H
#define PROFPULL_CLI_RUN_TARGETS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/flags.h"

/* Appends it as YAML. targets: HOST:PORT, which is its service too, or SERVICE=HOST:PORT. data: the
 * directory of the store. The error names the target that is wrong. */
bool run_targets_config(const struct flag_list *targets, const char *data, struct buf *out,
                        struct err *err);

#endif
