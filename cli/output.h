/* Profiles that a command writes. Blocking; any thread. */
#ifndef PROFPULL_CLI_OUTPUT_H
#define PROFPULL_CLI_OUTPUT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* "-" is standard output. */
bool output_is_stdout(const char *path);
/* Writes a file, or to standard output. A regular file is written under another name and renamed,
 * so that nobody sees half a profile. */
bool output_write(const char *path, struct sv body, struct err *err);

#endif
