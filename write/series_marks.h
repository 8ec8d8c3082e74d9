/* Remembers which series have labels in their samples, so that not each of their profiles has to be
 * inflated to find out.
 *
 * Two bits for each of SERIES_MARKS slots, found by a hash of the labels: series of the same slot
 * share a mark. There are two generations of slots. When a quarter of the slots of one is taken,
 * the older generation is forgotten, except for marks that were asked for since. One thread. */
#ifndef PROFPULL_WRITE_SERIES_MARKS_H
#define PROFPULL_WRITE_SERIES_MARKS_H

#include <stdint.h>

/* 64 KiB for each generation. */
#define SERIES_MARKS (UINT32_C(1) << 18)

enum series_mark {
    SERIES_UNKNOWN,
    SERIES_CLEAN,    /* its last profile that was looked at had nothing of interest */
    SERIES_LABELLED, /* one of its profiles had; this stays */
};

struct series_marks;

struct series_marks *series_marks_new(void);                    /* NULL if out of memory */
struct series_marks *series_marks_free(struct series_marks *m); /* accepts NULL, returns NULL */

enum series_mark series_marks_get(struct series_marks *m, uint64_t hash);
/* SERIES_CLEAN has no effect where SERIES_LABELLED is known. */
void series_marks_set(struct series_marks *m, uint64_t hash, enum series_mark mark);

#endif
