/* Formats values with their units spelled out, for assistants. Pure; any thread. */
#ifndef PROFPULL_API_MCP_UNITS_H
#define PROFPULL_API_MCP_UNITS_H

#include "base/str.h"

#define UNITS_TEXT_MAX 64

/* Writes "1.25 seconds", "3.4 MiB" or "12". unit: that of a sample type: nanoseconds, bytes, count,
 * or any other, which follows the number. */
void units_format(double value, struct sv unit, char out[UNITS_TEXT_MAX]);

#endif
