#include "store/archive/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "store/archive/cache_disk.h"

/* Memory for blocks if the cache has a directory: the pages that one query reads again and again.
 */
#define MEMORY_BYTES ((uint64_t)32 * 1024 * 1024)

struct block {
    struct block_key key;
    bool loading; /* a thread fetches it; it is in no list */
    enum archive_use use;
    size_t n;
    TAILQ_ENTRY(block) next;
    unsigned char data[];
};

/* Blocks in the order in which they were put here. */
struct block_list {
    TAILQ_HEAD(block_order, block) blocks;
    uint64_t bytes;
};

struct archive_cache {
    struct log *log;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t loaded;
    uint64_t max_bytes;
    struct map *blocks;
    struct block_list lists[ARCHIVE_USES];
    struct cache_disk disk;
    struct archive_cache_stats stats;
};

static struct sv key_of(const struct block_key *key)
{
    return (struct sv){(const char *)key, sizeof(*key)};
}

/* ---- opening --------------------------------------------------------------------------------- */

struct archive_cache *archive_cache_new(const struct archive_cache_options *o, struct err *err)
{
    struct archive_cache *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        err_memory(err);
        return NULL;
    }
    for (int use = 0; use < ARCHIVE_USES; use++) {
        TAILQ_INIT(&c->lists[use].blocks);
    }
    c->log = o->log;
    c->max_bytes = o->max_bytes;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->loaded, NULL);
    c->blocks = map_new();
    bool ok = cache_disk_init(&c->disk, o->directory, err);
    if (ok && c->blocks == NULL) {
        ok = err_memory(err);
    }
    return ok ? c : archive_cache_free(c);
}

struct archive_cache *archive_cache_free(struct archive_cache *c)
{
    if (c == NULL) {
        return NULL;
    }
    map_free(c->blocks, free);
    cache_disk_done(&c->disk);
    pthread_cond_destroy(&c->loaded);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return NULL;
}

void archive_cache_limit(struct archive_cache *c, uint64_t max_bytes)
{
    pthread_mutex_lock(&c->lock);
    c->max_bytes = max_bytes;
    pthread_mutex_unlock(&c->lock);
}

void archive_cache_stats(struct archive_cache *c, struct archive_cache_stats *ret)
{
    pthread_mutex_lock(&c->lock);
    *ret = c->stats;
    ret->disk = c->disk.bytes;
    pthread_mutex_unlock(&c->lock);
}

/* ---- blocks in memory; all under the lock ---------------------------------------------------- */

static void put_into_list(struct archive_cache *c, struct block *b, enum archive_use use)
{
    b->use = use;
    TAILQ_INSERT_TAIL(&c->lists[use].blocks, b, next);
    c->lists[use].bytes += b->n;
}

static void take_from_list(struct archive_cache *c, struct block *b)
{
    TAILQ_REMOVE(&c->lists[b->use].blocks, b, next);
    c->lists[b->use].bytes -= b->n;
}

static void make_newest(struct archive_cache *c, struct block *b)
{
    take_from_list(c, b);
    put_into_list(c, b, ARCHIVE_READ_BLOCK);
}

static void forget(struct archive_cache *c, struct block *b)
{
    (void)map_remove(c->blocks, key_of(&b->key));
    c->stats.memory -= b->n;
    free(b);
}

static uint64_t memory_max(const struct archive_cache *c)
{
    return c->disk.directory == NULL || c->max_bytes < MEMORY_BYTES ? c->max_bytes : MEMORY_BYTES;
}

/* Returns the oldest block of a list. The newest one stays, because it is about to be read. NULL if
 * none may be removed. */
static struct block *oldest_of(const struct archive_cache *c, enum archive_use use)
{
    struct block *b = TAILQ_FIRST(&c->lists[use].blocks);
    return b != NULL && TAILQ_NEXT(b, next) != NULL ? b : NULL;
}

/* Returns the block to remove first: a seeded one if they have more than their part of the memory,
 * else the one that was not read for longest. NULL if none may be removed. */
