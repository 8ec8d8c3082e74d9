/* Compares a configuration with the YAML that `convert` has made of it: for a list of discovered
 * targets, both must give the same targets, labels and scrapes. Nothing is contacted. One thread.
 */
#ifndef PROFPULL_CLI_CONVERT_DIFF_H
#define PROFPULL_CLI_CONVERT_DIFF_H

#include "config/config.h"

/* Passes every target of the list (a file in the format of file_sd_configs) to each job of both
 * configurations. Prints the scrapes that only one of them has ("-" the file, "+" the converted
 * YAML), and how many both have. Returns EXIT_DONE if there is no difference, else EXIT_INPUT. */
int convert_diff(const struct config *file, const struct config *converted, const char *targets);

#endif
