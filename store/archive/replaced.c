/* Days and the objects that they have replaced: readers count one of the two.
 *
 * A scan lists the files of its range. If the list has a day, the objects that its index names are
 * left out, wherever they are listed; also their files on the disk, unless all of them are on the
 * disk of this process, which then need no bucket. If the index of a day cannot be read, the day is
 * left out, and its parts are read if they are still there.
 */
#include <stdlib.h>
#include <string.h>

#include "store/archive/private.h"

bool archive_know(struct store_file *f, struct arena *arena, struct err *err)
{
    struct archive_object *o = f->object;
    struct archive_index index;
    pthread_mutex_lock(&o->archive->lock);
    bool known = o->known && o->state == OBJECT_FINE;
    pthread_mutex_unlock(&o->archive->lock);
    if (known) {
        return true;
    }
    arena_reset(arena);
    return archive_read_index(f, arena, &index, err);
}

static bool is_day(const struct store_file *f)
{
    return f != NULL && f->object != NULL && f->name.length_ms == MS_PER_DAY;
}

static bool is_named(const struct archive_name *name, const struct store_name *stretch,
                     struct sv hash)
{
    return store_name_compare(&name->stretch, stretch) == 0 && sv_eq_str(hash, name->hash);
}

/* Returns true if a day has replaced an object with this name. */
static bool has_replaced(const struct archive_object *day, const struct store_name *stretch,
                         struct sv hash)
{
    for (size_t i = 0; i < day->n_replaces; i++) {
        if (is_named(&day->replaces[i], stretch, hash)) {
            return true;
        }
    }
    return false;
}

struct store_file *archive_find_day(struct archive *a, const struct archive_name *name)
{
    for (size_t i = 0; i < a->n_files; i++) {
        const struct archive_object *o = a->files[i]->object;
        if (strcmp(o->writer, a->writer) != 0 || !o->known) {
            continue;
        }
        if (has_replaced(o, &name->stretch, sv_from(name->hash))) {
            return a->files[i];
        }
    }
    return NULL;
}

void archive_know_days(struct archive *a)
{
    size_t n = 0;
    pthread_mutex_lock(&a->lock);
    struct store_file **files = calloc(a->n_files + 1, sizeof(void *));
    for (size_t i = 0; files != NULL && i < a->n_files; i++) {
        struct store_file *f = a->files[i];
        if (is_day(f) && !f->object->known && f->object->state == OBJECT_FINE &&
            strcmp(f->object->writer, a->writer) == 0) {
            files[n++] = store_file_ref(f);
        }
    }
    pthread_mutex_unlock(&a->lock);
    struct arena *arena = n > 0 ? arena_new(ARCHIVE_INDEX_ARENA_MAX) : NULL;
    for (size_t i = 0; arena != NULL && i < n && !archive_is_stopping(a); i++) {
        struct err err = ERR_INIT;
        (void)archive_know(files[i], arena, &err);
    }
    arena_free(arena);
    if (n > 0) {
        archive_match(a);
    }
    store_files_free(files, n);
}

/* ---- the files of a scan --------------------------------------------------------------------- */

/* Returns true if all files that a day of this writer replaces are on the disk. */
static bool is_on_disk(struct archive *a, const struct archive_object *day)
{
    struct store *s = a->store;
    bool all = day->n_replaces > 0 && strcmp(day->writer, a->writer) == 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; all && i < day->n_replaces; i++) {
        const struct archive_name *name = &day->replaces[i];
        bool found = name->stretch.length_ms == MS_PER_DAY;
        for (size_t k = 0; !found && k < s->n_files; k++) {
            const struct store_file *f = s->files[k];
            found = f->fault == DB_FINE && !f->gone && is_named(name, &f->name, sv_from(f->hash));
        }
        all = found;
    }
    pthread_mutex_unlock(&s->lock);
    return all;
}

/* Writes the key of a file in the map of those that are replaced. The writer is not a part of it:
 * files of peers come without one, and no two writers have the same bytes. */
static struct sv key_of(const struct archive_name *name, char out[ARCHIVE_KEY_SIZE])
{
    archive_data_key("any", name, out);
    return sv_from(out);
}

static bool note_replaced(struct map *replaced, const struct archive_object *day)
{
    char key[ARCHIVE_KEY_SIZE];
    bool ok = true;
    for (size_t i = 0; ok && i < day->n_replaces; i++) {
        ok = map_put(replaced, key_of(&day->replaces[i], key), replaced, NULL);
    }
    return ok;
}

bool archive_day_has(const struct store_file *day, struct sv writer, const struct store_name *name,
                     struct sv hash)
{
    const struct archive_object *o = day->object;
    if (!is_day(day) || !sv_eq_str(writer, o->writer)) {
        return false;
    }
    pthread_mutex_lock(&o->archive->lock);
    bool found = o->known && has_replaced(o, name, hash);
    pthread_mutex_unlock(&o->archive->lock);
    return found;
}

static void drop(struct store_file **f)
{
    store_file_unref(*f);
    *f = NULL;
}

/* Notes what the days of the list have replaced, and drops those that are not to be read. */
static bool read_days(struct archive *a, struct store_file **files, size_t n, struct arena *arena,
                      struct map *replaced, struct partial *partial)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        struct err err = ERR_INIT;
        if (!is_day(files[i])) {
            continue;
        }
        if (!archive_know(files[i], arena, &err)) {
            partial_note(partial, "%s: %s", files[i]->path, err.msg);
            drop(&files[i]);
        } else if (is_on_disk(a, files[i]->object)) {
            drop(&files[i]);
        } else {
            ok = note_replaced(replaced, files[i]->object);
        }
    }
    return ok;
}

static bool is_replaced(struct archive *a, const struct map *replaced, const struct store_file *f)
{
    char key[ARCHIVE_KEY_SIZE];
    if (f->object != NULL) {
        return map_get(replaced, key_of(&f->object->name, key)) != NULL;
    }
    struct archive_name name = {.stretch = f->name};
    pthread_mutex_lock(&a->store->lock);
    memcpy(name.hash, f->hash, sizeof(name.hash));
    pthread_mutex_unlock(&a->store->lock);
    return name.hash[0] != '\0' && map_get(replaced, key_of(&name, key)) != NULL;
}

bool archive_drop_replaced(struct archive *a, struct store_file **files, size_t *n,
                           struct arena *arena, struct partial *partial, struct err *err)
{
    bool any = false;
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        any = any || is_day(files[i]);
    }
    if (!any) {
        return true;
    }
    struct map *replaced = map_new();
    bool ok = replaced != NULL && read_days(a, files, *n, arena, replaced, partial);
    for (size_t i = 0; i < *n; i++) {
        if (ok && files[i] != NULL && is_replaced(a, replaced, files[i])) {
            drop(&files[i]);
        }
        if (files[i] != NULL) {
            files[kept++] = files[i];
        }
    }
    *n = kept;
    map_free(replaced, NULL);
    return ok || err_memory(err);
}
