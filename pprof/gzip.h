/* Whole gzip bodies in and out, bounded; and the start of one.
 *
 * Bodies come from outside: the size that a gzip claims in its trailer is not trusted
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

/* A body that inflates to more than this many times its size is a bomb (real profiles stay below
 * 40), unless it stays below GZIP_SMALL. */
#define GZIP_RATIO_MAX 100
#define GZIP_SMALL ((size_t)1024 * 1024)

/* Does it begin with the magic bytes? */
bool gzip_is(struct sv body);
/* The size of a body when inflated, as its last bytes say; that of any other body. It may be a lie:
 * good for a guess only. */
size_t gzip_claim(struct sv body);
/* Inflates a body to at most max bytes, in memory of the scratch. hint: how many are expected, 0 if
 * unknown; memory is taken as bytes come. On failure ret is empty and the kind of err says why:
 * ERR_INPUT for a damaged body, ERR_LIMIT, ERR_MEMORY. */
bool gzip_inflate(struct scratch *s, struct sv body, size_t max, size_t hint, struct sv *ret,
                  struct err *err);
/* The same for a body that may be plain already: then it is the result, whatever its size. */
bool gzip_plain(struct scratch *s, struct sv body, size_t max, size_t hint, struct sv *ret,
                struct err *err);

/* The result of inflating the start of a gzip body. */
struct gzip_start {
    struct sv plain;     /* in the caller's memory */
    bool end;            /* the input is used up and ended with a member */
    bool cut;            /* the input is used up within a member */
    bool no_memory;      /* it could not be inflated for lack of memory */
    const char *problem; /* what is wrong with it, static storage, or NULL */
};

/* Inflates until the input is used up, or room_size bytes have come out: little work whatever the
 * size of the whole. */
struct gzip_start gzip_inflate_start(struct sv input, void *room, size_t room_size);

enum gzip_level {
    GZIP_FAST, /* ISA-L's level 2 */
    GZIP_BEST, /* libdeflate's level 6: a seventh smaller, for seven times the time; beyond that,
                * little is gained */
    GZIP_NONE, /* plain */
};

/* Compresses quickly, in memory of the scratch: that of the compressor too, 185 KB. The bytes that
 * come out may differ from call to call; what they inflate to does not. False if out of memory, or
 * for 4 GiB and more. */
bool gzip_deflate(struct scratch *s, struct sv plain, struct sv *ret);
/* The same into memory of its own, from malloc(). */
bool gzip_pack(struct scratch *s, struct sv plain, char **ret_data, size_t *ret_size);
/* The same at any level. */
bool gzip_pack_at(struct scratch *s, struct sv plain, enum gzip_level level, char **ret_data,
                  size_t *ret_size);

#endif
