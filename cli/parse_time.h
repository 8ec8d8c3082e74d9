/* A point in time on the command line. Pure; any thread. */
#ifndef PROFPULL_CLI_PARSE_TIME_H
#define PROFPULL_CLI_PARSE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* "2026-11-21T03:23:34Z" (with a fraction, or +01:00 instead of Z), or seconds since 1970. */
bool parse_time(const char *text, int64_t *ret_ns, struct err *err);

#endif
