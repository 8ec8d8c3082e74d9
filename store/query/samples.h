/* Reads the samples of a stored profile that a query selects.
 *
 * One thread. The memory is that of the caller's scratch, and valid until the scratch is reset.
 */
#ifndef PROFPULL_STORE_QUERY_SAMPLES_H
#define PROFPULL_STORE_QUERY_SAMPLES_H

#include "pprof/index.h"
#include "pprof/scratch.h"
#include "store/query/query.h"

/* A profile whose samples are read one by one. */
struct samples {
    struct pprof_index x;
    size_t column;
    const struct query_stacks *which; /* spans and traces */
    bool by_part;                     /* only samples of wanted parts are read */
    const uint32_t *part_of;          /* the part of each sample */
    const bool *wanted;               /* for each part, whether it is wanted */
    size_t next;
};

struct sample {
    struct sv message;
    struct sv ids; /* all of its locations, packed; p is NULL if they are written otherwise */
    size_t index;  /* index among all samples of the profile */
    int64_t value; /* above 0 */
};

/* Inflates, checks and indexes a profile. False with the errors of stacks_add(). */
bool samples_open(struct samples *s, struct scratch *scratch, const struct store_body *body,
                  size_t column, const struct query_stacks *which, uint64_t seed, struct err *err);
/* Reads the next selected sample. False at the end. */
bool samples_next(struct samples *s, struct sample *ret);

/* The ids of a sample's locations, the leaf first. */
struct sample_ids {
    struct wire_reader reader;
    struct wire_numbers numbers;
    bool begun;
};
static inline struct sample_ids sample_ids_of(const struct sample *s)
{
    return (struct sample_ids){.reader = wire_reader_of(s->message)};
}
/* Finds the place of the next location. False at the end. */
bool sample_ids_next(struct sample_ids *ids, const struct samples *s, size_t *ret_place);

#endif
