/* Splits a profile into parts: the sums of the samples that have the same string labels.
 *
 * The string labels of a sample make a series of their own. Three kinds of labels do not: span_id,
 * trace_id and profile_id, which identify a request rather than a kind of sample; names that the
 * profile's own labels have, since those take precedence; and labels without a name or value. If a
 * sample has a key twice, the first value counts. Texts that are not UTF-8 are repaired.
 *
 * A sample with a negative value in any column counts in no column. A part whose sums are all 0 is
 * left out. A sum that would exceed the limits of int64_t stays at the limit. The samples are read
 * once. Memory grows with the number of parts, and, if a sample has a string label, with the number
 * of strings. Any thread.
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

/* Limit of the string labels of one sample. If a sample has more labels, or the samples have more
 * than STORE_PARTS_MAX different sets of them, the profile is not split: it has one part, without
 * labels. */
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
    bool unsplit;  /* the profile exceeds a limit, so it has one part */
    /* For each sample its part, or PART_NONE; NULL unless want_samples was set. */
    uint32_t *of_sample;
    size_t n_samples;
};
#define PART_NONE UINT32_MAX

/* Checks an inflated profile and reads its parts into memory of the scratch; `plain` must stay
 * valid as long as the parts. `own` are the profile's labels, in byte order of names. False with
 * ERR_INPUT if the profile is damaged or has more than SUMMARY_TYPES_MAX sample types, and with
 * ERR_MEMORY. */
bool parts_read(struct scratch *scratch, struct sv plain, const struct label *own, size_t n_own,
                bool want_samples, struct parts *ret, struct err *err);

#endif
