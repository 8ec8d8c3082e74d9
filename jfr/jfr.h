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

/* The sample rate of a push to /ingest that gives none, in samples per second. */
#define JFR_SAMPLE_RATE_DEFAULT 100
/* The period of a recording whose settings have none. */
#define JFR_PERIOD_DEFAULT_NS (INT64_C(10) * 1000 * 1000)
/* The largest chunk. A larger one is refused, because offsets within a chunk are kept in 32
 * bits. */
#define JFR_CHUNK_MAX ((uint64_t)1024 * 1024 * 1024)
/* The default limit of the memory for the data that is kept of a recording. */
#define JFR_MEMORY_MAX ((size_t)256 * 1024 * 1024)
/* The default limit of the bytes that jfr_convert() inflates. */
#define JFR_PLAIN_MAX ((size_t)256 * 1024 * 1024)
/* The largest plain profile that can be made of a recording, in bytes. */
#define JFR_PROFILE_MAX ((size_t)128 * 1024 * 1024)
/* The most bytes of the part `labels`, inflated. */
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

/* Reads the head of a chunk from its first JFR_HEAD_SIZE bytes. Returns false with ERR_INPUT if
 * they are no valid head: another format, the format before JDK 9, a chunk that is still being
 * written, or a tick rate of 0; ERR_LIMIT for a chunk of more than JFR_CHUNK_MAX bytes. */
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

/* Makes a reader. Returns NULL with an error: ERR_INPUT if the labels are damaged. */
struct jfr_reader *jfr_reader_new(const struct jfr_options *options, struct err *err);
struct jfr_reader *jfr_reader_free(struct jfr_reader *r); /* accepts NULL, returns NULL */

/* Reads one chunk, which is exactly this view. Returns false with an error that names the chunk and
 * the offset. Everything that was read before the damage is kept: earlier chunks, and earlier
 * events of this chunk. */
bool jfr_reader_chunk(struct jfr_reader *r, struct sv chunk, struct err *err);
/* Reads all chunks of a plain recording; stops at the first damage. */
bool jfr_reader_all(struct jfr_reader *r, struct sv plain, struct err *err);

struct jfr_facts {
    size_t chunks;      /* read to their end */
    int64_t start_ns;   /* start of the first chunk; 0 without chunks */
    int64_t end_ns;     /* end of the last chunk */
    uint64_t events;    /* events of all types, without metadata and checkpoints */
    uint64_t samples;   /* events that profiles are made of, and that were kept */
    uint64_t truncated; /* samples whose stack the recorder has cut */
    uint64_t no_stack;  /* events of such types that were dropped because they have no stack */
    /* frames that were left out because their method or class does not exist */
    uint64_t no_method;
    uint64_t failed; /* samples that the recorder could not take */
    size_t profiles; /* profiles with at least one sample */
    struct sv event; /* the setting "event" of async-profiler; empty if there is none */
    size_t memory;   /* bytes that the reader holds */
};

/* Returns the facts of what was read so far. Views are valid until the next chunk. */
void jfr_reader_facts(const struct jfr_reader *r, struct jfr_facts *ret);

/* The i-th type of events in order of first appearance, if options.count_types is set.
 * jfr_reader_type() returns false beyond the last one. */
struct jfr_type {
    struct sv name;
    uint64_t events;
    uint64_t bytes;
};
bool jfr_reader_type(const struct jfr_reader *r, size_t i, struct jfr_type *ret);

/* ---- profiles -------------------------------------------------------------------------------- */

#define JFR_COLUMNS_MAX 2
/* The most profiles of a recording: one for each row of sample types. */
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

/* Returns the i-th of facts.profiles profiles. */
void jfr_reader_profile(const struct jfr_reader *r, size_t i, struct jfr_profile *ret);
/* Appends the i-th profile as pprof, not compressed. Returns false with ERR_LIMIT or ERR_MEMORY. */
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
    /* the result has what was read before the damage; the error describes the damage */
    bool damaged;
};

struct jfr_input {
    struct sv body; /* gzip or plain */
    struct jfr_options options;
    size_t plain_max;        /* 0: JFR_PLAIN_MAX */
    struct scratch *scratch; /* memory to inflate and compress; the caller resets it */
};

/* Converts a whole recording. Returns false if nothing could be made of it. err is also set if it
 * returns true and ret->damaged is set. A good recording without samples gives 0 profiles. The
 * caller frees the result with jfr_result_done(), also after false. */
bool jfr_convert(const struct jfr_input *in, struct jfr_result *ret, struct err *err);
void jfr_result_done(struct jfr_result *r);

#endif
