/* What a file with a profile tells of itself: format, type, time.
 *
 * Reads bytes from outside and trusts none of them. Pure functions, any thread; they allocate, for
 * a profile is inflated to be read.
 */
#ifndef PROFPULL_CLI_IMPORT_FACTS_H
#define PROFPULL_CLI_IMPORT_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "model/profile.h"

/* A profile that inflates to more is refused. */
#define FACTS_INFLATED_MAX ((size_t)256 * 1024 * 1024)
#define FACTS_TYPES_MAX 256

struct profile_facts {
    enum profile_format format;
    /* The series name that scraping would give it ("process_cpu", "memory", ...), static storage;
     * NULL if its content does not tell. */
    const char *type;
    char types[FACTS_TYPES_MAX]; /* "contentions/count delay/nanoseconds", cut if longer */
    int64_t time_ns;             /* when it began or was taken, by its own account; 0: not told */
    int64_t duration_ns;         /* 0: not told */
};

enum facts_result {
    FACTS_OK,
    FACTS_OTHER, /* something else than a profile: HTML, text, an image */
    FACTS_BAD,   /* a profile, or a gzip, that is damaged or cannot be read */
};

/* Reads a whole body, gzip or plain, pprof or JFR. Unless FACTS_OK err says what was found. */
enum facts_result profile_facts_read(struct sv body, struct profile_facts *ret, struct err *err);

/* The type by the words in a file's name ("pprof.mutex.001.pb.gz"), only where the sample types
 * leave the choice between mutex and block. NULL if it tells nothing. */
const char *profile_facts_type_of_name(const struct profile_facts *facts, const char *path);

/* Gives a pprof profile another time and, if duration_ns >= 0, another duration. What was gzip
 * stays gzip. *ret_data is malloc'd. False with an error if it is no profile or memory ran out. */
bool profile_restamp(struct sv body, int64_t time_ns, int64_t duration_ns, char **ret_data,
                     size_t *ret_size, struct err *err);

#endif
