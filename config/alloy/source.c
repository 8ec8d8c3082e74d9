#include "config/alloy/source.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/config.h"
#include "config/file.h"

/* Files in a directory. */
#define FILES_MAX 256

static bool read_one(const char *path, size_t max, struct arena *arena,
                     struct alloy_source *ret_source, struct err *err)
{
    struct buf text;
    buf_init(&text, max + 1);
    bool ok = file_read(path, max, &text, err);
    ret_source->name = ok ? arena_strdup(arena, path) : NULL;
    const char *copy = ok ? arena_strndup(arena, text.len > 0 ? text.data : "", text.len) : NULL;
    ret_source->text = (struct sv){copy, text.len};
    buf_done(&text);
    if (ok && (copy == NULL || ret_source->name == NULL)) {
        return err_memory(err);
    }
    return ok;
}

static int is_alloy(const struct dirent *entry)
{
    return sv_ends_with(sv_from(entry->d_name), SV(".alloy")) && entry->d_name[0] != '.';
}

static bool read_entries(const char *path, struct dirent **entries, size_t n, struct arena *arena,
                         struct alloy_source *sources, struct err *err)
{
    size_t left = CONFIG_FILE_MAX;
    for (size_t i = 0; i < n; i++) {
        const char *name = arena_printf(arena, "%s/%s", path, entries[i]->d_name);
        if (name == NULL) {
            return err_memory(err);
        }
        if (!read_one(name, left, arena, &sources[i], err)) {
            return err_wrap(err, "%s", name);
        }
        left -= sources[i].text.n;
    }
    return true;
}

static bool read_directory(const char *path, struct arena *arena, struct alloy_sources *ret_sources,
                           struct err *err)
{
    struct dirent **entries = NULL;
    int found = scandir(path, &entries, is_alloy, alphasort);
    size_t n = found > 0 ? (size_t)found : 0;
    struct alloy_source *sources = arena_array(arena, n + 1, sizeof(*sources));
    bool ok = false;
    if (found < 0) {
        err_set(err, ERR_SYSTEM, "cannot read the directory: %s", strerrorname_np(errno));
    } else if (n == 0 || n > FILES_MAX) {
        err_set(err, ERR_INPUT,
                "expected a file, or a directory with 1 to %d files that end in "
                ".alloy, got a directory with %zu",
                FILES_MAX, n);
    } else if (sources == NULL) {
        err_memory(err);
    } else {
        ok = read_entries(path, entries, n, arena, sources, err);
    }
    for (size_t i = 0; i < n; i++) {
        free(entries[i]);
    }
    free(entries);
    ret_sources->at = sources;
    ret_sources->n = ok ? n : 0;
    return ok;
}

/* The absolute name of a directory; the name as given if there is no such directory. */
static const char *absolute(const char *directory, struct arena *arena)
{
    char resolved[PATH_MAX];
    const char *copy =
        arena_strdup(arena, realpath(directory, resolved) != NULL ? resolved : directory);
    return copy != NULL ? copy : "";
}

bool alloy_sources_read(const char *path, struct arena *arena, struct alloy_sources *ret_sources,
                        struct err *err)
{
    struct stat st;
    *ret_sources = (struct alloy_sources){.n = 0};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        ret_sources->directory = absolute(path, arena);
        return read_directory(path, arena, ret_sources, err);
    }
    const char *slash = strrchr(path, '/');
    const char *directory =
        slash == NULL ? "." : arena_strndup(arena, path, (size_t)(slash - path) + 1);
    struct alloy_source *source = arena_alloc(arena, sizeof(*source));
    if (directory == NULL || source == NULL) {
        return err_memory(err);
    }
    ret_sources->directory = absolute(directory, arena);
    ret_sources->at = source;
    ret_sources->n = 1;
    return read_one(path, CONFIG_FILE_MAX, arena, source, err);
}
