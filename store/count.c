/* The number of profiles that were committed to a file, in a file of its own beside it:
 * `NAME.db-count`.
 *
 * A database that has lost its log, or the end of it, is intact but has fewer profiles; only the
 * count shows the loss. The count is written after each commit, before the profiles count as sent.
 * It is never synced: after a loss of power it may be missing or too low, and then no loss is
 * reported. The file has a decimal number of 20 digits, a space, 16 hexadecimal digits of its
 * checksum, and a newline.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "store/blob.h"
#include "store/data.h"
#include "store/private.h"

#define DIGITS 20
#define TEXT_SIZE (DIGITS + 1 + 16 + 1)

static void format_count(uint64_t n, char out[TEXT_SIZE + 1])
{
    (void)snprintf(out, TEXT_SIZE + 1, "%020" PRIu64 " %016" PRIx64 "\n", n,
                   blob_hash(SV("count"), &n, 1));
}

static void count_path(const char *path, char out[4096])
{
    (void)snprintf(out, 4096, "%s" STORE_COUNT_SUFFIX, path);
}

int store_count_open(const char *path)
{
    char name[4096];
    count_path(path, name);
    return open(name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
}

bool store_count_write(int fd, uint64_t n)
{
    char text[TEXT_SIZE + 1];
    format_count(n, text);
    return fd >= 0 && pwrite(fd, text, TEXT_SIZE, 0) == TEXT_SIZE;
}

bool store_count_read(const char *path, uint64_t *ret)
{
    char name[4096];
    char text[TEXT_SIZE + 1] = "";
    char again[TEXT_SIZE + 1];
    count_path(path, name);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, text, TEXT_SIZE) : 0;
    if (fd >= 0) {
        close(fd);
    }
    if (n != TEXT_SIZE || !parse_u64((struct sv){text, DIGITS}, UINT64_MAX, ret)) {
        return false;
    }
    format_count(*ret, again);
    return sv_eq_str((struct sv){text, TEXT_SIZE}, again);
}

static void note(const char *path, uint64_t n)
{
    int fd = store_count_open(path);
    (void)store_count_write(fd, n);
    if (fd >= 0) {
        close(fd);
    }
}

void store_count_check(struct store *s, const struct store_file *f)
{
    uint64_t committed = 0;
    bool known = store_count_read(f->path, &committed);
    if (known && committed > f->profiles) {
        store_lost(s, f->path, committed - f->profiles, "its log was damaged or removed");
    }
    if (known ? committed > f->profiles : f->profiles > 0) {
        note(f->path, f->profiles);
    }
}

void store_count_remove(const char *path)
{
    char name[4096];
    count_path(path, name);
    (void)unlink(name);
}

void store_lost(struct store *s, const char *path, uint64_t n, const char *why)
{
    metric_add(s->metrics.lost, n);
    log_error(s->options.log, "profiles of the store are lost",
              LOG_STR("endpoint", s->options.name), LOG_STR("file", path),
              LOG_INT("profiles", (int64_t)n), LOG_STR("err", why));
}

void store_count_orphan(struct store *s, const char *path)
{
    uint64_t committed = 0;
    char data[4096];
    struct stat st;
    (void)snprintf(data, sizeof(data), "%s" DATA_SUFFIX, path);
    if (lstat(path, &st) == 0 || errno != ENOENT || lstat(data, &st) == 0) {
        return;
    }
    if (store_count_read(path, &committed) && committed > 0) {
        metric_inc(
            metric_cell(s->metrics.faults, (const char *const[]){s->options.name, "missing"}));
        store_lost(s, path, committed, "the file is not there any more");
    }
    store_count_remove(path);
}
