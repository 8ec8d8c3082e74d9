/* Replaces the time of a profile. Any thread may call it. */
#ifndef PROFPULL_PPROF_RESTAMP_H
#define PROFPULL_PPROF_RESTAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* A profile that inflates to more is refused. */
#define RESTAMP_INFLATED_MAX ((size_t)256 * 1024 * 1024)

/* Gives a pprof profile another time and, if duration_ns >= 0, another duration. A gzip body stays
 * gzip. *ret_data is from malloc(). Returns false with an error if the body is no profile or memory
 * ran out. */
bool pprof_restamp(struct sv body, int64_t time_ns, int64_t duration_ns, char **ret_data,
                   size_t *ret_size, struct err *err);

#endif
