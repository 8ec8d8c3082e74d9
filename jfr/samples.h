/* The tables that are kept of a recording: functions, locations, stacks, correlations and the
 * samples of each profile. Private to jfr.
 *
 * Everything is kept by content, so chunks with the same stacks add up. One owner, no locking.
 */
#ifndef PROFPULL_JFR_SAMPLES_H
#define PROFPULL_JFR_SAMPLES_H

#include "jfr/contexts.h"
#include "jfr/jfr.h"
#include "pprof/table.h"

/* The rows of sample types. Profiles are returned in this order. */
enum jfr_row {
    JFR_ROW_CPU,
    JFR_ROW_WALL,
    JFR_ROW_IN_NEW_TLAB,
    JFR_ROW_OUTSIDE_TLAB,
    JFR_ROW_ALLOCATION_SAMPLE,
    JFR_ROW_MUTEX,
    JFR_ROW_BLOCK,
    JFR_ROW_LIVE,
    JFR_ROW_MALLOC,
};

/* The periods that counts of samples are multiplied with. They are known at the end of a chunk. */
enum jfr_clock { JFR_CLOCK_EXECUTION, JFR_CLOCK_WALL, JFR_CLOCKS };

/* The labels that keep samples of the same stack apart. All 0: none. */
struct jfr_correlation {
    uint64_t context;
    uint64_t span;
    uint64_t span_name;
};

struct jfr_sample {
    uint32_t stack;
    uint32_t correlation;
    int64_t values[JFR_COLUMNS_MAX];
    uint64_t pending[JFR_CLOCKS]; /* counts of this chunk that wait for their period */
    uint8_t row;                  /* enum jfr_row */
};

struct jfr_samples {
    struct table functions;    /* names */
    struct table locations;    /* struct jfr_location */
    struct table stacks;       /* numbers of locations as varints, top frame first */
    struct table correlations; /* struct jfr_correlation */
    struct jfr_sample *samples;
    uint32_t *slots; /* sample + 1 by row, stack and correlation */
    size_t n, cap, n_slots, slots_cap;
    size_t of_row[JFR_PROFILES_MAX];
    int64_t sums[JFR_PROFILES_MAX][JFR_COLUMNS_MAX];
    int64_t periods[JFR_PROFILES_MAX]; /* the last one of a row */
    uint64_t seed;
    struct budget *budget;
};

struct jfr_location {
    uint32_t function;
    uint32_t line;
};

void jfr_samples_init(struct jfr_samples *s, uint64_t seed, struct budget *budget);
void jfr_samples_done(struct jfr_samples *s);

/* Returns the sample of a row, stack and correlation, which is made if there is none yet. It is
 * valid until the next call. Returns NULL with err if out of memory. */
struct jfr_sample *jfr_samples_get(struct jfr_samples *s, enum jfr_row row, uint32_t stack,
                                   uint32_t correlation, struct err *err);
/* Adds to a column of a sample, without overflow. */
void jfr_samples_add(struct jfr_samples *s, struct jfr_sample *sample, size_t column,
                     int64_t value);
/* Turns counts that wait for their period into nanoseconds. */
void jfr_samples_settle(struct jfr_samples *s, const int64_t periods[JFR_CLOCKS]);

/* Returns the profile of a row, with its totals. */
void jfr_samples_profile(const struct jfr_samples *s, enum jfr_row row, struct jfr_profile *ret);
/* Appends the profile of a row. */
bool jfr_samples_write(struct jfr_samples *s, enum jfr_row row, const struct jfr_contexts *contexts,
                       int64_t start_ns, int64_t duration_ns, struct buf *out, struct err *err);

#endif
