/* Reads a point in time from the command line. Pure; any thread. */
#ifndef PROFPULL_CLI_PARSE_TIME_H
#define PROFPULL_CLI_PARSE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Parses "2026-11-21T03:23:34Z" (also with a fraction, or with +01:00 instead of Z), or seconds
 * since 1970. */
bool parse_time(const char *text, int64_t *ret_ns, struct err *err);

#endif
