/* Converts requests of OpenTelemetry's profiles signal to pprof profiles.
 *
 * A reader takes a request (ExportProfilesServiceRequest in protobuf, opentelemetry-proto v1.11)
 * and returns one pprof profile after another, each with its labels. The bytes come from outside
 * and are not trusted.
 *
 * A message Profile has values of one type. Messages of one scope that follow each other and have
 * the same samples, but other types, become one profile with several types: the Collector and
 * profpull make such messages of one pprof profile. Samples with an attribute `service.name`,
 * `container.id` or `k8s.pod.uid` of their own make a profile for each combination of these.
 *
 * Pure: bytes in, bytes out. A reader has one owner and no lock.
 */
#ifndef PROFPULL_PPROF_OTLP_OTLP_H
#define PROFPULL_PPROF_OTLP_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/str.h"
#include "pprof/summary.h"

/* The limits of a request. An agent on a large node sends some 100,000 entries of tables. */
#define OTLP_ENTRIES_MAX 2000000 /* of all tables of the dictionary */
#define OTLP_READ_WORK_MAX                                                                         \
    ((size_t)192 * 1024 * 1024) /* bytes of memory for tables and samples                          \
                                 */
/* The limits of a message Profile. */
#define OTLP_SAMPLES_MAX 500000
#define OTLP_SAMPLE_ATTRIBUTES_MAX 4000000 /* of all its samples */
#define OTLP_PARTS_MAX 10000               /* profiles that it is split into */
#define OTLP_DEPTH_MAX 65536               /* frames of a stack */
#define OTLP_LABELS_MAX 1024               /* labels of a profile that is made */
#define OTLP_SAMPLE_LABELS_MAX 100         /* attributes of a sample, as at a Pyroscope */

struct otlp_limits {
    size_t profile_max; /* bytes of a profile that is made */
    size_t total_max;   /* bytes of all profiles that are made of one request, together */
    size_t work_max;    /* bytes of memory, OTLP_READ_WORK_MAX at most; 0: this */
};

struct otlp_reader;

/* Makes a reader of a request and checks its frame: the messages around the profiles, and the
 * tables. message must live as long as the reader. Returns NULL with ERR_INPUT, ERR_LIMIT or
 * ERR_MEMORY. */
struct otlp_reader *otlp_reader_new(struct sv message, const struct otlp_limits *limits,
                                    struct err *err);
struct otlp_reader *otlp_reader_free(struct otlp_reader *r); /* accepts NULL, returns NULL */

/* Facts about a request. */
struct otlp_facts {
    size_t messages; /* messages Profile; known from the start */
    /* Known from the start: every sample has the numbers of opentelemetry-proto 1.8 and 1.9, in
     * which `values` was field 2. Such samples are read with these numbers. */
    bool old_numbers;
    /* Counted as the messages are read. */
    uint64_t samples;
    uint64_t samples_without_value; /* these are left out */
};
const struct otlp_facts *otlp_reader_facts(const struct otlp_reader *r);

struct otlp_profile {
    struct sv pprof; /* not compressed */
    struct pprof_summary summary;
    /* `__name__`, `service_name`, `__delta__`, `__otel__` and the attributes; no name twice. The
     * caller may sort them. */
    struct label *labels;
    size_t n_labels;
    /* The messages of which the profile was made: their number, and a number that all profiles that
     * were made of the same messages have in common. */
    size_t n_messages;
    size_t group;
};

enum otlp_step {
    OTLP_STEP_PROFILE, /* a profile was made */
    OTLP_STEP_EMPTY,   /* messages without samples: there is nothing to make; n_messages is set */
    OTLP_STEP_BAD,     /* messages that cannot be read, with err; n_messages is set */
    OTLP_STEP_END,
};
/* Makes the next profile, which is valid until the next call. After OTLP_STEP_BAD, the rest of the
 * group is skipped, and the next call goes on with the messages after it. */
enum otlp_step otlp_reader_next(struct otlp_reader *r, struct otlp_profile *ret, struct err *err);

#endif
