/* Adds to the list of errors that config.h declares; for the readers of configurations. */
#ifndef PROFPULL_CONFIG_ERRORS_H
#define PROFPULL_CONFIG_ERRORS_H

#include "config/config.h"

/* A place in a text, for messages; line and column count from 1. */
struct config_place {
    int line;
    int column;
    const char *file; /* NULL: the file set by config_errors_set_file() */
};

/* Names the file of all errors that have no file of their own; copies the string. */
void config_errors_set_file(struct config_errors *e, const char *file);
/* Returns true if an error at this position would be kept. If not, its message need not be
 * formatted. */
bool config_errors_wants(const struct config_errors *e, int line, int column);
/* Inserts an error by its position (line 0 comes first). Copies the strings. If the list is full,
 * the last error is dropped and counted; if memory runs out, the error keeps a constant text. */
void config_errors_add(struct config_errors *e, int line, int column, const char *path,
                       const char *message);
/* Adds an error in one file of a configuration that consists of several. Files are sorted by the
 * order of their first errors. NULL: the file set by config_errors_set_file(). */
void config_errors_add_in(struct config_errors *e, const char *file, int line, int column,
                          const char *path, const char *message);
/* Adds a formatted message, such as a note or a warning, at a place; list may be NULL. */
void config_tell(struct config_errors *list, struct config_place place, const char *path,
                 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
