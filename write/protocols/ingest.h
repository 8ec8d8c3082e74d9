/* `POST /ingest`: the one shape that Pyroscope (0.37 to 2.x) and DeepFlow both accept.
 *
 * The request has a query with name=app{key=value,...}, 10-digit times and no format, and a
 * multipart body whose parts all carry a filename (servers ignore a part without one and still
 * answer 200). See docs/writing.md for what the narrow character sets do to names. Pure; any
 * thread.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_INGEST_H
#define PROFPULL_WRITE_PROTOCOLS_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "model/profile.h"
#include "write/readback.h"
#include "write/series.h"

#define INGEST_PATH "/ingest"
/* DeepFlow's agent serves INGEST_PATH below this path. */
#define INGEST_DEEPFLOW_BASE "/api/v1/profile"
/* The most bytes of the encoded name parameter. The request line has to stay below the 8 KiB of
 * common proxies; labels that are worth least are dropped until the name fits. */
#define INGEST_NAME_MAX ((size_t)4096)
/* The most bytes of the application name. */
#define INGEST_APP_MAX ((size_t)512)

/* Appends the name, not percent-encoded: "app{a=b,c=d}", or "app" without labels. The app name is
 * the service name in [A-Za-z0-9_.-] ("/" becomes ".", all else "_"). Labels that start with `__`
 * and service_name are not in the braces; "," and "}" in a value become "_", white space around it
 * goes. The series must have been built by the rules of this protocol; labels may be dropped from
 * it so that the name stays within INGEST_NAME_MAX encoded, and changes are counted in it. */
bool ingest_name(struct series *s, struct buf *out);

/* Samples per second in Go's CPU profiles; sent for all other profiles as well. */
#define INGEST_SAMPLE_RATE 100
/* The highest rate that is sent; the lowest is 1. */
#define INGEST_SAMPLE_RATE_MAX 1000000
/* Returns the rate of a profile whose period is so many nanoseconds; INGEST_SAMPLE_RATE if that
 * gives no valid rate. */
unsigned ingest_sample_rate(int64_t period_ns);

/* The facts that are read from the profile itself. */
struct ingest_facts {
    enum profile_format format;
    unsigned sample_rate; /* per second */
    const char *spy;      /* "gospy": the language, as both servers call it */
};

/* Appends the query: name, from, until (wall clock, rounded down to seconds), spyName, sampleRate,
 * units, aggregationType; for JFR also format, without which servers would read it as text, and
 * neither of the last two. */
bool ingest_query(struct series *s, int64_t from_ns, int64_t until_ns,
                  const struct ingest_facts *facts, struct buf *out);

/* A profile that inflates to more is not read: it counts as a profile of Go with the values that
 * its `__name__` has there. */
#define INGEST_INFLATED_MAX ((size_t)16 * 1024 * 1024)
/* The most bytes of the part sample_type_config (sample_types.h). */
#define INGEST_CONFIG_MAX ((size_t)192 * 1024)

/* The body is head + the profile's bytes + tail. Appends to both buffers; false if one is full. A
 * recording is the part "jfr" alone (no config). */
bool ingest_body(const char *boundary, enum profile_format format, struct sv config,
                 struct buf *head, struct buf *tail);

/* Reads profiles back with ProfileTracing of the DeepFlow server, which is not the agent that takes
 * profiles. */
extern const struct readback readback_deepflow;

#endif
