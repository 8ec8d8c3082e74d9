/* Remembers which series have labels in their samples, so that not each of their profiles has to be
 * inflated to find out.
 *
 * Two bits for each of SERIES_MARKS slots, found by a hash of the labels: series with the same slot
 * share a mark. There are two generations of slots. When a quarter of the slots of the newer
 * generation is taken, the older one is forgotten, except for marks that have been queried since it
 * became the older one. One thread. */
#ifndef PROFPULL_WRITE_SERIES_MARKS_H
#define PROFPULL_WRITE_SERIES_MARKS_H

#include <stdint.h>

/* The number of slots: 64 KiB for each generation. */
#define SERIES_MARKS (UINT32_C(1) << 18)

enum series_mark {
    SERIES_UNKNOWN,
    SERIES_CLEAN,    /* the last of its profiles that was read had no labels to consider */
    SERIES_LABELLED, /* one of its profiles had such labels; this mark is never taken back */
};

struct series_marks;

struct series_marks *series_marks_new(void);                    /* NULL if out of memory */
struct series_marks *series_marks_free(struct series_marks *m); /* accepts NULL, returns NULL */

enum series_mark series_marks_get(struct series_marks *m, uint64_t hash);
/* Sets the mark of a series. SERIES_CLEAN has no effect if the mark is SERIES_LABELLED already. */
void series_marks_set(struct series_marks *m, uint64_t hash, enum series_mark mark);

#endif
