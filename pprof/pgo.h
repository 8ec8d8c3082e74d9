/* Checks if `go build -pgo` can use a profile. Any thread. */
#ifndef PROFPULL_PPROF_PGO_H
#define PROFPULL_PPROF_PGO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"

/* Checks a profile, gzip or plain, that inflates to at most max bytes: it has samples, a sample
 * type samples/count or cpu/nanoseconds, and at least one function with the line that it starts at,
 * without which the compiler fails. ERR_INPUT with what is missing. *ret_samples (may be NULL): how
 * many there are. It resets the scratch. */
bool pgo_check(struct scratch *s, struct sv body, size_t max, size_t *ret_samples, struct err *err);

#endif
