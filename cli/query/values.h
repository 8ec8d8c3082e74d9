/* Values of profiles as people read them. Pure; any thread. */
#ifndef PROFPULL_CLI_QUERY_VALUES_H
#define PROFPULL_CLI_QUERY_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define VALUE_TEXT_MAX 40

/* Formats a value: "1.25s", "3.50MiB", "42". Returns false if the text does not include the unit.
 */
bool value_format(int64_t value, const char *unit, char out[VALUE_TEXT_MAX]);
/* Appends a value with its unit: "1.25s", "42 count". */
void value_with_unit(int64_t value, const char *unit, struct buf *out);
/* Returns the part of a total in percent; 0 if the total is 0. */
double value_share(int64_t value, int64_t total);

#endif
