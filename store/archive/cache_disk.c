#include "store/archive/cache_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/str.h"
#include "store/blob.h"

#define PATH_SIZE 4096
#define ID_DIGITS 32
/* Names of files that are being written begin so; those of an earlier process are removed. */
#define TEMPORARY "writing-"
/* Each file ends with the checksum of its bytes. */
#define SUM_BYTES sizeof(uint64_t)

struct disk_block {
    struct block_key key;
    size_t n;
    int64_t used_ns; /* only while the directory is being listed */
    struct disk_block *newer;
    struct disk_block *older;
};

static struct sv key_of(const struct block_key *key)
{
    return (struct sv){(const char *)key, sizeof(*key)};
}

static void path_of(const struct cache_disk *d, const struct block_key *key, char out[PATH_SIZE])
{
    (void)snprintf(out, PATH_SIZE, "%s/%016" PRIx64 "%016" PRIx64 ".%" PRIu64, d->directory,
                   key->id[0], key->id[1], key->number);
}

/* ---- the order of use ------------------------------------------------------------------------ */

static void unlink_block(struct cache_disk *d, struct disk_block *b)
{
    *(b->newer != NULL ? &b->newer->older : &d->newest) = b->older;
    *(b->older != NULL ? &b->older->newer : &d->oldest) = b->newer;
    b->newer = b->older = NULL;
}

static void link_newest(struct cache_disk *d, struct disk_block *b)
{
    b->older = d->newest;
    *(d->newest != NULL ? &d->newest->newer : &d->oldest) = b;
    d->newest = b;
}

static void drop(struct cache_disk *d, struct disk_block *b)
{
    char path[PATH_SIZE];
    path_of(d, &b->key, path);
    (void)unlink(path);
    (void)map_remove(d->blocks, key_of(&b->key));
    unlink_block(d, b);
    d->bytes -= b->n;
    free(b);
}

static struct disk_block *add(struct cache_disk *d, const struct block_key *key, size_t n)
{
    struct disk_block *b = calloc(1, sizeof(*b));
    if (b == NULL || !map_put(d->blocks, key_of(key), b, NULL)) {
        free(b);
        return NULL;
    }
    b->key = *key;
    b->n = n;
    d->bytes += n;
    return b;
}

/* ---- the directory --------------------------------------------------------------------------- */

static bool take_hex(struct sv text, uint64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
            return false;
        }
        *ret = *ret << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

static bool parse_name(const char *name, struct block_key *ret)
{
    struct sv text = sv_from(name);
    return text.n > ID_DIGITS + 1 && text.p[ID_DIGITS] == '.' &&
           take_hex((struct sv){text.p, ID_DIGITS / 2}, &ret->id[0]) &&
           take_hex((struct sv){text.p + ID_DIGITS / 2, ID_DIGITS / 2}, &ret->id[1]) &&
           parse_u64(sv_skip(text, ID_DIGITS + 1), UINT64_MAX, &ret->number);
}

static void take_entry(struct cache_disk *d, int fd, const char *name)
{
    struct block_key key;
    struct stat st;
    if (strncmp(name, TEMPORARY, sizeof(TEMPORARY) - 1) == 0) {
        (void)unlinkat(fd, name, 0);
        return;
    }
    if (parse_name(name, &key) && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode) && (uint64_t)st.st_size > SUM_BYTES) {
        struct disk_block *b = add(d, &key, (size_t)st.st_size);
        if (b != NULL) {
            b->used_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
        }
    }
}

static int by_use(const void *a, const void *b)
{
    const struct disk_block *x = *(struct disk_block *const *)a;
    const struct disk_block *y = *(struct disk_block *const *)b;
    return x->used_ns != y->used_ns ? (x->used_ns < y->used_ns ? -1 : 1) : 0;
}

