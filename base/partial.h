/* Counts the parts of an answer that could not be read, and keeps the reason of the first one. A
 * partial answer is better than none, but never silent. It belongs to one request, and so to one
 * thread at a time.
 */
#ifndef PROFPULL_BASE_PARTIAL_H
#define PROFPULL_BASE_PARTIAL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

/* Number of reasons that are remembered. Beyond them, a part may count twice. */
#define PARTIAL_REASONS_MAX 64

struct partial {
    size_t parts; /* 0: the answer is complete */
    char why[ERR_MSG_MAX];
    uint64_t seen[PARTIAL_REASONS_MAX]; /* hashes of the reasons so far */
    size_t n_seen;
};

/* Notes that a part is missing. The reason names the part: an answer that reads a part several
 * times notes it once. p may be NULL. */
__attribute__((format(printf, 2, 3))) static inline void partial_note(struct partial *p,
                                                                      const char *fmt, ...)
{
    char why[ERR_MSG_MAX];
    va_list ap;
    if (p == NULL) {
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    uint64_t hash = hash_bytes(why, strlen(why), 0);
    for (size_t i = 0; i < p->n_seen; i++) {
        if (p->seen[i] == hash) {
            return;
        }
    }
    if (p->n_seen < PARTIAL_REASONS_MAX) {
        p->seen[p->n_seen++] = hash;
    }
    if (p->parts++ == 0) {
        memcpy(p->why, why, sizeof(why));
    }
}

#endif
