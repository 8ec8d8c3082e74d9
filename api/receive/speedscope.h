/* Converts files of speedscope to pprof profiles (`format=speedscope` of `/ingest`). The JSON comes
 * from outside and is not trusted. Pure; one owner.
 *
 * Profiles of a file with the same name, type, unit and start become one, as in Pyroscope.
 */
#ifndef PROFPULL_API_RECEIVE_SPEEDSCOPE_H
#define PROFPULL_API_RECEIVE_SPEEDSCOPE_H

#include "api/receive/frames.h"

/* Limit of the profiles of a file. */
#define SPEEDSCOPE_PROFILES_MAX 1000

struct speedscope;

/* Reads a file. NULL with err. */
struct speedscope *speedscope_new(struct sv json, struct err *err);
struct speedscope *speedscope_free(struct speedscope *s); /* accepts NULL, returns NULL */

/* A profile that was made. */
struct speedscope_profile {
    struct sv name; /* valid as long as the file */
    /* By the unit of its values: "bytes", "seconds", ...; NULL for "none", which are samples. */
    const char *suffix;
    size_t samples;
};
/* Returns true if the file has more than one profile. */
bool speedscope_is_many(const struct speedscope *s);
/* Finds the next profile that was not made yet. Returns false at the end. */
bool speedscope_next(struct speedscope *s, struct speedscope_profile *ret);
/* Makes the profile that speedscope_next() has found, appends it, not compressed, and sets
 * ret->samples. The type of the options decides about the values: times become nanoseconds, others
 * stay as they are. */
bool speedscope_convert(struct speedscope *s, const struct frames_options *o, struct buf *out,
                        struct speedscope_profile *ret, struct err *err);

#endif
