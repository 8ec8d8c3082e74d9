/* The server's side of TLS, from files in PEM that are re-read when they change: new connections
 * get the new certificate. What cannot be used does not replace what is in use. On the server's
 * thread.
 */
#ifndef PROFPULL_SERVER_TLS_H
#define PROFPULL_SERVER_TLS_H

#include <openssl/types.h>

#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "http/files.h"
#include "server/server.h"

struct tls;

/* The files must be usable now. Everything outlives it; failures counts later ones. */
struct tls *tls_new(const struct server_tls *options, struct http_files *files, struct log *log,
                    struct metric_cell *failures, struct err *err);
struct tls *tls_free(struct tls *t); /* accepts NULL, returns NULL */
/* For a new connection; the caller owns it. NULL if out of memory. */
SSL *tls_session(struct tls *t);
/* Has the client of this session a certificate of client_ca_file? */
bool tls_is_verified(const SSL *session);

#endif
