#include "server/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>

#include "base/clock.h"
#include "http/pem.h"
#include "server/web_tls.h"

/* Limit of a PEM file. */
#define PEM_MAX ((size_t)4 * 1024 * 1024)

enum { CERT, KEY, CLIENT_CA, N_PARTS };

struct tls {
    struct server_tls options;
    struct http_files *files;
    struct log *log;
    struct metric_cell *failures;
    SSL_CTX *context;
    /* version of the settings that the context was made from, or that could not be used */
    unsigned version;
    /* contents of the files that the context was made from, or that could not be used */
    struct http_file *parts[N_PARTS];
};

/* ---- one context ----------------------------------------------------------------------------- */

/* Sets an error with OpenSSL's text for its last failure. */
static bool fail(struct err *err, const char *file)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return err_set(err, ERR_INPUT, "%s: %s", file, reason != NULL ? reason : "cannot be used");
}

static BIO *open_text(const struct http_file *text)
{
    return BIO_new_mem_buf(text->data, (int)text->len);
}

/* Refuses to ask for a passphrase, so that OpenSSL does not read from the terminal. */
static int tls_on_passphrase(char *buf, int size, int writing, void *arg)
{
    (void)buf;
    (void)size;
    (void)writing;
    (void)arg;
    return 0;
}

/* Uses the certificates of a file: the first one is the server's own, and the others lead from it
 * to its root. */
static bool use_certificates(SSL_CTX *context, const struct http_file *text)
{
    BIO *in = open_text(text);
    X509 *cert = in == NULL ? NULL : PEM_read_bio_X509(in, NULL, tls_on_passphrase, NULL);
    bool ok = cert != NULL && SSL_CTX_use_certificate(context, cert) == 1;
    X509_free(cert);
    while (ok && (cert = PEM_read_bio_X509(in, NULL, tls_on_passphrase, NULL)) != NULL) {
        ok = SSL_CTX_add0_chain_cert(context, cert) == 1;
        if (!ok) {
            X509_free(cert);
        }
    }
    BIO_free(in);
    return ok;
}

static bool use_key(SSL_CTX *context, const struct http_file *text)
{
    BIO *in = open_text(text);
    EVP_PKEY *key = in == NULL ? NULL : PEM_read_bio_PrivateKey(in, NULL, tls_on_passphrase, NULL);
    bool ok = key != NULL && SSL_CTX_use_PrivateKey(context, key) == 1 &&
              SSL_CTX_check_private_key(context) == 1;
    EVP_PKEY_free(key);
    BIO_free(in);
    return ok;
}

static bool use_client_cas(SSL_CTX *context, const struct http_file *text)
{
    BIO *in = open_text(text);
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    X509 *cert;
    bool ok = in != NULL;
    while (ok && (cert = PEM_read_bio_X509(in, NULL, tls_on_passphrase, NULL)) != NULL) {
        ok = X509_STORE_add_cert(store, cert) == 1 && SSL_CTX_add_client_CA(context, cert) == 1;
        X509_free(cert);
    }
    BIO_free(in);
    /* A client without a certificate may still use the routes that are open to everybody: see
     * tls_lets_in(). */
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    return ok;
}

/* Chooses the first protocol of ours that the client offers, HTTP/2 before HTTP/1.1. If it offers
 * neither, the connection goes on with HTTP/1.1, as without ALPN. */
