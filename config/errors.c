/* The list of errors: a fixed array sorted by position. Only texts need memory, so no error is lost
 * when memory runs out. */
#include <stdlib.h>
#include <string.h>

#include "config/errors.h"

struct entry {
    struct config_error error;
    char *text; /* path, NUL, message; NULL if memory ran out */
};

struct config_errors {
    char *file;
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
        free(e->file);
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

void config_errors_set_file(struct config_errors *e, const char *file)
{
    char *copy = strdup(file);
    free(e->file);
    e->file = copy;
    for (size_t i = 0; i < e->n; i++) {
        e->entries[i].error.pos.file = copy == NULL ? "" : copy;
    }
}

static int compare_places(const struct config_pos *a, int line, int column)
{
    if (a->line != line) {
        return a->line < line ? -1 : 1;
    }
    return (a->column > column) - (a->column < column);
}

bool config_errors_wants(const struct config_errors *e, int line, int column)
{
    return e->n < CONFIG_ERRORS_MAX ||
           compare_places(&e->entries[e->n - 1].error.pos, line, column) > 0;
}

static void fill(struct config_errors *e, struct entry *entry, const char *path,
                 const char *message)
{
    size_t path_size = strlen(path) + 1;
    size_t message_size = strlen(message) + 1;
    char *text = malloc(path_size + message_size);
    entry->text = text;
    entry->error.pos.file = e->file == NULL ? "" : e->file;
    entry->error.path = "";
    entry->error.message = "an error that there was no memory to describe";
    if (text != NULL) {
        memcpy(text, path, path_size);
        memcpy(text + path_size, message, message_size);
        entry->error.path = text;
        entry->error.message = text + path_size;
    }
}

void config_errors_add(struct config_errors *e, int line, int column, const char *path,
                       const char *message)
{
    if (!config_errors_wants(e, line, column)) {
        e->more++;
        return;
    }
    if (e->n == CONFIG_ERRORS_MAX) {
        e->n--;
        free(e->entries[e->n].text);
        e->more++;
    }
    size_t at = e->n;
    while (at > 0 && compare_places(&e->entries[at - 1].error.pos, line, column) > 0) {
        e->entries[at] = e->entries[at - 1];
        at--;
    }
    struct entry *entry = &e->entries[at];
    *entry = (struct entry){.error = {.pos = {.line = line, .column = column}}};
    fill(e, entry, path, message);
    e->n++;
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
        buf_printf(out, "%s: and %zu more errors\n", e->file == NULL ? "" : e->file, e->more);
    }
    return buf_ok(out);
}
