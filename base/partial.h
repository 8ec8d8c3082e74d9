/* Counts the parts of an answer that could not be read, and keeps the reason of the first one. A
 * partial answer is better than none, but never silent. It belongs to one request, and so to one
 * thread at a time.
 */
#ifndef PROFPULL_BASE_PARTIAL_H
#define PROFPULL_BASE_PARTIAL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

struct partial {
    size_t parts; /* 0: the answer is complete */
    char why[ERR_MSG_MAX];
};

/* Notes that a part is missing. p may be NULL. */
__attribute__((format(printf, 2, 3))) static inline void partial_note(struct partial *p,
                                                                      const char *fmt, ...)
{
    if (p != NULL && p->parts++ == 0) {
        va_list ap;
        va_start(ap, fmt);
        (void)vsnprintf(p->why, sizeof(p->why), fmt, ap);
        va_end(ap);
    }
}

#endif
