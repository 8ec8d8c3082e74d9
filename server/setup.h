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
    struct loop_task task; /* first; of the change */
    struct server *server; /* likewise */
    atomic_uint refs;
    struct server_options options;
    struct http_files *files; /* with credentials and certificates; the server's thread */
    struct web *web;          /* NULL: no such file; the same */
    struct tls *tls;          /* NULL: none; the same */
};

/* With one reference. NULL with an error if a file cannot be used now; later, its last content
 * stays in use. failures counts that. Takes over what options->release() releases, in any case. */
struct server_setup *setup_new(const struct server_options *options, struct metric_cell *failures,
                               struct err *err);
/* Reads the web configuration file again if it has changed: the TLS of the options is what it says.
 * On the server's thread. */
void setup_renew(struct server_setup *s);
/* Calls it. */
void setup_release(const struct server_options *options);
struct server_setup *setup_ref(struct server_setup *s);
struct server_setup *setup_unref(struct server_setup *s); /* accepts NULL, returns NULL */

#endif
