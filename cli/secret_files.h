/* Checks whether the files that a configuration names for credentials and certificates can be read.
 */
#ifndef PROFPULL_CLI_SECRET_FILES_H
#define PROFPULL_CLI_SECRET_FILES_H

#include "config/config.h"

/* Prints a warning to stderr for each file that cannot be opened. Returns their number. Files are
 * opened, but not read. */
size_t secret_files_check(const struct config *config);

#endif
