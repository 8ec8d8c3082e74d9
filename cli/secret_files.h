/* Files that a configuration names for credentials and certificates: whether they can be read here.
 */
#ifndef PROFPULL_CLI_SECRET_FILES_H
#define PROFPULL_CLI_SECRET_FILES_H

#include "config/config.h"

/* Prints a warning for each file that cannot be opened to stderr; returns how many. It opens files,
 * and reads nothing of them. */
size_t secret_files_check(const struct config *config);

#endif
