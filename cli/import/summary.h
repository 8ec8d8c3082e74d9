/* The facts about a profile in a file that import needs: format, type, time.
 *
 * Reads bytes from outside and trusts none of them. Pure functions, any thread; they allocate,
 * since a profile is inflated to be read.
 */
#ifndef PROFPULL_CLI_IMPORT_SUMMARY_H
#define PROFPULL_CLI_IMPORT_SUMMARY_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "model/profile.h"

#define IMPORT_TYPES_MAX 256

struct import_summary {
    enum profile_format format;
    /* The series name that scraping would give it ("process_cpu", "memory", ...), static storage;
     * NULL if its content does not show it. */
    const char *type;
    char types[IMPORT_TYPES_MAX]; /* "contentions/count delay/nanoseconds", cut if longer */
    int64_t time_ns;              /* when it began or was taken, by its own account; 0: unknown */
    int64_t duration_ns;          /* 0: unknown */
};

enum import_verdict {
    IMPORT_PROFILE,
    IMPORT_OLD,     /* in a format older than pprof's protobuf: convert it (legacy.h), read again */
    IMPORT_OTHER,   /* not a profile but HTML, text, an image */
    IMPORT_DAMAGED, /* a profile, or a gzip, that is damaged or cannot be read */
};

/* Reads a whole body, gzip or plain, pprof or JFR. Unless IMPORT_PROFILE or
 * IMPORT_OLD err says what was found. */
enum import_verdict import_summary_read(struct sv body, struct import_summary *ret,
                                        struct err *err);

/* The type by the words in a file's name ("pprof.mutex.001.pb.gz"), only where the sample types
 * leave the choice between mutex and block. NULL if it says nothing. */
const char *import_type_of_name(const struct import_summary *summary, const char *path);

#endif
