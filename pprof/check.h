/* The shape of a whole plain pprof profile: one pass that says exactly what is wrong.
 *
 * Knows the messages of perftools.profiles; fields that it does not know are skipped, repeated
 * numbers may be packed or not. What the pass cannot see without memory (whether an id that is
 * named is there) is checked when the profile is indexed (pprof/index.h). Pure functions,
 * any thread, no allocation.
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
 * wire type, a length behind the end, a string that is not there, a sample with too few values, an
 * id of 0, two profiles in one, ... */
bool pprof_check(struct sv plain, struct pprof_summary *ret, struct err *err);

#endif
