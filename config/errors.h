/* Adding to the list of errors that config.h declares; for the readers in config/ only. */
#ifndef PROFPULL_CONFIG_ERRORS_H
#define PROFPULL_CONFIG_ERRORS_H

#include "config/config.h"

/* Names the file that the errors are about, those without a file of their own; copies the string.
 */
void config_errors_set_file(struct config_errors *e, const char *file);
/* Would an error at this position be kept? If not, there is no need to format its message. */
bool config_errors_wants(const struct config_errors *e, int line, int column);
/* Inserts an error by its position (line 0 comes first). Copies the strings. If the list is full,
 * the last error is dropped and counted; if memory runs out, the error keeps a constant text. */
void config_errors_add(struct config_errors *e, int line, int column, const char *path,
                       const char *message);
/* The same in another file, of a configuration of several; files come in the order of their first
 * errors. NULL: the file of the others. */
void config_errors_add_in(struct config_errors *e, const char *file, int line, int column,
                          const char *path, const char *message);

#endif
