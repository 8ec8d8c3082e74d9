/* Recordings of Java's Flight Recorder: known by the magic at the start of their first chunk, and
 * passed on as they are. */
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "pprof/check.h"

/* A chunk begins with the magic, two shorts for the version and eight longs. */
#define CHUNK_HEADER_SIZE 68
#define MAGIC "FLR"
#define MAGIC_SIZE 4 /* with its NUL */
/* Most bytes of a gzip that are looked at: its header may hold a file name. */
#define INPUT_MAX ((size_t)4096)

static bool starts_with_magic(const void *data, size_t size)
{
    return size >= MAGIC_SIZE && memcmp(data, MAGIC, MAGIC_SIZE) == 0;
}

static bool is_gzip(const void *data, size_t size)
{
    return size >= 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}

/* Inflates just enough to see the magic. */
static bool gzip_holds_magic(const void *data, size_t size)
{
    char start[MAGIC_SIZE];
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)data,
        .avail_in = (uInt)(size < INPUT_MAX ? size : INPUT_MAX),
        .next_out = (Bytef *)start,
        .avail_out = sizeof(start),
    };
    if (inflateInit2(&z, 15 + 16) != Z_OK) { /* gzip only */
        return false;
    }
    (void)inflate(&z, Z_NO_FLUSH);
    inflateEnd(&z);
    return starts_with_magic(start, sizeof(start) - z.avail_out);
}

enum check_result check_jfr(const void *data, size_t size, struct err *err)
{
    struct err other = ERR_INIT;
    if (is_gzip(data, size) && gzip_holds_magic(data, size)) {
        return CHECK_JFR;
    }
    if (starts_with_magic(data, size)) {
        if (size >= CHUNK_HEADER_SIZE) {
            return CHECK_JFR;
        }
        err_set(err, ERR_INPUT, "not a JFR recording: %zu bytes only", size);
        return CHECK_NOT_JFR;
    }
    enum check_result r = check_profile(data, size, &other);
    if (r == CHECK_PPROF_GZIP || r == CHECK_PPROF_PLAIN || r == CHECK_LEGACY) {
        err_set(err, ERR_INPUT, "not a JFR recording but a pprof profile");
        return CHECK_NOT_JFR;
    }
    if (r == CHECK_BAD_WIRE) {
        err_set(err, ERR_INPUT, "not a JFR recording: \"FLR\" expected at its start");
        return CHECK_NOT_JFR;
    }
    if (err != NULL) {
        *err = other;
    }
    return r;
}
