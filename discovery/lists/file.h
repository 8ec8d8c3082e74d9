/* file_sd_configs: lists of targets in files.
 *
 * The directories are watched with inotify, and everything is read again after refresh_interval,
 * for what inotify does not show (a network file system, a link to elsewhere). A file that is
 * broken, half written or cannot be read keeps its last good targets; so does one that is gone, if
 * the configuration names it. One that only a wildcard matched, and that is no longer in its
 * directory, has been removed: its targets go. On the loop's thread; files are read there, too.
 */
#ifndef PROFPULL_DISCOVERY_LISTS_FILE_H
#define PROFPULL_DISCOVERY_LISTS_FILE_H

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "config/config.h"
#include "discovery/counters.h"

/* Files of one source; those beyond are ignored, counted and logged. */
#define FILE_SD_FILES_MAX 10000
/* From an event in a directory to the reading: what comes in the meantime is read with it. */
#define FILE_SD_SETTLE_MS 100

struct file_sd;

struct file_sd_options {
    const struct config_file_sd *config; /* referenced */
    const char *prefix;                  /* of the names of groups; referenced */
    struct loop *loop;
    struct intern *intern;
    struct log *log;
    const struct discovery_counters *counters; /* referenced */
    /* A file as it is now; source: prefix and path; n 0: it has no targets any more. */
    void (*on_change)(void *arg, const char *source, struct labels *const *targets, size_t n);
    void *arg;
};

/* NULL if out of memory. Reads nothing yet. */
struct file_sd *file_sd_new(const struct file_sd_options *options);
/* Reads all files now and keeps up with them from here on. */
void file_sd_start(struct file_sd *f);
/* Accepts NULL, returns NULL. */
struct file_sd *file_sd_free(struct file_sd *f);
/* Files that have targets now. */
size_t file_sd_count(const struct file_sd *f);

#endif
