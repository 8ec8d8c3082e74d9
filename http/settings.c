/* Compares two settings: checks whether they make the same requests. */
#include <string.h>

#include "http/http.h"

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_headers(const struct http_header *a, size_t n, const struct http_header *b,
                         size_t m)
{
    for (size_t i = 0; n == m && i < n; i++) {
        if (!same_text(a[i].name, b[i].name) || !same_text(a[i].value, b[i].value)) {
            return false;
        }
    }
    return n == m;
}

static bool same_oauth2(const struct http_oauth2 *a, const struct http_oauth2 *b)
{
    if (a == b) {
        return true;
    }
    if (a == NULL || b == NULL || a->n_scopes != b->n_scopes) {
        return false;
    }
    for (size_t i = 0; i < a->n_scopes; i++) {
        if (!same_text(a->scopes[i], b->scopes[i])) {
            return false;
        }
    }
    return same_text(a->client_id, b->client_id) && same_text(a->client_secret, b->client_secret) &&
           same_text(a->client_secret_file, b->client_secret_file) &&
           same_text(a->token_url, b->token_url) &&
           same_headers(a->params, a->n_params, b->params, b->n_params) &&
           http_settings_equal(&a->transport, &b->transport);
}

static bool same_auth(const struct http_settings *a, const struct http_settings *b)
{
    return a->auth == b->auth && same_text(a->username, b->username) &&
           same_text(a->username_file, b->username_file) && same_text(a->password, b->password) &&
           same_text(a->password_file, b->password_file) && same_text(a->auth_type, b->auth_type) &&
           same_text(a->credentials, b->credentials) &&
           same_text(a->credentials_file, b->credentials_file) &&
           same_oauth2(a->oauth2, b->oauth2) && same_text(a->region, b->region) &&
           same_text(a->session_token, b->session_token) &&
           same_text(a->session_token_file, b->session_token_file);
}

static bool same_tls(const struct http_settings *a, const struct http_settings *b)
{
    return same_text(a->tls.ca_pem, b->tls.ca_pem) && same_text(a->tls.ca_file, b->tls.ca_file) &&
           same_text(a->tls.cert_pem, b->tls.cert_pem) &&
           same_text(a->tls.cert_file, b->tls.cert_file) &&
           same_text(a->tls.key_pem, b->tls.key_pem) &&
           same_text(a->tls.key_file, b->tls.key_file) &&
           same_text(a->tls.server_name, b->tls.server_name) &&
           a->tls.insecure_skip_verify == b->tls.insecure_skip_verify &&
           a->tls.min_version == b->tls.min_version && a->tls.max_version == b->tls.max_version;
}

bool http_settings_equal(const struct http_settings *a, const struct http_settings *b)
{
    return a == b ||
           (same_auth(a, b) && same_tls(a, b) && same_text(a->proxy_url, b->proxy_url) &&
            same_text(a->no_proxy, b->no_proxy) &&
            a->proxy_from_environment == b->proxy_from_environment &&
            same_headers(a->proxy_headers, a->n_proxy_headers, b->proxy_headers,
                         b->n_proxy_headers) &&
            a->follow_redirects == b->follow_redirects && a->enable_http2 == b->enable_http2 &&
            same_headers(a->headers, a->n_headers, b->headers, b->n_headers));
}
