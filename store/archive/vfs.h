/* Lets SQLite read databases that are remote objects, through a cache of blocks.
 *
 * The databases are only read, and never change (`immutable`): nothing is locked, and there are no
 * logs. SQLite's interface is a table of functions that is registered under a name for the whole
 * process; the name is made here, and passed to sqlite3_open_v2(). Any thread.
 */
#ifndef PROFPULL_STORE_ARCHIVE_VFS_H
#define PROFPULL_STORE_ARCHIVE_VFS_H

#include "base/err.h"
#include "store/archive/cache.h"

/* Names of objects longer than this cannot be opened. */
#define ARCHIVE_VFS_NAME_MAX 512

struct archive_vfs;

struct archive_vfs_options {
    struct archive_cache *cache; /* borrowed */
    /* Returns the object of a name, which stays valid as long as a database of this name is open;
     * NULL if there is none. Any thread. */
    const struct archive_source *(*find)(void *arg, const char *name);
    /* Reports why an object could not be read, before SQLite returns the failure. May be
     * NULL. Any thread. */
    void (*failed)(void *arg, const char *name, enum archive_read why, const struct err *err);
    void *arg;
};

struct archive_vfs *archive_vfs_new(const struct archive_vfs_options *o, struct err *err);
/* No database may be open. Accepts NULL, returns NULL. */
struct archive_vfs *archive_vfs_free(struct archive_vfs *v);
/* Returns the name for sqlite3_open_v2(). */
const char *archive_vfs_name(const struct archive_vfs *v);

#endif
