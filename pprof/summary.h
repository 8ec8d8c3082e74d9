/* The head of a profile: its types, period, times, and the number of entries of each kind.
 *
 * The functions read bytes from outside and trust none of them. pprof_check() fills in the same
 * struct. Any thread may call them.
 */
#ifndef PROFPULL_PPROF_SUMMARY_H
#define PROFPULL_PPROF_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"
#include "pprof/wire.h"

/* The most sample types that are kept; further ones are only counted. */
#define SUMMARY_TYPES_MAX 64
/* The most bytes that pprof_summary_peek() inflates. */
#define SUMMARY_PEEK_MAX ((size_t)4 * 1024 * 1024)

struct pprof_value_type {
    uint64_t type; /* numbers of strings */
    uint64_t unit;
    struct sv type_text; /* set by pprof_summary_name_types(); point into the profile */
    struct sv unit_text;
};

struct pprof_summary {
    size_t n[PROFILE_FIELDS]; /* fields by their number: n[PROFILE_SAMPLE] samples */
    int64_t time_ns;          /* 0 if the profile has none, as are the duration and the period */
    int64_t duration_ns;
    int64_t period;
    size_t plain_size; /* bytes inflated */
    bool whole;        /* read to the end, so a field that was not found does not exist */
    struct pprof_value_type period_type;
    struct pprof_value_type types[SUMMARY_TYPES_MAX];
};

/* Adds a field of the Profile message, for which profile_field_fits() is true. */
void pprof_summary_add(struct pprof_summary *s, const struct wire_field *f);
/* Finds the texts of all value types; they stay empty where there is no such string. plain: the
 * whole profile, which must live as long as the texts are used. */
void pprof_summary_name_types(struct sv plain, struct pprof_summary *s);

/* Reads a whole profile, gzip or plain, that inflates to at most max bytes in memory of the
 * scratch, with the texts of its types. Returns false with the reason. */
bool pprof_summary_read(struct scratch *scratch, struct sv body, size_t max,
                        struct pprof_summary *ret, struct err *err);
/* Reads a profile, gzip or plain or damaged, until the first field with the number `until`
 * (PROFILE_*). Most writers put the fields of the head near the beginning. Reads at most
 * SUMMARY_PEEK_MAX bytes; ret->whole is true if that was the whole profile. The texts of types stay
 * empty. Allocates and frees memory if the first few KiB are not enough. */
void pprof_summary_peek(struct sv body, uint64_t until, struct pprof_summary *ret);

/* A chunk of a recording of Java's Flight Recorder begins with the magic and its NUL, two shorts
 * for the version and eight longs. */
#define JFR_MAGIC "FLR"
#define JFR_CHUNK_HEADER_SIZE 68

/* Reads the times of a plain JFR recording: from the start of its first chunk to the end of the
 * last. The other fields stay empty. */
void jfr_summary_read(struct sv plain, struct pprof_summary *ret);

/* Writes the first 16 sample types, "samples/count cpu/nanoseconds", cut if longer than the room.
 * unknown stands for an empty text. */
void pprof_summary_print_types(const struct pprof_summary *s, const char *unknown, char *out,
                               size_t size);

#endif
