/* The settings that Pyroscope's apps keep on the server: names with texts.
 *
 * They are in memory and, if a directory is given, also in a file that each change replaces. The
 * file is read by the first call that needs it. If the file cannot be read, this is logged, and the
 * next change replaces the file. Any thread.
 */
#ifndef PROFPULL_API_SETTINGS_H
#define PROFPULL_API_SETTINGS_H

#include <stdbool.h>

#include "api/proto/services.pb-c.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"

#define SETTINGS_FILE "settings.json"
/* Limit of all settings as JSON; an app has a few kilobytes. */
#define SETTINGS_BYTES_MAX ((size_t)1024 * 1024)

struct settings;

/* Makes an object without settings; reads nothing yet. directory: where the file is; NULL: settings
 * are kept in memory only. Returns NULL if out of memory. */
struct settings *settings_new(const char *directory, struct log *log);
struct settings *settings_free(struct settings *s); /* accepts NULL, returns NULL */

/* Lists all settings by name, in the arena. NULL with err. */
Api__GetSettingsResponse *settings_get(struct settings *s, struct arena *arena, struct err *err);
/* Keeps a setting. *ret_is_older is true if the setting is older than the present one, which then
 * stays. False with err: ERR_LIMIT if there would be too many settings, ERR_SYSTEM if the file
 * cannot be written. */
bool settings_set(struct settings *s, const Api__Setting *setting, bool *ret_is_older,
                  struct arena *arena, struct err *err);
/* Removes a setting, or does nothing if there is none of this name. */
bool settings_delete(struct settings *s, const char *name, struct arena *arena, struct err *err);

#endif
