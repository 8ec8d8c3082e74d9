/* Recognises the kind of a body by its first bytes; the Content-Type is ignored. The functions do a
 * bounded amount of work whatever the size of the body, and allocate nothing. Any thread may call
 * them.
 */
#ifndef PROFPULL_PPROF_SNIFF_H
#define PROFPULL_PPROF_SNIFF_H

#include "base/err.h"
#include "base/str.h"

/* The kind of a body. The names of failures are in model/reason.h. */
enum sniff_result {
    SNIFF_PPROF_GZIP,
    SNIFF_PPROF_PLAIN,
    SNIFF_LEGACY, /* an older format of pprof, gzip or plain, to be converted (legacy.h) */
    SNIFF_JFR,    /* a recording of Java's Flight Recorder, gzip or plain */
    SNIFF_EMPTY,  /* the rest are failures */
    SNIFF_HTML,
    SNIFF_JSON,
    SNIFF_TEXT,
    SNIFF_TOO_SHORT,
    SNIFF_BAD_GZIP,
    SNIFF_BAD_WIRE, /* no protobuf */
    SNIFF_NOT_JFR,
};

/* Recognises a pprof profile. On failure err says what the body is instead, with its first
 * bytes. */
enum sniff_result sniff_profile(struct sv body, struct err *err);
/* Recognises a JFR recording; SNIFF_NOT_JFR for a profile or unknown bytes. */
enum sniff_result sniff_jfr(struct sv body, struct err *err);
/* Recognises either. */
enum sniff_result sniff_any(struct sv body, struct err *err);
/* Returns true if the body is a profile, perhaps one that must be converted. */
bool sniff_is_profile(enum sniff_result r);

#endif