/* Links the blocks in the order of their last write. */
static bool sort_blocks(struct cache_disk *d)
{
    size_t n = map_count(d->blocks);
    struct disk_block **all = calloc(n + 1, sizeof(void *));
    size_t cursor = 0;
    struct sv key;
    void *value;
    size_t i = 0;
    if (all == NULL) {
        return false;
    }
    while (map_next(d->blocks, &cursor, &key, &value)) {
        all[i++] = value;
    }
    qsort((void *)all, n, sizeof(void *), by_use);
    for (i = 0; i < n; i++) {
        link_newest(d, all[i]);
    }
    free((void *)all);
    return true;
}

bool cache_disk_init(struct cache_disk *d, const char *directory, struct err *err)
{
    *d = (struct cache_disk){.blocks = map_new()};
    if (d->blocks == NULL) {
        return err_memory(err);
    }
    if (directory == NULL) {
        return true;
    }
    d->directory = strdup(directory);
    if (d->directory == NULL) {
        return err_memory(err);
    }
    if (!make_directories(directory, 0777, err)) {
        return false;
    }
    DIR *dir = opendir(directory);
    if (dir == NULL) {
        return err_sys(err, "cannot read the directory %s", directory);
    }
    const struct dirent *e;
    while ((e = readdir(dir)) != NULL) {
        take_entry(d, dirfd(dir), e->d_name);
    }
    closedir(dir);
    return sort_blocks(d) || err_memory(err);
}

void cache_disk_done(struct cache_disk *d)
{
    map_free(d->blocks, free);
    free(d->directory);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

bool cache_disk_has(struct cache_disk *d, const struct block_key *key)
{
    struct disk_block *b = map_get(d->blocks, key_of(key));
    if (b != NULL) {
        unlink_block(d, b);
        link_newest(d, b);
    }
    return b != NULL;
}

void cache_disk_drop(struct cache_disk *d, const struct block_key *key)
{
    struct disk_block *b = map_get(d->blocks, key_of(key));
    if (b != NULL) {
        drop(d, b);
    }
}

void cache_disk_add(struct cache_disk *d, const struct block_key *key, size_t n, uint64_t max_bytes)
{
    char path[PATH_SIZE];
    struct disk_block *b =
        map_get(d->blocks, key_of(key)) == NULL ? add(d, key, n + SUM_BYTES) : NULL;
    if (b != NULL) {
        link_newest(d, b);
    } else if (!cache_disk_has(d, key)) {
        /* Without an entry the file would never be removed. */
        path_of(d, key, path);
        (void)unlink(path);
    }
    while (d->oldest != NULL && d->bytes > max_bytes) {
        struct disk_block *last = d->oldest;
        d->oldest = last->newer; /* drop() does this as well, which clang-tidy does not see */
        drop(d, last);
    }
}

uint64_t cache_disk_name(struct cache_disk *d)
{
    return ++d->names;
}

bool cache_disk_read(const struct cache_disk *d, const struct block_key *key, void *into, size_t n)
{
    char path[PATH_SIZE];
    uint64_t sum = 0;
    struct stat st;
    path_of(d, key, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    bool ok = fstat(fd, &st) == 0 && (uint64_t)st.st_size == n + SUM_BYTES &&
              pread(fd, into, n, 0) == (ssize_t)n &&
              pread(fd, &sum, sizeof(sum), (off_t)n) == (ssize_t)sizeof(sum) &&
              sum == blob_hash((struct sv){into, n}, key->id, 2);
    if (ok) {
        /* The next process reads the order of use from the times of the files. */
        (void)futimens(fd, NULL);
    }
    close(fd);
    return ok;
}

bool cache_disk_write(const struct cache_disk *d, const struct block_key *key, const void *data,
                      size_t n, uint64_t name)
{
    char temporary[PATH_SIZE];
    char path[PATH_SIZE];
    uint64_t sum = blob_hash((struct sv){data, n}, key->id, 2);
    path_of(d, key, path);
    (void)snprintf(temporary, sizeof(temporary), "%s/" TEMPORARY "%ld-%" PRIu64, d->directory,
                   (long)getpid(), name);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        return false;
    }
    bool ok = write_all(fd, data, n) && write_all(fd, &sum, sizeof(sum));
    ok = close(fd) == 0 && ok;
    if (!ok || rename(temporary, path) != 0) {
        (void)unlink(temporary);
        return false;
    }
    return true;
}
