/* A cache of blocks of remote objects.
 *
 * An object is read in blocks of ARCHIVE_BLOCK_BYTES. A block that was read stays in memory, and on
 * disk if the cache has a directory, until others replace it. Neighbours that are missing are
 * fetched by one request: a reader that goes on where it stopped gets twice as many blocks each
 * time, up to ARCHIVE_RUN_MAX. If several threads need the same block, one of them fetches it.
 *
 * Blocks on disk have a checksum. A block that is damaged is fetched again. Other files in the
 * directory are left alone. Any thread may call these functions.
 */
#ifndef PROFPULL_STORE_ARCHIVE_CACHE_H
#define PROFPULL_STORE_ARCHIVE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

/* Small enough that a page of an index costs little, large enough that a body is one request. */
#define ARCHIVE_BLOCK_BYTES ((size_t)256 * 1024)
/* Limit of the blocks of one request: 4 MiB. */
#define ARCHIVE_RUN_MAX 16

/* The result of reading a remote object. */
enum archive_read {
    ARCHIVE_READ,    /* all bytes were read */
    ARCHIVE_GONE,    /* the object does not exist any more */
    ARCHIVE_CHANGED, /* the object is another one than when it was found */
    ARCHIVE_FAILED,  /* the bucket cannot be read at the moment */
};

/* The kinds of blocks in memory. Seeded ones came with something else and were not read yet. Most
 * are never read, so each kind has a part of the memory, and does not replace blocks that were
 * read. */
enum archive_use {
    ARCHIVE_READ_BLOCK,
    ARCHIVE_SEED_PART,  /* it came with an index, and is read at once or not at all */
    ARCHIVE_SEED_INDEX, /* it came with a catalogue, and is read by the same query, but later */
    ARCHIVE_USES,
};

/* An object to read. */
struct archive_source {
    uint64_t id[2]; /* differs for all objects and versions of them: a hash of URL and ETag */
    uint64_t size;  /* bytes */
    /* Reads n bytes from an offset on into `into`. Blocks. Any thread. */
    enum archive_read (*fetch)(void *arg, uint64_t offset, size_t n, void *into, struct err *err);
    void *arg;
};

/* A reader of one object, which remembers where it is. It belongs to one thread at a time. */
struct archive_reader {
    const struct archive_source *source;
    uint64_t next; /* the block after the last one that was fetched */
    size_t run;    /* blocks that the last request asked for */
};

struct archive_cache_options {
    const char *directory; /* created if it does not exist; NULL: the cache is in memory only */
    uint64_t max_bytes;    /* limit of the blocks on disk, or in memory without a directory */
    struct log *log;
};

struct archive_cache_stats {
    uint64_t hits;       /* blocks that were found in memory or on disk */
    uint64_t misses;     /* blocks that were fetched */
    uint64_t memory;     /* bytes of blocks in memory */
    uint64_t disk;       /* bytes of blocks on disk */
    uint64_t disk_fails; /* blocks that could not be written to the disk, or were damaged there */
};

struct archive_cache;

/* Opens the cache, and the directory with the blocks that it has. NULL with err. */
struct archive_cache *archive_cache_new(const struct archive_cache_options *o, struct err *err);
/* Frees the cache; blocks on disk stay. No reader may be in use. Accepts NULL, returns NULL. */
struct archive_cache *archive_cache_free(struct archive_cache *c);
/* Changes the limit from the next block on. */
void archive_cache_limit(struct archive_cache *c, uint64_t max_bytes);
void archive_cache_stats(struct archive_cache *c, struct archive_cache_stats *ret);

/* Reads n bytes, which must be inside the object, into `into`. If it does not return ARCHIVE_READ,
 * err has the reason. */
enum archive_read archive_cache_read(struct archive_cache *c, struct archive_reader *r,
                                     uint64_t offset, size_t n, void *into, struct err *err);

/* Puts a part of an object, which the caller has from elsewhere, into memory and on the disk. `at`
 * is the offset of the part. Blocks that it does not fill are left out. `use` is what the part is:
 * not ARCHIVE_READ_BLOCK. */
void archive_cache_seed(struct archive_cache *c, const struct archive_source *s, uint64_t at,
                        struct sv part, enum archive_use use);
/* Removes the blocks of an object from memory. Those on the disk stay. */
void archive_cache_drop(struct archive_cache *c, const struct archive_source *s);
/* Reads the blocks between two offsets that are missing, by as few requests as possible. Failures
 * are left to those who read the blocks. */
void archive_cache_prefetch(struct archive_cache *c, const struct archive_source *s, uint64_t from,
                            uint64_t until);

#endif
