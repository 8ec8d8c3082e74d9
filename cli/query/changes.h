/* The functions that grew and shrank between two profiles. Pure; one thread at a time.
 */
#ifndef PROFPULL_CLI_QUERY_CHANGES_H
#define PROFPULL_CLI_QUERY_CHANGES_H

#include "base/arena.h"
#include "base/err.h"
#include "store/query/tree.h"

struct change {
    struct sv name;
    int64_t base_self;
    int64_t self;
    int64_t base_total;
    int64_t total;
};

struct changes {
    struct change *at; /* all functions of either profile, the largest change of self first */
    size_t n;
    int64_t base_total; /* of the profiles; after scaling, if asked for */
    int64_t total;
};

/* Compares two trees. normalize: the values of the base are scaled so that both totals are equal.
 * The names point into the trees, the rest is in the arena. */
bool changes_make(const struct tree *base, const struct tree *now, bool normalize,
                  struct arena *arena, struct changes *ret, struct err *err);
/* Appends a table: the totals, then at most limit functions that grew, and as many that shrank (0:
 * all). */
void changes_print(const struct changes *c, const char *unit, size_t limit, struct buf *out);
/* Appends the same as one line of JSON. */
void changes_json(const struct changes *c, const char *unit, size_t limit, struct buf *out);

#endif
