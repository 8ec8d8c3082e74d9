/* Deltas of cumulative profiles: the growth since the previous profile.
 *
 * A column (sample type) is a counter or a gauge. Counters are replaced by their growth, stack by
 * stack; gauges (inuse_*) keep the values of the newer profile. Two stacks are equal if the
 * contents of their frames and labels are; ids do not matter. Samples of one stack become one
 * sample. Samples whose values are all zero are removed, with everything that only they referred
 * to.
 *
 * If any counter fell, the process was restarted and the growth is unknown. This profile then
 * yields its gauges only and becomes the new baseline, so that no value is negative and no spike
 * appears. The result is the difference that google/pprof makes: its merge of the newer profile
 * with the older one, whose values are negated.
 *
 * The functions are pure: bytes and a baseline in, bytes and a new baseline out. Any thread may
 * call them.
 */
#ifndef PROFPULL_PPROF_DELTA_H
#define PROFPULL_PPROF_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pprof/delta_state.h"
#include "pprof/gzip.h"
#include "pprof/rewrite.h"
#include "pprof/scratch.h"

/* A profile that inflates to more bytes is refused, as is one with too many entries
 * (pprof/columns.h), because the memory for a delta grows with both. The largest real profiles have
 * 3 MB and 41,000 samples. */
#define DELTA_PLAIN_MAX ((size_t)32 * 1024 * 1024)
#define DELTA_TYPES_MAX SUMMARY_TYPES_MAX

enum delta_result {
    DELTA_MADE,     /* growth since the baseline */
    DELTA_FIRST,    /* there was no baseline: gauges only */
    DELTA_REBASED,  /* counters fell, or the columns changed: gauges only */
    DELTA_PASSED,   /* no counters: pass it on as it came */
    DELTA_BAD_GZIP, /* failures; the baseline stays */
    DELTA_BAD_PPROF,
    DELTA_TOO_LARGE,
    DELTA_NO_MEMORY,
};

struct delta_input {
    struct sv body;                     /* gzip or plain */
    const struct delta_state *baseline; /* NULL: none */
    /* The type may have counters of any name: without a known one, all columns except inuse_*
     * are counters. Otherwise such a profile is passed on. */
    bool any_counter;
    uint64_t seed;           /* seed of the hashes; the same from profile to profile */
    enum gzip_level level;   /* compression of the delta; GZIP_FAST may become GZIP_QUICK */
    struct scratch *scratch; /* working memory; NULL is reported as out of memory */
    const struct pprof_rewrite *rewrite; /* changes the delta before it is compressed; or NULL */
};

struct delta_output {
    char *data; /* gzip, or plain with GZIP_NONE, from malloc(); NULL if all values are
                 * zero, or with DELTA_PASSED */
    size_t size;
    struct delta_state *next; /* the new baseline; NULL with DELTA_PASSED and failures */
    size_t stacks_in;         /* for tests and metrics */
    size_t samples_out;
    bool has_texts; /* a sample of the profile has a label that is a text */
};

/* Makes a delta. On failure ret is empty and err, which must not be NULL, has the reason. */
enum delta_result delta_make(const struct delta_input *in, struct delta_output *ret,
                             struct err *err);
void delta_output_done(struct delta_output *o);
/* Returns "delta", "first", "rebased", "passed", or the reason of a failed scrape: "bad_pprof",
 * ... */
const char *delta_result_name(enum delta_result r);

#endif
