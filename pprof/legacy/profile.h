/* The content of an old profile, whatever its format, and how it is written. Private to
 * pprof/legacy.
 *
 * A reader fills in samples and frames; then legacy_locate() finds the location and the mapping
 * of each address, and legacy_write() writes all.
 */
#ifndef PROFPULL_PPROF_LEGACY_PROFILE_H
#define PROFPULL_PPROF_LEGACY_PROFILE_H

#include "pprof/legacy/legacy.h"
#include "pprof/legacy/maps.h"

#define LEGACY_COLUMNS_MAX 4

struct legacy_value_type {
    const char *type;
    const char *unit;
};

/* The meaning of the numbers of a profile. */
struct legacy_kind {
    size_t n_columns;
    struct legacy_value_type columns[LEGACY_COLUMNS_MAX];
    struct legacy_value_type period;
    bool samples_time; /* sampled for a time; not a snapshot */
};

struct legacy_sample {
    size_t first; /* frame, leaf first */
    size_t depth;
    int64_t values[LEGACY_COLUMNS_MAX];
};

struct legacy_location {
    uint64_t address;
    uint32_t mapping; /* id */
};

struct legacy_profile {
    struct scratch *scratch;
    uint64_t seed;
    const struct legacy_kind *kind;
    int64_t period;
    struct legacy_sample *samples;
    size_t n_samples;
    uint64_t *frames; /* addresses; after legacy_locate() ids of locations */
    size_t n_frames;
    struct legacy_location *locations; /* by id - 1 */
    size_t n_locations;
    struct legacy_maps maps;
};

/* Makes room for this many samples and frames, within the limits. */
bool legacy_reserve(struct legacy_profile *p, size_t samples, size_t frames, struct err *err);
/* Turns the addresses of all frames into ids of locations, in order of first use, and finds the
 * mapping of each location. maps: the text of /proc/<pid>/maps. */
bool legacy_locate(struct legacy_profile *p, struct sv maps, struct err *err);
/* Appends the profile, not compressed; the duration only if its kind has one. */
void legacy_write(const struct legacy_profile *p, int64_t time_ns, int64_t duration_ns,
                  struct buf *out);

/* Read a whole plain body. They return false with ERR_LIMIT if it is too large, or ERR_INPUT if it
 * is wrong. */
bool legacy_read_cpu(struct legacy_profile *p, struct sv body, struct err *err);
bool legacy_read_heap(struct legacy_profile *p, struct sv body, struct err *err);
bool legacy_read_contention(struct legacy_profile *p, struct sv body, struct err *err);
/* Return true if a body begins like a profile in this format. */
bool legacy_is_cpu(struct sv start);
bool legacy_is_heap(struct sv start);
bool legacy_is_contention(struct sv start);

#endif
