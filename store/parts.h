/* The parts of a profile: what the samples that have the same string labels sum up to.
 *
 * A sample's string labels make a series of their own, with three exceptions: span_id, trace_id and
 * profile_id, which say where the sample belongs and not what it is; names that the profile's own
 * labels have, which win; and labels without a name or value. Of a key that a sample has twice, the
 * first value counts. What is not UTF-8 is repaired.
 *
 * A sample with a negative value counts nowhere, in any column. A part whose sums are all 0 is left
 * out. Sums stay at the limits of int64_t. One walk of the samples, memory in proportion to the
 * parts, and to the strings if a sample has a string label. Any thread.
 */
#ifndef PROFPULL_STORE_PARTS_H
#define PROFPULL_STORE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/str.h"
#include "pprof/scratch.h"
#include "pprof/summary.h"
#include "store/blob.h"

/* String labels of one sample that are looked at. A profile with a sample that has more, or with
 * more than STORE_PARTS_MAX different sets, is not split: it has one part, without labels. */
#define STORE_SAMPLE_LABELS_MAX 100

struct part {
    const struct label *labels; /* in byte order of unique names */
    size_t n_labels;
    int64_t *sums; /* by column */
};

struct parts {
    struct pprof_summary summary;
    struct part *at;
    size_t n;
    bool negative; /* some sample has a negative value */
    bool unsplit;  /* not split, as said above */
    /* For each sample the part that it belongs to, or PART_NONE; only if asked for. */
    uint32_t *of_sample;
    size_t n_samples;
};
#define PART_NONE UINT32_MAX

/* Checks a plain profile and reads its parts, all in memory of the scratch; plain must live as
 * long. own: the profile's labels, in byte order of names. False with ERR_INPUT for a damaged
 * profile, or one of more than SUMMARY_TYPES_MAX sample types, and ERR_MEMORY. */
bool parts_read(struct scratch *scratch, struct sv plain, const struct label *own, size_t n_own,
                bool want_samples, struct parts *ret, struct err *err);

#endif
