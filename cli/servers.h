/* The HTTP servers of a running process: the admin server, and servers for the APIs that have
 * addresses of their own. Main thread.
 */
#ifndef PROFPULL_CLI_SERVERS_H
#define PROFPULL_CLI_SERVERS_H

#include <stddef.h>

#include "agent/app.h"
#include "cli/reload.h"
#include "config/config.h"
#include "server/server.h"
#include "store/query/query.h"

#define SERVERS_MAX 3

struct servers {
    struct server *at[SERVERS_MAX];
    const char *names[SERVERS_MAX]; /* "admin", "query" or "receive" */
    size_t n;
    struct server_setup *next[SERVERS_MAX]; /* prepared setups, while the configuration changes */
    struct settings *settings;
    struct recording_rules *recording_rules;
    struct query_helpers helpers; /* of the queries of all servers */
    unsigned next_helpers;        /* their number in the next configuration */
    int64_t started_ms;           /* monotonic time of the start */
    struct app *app;
    struct reload *reload;
};

/* Starts the configured servers; there may be none. app, reload and config must outlive them. Call
 * servers_stop() also after an error. */
bool servers_start(struct servers *s, struct app *app, struct reload *reload,
                   const struct config *config, struct err *err);
void servers_stop(struct servers *s);

#endif
