#include "config/texts.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/file.h"

/* The most files that are read from one directory. */
#define FILES_MAX 256

/* Reads one file; if path is NULL, standard input. */
static bool read_one(const char *path, size_t max, struct arena *arena,
                     struct config_text *ret_text, struct err *err)
{
    struct buf text;
    buf_init(&text, max + 1);
    bool ok = path != NULL ? file_read(path, max, &text, err)
                           : file_read_fd(STDIN_FILENO, max, &text, err);
    ret_text->name = ok ? arena_strdup(arena, path != NULL ? path : "<stdin>") : NULL;
    const char *copy = ok ? arena_strndup(arena, text.len > 0 ? text.data : "", text.len) : NULL;
    ret_text->text = (struct sv){copy, text.len};
    buf_done(&text);
    if (ok && (copy == NULL || ret_text->name == NULL)) {
        return err_memory(err);
    }
    return ok;
}

static bool has_suffix(const struct dirent *entry, const char *suffix)
{
    return sv_ends_with(sv_from(entry->d_name), sv_from(suffix)) && entry->d_name[0] != '.';
}

/* Keeps the entries with the suffix, in their order, and returns their number. */
static size_t keep_suffix(struct dirent **entries, size_t n, const char *suffix)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (has_suffix(entries[i], suffix)) {
            entries[kept++] = entries[i];
        } else {
            free(entries[i]);
        }
    }
    return kept;
}

static bool read_entries(const char *path, struct dirent **entries, size_t n, struct arena *arena,
                         struct config_text *texts, struct err *err)
{
    size_t left = CONFIG_FILE_MAX;
    for (size_t i = 0; i < n; i++) {
        const char *name = arena_printf(arena, "%s/%s", path, entries[i]->d_name);
        if (name == NULL) {
            return err_memory(err);
        }
        if (!read_one(name, left, arena, &texts[i], err)) {
            return err_wrap(err, "%s", name);
        }
        left -= texts[i].text.n;
    }
    return true;
}

static bool read_directory(const char *path, const char *suffix, struct arena *arena,
                           struct config_texts *ret_texts, struct err *err)
{
    struct dirent **entries = NULL;
    int found = scandir(path, &entries, NULL, alphasort);
    size_t n = keep_suffix(entries, found > 0 ? (size_t)found : 0, suffix);
    struct config_text *texts = arena_array(arena, n + 1, sizeof(*texts));
    bool ok = false;
    if (found < 0) {
        err_set(err, ERR_SYSTEM, "cannot read the directory: %s", strerrorname_np(errno));
    } else if (n == 0 || n > FILES_MAX) {
        err_set(err, ERR_INPUT,
                "expected a file, or a directory with 1 to %d files that end in "
                "%s, got a directory with %zu",
                FILES_MAX, suffix, n);
    } else if (texts == NULL) {
        err_memory(err);
    } else {
        ok = read_entries(path, entries, n, arena, texts, err);
    }
    for (size_t i = 0; i < n; i++) {
        free(entries[i]);
    }
    free(entries);
    ret_texts->at = texts;
    ret_texts->n = ok ? n : 0;
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

static bool read_single(const char *path, const char *directory, struct arena *arena,
                        struct config_texts *ret_texts, struct err *err)
{
    struct config_text *text = arena_alloc(arena, sizeof(*text));
    if (directory == NULL || text == NULL) {
        return err_memory(err);
    }
    *ret_texts = (struct config_texts){.at = text, .n = 1, .directory = absolute(directory, arena)};
    return read_one(path, CONFIG_FILE_MAX, arena, text, err);
}

bool config_texts_read_stdin(struct arena *arena, struct config_texts *ret_texts, struct err *err)
{
    return read_single(NULL, ".", arena, ret_texts, err);
}

bool config_texts_read(const char *path, const char *suffix, struct arena *arena,
                       struct config_texts *ret_texts, struct err *err)
{
    struct stat st;
    *ret_texts = (struct config_texts){.n = 0};
    if (suffix != NULL && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        ret_texts->directory = absolute(path, arena);
        return read_directory(path, suffix, arena, ret_texts, err);
    }
    const char *slash = strrchr(path, '/');
    const char *directory =
        slash == NULL ? "." : arena_strndup(arena, path, (size_t)(slash - path) + 1);
    return read_single(path, directory, arena, ret_texts, err);
}
