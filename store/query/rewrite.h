/* Writes a stored profile as the query API returns it: one sample type, no labels, and only the
 * parts of its stacks that are needed. The results of one query can be merged.
 *
 * The head has the sample type and period of the query's profile type, and the end of the query as
 * time. If all locations of a mapping have lines, their addresses are left out, so that a program
 * that was loaded at another address gives the same profile. Otherwise the addresses and the
 * mapping are kept. Names are kept, except that bytes which are not UTF-8 become U+FFFD.
 */
#ifndef PROFPULL_STORE_QUERY_REWRITE_H
#define PROFPULL_STORE_QUERY_REWRITE_H

#include "base/buf.h"
#include "store/query/query_private.h"
#include "store/query/samples.h"

struct rewrite_options {
    const struct profile_type *type;
    const struct query_profile_options *profile;
    int64_t time_ns;
};

/* Appends the selected samples of an open profile to out, as plain pprof, and sets *ret_n to their
 * number. False with ERR_LIMIT or ERR_MEMORY. */
bool rewrite_profile(struct samples *s, struct scratch *scratch, const struct rewrite_options *o,
                     struct buf *out, size_t *ret_n, struct err *err);

/* Appends a plain profile of one sample type that has at most max_nodes frames, counted as paths of
 * locations from the root. Smaller frames are replaced by one frame `other` of their caller. */
bool rewrite_fold(struct sv plain, struct scratch *scratch, int64_t max_nodes, size_t bytes_max,
                  struct buf *out, struct err *err);

#endif
