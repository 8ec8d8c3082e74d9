/* The setup of a server: its options, and the files that they name. A running server can get
 * another setup; requests in progress keep theirs. Reference-counted; any thread.
 */
#ifndef PROFPULL_SERVER_SETUP_H
#define PROFPULL_SERVER_SETUP_H

#include <stdatomic.h>

#include "base/loop.h"
#include "http/files.h"
#include "server/server.h"
#include "server/tls.h"
#include "server/web.h"

struct server_setup {
    struct loop_task task; /* must be the first member; puts this setup into force */
    struct server *server; /* the server that this setup is committed to */
    atomic_uint refs;
    struct server_options options;
    /* files with credentials and certificates; used on the server's thread */
    struct http_files *files;
    struct web *web; /* NULL: no web configuration file; used on the server's thread */
    struct tls *tls; /* NULL: no TLS; used on the server's thread */
};

/* Returns a setup with one reference. NULL with an error if a file cannot be used now. If a file
 * cannot be used later, its last usable content stays in use, and `failures` counts it. Takes over
 * what options->release() releases, also on failure. */
struct server_setup *setup_new(const struct server_options *options, struct metric_cell *failures,
                               struct err *err);
/* Reads the web configuration file again if it has changed, and takes over its TLS settings. On the
 * server's thread. */
void setup_renew(struct server_setup *s);
/* Calls the release() of the options, if there is one. */
void setup_release(const struct server_options *options);
struct server_setup *setup_ref(struct server_setup *s);
struct server_setup *setup_unref(struct server_setup *s); /* accepts NULL, returns NULL */

#endif
