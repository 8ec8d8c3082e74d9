/* The list of errors: a fixed array sorted by position. Only texts need memory, so no error is lost
 * when memory runs out. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/errors.h"

struct entry {
    struct config_error error;
    char *text;  /* path, NUL, message; NULL if memory ran out */
    size_t file; /* index in `files` */
};

/* The most files that errors can name; further files count as the last one. */
#define FILES_MAX 256
#define MESSAGE_MAX 1024

struct config_errors {
    char *files[FILES_MAX];
    size_t n_files;
    size_t n;
    size_t more;
    struct entry entries[CONFIG_ERRORS_MAX];
};

struct config_errors *config_errors_new(void)
{
    return calloc(1, sizeof(struct config_errors));
}

struct config_errors *config_errors_free(struct config_errors *e)
{
    if (e != NULL) {
        for (size_t i = 0; i < e->n; i++) {
            free(e->entries[i].text);
        }
        for (size_t i = 0; i < e->n_files; i++) {
            free(e->files[i]);
        }
        free(e);
    }
    return NULL;
}

size_t config_errors_count(const struct config_errors *e)
{
    return e->n;
}

size_t config_errors_more(const struct config_errors *e)
{
    return e->more;
}

const struct config_error *config_errors_at(const struct config_errors *e, size_t i)
{
    return &e->entries[i].error;
}

static const char *file_name(const struct config_errors *e, size_t file)
{
    return file < e->n_files && e->files[file] != NULL ? e->files[file] : "";
}

void config_errors_set_file(struct config_errors *e, const char *file)
{
    if (e->n_files == 0) {
        e->n_files = 1;
    }
    free(e->files[0]);
    e->files[0] = strdup(file);
    for (size_t i = 0; i < e->n; i++) {
        e->entries[i].error.pos.file = file_name(e, e->entries[i].file);
    }
}

/* Returns the index of a file in the list; NULL is the first one. */
static size_t find_file(struct config_errors *e, const char *file)
{
    size_t i = 0;
    if (e->n_files == 0) {
        e->n_files = 1; /* the first entry is for errors without a file */
    }
    if (file == NULL) {
        return 0;
    }
    while (i < e->n_files && (e->files[i] == NULL || strcmp(e->files[i], file) != 0)) {
        i++;
    }
    if (i == e->n_files && i < FILES_MAX) {
        e->files[e->n_files++] = strdup(file);
    }
    return i < FILES_MAX ? i : FILES_MAX - 1;
}

static int compare_places(const struct entry *a, size_t file, int line, int column)
{
    if (a->file != file) {
        return a->file < file ? -1 : 1;
    }
    if (a->error.pos.line != line) {
        return a->error.pos.line < line ? -1 : 1;
    }
    return (a->error.pos.column > column) - (a->error.pos.column < column);
}

static bool wants(const struct config_errors *e, size_t file, int line, int column)
{
    return e->n < CONFIG_ERRORS_MAX ||
           compare_places(&e->entries[e->n - 1], file, line, column) > 0;
}

bool config_errors_wants(const struct config_errors *e, int line, int column)
{
    return wants(e, 0, line, column);
}

static void fill(struct config_errors *e, struct entry *entry, const char *path,
                 const char *message)
{
    size_t path_size = strlen(path) + 1;
    size_t message_size = strlen(message) + 1;
    char *text = malloc(path_size + message_size);
    entry->text = text;
    entry->error.pos.file = file_name(e, entry->file);
    entry->error.path = "";
    entry->error.message = "an error that there was no memory to describe";
    if (text != NULL) {
        memcpy(text, path, path_size);
        memcpy(text + path_size, message, message_size);
        entry->error.path = text;
        entry->error.message = text + path_size;
    }
}

/* Returns true if the same error is in the list: a rule of an Alloy file may be in several jobs,
 * but its error is reported once. */
static bool is_known(const struct config_errors *e, size_t file, int line, int column,
                     const char *path, const char *message)
{
    for (size_t i = e->n; i > 0; i--) {
        int order = compare_places(&e->entries[i - 1], file, line, column);
        const struct config_error *known = &e->entries[i - 1].error;
        if (order < 0) {
            return false;
        }
        if (order == 0 && strcmp(known->path, path) == 0 && strcmp(known->message, message) == 0) {
            return true;
        }
    }
    return false;
}

void config_errors_add_in(struct config_errors *e, const char *file, int line, int column,
                          const char *path, const char *message)
{
    size_t in = find_file(e, file);
    if (is_known(e, in, line, column, path, message)) {
        return;
    }
    if (!wants(e, in, line, column)) {
        e->more++;
        return;
    }
    if (e->n == CONFIG_ERRORS_MAX) {
        e->n--;
        free(e->entries[e->n].text);
        e->more++;
    }
    size_t at = e->n;
    while (at > 0 && compare_places(&e->entries[at - 1], in, line, column) > 0) {
        e->entries[at] = e->entries[at - 1];
        at--;
    }
    struct entry *entry = &e->entries[at];
    *entry = (struct entry){.error = {.pos = {.line = line, .column = column}}, .file = in};
    fill(e, entry, path, message);
    e->n++;
}

void config_errors_add(struct config_errors *e, int line, int column, const char *path,
                       const char *message)
{
    config_errors_add_in(e, NULL, line, column, path, message);
}

bool config_errors_format(const struct config_errors *e, struct buf *out)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct config_error *error = &e->entries[i].error;
        buf_printf(out, "%s:", error->pos.file);
        if (error->pos.line > 0) {
            buf_printf(out, "%d:%d:", error->pos.line, error->pos.column);
        }
        if (error->path[0] != '\0') {
            buf_printf(out, " %s:", error->path);
        }
        buf_printf(out, " %s\n", error->message);
    }
    if (e->more > 0) {
        buf_printf(out, "%s: and %zu more errors\n", file_name(e, 0), e->more);
    }
    return buf_ok(out);
}

void config_tell(struct config_errors *list, struct config_place place, const char *path,
                 const char *fmt, ...)
{
    char message[MESSAGE_MAX];
    va_list args;
    if (list == NULL) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    config_errors_add_in(list, place.file, place.line, place.column, path, message);
}