static struct block *oldest(const struct archive_cache *c)
{
    static const unsigned parts[] = {[ARCHIVE_SEED_PART] = 8, [ARCHIVE_SEED_INDEX] = 2};
    struct block *b;
    for (enum archive_use use = ARCHIVE_SEED_PART; use < ARCHIVE_USES; use++) {
        b = oldest_of(c, use);
        if (b != NULL && c->lists[use].bytes > memory_max(c) / parts[use]) {
            return b;
        }
    }
    b = NULL;
    for (enum archive_use use = 0; use < ARCHIVE_USES && b == NULL; use++) {
        b = oldest_of(c, use);
    }
    return b;
}

static void shrink(struct archive_cache *c)
{
    struct block *b;
    while (c->stats.memory > memory_max(c) && (b = oldest(c)) != NULL) {
        take_from_list(c, b);
        forget(c, b);
    }
}

/* Adds a block that is about to be loaded. */
static struct block *reserve(struct archive_cache *c, const struct block_key *key, size_t n)
{
    struct block *b = malloc(sizeof(*b) + n);
    if (b == NULL || !map_put(c->blocks, key_of(key), b, NULL)) {
        free(b);
        return NULL;
    }
    b->key = *key;
    b->loading = true;
    b->n = n;
    c->stats.memory += n;
    return b;
}

