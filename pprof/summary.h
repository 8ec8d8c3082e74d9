/* A look into pprof bytes: a summary of a whole profile for people.
 *
 * Everything here takes bytes from outside and must not trust one of them. Pure functions, any
 * thread; only profile_summarise() allocates, up to SUMMARY_INFLATED_MAX.
 */
#ifndef PROFPULL_PPROF_SUMMARY_H
#define PROFPULL_PPROF_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* A profile that inflates to more is not summarised. */
#define SUMMARY_INFLATED_MAX ((size_t)64 * 1024 * 1024)
#define SUMMARY_TYPES_MAX 512

struct profile_summary {
    char types[SUMMARY_TYPES_MAX]; /* "samples/count cpu/nanoseconds", cut if longer */
    size_t inflated;               /* bytes of the plain profile */
    size_t samples;
    int64_t time_ns; /* when it was taken, by its own account; 0 if not told */
    int64_t duration_ns;
};

/* Reads a whole profile, gzip or plain. False with what is wrong. */
bool profile_summarise(struct sv body, struct profile_summary *ret, struct err *err);

#endif
