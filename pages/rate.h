/* Units of the values of profiles over time, and how values are shown in them. Pure; any thread. */
#ifndef PROFPULL_PAGES_RATE_H
#define PROFPULL_PAGES_RATE_H

#include "base/buf.h"
#include "store/query/rates.h"

enum rate_unit {
    RATE_CORES,       /* CPU time a second */
    RATE_SECONDS,     /* other time a second, such as that of waiting */
    RATE_BYTES,       /* bytes a second */
    RATE_COUNT,       /* events a second */
    RATE_LEVEL_BYTES, /* bytes that are held */
    RATE_LEVEL_COUNT, /* objects that exist */
    RATE_UNITS
};

/* Returns the unit of a type. */
enum rate_unit rate_unit_of(const struct profile_type *type);
/* Returns the factor from the values of query_rates() to this unit: 1e-9 for nanoseconds. */
double rate_factor(const struct profile_type *type);
/* Returns "cores", "s/s", "bytes/s", "/s", "bytes" or "". Static storage. */
const char *rate_unit_name(enum rate_unit unit);
/* Appends "0.42 cores" or "3.50 MiB/s"; "–" for NAN. */
void rate_put(struct buf *out, double value, enum rate_unit unit);
/* Returns the end of an axis: the least of 1, 2 and 5 times a power of ten (bytes: a power of two)
 * that is not below the value; 1 for values that are not above 0. */
double rate_axis_end(double most, enum rate_unit unit);

#endif
