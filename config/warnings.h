/* Warnings: settings that are allowed, but are most likely not what was meant.
 *
 * Pure; any thread.
 */
#ifndef PROFPULL_CONFIG_WARNINGS_H
#define PROFPULL_CONFIG_WARNINGS_H

#include "config/config.h"

/* Adds warnings about a configuration that has no errors: jobs that scrape nothing, ports that do
 * not exist, types that write the same series, endpoints that get nothing, timeouts longer than
 * intervals, and rules that read a `__meta_*` label that no source of their job has. The built-in
 * configuration gets no warnings. */
void config_warn(const struct config *c, struct config_errors *warnings);

#endif
