/* The reasons why a scrape failed. The set is bounded, because the names are label values of a
 * metric.
 *
 * One table holds the name of each reason and everything else that depends on the reason. The
 * functions are pure; any thread may call them.
 */
#ifndef PROFPULL_MODEL_REASON_H
#define PROFPULL_MODEL_REASON_H

#include "base/str.h"
#include "http/http.h"
#include "pprof/delta.h"
#include "pprof/legacy/legacy.h"
#include "pprof/sniff.h"

/* Statuses whose reason, REASON_HTTP_<status>, differs from the others only in its name. */
#define REASON_STATUSES(ROW)                                                                       \
    ROW(400), ROW(405), ROW(406), ROW(407), ROW(408), ROW(410), ROW(413), ROW(414), ROW(421),      \
        ROW(429), ROW(431), ROW(500), ROW(501), ROW(502), ROW(503), ROW(504)

enum reason {
    REASON_NONE, /* the scrape did not fail */
    /* No usable response arrived. */
    REASON_RESOLVE,
    REASON_CONNECT,
    REASON_TLS,
    REASON_TIMEOUT,
    REASON_TOO_LARGE, /* the body is too large, or its inflated content is */
    REASON_NO_ROOM,
    REASON_REDIRECT,
    REASON_CUT,
    REASON_PROTOCOL,
    REASON_ABORTED,
    REASON_DESCRIPTORS,
    REASON_ADDRESS,
    REASON_CONFIG,
    REASON_MEMORY,
    REASON_BUSY, /* too many bodies wait for a worker */
    /* The response is an error. The first two are recognised by the text of its body. */
    REASON_CPU_IN_USE,
    REASON_DURATION_TOO_LONG,
    REASON_HTTP_401,
    REASON_HTTP_403,
    REASON_HTTP_404,
#define REASON_OF_STATUS(status) REASON_HTTP_##status
    REASON_STATUSES(REASON_OF_STATUS),
#undef REASON_OF_STATUS
    REASON_HTTP_4XX,
    REASON_HTTP_5XX,
    REASON_HTTP_OTHER,
    /* The body is not a usable profile. */
    REASON_EMPTY,
    REASON_NOT_PPROF_HTML,
    REASON_NOT_PPROF_JSON,
    REASON_NOT_PPROF_TEXT,
    REASON_NOT_PPROF_SHORT,
    REASON_NOT_JFR,
    REASON_BAD_GZIP,
    REASON_BAD_PROTOBUF,
    REASON_BAD_PPROF,
    REASON_BAD_LEGACY,
};
#define REASONS (REASON_BAD_LEGACY + 1)

/* The effect of a reason on the time of the next scrape. */
enum reason_kind {
    REASON_KIND_FAILURE,
    REASON_KIND_SUCCESS,
    REASON_KIND_ABSENT,   /* the path does not exist */
    REASON_KIND_CONFLICT, /* another client profiles the process */
};

/* Returns the name of a reason, in static storage: "connect", "http_404", "cpu_in_use", ...; "" for
 * REASON_NONE. */
const char *reason_name(enum reason r);
/* Returns advice for the operator, in static storage; "" if there is none. */
const char *reason_advice(enum reason r);
enum reason_kind reason_kind(enum reason r);

/* Returns the reason for a failed transfer or an error status. body: the start of the response, in
 * which messages of Go's net/http/pprof are recognised. */
enum reason reason_of_response(enum http_result result, long status, struct sv body);
/* Returns REASON_NONE for every kind of profile. */
enum reason reason_of_sniff(enum sniff_result r);
enum reason reason_of_delta(enum delta_result r);
enum reason reason_of_legacy(enum legacy_result r);

#endif
