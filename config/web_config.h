/* The web configuration file that Prometheus and its exporters have (exporter-toolkit): TLS,
 * headers and users of a server, in a file of its own, which is read again when it changes.
 *
 * Unlike in the other files, "${" is nothing special: hashes of passwords have dollar signs.
 */
#ifndef PROFPULL_CONFIG_WEB_CONFIG_H
#define PROFPULL_CONFIG_WEB_CONFIG_H

#include "base/err.h"
#include "config/config.h"

/* The most bytes of the file; a larger one is refused. */
#define WEB_CONFIG_MAX ((size_t)1 << 20)

/* The types of client authentication, in the order of Go's crypto/tls. */
enum web_client_auth {
    WEB_CLIENT_NONE,         /* no certificate is asked for */
    WEB_CLIENT_REQUEST,      /* a certificate is asked for; any certificate, or none, is accepted */
    WEB_CLIENT_REQUIRE_ANY,  /* a certificate is required; any is accepted */
    WEB_CLIENT_VERIFY_GIVEN, /* none is required; one that is sent is verified */
    WEB_CLIENT_VERIFY,       /* a certificate of an authority in client_ca_file is required */
};

enum web_tls_version { WEB_TLS_10, WEB_TLS_11, WEB_TLS_12, WEB_TLS_13 };

struct web_tls {
    const char *cert_file; /* NULL: no TLS */
    const char *key_file;
    const char *client_ca_file;
    enum web_client_auth client_auth;
    struct config_strings client_allowed_sans; /* a client's certificate has one of them */
    enum web_tls_version min_version;
    enum web_tls_version max_version;
    /* suites of TLS 1.2 by their IANA names; if empty, OpenSSL's */
    struct config_strings cipher_suites;
    struct config_strings curves; /* "CurveP256", "X25519", ...; if empty, OpenSSL's */
    bool prefer_server_cipher_suites;
};

/* Headers that the file may add to each response. */
enum web_header {
    WEB_CONTENT_SECURITY_POLICY,
    WEB_FRAME_OPTIONS,
    WEB_CONTENT_TYPE_OPTIONS,
    WEB_XSS_PROTECTION,
    WEB_STRICT_TRANSPORT_SECURITY,
    WEB_HEADERS,
};
const char *web_header_name(enum web_header header);

struct web_config {
    struct config *memory; /* owns the memory of all members */
    struct web_tls tls;
    const char *headers[WEB_HEADERS]; /* NULL: none */
    bool http2;                       /* clients may choose HTTP/2 in TLS */
    struct config_pairs users;        /* names and bcrypt hashes; if empty, no user is asked for */
};

/* Names of files are relative to the directory of `name`. The error has the file, the line and the
 * path of the first mistake. On success the caller calls web_config_done(). */
bool web_config_parse(const char *name, struct sv text, struct web_config *ret, struct err *err);
void web_config_done(struct web_config *w);

#endif
