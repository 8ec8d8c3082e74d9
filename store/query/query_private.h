/* Shared by the files of queries. */
#ifndef PROFPULL_STORE_QUERY_QUERY_PRIVATE_H
#define PROFPULL_STORE_QUERY_QUERY_PRIVATE_H

#include "pprof/table.h"
#include "store/query/query.h"

#define LABEL_PROFILE_TYPE "__profile_type__"

/* Returns false with ERR_TIMEOUT after the deadline, or if the query was cancelled. */
bool query_alive(const struct query *q, struct err *err);
/* Returns the result of a scan: false with the error of the callback that ended it, if there is
 * one; else `scanned`. */
bool query_ended(bool scanned, const struct err *of_callback, struct err *err);
/* Returns a random seed for a hash table whose keys come from outside. */
uint64_t query_seed(void);
/* Sets ERR_LIMIT, for an arena or a query whose memory has run out. Returns false. */
bool query_no_room(struct err *err);

/* ---- what is scanned ------------------------------------------------------------------------- */

/* A range for the store: milliseconds, both inclusive; at most one type. */
struct query_scope {
    struct store_range range;
    struct selector *selector; /* of its own; NULL: all */
    bool by_series;            /* as in struct store_scan; false after query_scope_init() */
};
/* type: NULL for all. */
bool query_scope_init(struct query_scope *scope, const struct query_range *r,
                      const struct profile_type *type, struct err *err);
void query_scope_done(struct query_scope *scope);

/* ---- projections of label sets --------------------------------------------------------------- */

/* The labels that a projection keeps: the listed ones, or, with others, all but these. */
struct projection {
    const struct sv *names;
    size_t n_names;
    bool others;
};
/* Writes the projection of labels, which are in byte order of names, as bytes that are equal for
 * equal projections. */
bool projection_put(const struct projection *p, const struct label *labels, size_t n,
                    struct buf *out);
/* Reads the labels from such bytes, and copies them into the arena. */
bool projection_read(struct sv bytes, struct arena *arena, struct query_labels *ret,
                     struct err *err);
/* Compares by names and values; a prefix comes first. */
int query_labels_cmp(const struct query_labels *a, const struct query_labels *b);

/* Numbers of projections: a table of their bytes. */
struct projections {
    struct projection what;
    struct table table;
    struct budget *budget;
    struct buf bytes;
};
void projections_init(struct projections *p, const struct projection *what, struct budget *budget);
void projections_done(struct projections *p);
bool projections_add(struct projections *p, const struct label *labels, size_t n, uint32_t *ret,
                     struct err *err);
bool projections_get(const struct projections *p, uint32_t i, struct arena *arena,
                     struct query_labels *ret, struct err *err);
/* Sets *ret to the number of the projection that has the labels which two others share. */
bool projections_common(struct projections *p, uint32_t a, uint32_t b, uint32_t *ret,
                        struct err *err);

#endif
