/* Private to queries: the frames that Go's runtime cut off the root of deep stacks.
 *
 * Heap profiles of Go before 1.23 keep 32 frames of a stack, CPU profiles 64, so that a deep
 * program seems to have many roots. If 16 frames in a row at the root end of a stack also occur in
 * another stack of the profile, with frames above them, those frames are taken to be the missing
 * ones. The rules, with their limits and the order in which candidates are tried, are those by
 * which Pyroscope changes Go profiles when it takes them; here a query applies them, and stored
 * profiles stay as they are.
 */
#ifndef PROFPULL_STORE_QUERY_REPAIR_H
#define PROFPULL_STORE_QUERY_REPAIR_H

#include "store/query/query_private.h"
#include "store/query/samples.h"

/* Places of locations to be added to a stack at its root, the leaf side first. */
struct repair_part {
    const uint32_t *at;
    uint32_t n;
};

struct repair {
    /* the missing part of each sample's stack; NULL: nothing is missing */
    struct repair_part *parts;
};

/* Finds the missing parts of all stacks of an opened profile, in memory of the scratch. labels are
 * those of the profile, and may name the language of the program. Nothing is missing if the program
 * is not written in Go, if the profile has neither heap nor CPU samples, or if no stack is deep.
 * False with err. */
bool repair_find(struct repair *r, const struct samples *s, const struct label *labels,
                 size_t n_labels, struct scratch *scratch, struct err *err);

#endif