static int tls_on_alpn(SSL *session, const unsigned char **ret, unsigned char *ret_n,
                       const unsigned char *offered, unsigned n, void *arg)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    unsigned char *chosen = NULL;
    (void)session;
    (void)arg;
    if (SSL_select_next_proto(&chosen, ret_n, ours, sizeof(ours) - 1, offered, n) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    *ret = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_context(const struct server_tls *o, struct http_file *const *parts,
                             struct err *err)
{
    static const unsigned char name[] = "profpull";
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    bool ok = context != NULL || err_memory(err);
    if (ok) {
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
        SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
        SSL_CTX_set_session_id_context(context, name, sizeof(name) - 1);
        SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    }
    if (ok && !o->no_http2) {
        SSL_CTX_set_alpn_select_cb(context, tls_on_alpn, NULL);
    }
    ok = ok && (o->web == NULL || web_tls_apply(context, o->web, err)) &&
         (use_certificates(context, parts[CERT]) || fail(err, o->cert_file)) &&
         (use_key(context, parts[KEY]) || fail(err, o->key_file)) &&
         (parts[CLIENT_CA] == NULL || use_client_cas(context, parts[CLIENT_CA]) ||
          fail(err, o->client_ca_file));
    /* OpenSSL leaves an error when it reaches the end of a list of certificates. */
    ERR_clear_error();
    if (!ok) {
        SSL_CTX_free(context);
        context = NULL;
    }
    return context;
}

/* ---- the current one ------------------------------------------------------------------------- */

static void drop_parts(struct http_file *parts[N_PARTS])
{
    for (size_t i = 0; i < N_PARTS; i++) {
        parts[i] = http_file_unref(parts[i]);
    }
}

/* Reads the contents of the files. Returns false if one of them has never been readable. */
static bool read_parts(struct tls *t, struct http_file *ret[N_PARTS], struct err *err)
{
    static const struct http_file_rule certificates = {PEM_MAX, pem_check_certificates};
    static const struct http_file_rule key = {PEM_MAX, pem_check_key};
    const struct server_tls *o = &t->options;
    int64_t now_ms = clock_mono_ms();
    ret[CERT] = http_files_get(t->files, o->cert_file, &certificates, now_ms, err);
    ret[KEY] = ret[CERT] == NULL ? NULL : http_files_get(t->files, o->key_file, &key, now_ms, err);
    bool ok = ret[KEY] != NULL;
    if (ok && o->client_ca_file != NULL) {
        ret[CLIENT_CA] = http_files_get(t->files, o->client_ca_file, &certificates, now_ms, err);
        ok = ret[CLIENT_CA] != NULL;
    }
    return ok;
}

/* Makes a new context if a file or the settings have changed. A certificate and its key are written
 * one after the other: until they fit together, the old context stays. */
static bool renew(struct tls *t, struct err *err)
{
    struct http_file *parts[N_PARTS] = {NULL};
    bool ok = read_parts(t, parts, err);
    bool same = t->version == t->options.version;
    for (size_t i = 0; i < N_PARTS; i++) {
        same = same && parts[i] == t->parts[i];
    }
    if (!ok || same) {
        drop_parts(parts);
        return ok;
    }
    drop_parts(t->parts);
    t->version = t->options.version;
    for (size_t i = 0; i < N_PARTS; i++) {
        t->parts[i] = parts[i];
    }
    SSL_CTX *context = make_context(&t->options, parts, err);
    if (context != NULL) {
        SSL_CTX_free(t->context);
        t->context = context;
    }
    return context != NULL;
}

SSL *tls_session(struct tls *t, const struct server_tls *options)
{
    struct err err = ERR_INIT;
    t->options = *options;
    if (!renew(t, &err)) {
        metric_inc(t->failures);
        log_error(t->log, "the server's certificate cannot be replaced: the old one stays in use",
                  LOG_STR("error", err.msg));
    }
    return SSL_new(t->context);
}

bool tls_lets_in(const SSL *session, const struct server_tls *options)
{
    if (options->web != NULL) {
        return web_tls_lets_in(session, options->web);
    }
    return options->client_ca_file == NULL ||
           (session != NULL && SSL_get0_peer_certificate(session) != NULL &&
            SSL_get_verify_result(session) == X509_V_OK);
}

bool tls_chose_http2(const SSL *session)
{
    const unsigned char *name = NULL;
    unsigned n = 0;
    if (session != NULL) {
        SSL_get0_alpn_selected(session, &name, &n);
    }
    return sv_eq((struct sv){.p = (const char *)name, .n = n}, SV("h2"));
}

struct tls *tls_new(const struct server_tls *options, struct http_files *files, struct log *log,
                    struct metric_cell *failures, struct err *err)
{
    struct tls *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        err_memory(err);
        return NULL;
    }
    *t = (struct tls){.options = *options, .files = files, .log = log, .failures = failures};
    return renew(t, err) ? t : tls_free(t);
}

struct tls *tls_free(struct tls *t)
{
    if (t != NULL) {
        SSL_CTX_free(t->context);
        drop_parts(t->parts);
        free(t);
    }
    return NULL;
}
