/* A look into pprof bytes: a reader of protobuf fields over a flat buffer, and a summary of a whole
 * profile for people.
 *
 * Everything here takes bytes from outside and must not trust one of them. Pure functions, any
 * thread; only profile_summarise() allocates, up to SUMMARY_INFLATED_MAX.
 */
#ifndef PROFPULL_SCRAPER_INSPECT_H
#define PROFPULL_SCRAPER_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* ---- protobuf fields ---------------------------------------------------------------------------
 */

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
    uint64_t number; /* >= 1 */
    unsigned type;   /* WIRE_* */
    uint64_t value;  /* WIRE_VARINT */
    struct sv bytes; /* WIRE_BYTES: points into the input */
};

struct wire_reader {
    struct sv in;
    size_t at;
    size_t field_start;  /* where the field that was read last begins */
    const char *problem; /* why wire_next() stopped before the end, or NULL */
    bool cut;            /* the problem is that the input ends too early */
};

struct wire_reader wire_reader_of(struct sv in);
/* Reads one field. False at the end, or at a problem. */
bool wire_next(struct wire_reader *r, struct wire_field *ret);

/* False if it is a known field of pprof's Profile message with a wire type that it cannot have. */
bool profile_field_fits(const struct wire_field *f);

/* ---- a summary ---------------------------------------------------------------------------------
 */

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
