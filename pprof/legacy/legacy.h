/* Profiles in the forms that pprof had before it was a protobuf: CPU, heap and lock contention
 * profiles of programs with gperftools, jemalloc or brpc. No server reads them. They are converted
 * to what Google's pprof makes of them: the same samples, addresses and mappings.
 *
 * These formats have no names of functions: the result has addresses, and the files that contain
 * them. The functions are pure, bytes in and bytes out; any thread may call them.
 */
#ifndef PROFPULL_PPROF_LEGACY_LEGACY_H
#define PROFPULL_PPROF_LEGACY_LEGACY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "pprof/rewrite.h"
#include "pprof/scratch.h"

/* The limits of a profile. A larger one is refused, because the memory to convert it grows with it.
 * A minute of a busy program has some 10,000 samples and 1 MB. */
#define LEGACY_PLAIN_MAX ((size_t)32 * 1024 * 1024)
#define LEGACY_SAMPLES_MAX 500000
#define LEGACY_LOCATIONS_MAX 250000
#define LEGACY_FRAMES_MAX 4000000
/* The most frames of one sample; gperftools has at most 254, jemalloc 128. */
#define LEGACY_DEPTH_MAX 4096

enum legacy_result {
    LEGACY_MADE,
    LEGACY_BAD, /* failures */
    LEGACY_BAD_GZIP,
    LEGACY_TOO_LARGE,
    LEGACY_NO_MEMORY,
};

struct legacy_input {
    struct sv body;  /* gzip or plain */
    int64_t time_ns; /* wall clock: when it was requested; 0: unknown */
    /* duration of the request, which is the time of sampling; 0: unknown */
    int64_t duration_ns;
    uint64_t seed;                       /* unknown to those who make profiles */
    struct scratch *scratch;             /* working memory; NULL is reported as out of memory */
    const struct pprof_rewrite *rewrite; /* changes the result before it is compressed; or NULL */
};

struct legacy_output {
    char *data; /* gzip, from malloc() */
    size_t size;
};

/* Returns true if a plain body begins like a profile in one of these formats. Some hundred bytes of
 * it are enough. */
bool legacy_is(struct sv start);
/* Returns true if a plain body begins with 0 and 3 as words of 4 or 8 bytes in either byte order,
 * like the CPU profiles of gperftools. If legacy_is() is false for such a body, it is cut or of
 * another kind. */
bool legacy_is_cut_cpu(struct sv start);
/* Converts a profile. On failure ret is empty and err, which must not be NULL, has the reason and
 * the place. */
enum legacy_result legacy_convert(const struct legacy_input *in, struct legacy_output *ret,
                                  struct err *err);
/* Converts a single profile, with a scratch and a seed of its own. */
enum legacy_result legacy_convert_one(struct sv body, int64_t time_ns, int64_t duration_ns,
                                      struct legacy_output *ret, struct err *err);

#endif
