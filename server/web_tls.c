#include "server/web_tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define LIST_MAX ((size_t)16 * 1024)

static const int versions[] = {
    [WEB_TLS_10] = TLS1_VERSION,
    [WEB_TLS_11] = TLS1_1_VERSION,
    [WEB_TLS_12] = TLS1_2_VERSION,
    [WEB_TLS_13] = TLS1_3_VERSION,
};

/* ---- lists ----------------------------------------------------------------------------------- */

/* Compares a cipher suite with a name. Go's names of two suites lack the hash. */
static bool is_suite(const SSL_CIPHER *c, const char *name)
{
    struct sv standard = sv_from(SSL_CIPHER_standard_name(c));
    struct sv wanted = sv_from(name);
    return sv_eq(standard, wanted) ||
           (sv_ends_with(wanted, SV("_CHACHA20_POLY1305")) && sv_starts_with(standard, wanted));
}

static const SSL_CIPHER *suite_named(SSL_CTX *context, const char *name)
{
    const STACK_OF(SSL_CIPHER) *all = SSL_CTX_get_ciphers(context);
    for (int i = 0; i < sk_SSL_CIPHER_num(all); i++) {
        const SSL_CIPHER *c = sk_SSL_CIPHER_value(all, i);
        if (is_suite(c, name)) {
            return c;
        }
    }
    return NULL;
}

/* Sets the cipher suites up to TLS 1.2. Those of TLS 1.3 cannot be chosen, as in Go. */
static bool use_suites(SSL_CTX *context, const struct config_strings *names, struct err *err)
{
    struct buf list;
    bool ok = true;
    buf_init(&list, LIST_MAX);
    for (size_t i = 0; ok && i < names->n; i++) {
        const SSL_CIPHER *c = suite_named(context, names->at[i]);
        ok = c != NULL ||
             err_set(err, ERR_INPUT, "cipher_suites: unknown or unsafe: %s", names->at[i]);
        if (ok && strcmp(SSL_CIPHER_get_version(c), "TLSv1.3") != 0) {
            buf_printf(&list, "%s%s", list.len > 0 ? ":" : "", SSL_CIPHER_get_name(c));
        }
    }
    ok = ok && (list.len == 0 || SSL_CTX_set_cipher_list(context, list.data) == 1 ||
                err_set(err, ERR_INPUT, "cipher_suites: none can be used"));
    buf_done(&list);
    return ok;
}

/* Returns OpenSSL's name of a curve; NULL if Go has no curve of this name. */
static const char *curve_named(const char *name)
{
    static const struct {
        const char *go;
        const char *openssl;
    } rows[] = {
        {"CurveP256", "P-256"},
        {"CurveP384", "P-384"},
        {"CurveP521", "P-521"},
        {"X25519", "X25519"},
        {"X25519MLKEM768", "X25519MLKEM768"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].go, name) == 0) {
            return rows[i].openssl;
        }
    }
    return NULL;
}

static bool use_curves(SSL_CTX *context, const struct config_strings *names, struct err *err)
{
    struct buf list;
    bool ok = true;
    buf_init(&list, LIST_MAX);
    for (size_t i = 0; ok && i < names->n; i++) {
        const char *name = curve_named(names->at[i]);
        ok =
            name != NULL || err_set(err, ERR_INPUT, "curve_preferences: unknown: %s", names->at[i]);
        if (ok) {
            buf_printf(&list, "%s%s", i > 0 ? ":" : "", name);
        }
    }
    ok = ok &&
         (list.len == 0 || SSL_CTX_set1_groups_list(context, list.data) == 1 ||
          err_set(err, ERR_INPUT, "curve_preferences: OpenSSL does not know all of %s", list.data));
    buf_done(&list);
    return ok;
}

/* ---- clients --------------------------------------------------------------------------------- */

static int web_tls_on_any_certificate(int ok, X509_STORE_CTX *context)
{
    (void)ok;
    (void)context;
    return 1;
}

bool web_tls_apply(SSL_CTX *context, const struct web_tls *web, struct err *err)
{
    SSL_CTX_set_min_proto_version(context, versions[web->min_version]);
    SSL_CTX_set_max_proto_version(context, versions[web->max_version]);
    if (web->prefer_server_cipher_suites) {
        SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
    }
    if (web->client_auth == WEB_CLIENT_REQUEST || web->client_auth == WEB_CLIENT_REQUIRE_ANY) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, web_tls_on_any_certificate);
    }
    return use_suites(context, &web->cipher_suites, err) && use_curves(context, &web->curves, err);
}

static bool is_listed(const struct config_strings *list, struct sv name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (sv_eq_str(name, list->at[i])) {
            return true;
        }
    }
    return false;
}

static struct sv text_of(const ASN1_STRING *s)
{
    return (struct sv){.p = (const char *)ASN1_STRING_get0_data(s),
                       .n = (size_t)ASN1_STRING_length(s)};
}

static bool is_listed_address(const struct config_strings *list, const ASN1_STRING *address)
{
    char text[INET6_ADDRSTRLEN];
    struct sv bytes = text_of(address);
    int family = bytes.n == 4 ? AF_INET : AF_INET6;
    return (bytes.n == 4 || bytes.n == 16) &&
           inet_ntop(family, bytes.p, text, sizeof(text)) != NULL && is_listed(list, sv_from(text));
}

/* Compares the names in a certificate (of hosts, e-mail addresses, URIs and IP addresses) with a
 * list, as Go does. */
static bool is_listed_name(const struct config_strings *list, const GENERAL_NAME *name)
{
    switch (name->type) {
    case GEN_DNS:
        return is_listed(list, text_of(name->d.dNSName));
    case GEN_EMAIL:
        return is_listed(list, text_of(name->d.rfc822Name));
    case GEN_URI:
        return is_listed(list, text_of(name->d.uniformResourceIdentifier));
    case GEN_IPADD:
        return is_listed_address(list, name->d.iPAddress);
    default:
        return false;
    }
}

static bool has_allowed_name(const X509 *cert, const struct config_strings *allowed)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    bool found = allowed->n == 0;
    for (int i = 0; !found && i < sk_GENERAL_NAME_num(names); i++) {
        found = is_listed_name(allowed, sk_GENERAL_NAME_value(names, i));
    }
    GENERAL_NAMES_free(names);
    ERR_clear_error();
    return found;
}

bool web_tls_lets_in(const SSL *session, const struct web_tls *web)
{
    const X509 *cert = session != NULL ? SSL_get0_peer_certificate(session) : NULL;
    bool verified = cert != NULL && SSL_get_verify_result(session) == X509_V_OK &&
                    has_allowed_name(cert, &web->client_allowed_sans);
    switch (web->client_auth) {
    case WEB_CLIENT_REQUIRE_ANY:
        return cert != NULL;
    case WEB_CLIENT_VERIFY_GIVEN:
        return cert == NULL || verified;
    case WEB_CLIENT_VERIFY:
        return verified;
    case WEB_CLIENT_NONE:
    case WEB_CLIENT_REQUEST:
        return true;
    }
    return false;
}
