/* Writes the profiles that a command outputs. Blocking; any thread. */
#ifndef PROFPULL_CLI_OUTPUT_H
#define PROFPULL_CLI_OUTPUT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* Returns true for "-", which means standard output. */
bool output_is_stdout(const char *path);
/* Writes to a file, or to standard output. A regular file is first written under another name and
 * then renamed, so that nobody reads an incomplete profile. */
bool output_write(const char *path, struct sv body, struct err *err);

#endif
