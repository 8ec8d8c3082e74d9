/* The server's side of TLS, with files in PEM. The files are re-read when they change, and new
 * connections use the new certificate. A file that cannot be used does not replace the one in use.
 * On the server's thread.
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

/* Fails if the files cannot be used now; `failures` counts later failures. All arguments must
 * outlive the object. */
struct tls *tls_new(const struct server_tls *options, struct http_files *files, struct log *log,
                    struct metric_cell *failures, struct err *err);
struct tls *tls_free(struct tls *t); /* accepts NULL, returns NULL */
/* Makes a session for a new connection, with the current files and options. The caller owns it.
 * NULL if out of memory. */
SSL *tls_session(struct tls *t, const struct server_tls *options);
/* Returns true if the options require no certificate of clients, or if that of this client fulfils
 * what they require. */
bool tls_lets_in(const SSL *session, const struct server_tls *options);

/* Returns true if client and server have agreed on HTTP/2 by ALPN (RFC 7301). session may be NULL.
 */
bool tls_chose_http2(const SSL *session);

#endif
