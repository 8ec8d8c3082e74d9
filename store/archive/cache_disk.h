/* The part of a cache of blocks that is on disk: a directory with one file for each block, named by
 * the object and the number of the block. The owner of the cache has the lock; these functions have
 * none.
 */
#ifndef PROFPULL_STORE_ARCHIVE_CACHE_DISK_H
#define PROFPULL_STORE_ARCHIVE_CACHE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"

struct block_key {
    uint64_t id[2];
    uint64_t number;
};

struct disk_block;

struct cache_disk {
    char *directory; /* NULL: there is no part on disk */
    struct map *blocks;
    struct disk_block *newest; /* blocks in the order of their last use */
    struct disk_block *oldest;
    uint64_t bytes;
    uint64_t names; /* numbers the temporary files */
};

/* Opens the directory, and lists the blocks in it. */
bool cache_disk_init(struct cache_disk *d, const char *directory, struct err *err);
void cache_disk_done(struct cache_disk *d);
/* Returns true if the block is on disk, and counts this as a use. */
bool cache_disk_has(struct cache_disk *d, const struct block_key *key);
/* Forgets a block, and removes its file. */
void cache_disk_drop(struct cache_disk *d, const struct block_key *key);
/* Adds a block whose file was written, and removes the files of the blocks that were not used for
 * longest until all fit into max_bytes. */
void cache_disk_add(struct cache_disk *d, const struct block_key *key, size_t n,
                    uint64_t max_bytes);
/* Returns a number for cache_disk_write(). */
uint64_t cache_disk_name(struct cache_disk *d);

/* Read and write the file of a block; both need no lock. Reading fails if the file is damaged or
 * has another size. */
bool cache_disk_read(const struct cache_disk *d, const struct block_key *key, void *into, size_t n);
bool cache_disk_write(const struct cache_disk *d, const struct block_key *key, const void *data,
                      size_t n, uint64_t name);

#endif
