/* Checks a whole plain pprof profile in one pass. An error names the place in the profile.
 *
 * The check knows the messages of perftools.profiles. Unknown fields are skipped, and repeated
 * numbers may be packed or not. It does not check that each id exists, because that takes memory:
 * pprof_index() does (pprof/index.h). The functions are pure, allocate nothing, and may be called
 * by any thread.
 */
#ifndef PROFPULL_PPROF_CHECK_H
#define PROFPULL_PPROF_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "pprof/summary.h"

/* Checks a profile that is not compressed. Returns false with the place and the reason: a field of
 * a wrong wire type, a length beyond the end, a missing string, a sample with too few values, an id
 * of 0, two profiles in one, ... */
bool pprof_check(struct sv plain, struct pprof_summary *ret, struct err *err);

/* The two functions below make the same check, for a caller that reads the samples anyway. This one
 * checks everything except the contents of the samples. */
bool pprof_check_frame(struct sv plain, struct pprof_summary *ret, struct err *err);
/* Checks one sample of a profile that pprof_check_frame() has accepted. Its error names the
 * place. */
bool pprof_check_sample(struct sv plain, const struct pprof_summary *s, struct sv sample,
                        struct err *err);

/* Checks one field of a profile whose number is not in PROFILE_SAMPLE to PROFILE_STRING, and adds
 * it to the summary. Raises *string_max to the largest index of a string in it. Returns false,
 * without a reason, if the field is wrong. */
bool pprof_check_head(const struct wire_field *f, struct pprof_summary *s, uint64_t *string_max);

#endif
