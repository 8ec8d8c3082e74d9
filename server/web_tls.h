/* The TLS settings of a web configuration file, besides certificates, for OpenSSL. */
#ifndef PROFPULL_SERVER_WEB_TLS_H
#define PROFPULL_SERVER_WEB_TLS_H

#include <openssl/types.h>
#include <stdbool.h>

#include "base/err.h"
#include "config/web_config.h"

/* Applies versions, cipher suites, curves, and whether clients are asked for a certificate. The
 * error names the setting that OpenSSL does not have. Any thread. */
bool web_tls_apply(SSL_CTX *context, const struct web_tls *web, struct err *err);
/* Returns true if the file allows the certificate that the client has presented, or that it has
 * presented none. */
bool web_tls_lets_in(const SSL *session, const struct web_tls *web);

#endif
