/* Recordings of Java's Flight Recorder (JDK, async-profiler and other agents): bytes in, pprof
 * profiles out.
 *
 * A recording is a sequence of chunks. The reader takes one chunk at a time, reads it as the
 * chunk's own metadata describes it, and keeps only what the profiles need: names of functions,
 * lines, stacks and sums. So a recording may be of any length, and the caller decides whether it
 * holds the whole recording or one chunk. jfr_convert() does everything for a recording in memory.
 *
 * The profiles, their sample types and the names of their frames are those that a Pyroscope server
 * makes of the same recording, with one difference: durations are converted from ticks to
 * nanoseconds with the tick rate of the chunk.
 *
 * Every byte comes from outside and is not trusted. Memory is bounded by the limit of the options.
 * The caller owns all bytes that it passes; they must live until the call returns, and the labels
 * until the reader is freed. One thread uses a reader, without a lock; different readers are
 * independent.
 */
#ifndef PROFPULL_JFR_JFR_H
#define PROFPULL_JFR_JFR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"

/* The sample rate that a sender of /ingest means if it gives none: samples per second. */
#define JFR_SAMPLE_RATE_DEFAULT 100
/* The period of a recording that says none in its settings. */
#define JFR_PERIOD_DEFAULT_NS (INT64_C(10) * 1000 * 1000)
/* A larger chunk is refused: offsets within a chunk are kept in 32 bits. */
#define JFR_CHUNK_MAX ((uint64_t)1024 * 1024 * 1024)
/* Memory for what is kept of a recording, by default. */
#define JFR_MEMORY_MAX ((size_t)256 * 1024 * 1024)
/* Most bytes that jfr_convert() inflates, by default. */
#define JFR_PLAIN_MAX ((size_t)256 * 1024 * 1024)
/* A larger profile cannot be made of a recording. */
#define JFR_PROFILE_MAX ((size_t)128 * 1024 * 1024)
/* Bytes of the `labels` part, inflated. */
#define JFR_LABELS_MAX ((size_t)32 * 1024 * 1024)

/* ---- chunks ---------------------------------------------------------------------------------- */

#define JFR_HEAD_SIZE ((size_t)68)

struct jfr_head {
    unsigned major;
    unsigned minor;
    uint64_t size;       /* bytes of the chunk with its head; JFR_HEAD_SIZE to JFR_CHUNK_MAX */
    uint64_t checkpoint; /* offsets in the chunk */
    uint64_t metadata;
    int64_t start_ns; /* since 1970 */
    int64_t duration_ns;
    int64_t ticks_per_second; /* > 0 */
    bool fixed;               /* integers are not compressed */
};

/* Reads the head of a chunk from its first JFR_HEAD_SIZE bytes. False with ERR_INPUT for anything
 * else: another format, the format before JDK 9, a chunk that is still being written, or a tick
 * rate of 0; ERR_LIMIT for a chunk of more than JFR_CHUNK_MAX bytes. */
bool jfr_head_read(struct sv start, struct jfr_head *ret, struct err *err);

/* ---- reading --------------------------------------------------------------------------------- */

struct jfr_options {
    unsigned sample_rate; /* samples per second; 0: by the recording's settings */
    struct sv labels;     /* the part `labels` of Pyroscope's agent, gzip or plain; may be empty */
    size_t memory_max;    /* 0: JFR_MEMORY_MAX */
    uint64_t seed;        /* unknown to those who make recordings */
    bool count_types;     /* count the events of all types: jfr_reader_type() */
};

struct jfr_reader;

/* NULL with an error, ERR_INPUT if the labels are damaged. */
struct jfr_reader *jfr_reader_new(const struct jfr_options *options, struct err *err);
struct jfr_reader *jfr_reader_free(struct jfr_reader *r); /* accepts NULL, returns NULL */

/* Reads one chunk, which is exactly this view. False with an error that names chunk and offset.
 * What was read before the damage is kept: the chunks before, and the events before it. */
bool jfr_reader_chunk(struct jfr_reader *r, struct sv chunk, struct err *err);
/* Reads all chunks of a plain recording; stops at the first damage. */
bool jfr_reader_all(struct jfr_reader *r, struct sv plain, struct err *err);

struct jfr_facts {
    size_t chunks;      /* read to their end */
    int64_t start_ns;   /* of the first chunk; 0 without chunks */
    int64_t end_ns;     /* of the last one */
    uint64_t events;    /* of all types, without metadata and checkpoints */
    uint64_t samples;   /* of the types that profiles are made of, and kept */
    uint64_t truncated; /* of these, with a stack that the recorder has cut */
    uint64_t no_stack;  /* events of these types that were dropped: they have no stack */
    uint64_t no_method; /* frames that were left out: their method or class is not there */
    uint64_t failed;    /* samples that the recorder could not take */
    size_t profiles;    /* with at least one sample */
    struct sv event;    /* the setting "event" of async-profiler; empty if there is none */
    size_t memory;      /* bytes that the reader holds */
};

/* Views are valid until the next chunk. */
void jfr_reader_facts(const struct jfr_reader *r, struct jfr_facts *ret);

/* The i-th type of events in order of first appearance, with options.count_types. False beyond the
 * last. */
struct jfr_type {
    struct sv name;
    uint64_t events;
    uint64_t bytes;
};
bool jfr_reader_type(const struct jfr_reader *r, size_t i, struct jfr_type *ret);

/* ---- profiles -------------------------------------------------------------------------------- */

#define JFR_COLUMNS_MAX 2
/* One for each row of sample types. */
#define JFR_PROFILES_MAX 9

struct jfr_value_type {
    const char *type;
    const char *unit;
};

struct jfr_profile {
    const char *name; /* `__name__` */
    size_t n_columns;
    struct jfr_value_type columns[JFR_COLUMNS_MAX];
    struct jfr_value_type period_type; /* empty texts: none */
    int64_t period;                    /* 0: none */
    size_t stacks;                     /* samples of the profile: stack and labels differ */
    int64_t sums[JFR_COLUMNS_MAX];
};

/* The i-th of facts.profiles profiles. */
void jfr_reader_profile(const struct jfr_reader *r, size_t i, struct jfr_profile *ret);
/* Appends it as pprof, not compressed. False with ERR_LIMIT or ERR_MEMORY. */
bool jfr_reader_write(struct jfr_reader *r, size_t i, struct buf *out, struct err *err);

/* ---- all at once ----------------------------------------------------------------------------- */

struct jfr_made {
    const char *name;       /* `__name__`, static storage */
    const char *first_type; /* its first sample type, static storage */
    char *data;             /* gzip, from malloc() */
    size_t size;
};

struct jfr_result {
    struct jfr_made made[JFR_PROFILES_MAX];
    size_t n;
    struct jfr_facts facts; /* without views */
    char *event;            /* from malloc(); NULL if there is none */
    bool damaged;           /* what was good is there; the error says what was not */
};

struct jfr_input {
    struct sv body; /* gzip or plain */
    struct jfr_options options;
    size_t plain_max;        /* 0: JFR_PLAIN_MAX */
    struct scratch *scratch; /* to inflate in and to compress in; reset by the caller */
};

/* Converts a whole recording. False if nothing could be made of it. err is set also with a
 * true result that is damaged. A good recording without samples gives 0 profiles. The caller frees
 * the result with jfr_result_done(), also after false. */
bool jfr_convert(const struct jfr_input *in, struct jfr_result *ret, struct err *err);
void jfr_result_done(struct jfr_result *r);

#endif
