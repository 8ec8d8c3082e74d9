/* The table of functions: how much of a profile each has used, itself and with what it has called.
 * One thread at a time.
 */
#ifndef PROFPULL_CLI_QUERY_TOP_H
#define PROFPULL_CLI_QUERY_TOP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/query/tree.h"

/* Bytes that working on a profile may take. */
#define TOP_BYTES_MAX ((size_t)1024 * 1024 * 1024)
#define TOP_UNIT_MAX 64

/* Makes a tree of the stacks of one sample type of a pprof profile, gzip or plain; the caller frees
 * it. value: the sample type; NULL: the one that the profile names, else its last, as go tool pprof
 * chooses. as_recorded: stacks that Go's runtime cut off are not repaired. unit is set to that of
 * the values. NULL with err. */
struct tree *top_tree(struct sv body, const char *value, bool as_recorded, char unit[TOP_UNIT_MAX],
                      struct err *err);

/* Appends the first functions by what they have used themselves; limit 0: all. */
bool top_print(const struct tree *t, const char *unit, size_t limit, struct buf *out,
               struct err *err);

#endif
