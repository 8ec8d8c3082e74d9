/* Inflates and compresses whole gzip bodies within limits, and inflates the start of a body.
 *
 * Bodies come from outside. The size in the trailer of a gzip is not trusted beforehand, only
 * checked afterwards, as is its checksum. A body may have several members. Any thread may call
 * these functions.
 */
#ifndef PROFPULL_PPROF_GZIP_H
#define PROFPULL_PPROF_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"

/* A body that inflates to more than this many times its size is refused as a bomb, unless the
 * result stays below GZIP_SMALL. Real profiles stay below 40. */
#define GZIP_RATIO_MAX 100
#define GZIP_SMALL ((size_t)1024 * 1024)

/* Returns true if the body begins with the magic bytes of gzip. */
bool gzip_is(struct sv body);
/* Returns the inflated size of a gzip body as its last bytes claim it, or the size of any other
 * body. The claim may be false, so use it as a hint only. */
size_t gzip_claim(struct sv body);
/* Inflates a body to at most max bytes, in memory of the scratch. hint: the expected number of
 * bytes, 0 if unknown. Memory grows with the bytes that are inflated. On failure ret is empty and
 * the kind of err says why: ERR_INPUT for a damaged body, ERR_LIMIT, ERR_MEMORY. */
bool gzip_inflate(struct scratch *s, struct sv body, size_t max, size_t hint, struct sv *ret,
                  struct err *err);
/* Inflates a body like gzip_inflate(), into an empty buffer whose ceiling is the limit. On failure
 * the buffer stays empty. */
bool gzip_inflate_buf(struct sv body, struct buf *out, struct err *err);
/* Inflates a body like gzip_inflate(). A body that is not gzip is returned as it is, whatever its
 * size. */
bool gzip_plain(struct scratch *s, struct sv body, size_t max, size_t hint, struct sv *ret,
                struct err *err);

/* The result of inflating the start of a gzip body. */
struct gzip_start {
    struct sv plain;     /* in the caller's memory */
    bool end;            /* the input is used up and ended with a member */
    bool cut;            /* the input is used up within a member */
    bool no_memory;      /* the input could not be inflated for lack of memory */
    const char *problem; /* what is wrong with it, static storage, or NULL */
};

/* Inflates until the input is used up or room_size bytes have been written. The work is small
 * whatever the size of the whole body. */
struct gzip_start gzip_inflate_start(struct sv input, void *room, size_t room_size);

enum gzip_level {
    GZIP_FAST,  /* ISA-L's level 2 */
    GZIP_BEST,  /* libdeflate's level 6: a seventh smaller, for seven times the time; beyond that,
                 * little is gained */
    GZIP_QUICK, /* ISA-L's level 0 with codes that fit profiles: 2 to 6 % larger than GZIP_FAST, for
                 * three fifths of the time up to 256 KiB */
    GZIP_NONE,  /* plain */
};

/* Compresses at GZIP_FAST. The result and the 185 KB of the compressor are memory of the scratch.
 * The result may differ from call to call, but inflates to the same bytes. Returns false if out of
 * memory, or if plain has 4 GiB or more. */
bool gzip_deflate(struct scratch *s, struct sv plain, struct sv *ret);
/* Compresses like gzip_deflate(), but the result is memory from malloc(), which the caller
 * frees. */
bool gzip_pack(struct scratch *s, struct sv plain, char **ret_data, size_t *ret_size);
/* Compresses like gzip_pack(), at any level. */
bool gzip_pack_at(struct scratch *s, struct sv plain, enum gzip_level level, char **ret_data,
                  size_t *ret_size);

#endif
