/* Shared by the files of queries. */
#ifndef PROFPULL_STORE_QUERY_QUERY_PRIVATE_H
#define PROFPULL_STORE_QUERY_QUERY_PRIVATE_H

#include "pprof/table.h"
#include "store/query/query.h"

#define LABEL_PROFILE_TYPE "__profile_type__"

/* Returns false with ERR_TIMEOUT after the deadline, or if the query was cancelled. */
bool query_alive(const struct query *q, struct err *err);
/* Returns the result of a scan. If a callback has ended the scan with an error, sets err to it and
 * returns false; otherwise returns `scanned`. */
bool query_ended(bool scanned, const struct err *of_callback, struct err *err);
/* Counts a profile that is left out because it is damaged. Any thread. */
void query_count_damaged(const struct query *q);
/* Returns a random seed for a hash table whose keys come from outside. */
uint64_t query_seed(void);

/* ---- what is scanned ------------------------------------------------------------------------- */

/* The part of the store that a query scans: a range in milliseconds, both ends inclusive, and at
 * most one type. */
struct query_scope {
    struct store_range range;
    struct selector *selector; /* owned; NULL: all series */
    /* These two are those of struct store_scan; false after query_scope_init(). */
    bool by_series;
    bool with_sums;
};
/* Makes the scope of a query with a range and a type (NULL: all types). */
bool query_scope_init(const struct query *q, struct query_scope *scope, const struct query_range *r,
                      const struct profile_type *type, struct err *err);
void query_scope_done(struct query_scope *scope);

/* ---- projections of label sets --------------------------------------------------------------- */

/* The labels that a projection keeps: the listed ones; if `others` is set, all except the listed
 * ones. */
struct projection {
    const struct sv *names;
    size_t n_names;
    bool others;
};
/* Writes the projection of labels, which are in byte order of names, as bytes. Equal projections
 * have equal bytes. */
bool projection_put(const struct projection *p, const struct label *labels, size_t n,
                    struct buf *out);
/* Reads the labels from such bytes, and copies them into the arena. */
bool projection_read(struct sv bytes, struct arena *arena, struct query_labels *ret,
                     struct err *err);
/* Compares by names and values; if one list is the beginning of the other, it comes first. */
int query_labels_cmp(const struct query_labels *a, const struct query_labels *b);

/* Gives each distinct projection a number, by a table of the bytes of projections. */
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
/* Sets *ret to the number of the projection to the labels that two other projections share. */
bool projections_common(struct projections *p, uint32_t a, uint32_t b, uint32_t *ret,
                        struct err *err);

#endif
