#include "store/archive/vfs.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VFS_NAME_SIZE 48

struct archive_vfs {
    struct archive_vfs_options options;
    char name[VFS_NAME_SIZE];
    sqlite3_vfs methods;
    sqlite3_vfs *system; /* for time and random numbers */
};

/* An open database. SQLite allocates it. */
struct remote_file {
    sqlite3_file base; /* the first member */
    const struct archive_vfs *vfs;
    const char *name; /* SQLite keeps it as long as the file is open */
    struct archive_reader reader;
};

/* ---- files ----------------------------------------------------------------------------------- */

static int archive_file_close(sqlite3_file *file)
{
    (void)file;
    return SQLITE_OK;
}

static int archive_file_read(sqlite3_file *file, void *into, int n, sqlite3_int64 offset)
{
    struct remote_file *f = (struct remote_file *)file;
    const struct archive_source *s = f->reader.source;
    struct err err = ERR_INIT;
    if (n < 0 || offset < 0) {
        return SQLITE_IOERR_READ;
    }
    uint64_t rest = (uint64_t)offset < s->size ? s->size - (uint64_t)offset : 0;
    size_t part = (uint64_t)n < rest ? (size_t)n : (size_t)rest;
    enum archive_read result =
        archive_cache_read(f->vfs->options.cache, &f->reader, (uint64_t)offset, part, into, &err);
    if (result != ARCHIVE_READ) {
        if (f->vfs->options.failed != NULL) {
            f->vfs->options.failed(f->vfs->options.arg, f->name, result, &err);
        }
        return SQLITE_IOERR_READ;
    }
    /* SQLite relies on zeros after the end. */
    memset((char *)into + part, 0, (size_t)n - part);
    return part == (size_t)n ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int archive_file_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 offset)
{
    (void)file;
    (void)data;
    (void)n;
    (void)offset;
    return SQLITE_READONLY;
}

static int archive_file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    (void)file;
    (void)size;
    return SQLITE_READONLY;
}

static int archive_file_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return SQLITE_OK;
}

static int archive_file_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    const struct remote_file *f = (const struct remote_file *)file;
    *ret = (sqlite3_int64)f->reader.source->size;
    return SQLITE_OK;
}

static int archive_file_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int archive_file_is_reserved(sqlite3_file *file, int *ret)
{
    (void)file;
    *ret = 0;
    return SQLITE_OK;
}

static int archive_file_control(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int archive_file_sector(sqlite3_file *file)
{
    (void)file;
    return 0;
}

static int archive_file_traits(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 1,
    .xClose = archive_file_close,
    .xRead = archive_file_read,
    .xWrite = archive_file_write,
    .xTruncate = archive_file_truncate,
    .xSync = archive_file_sync,
    .xFileSize = archive_file_size,
    .xLock = archive_file_lock,
    .xUnlock = archive_file_lock,
    .xCheckReservedLock = archive_file_is_reserved,
    .xFileControl = archive_file_control,
    .xSectorSize = archive_file_sector,
    .xDeviceCharacteristics = archive_file_traits,
};

/* ---- the file system ------------------------------------------------------------------------- */

static int archive_vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                            int *ret_flags)
{
    const struct archive_vfs *v = vfs->pAppData;
    struct remote_file *f = (struct remote_file *)file;
    *f = (struct remote_file){.vfs = v, .name = name};
    const struct archive_source *s = name != NULL && (flags & SQLITE_OPEN_MAIN_DB) != 0
                                         ? v->options.find(v->options.arg, name)
                                         : NULL;
    if (s == NULL) {
        return SQLITE_CANTOPEN;
    }
    f->reader.source = s;
    f->base.pMethods = &file_methods;
    if (ret_flags != NULL) {
        *ret_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
    }
    return SQLITE_OK;
}

static int archive_vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    (void)name;
    (void)sync;
    return SQLITE_READONLY;
}

/* Reports that journals and logs do not exist. */
static int archive_vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs;
    (void)name;
    (void)flags;
    *ret = 0;
    return SQLITE_OK;
}

static int archive_vfs_full_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    (void)vfs;
    int n = snprintf(out, (size_t)size, "%s", name);
    return n >= 0 && n < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int archive_vfs_random(sqlite3_vfs *vfs, int n, char *out)
{
    const struct archive_vfs *v = vfs->pAppData;
    return v->system->xRandomness(v->system, n, out);
}

static int archive_vfs_sleep(sqlite3_vfs *vfs, int us)
{
    const struct archive_vfs *v = vfs->pAppData;
    return v->system->xSleep(v->system, us);
}

static int archive_vfs_time(sqlite3_vfs *vfs, double *ret)
{
    const struct archive_vfs *v = vfs->pAppData;
    return v->system->xCurrentTime(v->system, ret);
}

static int archive_vfs_error(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    (void)size;
    (void)out;
    return 0;
}

struct archive_vfs *archive_vfs_new(const struct archive_vfs_options *o, struct err *err)
{
    struct archive_vfs *v = calloc(1, sizeof(*v));
    if (v == NULL) {
        err_memory(err);
        return NULL;
    }
    v->options = *o;
    v->system = sqlite3_vfs_find(NULL);
    (void)snprintf(v->name, sizeof(v->name), "profpull-archive-%p", (void *)v);
    v->methods = (sqlite3_vfs){.iVersion = 1,
                               .szOsFile = sizeof(struct remote_file),
                               .mxPathname = ARCHIVE_VFS_NAME_MAX,
                               .zName = v->name,
                               .pAppData = v,
                               .xOpen = archive_vfs_open,
                               .xDelete = archive_vfs_delete,
                               .xAccess = archive_vfs_access,
                               .xFullPathname = archive_vfs_full_name,
                               .xRandomness = archive_vfs_random,
                               .xSleep = archive_vfs_sleep,
                               .xCurrentTime = archive_vfs_time,
                               .xGetLastError = archive_vfs_error};
    if (v->system == NULL || sqlite3_vfs_register(&v->methods, 0) != SQLITE_OK) {
        free(v);
        err_memory(err);
        return NULL;
    }
    return v;
}

struct archive_vfs *archive_vfs_free(struct archive_vfs *v)
{
    if (v != NULL) {
        (void)sqlite3_vfs_unregister(&v->methods);
        free(v);
    }
    return NULL;
}

const char *archive_vfs_name(const struct archive_vfs *v)
{
    return v->name;
}
