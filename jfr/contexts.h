/* The labels that Pyroscope's Java agent sends beside a recording. They consist of contexts by
 * number, each with the numbers of its names and values, and of the strings by number. Private to
 * jfr.
 *
 * All views point into the caller's bytes, or into bytes that were inflated here. There is one
 * owner and no lock.
 */
#ifndef PROFPULL_JFR_CONTEXTS_H
#define PROFPULL_JFR_CONTEXTS_H

#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"
#include "pprof/table.h"

struct jfr_numbered {
    int64_t id;
    struct sv bytes;
};

struct jfr_contexts {
    struct jfr_numbered *contexts; /* sorted by id; of equal ids the last one counts */
    struct jfr_numbered *strings;
    size_t n_contexts;
    size_t n_strings;
    size_t contexts_cap;
    size_t strings_cap;
    struct scratch *inflated;
    struct budget *budget;
};

/* Reads the labels. snapshot: gzip or plain; empty: no labels. Returns false with ERR_INPUT if it
 * is damaged. */
bool jfr_contexts_read(struct jfr_contexts *x, struct sv snapshot, struct budget *budget,
                       struct err *err);
void jfr_contexts_done(struct jfr_contexts *x);

/* Returns the string of a number, or an empty view if there is none. */
struct sv jfr_contexts_string(const struct jfr_contexts *x, int64_t id);
/* Returns true if the context has labels. */
bool jfr_contexts_has(const struct jfr_contexts *x, int64_t context);
/* Walks the labels of a context: start with *at = 0. Returns false at the end. */
bool jfr_contexts_next(const struct jfr_contexts *x, int64_t context, size_t *at,
                       struct sv *ret_name, struct sv *ret_value);

#endif
