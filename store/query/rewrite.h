/* A stored profile as the read API gives it out: one sample type, without labels, with what is
 * needed of its stacks. The results of one query can be merged.
 *
 * The head is that of the query: the sample type and period of its profile type, its end as the
 * time. Addresses are left out where all locations of a mapping have lines, so that what was loaded
 * elsewhere is the same; else they stay, with their mapping. Names stay as they are, except that
 * what is not UTF-8 becomes U+FFFD.
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

/* Appends the samples that are left of an open profile to out, as plain pprof. *ret_n: how many
 * there are. False with ERR_LIMIT or ERR_MEMORY. */
bool rewrite_profile(struct samples *s, struct scratch *scratch, const struct rewrite_options *o,
                     struct buf *out, size_t *ret_n, struct err *err);

/* Appends a plain profile of one sample type with at most so many frames, counted as paths of
 * locations from the root: smaller ones become one frame `other` of their caller. */
bool rewrite_fold(struct sv plain, struct scratch *scratch, int64_t max_nodes, size_t bytes_max,
                  struct buf *out, struct err *err);

#endif
