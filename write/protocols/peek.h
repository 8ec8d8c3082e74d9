/* A look into a pprof on its way out, for the two things that a protocol must know of it: whether
 * there are samples at all, and how often they were taken. Reads the outermost fields only, and no
 * further than needed: both stand near the beginning of what Go writes. Pure; any thread.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_PEEK_H
#define PROFPULL_WRITE_PROTOCOLS_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes, inflated, that are looked through. Behind them the profile is taken to be a usual one. */
#define PEEK_MAX ((size_t)4 * 1024 * 1024)

struct peek {
    bool whole;       /* all of it is a readable pprof: what was not found is not there */
    bool has_samples; /* seen one */
    int64_t period;   /* the last one seen, 0 if none */
};

/* What to look for: the search ends when it is found. */
enum peek_want { PEEK_SAMPLES, PEEK_PERIOD };

/* data: a pprof, gzip or plain, or anything else. */
void peek_profile(const void *data, size_t size, enum peek_want want, struct peek *ret);

#endif
