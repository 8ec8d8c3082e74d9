/* What the bytes of a body are, by their content alone. Pure functions, any thread, no allocation.
 */
#ifndef PROFPULL_PPROF_CHECK_H
#define PROFPULL_PPROF_CHECK_H

#include <stddef.h>

#include "base/err.h"

/* What a body turned out to be. */
enum check_result {
    CHECK_PPROF_GZIP,
    CHECK_PPROF_PLAIN,
    CHECK_EMPTY,     /* reason "empty" */
    CHECK_HTML,      /* "not_pprof_html" */
    CHECK_JSON,      /* "not_pprof_json" */
    CHECK_TEXT,      /* "not_pprof_text" */
    CHECK_TOO_SHORT, /* "not_pprof_short" */
    CHECK_BAD_GZIP,  /* "bad_gzip" */
    CHECK_BAD_WIRE,  /* "bad_protobuf" */
    CHECK_JFR,       /* a recording of Java's Flight Recorder, gzip or plain: good */
    CHECK_NOT_JFR,   /* "not_jfr" */
    CHECK_LEGACY,    /* an older format of pprof, gzip or plain: good once converted (legacy.h) */
};
/* Judges a body by its content alone. On failure err says what was found, with its first bytes.
 * Costs a bounded amount of work whatever the size of the body. */
enum check_result check_profile(const void *data, size_t size, struct err *err);
/* The same for a type of the format jfr: what is none is told apart as above. */
enum check_result check_jfr(const void *data, size_t size, struct err *err);
/* Whether the body is a profile, perhaps one that must be converted. */
bool check_is_good(enum check_result r);

#endif
