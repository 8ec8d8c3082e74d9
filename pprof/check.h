/* Checks a whole plain pprof profile in one pass, with an error that names the place.
 *
 * Knows the messages of perftools.profiles; unknown fields are skipped, repeated numbers may be
 * packed or not. Whether each id exists cannot be seen without memory: pprof_index() checks it
 * (pprof/index.h). Pure functions, any thread, no allocation.
 */
#ifndef PROFPULL_PPROF_CHECK_H
#define PROFPULL_PPROF_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "pprof/summary.h"

/* Checks a profile that is not compressed. False with the place and the reason: a field of a wrong
 * wire type, a length beyond the end, a missing string, a sample with too few values, an
 * id of 0, two profiles in one, ... */
bool pprof_check(struct sv plain, struct pprof_summary *ret, struct err *err);

/* The same in two halves, for a caller that reads the samples anyway and sees whether one is good:
 * everything except what is in the samples, */
bool pprof_check_frame(struct sv plain, struct pprof_summary *ret, struct err *err);
/* and one sample of such a profile. */
bool pprof_check_sample(struct sv plain, const struct pprof_summary *s, struct sv sample,
                        struct err *err);

/* Checks one field of a profile that is none of PROFILE_SAMPLE to PROFILE_STRING, and adds it to
 * the summary. Raises *string_max to the largest index of a string in it. False if it is wrong,
 * without a reason. */
bool pprof_check_head(const struct wire_field *f, struct pprof_summary *s, uint64_t *string_max);

#endif
