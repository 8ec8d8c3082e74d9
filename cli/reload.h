/* Reads the configuration of a running process again and puts it into force: after SIGHUP, after a
 * request to the admin server, and after a change of the file. If there is any error, the
 * configuration in force stays as a whole.
 *
 * The directory of the file is watched with inotify, because editors and ConfigMaps replace files
 * instead of writing to them. In addition, the configuration is read every 30 seconds, for changes
 * that inotify does not report (files that it imports, network file systems). If its meaning is the
 * same as before, nothing happens.
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
    const struct confinement *confinement; /* limits of what the process may do since its start */
    struct cmd_config_flags flags;         /* `file` is NULL if there is nothing to read again */
    bool watch;                            /* follow changes of the file */
    int64_t drain_ms; /* time for removed endpoints to send the profiles that they have */
};

/* All that the options point to must outlive the object. If a system call fails, the error names
 * it. */
struct reload *reload_new(const struct reload_options *options, struct err *err);
/* Accepts NULL, returns NULL. No request may be in progress: call reload_close() first. */
struct reload *reload_free(struct reload *r);

/* Returns a descriptor that is readable when reload_run() has something to do. */
int reload_fd(const struct reload *r);
void reload_run(struct reload *r);
/* Reads the configuration after SIGHUP. */
void reload_signal(struct reload *r);

/* Makes the main thread read the configuration, waits for this, and appends the result to text. Any
 * thread. A request that arrives while the configuration is being read waits for the next reading.
 */
bool reload_request(struct reload *r, struct buf *text);
/* Ends all requests with a failure: those that wait, and all later ones. */
void reload_close(struct reload *r);

#endif
