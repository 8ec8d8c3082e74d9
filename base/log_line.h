/* The text of one log line. Pure. Private to base. */
#ifndef PROFPULL_BASE_LOG_LINE_H
#define PROFPULL_BASE_LOG_LINE_H

#include "base/log.h"

/* Writes the line with its newline, without a NUL, and returns its length. A line that would be
 * longer than LOG_LINE_MAX ends with "..." in the value that was cut, or with the last field that
 * fitted, and stays well-formed. fields ends with LOG_FIELD_END. */
size_t log_line_format(char out[LOG_LINE_MAX], int64_t wall_ns, enum log_level level,
                       enum log_format format, const char *msg, const struct log_field *fields);

#endif
