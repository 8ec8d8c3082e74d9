/* Finds the properties of a profile in a file that import needs: format, type, time.
 *
 * The bytes come from outside and are not trusted. Pure functions, any thread; they allocate, since
 * a profile is inflated to be read.
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
    /* The name that scraping would give to the series ("process_cpu", "memory", ...), in static
     * storage; NULL if the content does not show it. */
    const char *type;
    char types[IMPORT_TYPES_MAX]; /* "contentions/count delay/nanoseconds", cut if longer */
    int64_t time_ns; /* the time at which it began or was taken, as the profile says; 0: unknown */
    int64_t duration_ns; /* 0: unknown */
};

enum import_verdict {
    IMPORT_PROFILE,
    /* an older format than pprof's protobuf: convert it (legacy.h), then read it again */
    IMPORT_OLD,
    IMPORT_OTHER,   /* no profile, but HTML, text or an image, for example */
    IMPORT_DAMAGED, /* a profile or gzip data that is damaged or cannot be read */
};

/* Reads a whole body, gzip or plain, pprof or JFR. If the result is neither IMPORT_PROFILE nor
 * IMPORT_OLD, err describes the content. */
enum import_verdict import_summary_read(struct sv body, struct import_summary *ret,
                                        struct err *err);

/* Returns the type by the words in a file's name ("pprof.mutex.001.pb.gz"). Only used if the sample
 * types fit mutex and block profiles. NULL if the name has neither word. */
const char *import_type_of_name(const struct import_summary *summary, const char *path);

#endif
