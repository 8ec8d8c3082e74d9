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
/* For a new connection, by the options as they are now; the caller owns it. NULL if out of memory.
 */
SSL *tls_session(struct tls *t, const struct server_tls *options);
/* Has the client of this session the certificate that the options ask for, if they do? */
bool tls_lets_in(const SSL *session, const struct server_tls *options);

#endif