static void settle(struct archive_cache *c, struct block *b, enum archive_use use, bool ok)
{
    b->loading = false;
    if (ok) {
        put_into_list(c, b, use);
    } else {
        forget(c, b);
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

static struct block_key key_at(const struct archive_source *s, uint64_t number)
{
    return (struct block_key){{s->id[0], s->id[1]}, number};
}

static size_t size_at(const struct archive_source *s, uint64_t number)
{
    uint64_t rest = s->size - number * ARCHIVE_BLOCK_BYTES;
    return rest < ARCHIVE_BLOCK_BYTES ? (size_t)rest : ARCHIVE_BLOCK_BYTES;
}

/* Returns the number of blocks that the next request of a reader asks for. */
static size_t run_of(struct archive_reader *r, uint64_t number)
{
    bool goes_on = number != 0 && number == r->next;
    r->run = !goes_on ? 1 : r->run < ARCHIVE_RUN_MAX / 2 ? 2 * r->run : ARCHIVE_RUN_MAX;
    return r->run;
}

/* Reserves the block and those after it that are missing, too. Returns their number; 0: out of
 * memory. Under the lock. */
static size_t reserve_run(struct archive_cache *c, const struct archive_source *s, uint64_t number,
                          size_t run, struct block *ret[ARCHIVE_RUN_MAX])
{
    size_t n = 0;
    while (n < run && (number + n) * ARCHIVE_BLOCK_BYTES < s->size) {
        struct block_key key = key_at(s, number + n);
        if (n > 0 && (map_get(c->blocks, key_of(&key)) != NULL || cache_disk_has(&c->disk, &key))) {
            break;
        }
        ret[n] = reserve(c, &key, size_at(s, number + n));
        if (ret[n] == NULL) {
            break;
        }
        n++;
    }
    return n;
}

/* Fetches blocks by one request, without the lock. */
static enum archive_read fetch_run(const struct archive_source *s, struct block **blocks, size_t n,
                                   struct err *err)
{
    uint64_t offset = blocks[0]->key.number * ARCHIVE_BLOCK_BYTES;
    if (n == 1) {
        return s->fetch(s->arg, offset, blocks[0]->n, blocks[0]->data, err);
    }
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += blocks[i]->n;
    }
    unsigned char *all = malloc(total);
    if (all == NULL) {
        err_memory(err);
        return ARCHIVE_FAILED;
    }
    enum archive_read result = s->fetch(s->arg, offset, total, all, err);
    for (size_t i = 0, at = 0; result == ARCHIVE_READ && i < n; at += blocks[i]->n, i++) {
        memcpy(blocks[i]->data, all + at, blocks[i]->n);
    }
    free(all);
    return result;
}

/* Copies a block to the disk. The block stays in memory meanwhile, because it is still loading. */
static void keep_on_disk(struct archive_cache *c, struct block *b)
{
    if (c->disk.directory == NULL) {
        return;
    }
    pthread_mutex_lock(&c->lock);
    uint64_t name = cache_disk_name(&c->disk);
    pthread_mutex_unlock(&c->lock);
    bool ok = cache_disk_write(&c->disk, &b->key, b->data, b->n, name);
    pthread_mutex_lock(&c->lock);
    if (ok) {
        cache_disk_add(&c->disk, &b->key, b->n, c->max_bytes);
    } else {
        c->stats.disk_fails++;
    }
    pthread_mutex_unlock(&c->lock);
}

/* Reads a reserved block from the disk, without the lock. A damaged one is removed. */
static bool load_from_disk(struct archive_cache *c, struct block *b)
{
    if (cache_disk_read(&c->disk, &b->key, b->data, b->n)) {
        return true;
    }
    pthread_mutex_lock(&c->lock);
    cache_disk_drop(&c->disk, &b->key);
    c->stats.disk_fails++;
    pthread_mutex_unlock(&c->lock);
    return false;
}

/* Loads reserved blocks; the first one from the disk if it is there. Called with the lock, which it
 * releases meanwhile. Sets *ret_fetched to false if the bucket was not asked. */
static enum archive_read load_run(struct archive_cache *c, const struct archive_source *s,
                                  struct block **blocks, size_t n, bool on_disk, bool *ret_fetched,
                                  struct err *err)
{
    enum archive_read result = ARCHIVE_READ;
    pthread_mutex_unlock(&c->lock);
    on_disk = on_disk && load_from_disk(c, blocks[0]);
    if (!on_disk) {
        result = fetch_run(s, blocks, n, err);
    }
    for (size_t i = 0; i < n && !on_disk && result == ARCHIVE_READ; i++) {
        keep_on_disk(c, blocks[i]);
    }
    pthread_mutex_lock(&c->lock);
    c->stats.hits += on_disk ? 1 : 0;
    c->stats.misses += on_disk ? 0 : n;
    /* The first block becomes the newest one. */
    for (size_t i = n; i-- > 0;) {
        settle(c, blocks[i], ARCHIVE_READ_BLOCK, result == ARCHIVE_READ);
    }
    pthread_cond_broadcast(&c->loaded);
    *ret_fetched = !on_disk;
    return result;
}

/* Loads a block that is not in memory. Called with the lock, which it releases meanwhile. */
static enum archive_read load(struct archive_cache *c, struct archive_reader *r, uint64_t number,
                              struct err *err)
{
    struct block *blocks[ARCHIVE_RUN_MAX];
    struct block_key key = key_at(r->source, number);
    bool on_disk = cache_disk_has(&c->disk, &key);
    bool fetched;
    size_t n = reserve_run(c, r->source, number, on_disk ? 1 : run_of(r, number), blocks);
    if (n == 0) {
        err_memory(err);
        return ARCHIVE_FAILED;
    }
    enum archive_read result = load_run(c, r->source, blocks, n, on_disk, &fetched, err);
    r->next = fetched ? number + n : r->next;
    return result;
}

void archive_cache_seed(struct archive_cache *c, const struct archive_source *s, uint64_t at,
                        struct sv part, enum archive_use use)
{
    uint64_t number = at / ARCHIVE_BLOCK_BYTES + (at % ARCHIVE_BLOCK_BYTES > 0);
    uint64_t blocks = s->size / ARCHIVE_BLOCK_BYTES + (s->size % ARCHIVE_BLOCK_BYTES > 0);
    pthread_mutex_lock(&c->lock);
    for (; number < blocks; number++) {
        struct block_key key = key_at(s, number);
        uint64_t skip = number * ARCHIVE_BLOCK_BYTES - at;
        size_t n = size_at(s, number);
        if (skip > part.n || n > part.n - skip) {
            break;
        }
        if (map_get(c->blocks, key_of(&key)) != NULL) {
            continue;
        }
        struct block *b = reserve(c, &key, n);
        if (b == NULL) {
            break;
        }
        memcpy(b->data, part.p + skip, n);
        if (!cache_disk_has(&c->disk, &key)) {
            pthread_mutex_unlock(&c->lock);
            keep_on_disk(c, b);
            pthread_mutex_lock(&c->lock);
        }
        settle(c, b, use, true);
    }
    pthread_cond_broadcast(&c->loaded);
    shrink(c);
    pthread_mutex_unlock(&c->lock);
}

void archive_cache_drop(struct archive_cache *c, const struct archive_source *s)
{
    pthread_mutex_lock(&c->lock);
    for (uint64_t number = 0; number * ARCHIVE_BLOCK_BYTES < s->size; number++) {
        struct block_key key = key_at(s, number);
        struct block *b = map_get(c->blocks, key_of(&key));
        if (b != NULL && !b->loading) {
            take_from_list(c, b);
            forget(c, b);
        }
    }
    pthread_mutex_unlock(&c->lock);
}

void archive_cache_prefetch(struct archive_cache *c, const struct archive_source *s, uint64_t from,
                            uint64_t until)
{
    struct block *blocks[ARCHIVE_RUN_MAX];
    bool ok = true;
    bool fetched;
    until = until < s->size ? until : s->size;
    pthread_mutex_lock(&c->lock);
    uint64_t number = from / ARCHIVE_BLOCK_BYTES;
    while (ok && number * ARCHIVE_BLOCK_BYTES < until) {
        struct block_key key = key_at(s, number);
        uint64_t rest = (until - 1) / ARCHIVE_BLOCK_BYTES - number + 1;
        if (map_get(c->blocks, key_of(&key)) != NULL || cache_disk_has(&c->disk, &key)) {
            number++;
            continue;
        }
        size_t n = reserve_run(c, s, number,
                               rest < ARCHIVE_RUN_MAX ? (size_t)rest : ARCHIVE_RUN_MAX, blocks);
        ok = n > 0 && load_run(c, s, blocks, n, false, &fetched, NULL) == ARCHIVE_READ;
        number += n;
    }
    pthread_mutex_unlock(&c->lock);
}

/* Copies a part of a block. Under the lock, which it may release meanwhile. */
static enum archive_read read_block(struct archive_cache *c, struct archive_reader *r,
                                    uint64_t number, size_t from, size_t n, void *into,
                                    struct err *err)
{
    struct block_key key = key_at(r->source, number);
    bool loaded = false;
    for (;;) {
        struct block *b = map_get(c->blocks, key_of(&key));
        if (b == NULL) {
            enum archive_read result = load(c, r, number, err);
            loaded = true;
            if (result != ARCHIVE_READ) {
                return result;
            }
        } else if (b->loading) {
            pthread_cond_wait(&c->loaded, &c->lock);
        } else {
            make_newest(c, b);
            memcpy(into, b->data + from, n);
            c->stats.hits += loaded ? 0 : 1;
            shrink(c);
            return ARCHIVE_READ;
        }
    }
}

enum archive_read archive_cache_read(struct archive_cache *c, struct archive_reader *r,
                                     uint64_t offset, size_t n, void *into, struct err *err)
{
    enum archive_read result = ARCHIVE_READ;
    pthread_mutex_lock(&c->lock);
    for (size_t done = 0; done < n && result == ARCHIVE_READ;) {
        uint64_t at = offset + done;
        size_t from = (size_t)(at % ARCHIVE_BLOCK_BYTES);
        size_t part = n - done < ARCHIVE_BLOCK_BYTES - from ? n - done : ARCHIVE_BLOCK_BYTES - from;
        result = read_block(c, r, at / ARCHIVE_BLOCK_BYTES, from, part, (char *)into + done, err);
        done += part;
    }
    pthread_mutex_unlock(&c->lock);
    return result;
}
