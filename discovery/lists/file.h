/* file_sd_configs: lists of targets in files.
 *
 * The directories are watched with inotify, and all files are read again after refresh_interval,
 * for changes that inotify does not report (a network file system, a link to elsewhere). A file
 * that is broken, half written or unreadable keeps its last good targets; so does one that is gone,
 * if the configuration names it. If only a wildcard matched it and it is no longer in its
 * directory, it has been removed, and its targets with it. On the loop's thread, which also reads
 * the files.
 */
#ifndef PROFPULL_DISCOVERY_LISTS_FILE_H
#define PROFPULL_DISCOVERY_LISTS_FILE_H

#include "discovery/lists/listing.h"

/* Files of one source; further ones are ignored, counted and logged. */
#define FILE_SD_FILES_MAX 10000
/* From an event in a directory to the reading: further events in that time cost no other one. */
#define FILE_SD_SETTLE_MS 100

struct file_sd;

/* NULL if out of memory. Reads nothing yet. The configuration is referenced. */
struct file_sd *file_sd_new(const struct config_file_sd *config,
                            const struct list_options *options);
/* Reads all files now and follows them from then on. */
void file_sd_start(struct file_sd *f);
/* Calls fn with the source of each file that has been read. */
void file_sd_each(const struct file_sd *f, void (*fn)(void *arg, const char *source), void *arg);
/* Accepts NULL, returns NULL. */
struct file_sd *file_sd_free(struct file_sd *f);

#endif
