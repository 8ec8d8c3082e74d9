/* file_sd_configs: lists of targets in files.
 *
 * The directories are watched with inotify, and all files are read again after refresh_interval,
 * for changes that inotify does not report (a network file system, a link to elsewhere). A file
 * that is broken, half written or unreadable keeps its last good targets. So does a missing file
 * that the configuration names without wildcards. If a file that only a wildcard matched is no
 * longer in its directory, its targets are removed. Everything, reading files included, happens on
 * the loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_LISTS_FILE_H
#define PROFPULL_DISCOVERY_LISTS_FILE_H

#include "discovery/lists/listing.h"

/* The most files of one source; further ones are ignored, counted and logged. */
#define FILE_SD_FILES_MAX 10000
/* The time from an event in a directory until the files are read, so that several events in a row
 * cause one reading. */
#define FILE_SD_SETTLE_MS 100

struct file_sd;

/* Makes a source; reads nothing yet. The configuration is referenced. NULL if out of memory. */
struct file_sd *file_sd_new(const struct config_file_sd *config,
                            const struct list_options *options);
/* Reads all files now and follows them from then on. */
void file_sd_start(struct file_sd *f);
/* Calls fn with the source of each file that has been read. */
void file_sd_each(const struct file_sd *f, void (*fn)(void *arg, const char *source), void *arg);
/* Accepts NULL, returns NULL. */
struct file_sd *file_sd_free(struct file_sd *f);

#endif
