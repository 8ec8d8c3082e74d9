/* When a running process reads its configuration again, and what comes of it: SIGHUP, a request to
 * the admin server, and a change of the file. All or nothing: after any error the configuration in
 * force stays.
 *
 * The directory of the file is watched with inotify, because editors and ConfigMaps replace files
 * instead of writing them, and the configuration is read again every 30 seconds for what inotify
 * does not report (files that it imports, network file systems). What counts is what a
 * configuration means: if it is the same, nothing happens.
 *
 * Main thread, except reload_request().
 */
#ifndef PROFPULL_CLI_RELOAD_H
#define PROFPULL_CLI_RELOAD_H

#include "agent/app.h"
#include "agent/confinement.h"
#include "cli/cmd.h"

struct reload;

struct reload_options {
    struct app *app;
    const struct confinement *confinement; /* what the process may still do */
    struct cmd_config_flags flags;         /* file: NULL if there is nothing to read again */
    bool watch;                            /* follow changes of the file */
    int64_t drain_ms;                      /* for endpoints that are gone to send what they have */
};

/* Everything that the options point to must outlive the object. The error names the refused system
 * call. */
struct reload *reload_new(const struct reload_options *options, struct err *err);
/* Accepts NULL, returns NULL. No request may be under way: call reload_close() first. */
struct reload *reload_free(struct reload *r);

/* Readable when reload_run() has something to do. */
int reload_fd(const struct reload *r);
void reload_run(struct reload *r);
/* SIGHUP. */
void reload_signal(struct reload *r);

/* Has the main thread read the configuration, and waits for it. Appends what came of it. Any
 * thread; requests that come while it is being read wait for the next time. */
bool reload_request(struct reload *r, struct buf *text);
/* Requests fail from now on, those that wait too. */
void reload_close(struct reload *r);

#endif
