/* Whole gzip bodies in and out, bounded.
 *
 * What is compressed comes from outside: the size that a gzip claims in its trailer is not believed
 * beforehand, only checked afterwards, as is its checksum. Members may follow each other. Any
 * thread.
 */
#ifndef PROFPULL_PPROF_GZIP_H
#define PROFPULL_PPROF_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"

/* What inflates to more than so many times its size is a bomb (real profiles stay below 40), unless
 * it stays below GZIP_SMALL. */
#define GZIP_RATIO_MAX 100
#define GZIP_SMALL ((size_t)1024 * 1024)

enum gzip_result { GZIP_OK, GZIP_BAD, GZIP_TOO_LARGE, GZIP_NO_MEMORY };

/* Does it begin with the magic bytes? */
bool gzip_is(struct sv body);
/* Inflates a body to at most max bytes, in memory of the scratch. hint: how many are expected, 0 if
 * unknown; memory is taken as bytes come. On failure ret is empty and err says why. */
enum gzip_result gzip_inflate(struct scratch *s, struct sv body, size_t max, size_t hint,
                              struct sv *ret, struct err *err);
/* The same for a body that may be plain already: then it is the result, whatever its size. */
enum gzip_result gzip_plain(struct scratch *s, struct sv body, size_t max, size_t hint,
                            struct sv *ret, struct err *err);

/* What came out of the start of a gzip. */
struct gzip_start {
    struct sv plain;     /* in the caller's memory */
    bool end;            /* the input is used up and ended with a member */
    bool cut;            /* the input is used up within a member */
    bool no_memory;      /* it could not be inflated for want of memory */
    const char *problem; /* what is wrong with it, static storage, or NULL */
};

/* Inflates until the input is used up, or room_size bytes have come out: little work whatever the
 * size of the whole. */
struct gzip_start gzip_inflate_start(struct sv input, void *room, size_t room_size);
/* Compresses quickly (level 1), in memory of the scratch. False if out of memory. */
bool gzip_deflate(struct scratch *s, struct sv plain, struct sv *ret);

#endif
