/* Filling the list of errors that config.h shows: used by the readers of this room only. */
#ifndef PROFPULL_CONFIG_ERRORS_H
#define PROFPULL_CONFIG_ERRORS_H

#include "config/config.h"

/* Names the file that the errors are about; the string is copied. */
void config_errors_set_file(struct config_errors *e, const char *file);
/* Would an error at this place be kept? Saves the work of wording one that would not. */
bool config_errors_wants(const struct config_errors *e, int line, int column);
/* Puts an error at its place in the order of positions (line 0 comes first). Copies the strings.
 * If the list is full the last one falls off and is counted; if memory runs out the error stays,
 * with a constant text. */
void config_errors_add(struct config_errors *e, int line, int column, const char *path,
                       const char *message);

#endif
