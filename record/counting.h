/* Sums of the samples of one profile: of a sample type, of all samples or of those whose stack has
 * a function.
 *
 * The functions read bytes from outside and trust none of them. They are pure; any thread may call
 * them.
 */
#ifndef PROFPULL_RECORD_COUNTING_H
#define PROFPULL_RECORD_COUNTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/record_rule.h"
#include "pprof/scratch.h"

/* The largest profile that is counted, inflated; as for a delta. */
#define COUNTING_PLAIN_MAX ((size_t)32 * 1024 * 1024)

/* A sum. A thousand cores use 2^64 ns of CPU in 7 months, so 64 bits are not enough. */
__extension__ typedef unsigned __int128 record_sum;

/* One sum to compute. */
struct counting_want {
    struct record_type type; /* the name of the profile does not count */
    struct sv function;      /* empty: all samples */
    bool found;              /* result: the profile has this sample type */
    /* Result: the sum of the positive values. Negative ones, which only differences of profiles
     * have, count as 0, as they do in a store. */
    record_sum sum;
};

/* Reads a profile, gzip or plain, once and computes n sums. A stack that has a function several
 * times counts once. seed: a number that senders do not know. The scratch is reset. Returns false
 * with ERR_INPUT for a damaged profile, ERR_LIMIT or ERR_MEMORY. */
bool counting_run(struct scratch *s, struct sv body, struct counting_want *wants, size_t n,
                  uint64_t seed, struct err *err);

#endif
