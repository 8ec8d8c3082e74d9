#include "alloy/source.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ascii.h"
#include "config/config.h"
#include "config/file.h"

/* Files in a directory. */
#define FILES_MAX 256
#define BOM "\xef\xbb\xbf"

/* path NULL: standard input. */
static bool read_one(const char *path, size_t max, struct arena *arena,
                     struct alloy_source *ret_source, struct err *err)
{
    struct buf text;
    buf_init(&text, max + 1);
    bool ok = path != NULL ? file_read(path, max, &text, err)
                           : file_read_fd(STDIN_FILENO, max, &text, err);
    ret_source->name = ok ? arena_strdup(arena, path != NULL ? path : "<stdin>") : NULL;
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

/* The rest after white space and comments. */
static struct sv skip_space(struct sv v)
{
    for (;;) {
        v = sv_trim(v);
        const char *end = NULL;
        size_t closing = 0;
        if (sv_starts_with(v, SV("//"))) {
            end = memchr(v.p, '\n', v.n);
        } else if (sv_starts_with(v, SV("/*"))) {
            end = memmem(v.p + 2, v.n - 2, "*/", 2);
            closing = 2;
        } else {
            return v;
        }
        v = end != NULL ? sv_skip(v, (size_t)(end - v.p) + closing) : SV("");
    }
}

static struct sv skip_name(struct sv v)
{
    size_t n = 0;
    while (n < v.n && (ascii_is_word(v.p[n]) || v.p[n] == '.')) {
        n++;
    }
    return sv_skip(v, n);
}

bool alloy_is_text(struct sv text)
{
    struct sv v = sv_starts_with(text, SV(BOM)) ? sv_skip(text, sizeof(BOM) - 1) : text;
    struct sv name = skip_space(v);
    struct sv rest = skip_name(name);
    if (rest.n == name.n) {
        return name.n == 0 && sv_trim(v).n > 0; /* nothing but comments */
    }
    size_t i = 0;
    while (i < rest.n && (rest.p[i] == ' ' || rest.p[i] == '\t')) {
        i++;
    }
    return i < rest.n && (rest.p[i] == '=' || rest.p[i] == '{' || rest.p[i] == '"');
}

static bool read_single(const char *path, const char *directory, struct arena *arena,
                        struct alloy_sources *ret_sources, struct err *err)
{
    struct alloy_source *source = arena_alloc(arena, sizeof(*source));
    if (directory == NULL || source == NULL) {
        return err_memory(err);
    }
    *ret_sources =
        (struct alloy_sources){.at = source, .n = 1, .directory = absolute(directory, arena)};
    return read_one(path, CONFIG_FILE_MAX, arena, source, err);
}

bool alloy_sources_read_stdin(struct arena *arena, struct alloy_sources *ret_sources,
                              struct err *err)
{
    return read_single(NULL, ".", arena, ret_sources, err);
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
    return read_single(path, directory, arena, ret_sources, err);
}
