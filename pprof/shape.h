/* The shape of a whole plain pprof profile: one pass that says exactly what is wrong.
 *
 * Knows the messages of perftools.profiles; fields that it does not know are skipped, repeated
 * numbers may be packed or not. What the pass cannot see without memory (whether an id that is
 * named is there) is checked when the profile is indexed (pprof/index.h). Pure functions,
 * any thread, no allocation.
 */
#ifndef PROFPULL_PPROF_SHAPE_H
#define PROFPULL_PPROF_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* What a good profile holds. */
struct pprof_info {
    size_t types; /* sample types: so many values has each sample */
    size_t samples;
    size_t mappings;
    size_t locations;
    size_t functions;
    size_t strings;
    int64_t time_nanos; /* 0 if not told, as is the duration */
    int64_t duration_nanos;
};

/* Checks a profile that is not compressed. False with the place and the reason: a field of a wrong
 * wire type, a length behind the end, a string that is not there, a sample with too few values, an
 * id of 0, two profiles in one, ... */
bool pprof_check(struct sv plain, struct pprof_info *ret, struct err *err);

/* ---- the numbers of the fields --------------------------------------------------------------- */

enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3, LABEL_NUM_UNIT = 4 };
enum {
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILENAME = 5,
    MAPPING_BUILD_ID = 6,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION_ID = 1, LINE_LINE = 2, LINE_COLUMN = 3 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILENAME = 4 };

#endif
