/* The labels of series, with the number of series of each value. One thread. */
#ifndef PROFPULL_STORE_QUERY_LABEL_COUNTS_H
#define PROFPULL_STORE_QUERY_LABEL_COUNTS_H

#include "store/query/query.h"

/* The most different pairs of name and value that are counted. */
#define QUERY_LABEL_PAIRS_MAX 50000

struct query_label_value {
    struct sv value;
    uint64_t series;
};
struct query_label_count {
    struct sv name;
    struct query_label_value *at; /* the most series first, then in order of values */
    size_t n;                     /* at most values_max */
    size_t n_all;                 /* all values of the name */
};
struct query_label_counts {
    struct query_label_count *at; /* in order of names; in memory of the query's arena */
    size_t n;
    bool is_cut; /* there are more pairs than QUERY_LABEL_PAIRS_MAX */
};

/* Counts the labels of the series of a range, except the computed ones (`__name__`, ...) and
 * `service_name`. */
bool query_label_counts(const struct query *q, const struct query_range *r, size_t values_max,
                        struct query_label_counts *ret, struct err *err);

#endif
