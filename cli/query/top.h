/* The table of functions: how much of a profile each function has used, itself and including the
 * functions that it calls. One thread at a time.
 */
#ifndef PROFPULL_CLI_QUERY_TOP_H
#define PROFPULL_CLI_QUERY_TOP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/query/tree.h"

/* Limit of the memory for working on a profile, in bytes. */
#define TOP_BYTES_MAX ((size_t)1024 * 1024 * 1024)
#define TOP_UNIT_MAX 64

/* Makes a tree of the stacks of one sample type of a pprof profile, gzip or plain; the caller frees
 * it. value: the sample type; NULL: the default that the profile names, else its last one, like go
 * tool pprof. as_recorded: stacks that Go's runtime cut off are not repaired. unit is set to the
 * unit of the values. NULL with err. */
struct tree *top_tree(struct sv body, const char *value, bool as_recorded, char unit[TOP_UNIT_MAX],
                      struct err *err);

/* Appends the functions, those that have used the most themselves first; at most limit of them (0:
 * all). */
bool top_print(const struct tree *t, const char *unit, size_t limit, struct buf *out,
               struct err *err);
/* Appends the same table as one line of JSON: {"unit", "total", "count", "functions": [{"name",
 * "self", "total"}]}. */
bool top_json(const struct tree *t, const char *unit, size_t limit, struct buf *out,
              struct err *err);

#endif
