/* Checks whether `go build -pgo` can use a profile. Any thread may call it. */
#ifndef PROFPULL_PPROF_PGO_H
#define PROFPULL_PPROF_PGO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"

/* Checks a profile, gzip or plain, that inflates to at most max bytes: it has samples, a sample
 * type samples/count or cpu/nanoseconds, and at least one function with its start line, without
 * which the compiler fails. Returns false with ERR_INPUT that says what is missing. *ret_samples
 * (may be NULL): the number of samples. The scratch is reset. */
bool pgo_check(struct scratch *s, struct sv body, size_t max, size_t *ret_samples, struct err *err);

#endif
