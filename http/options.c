#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/clock.h"
#include "http/files.h"
#include "http/pem.h"
#include "http/private.h"
#include "http/proxy.h"

/* curl_easy_setopt() can run out of memory at each string. The failures are collected, so that a
 * run of options needs one check at its end. */
#define SET(t, option, value)                                                                      \
    ((t)->setopt_failed |= curl_easy_setopt((t)->easy, (option), (value)) != CURLE_OK)

static const struct http_file_rule certificates_rule = {HTTP_TLS_FILE_MAX, pem_check_certificates};
static const struct http_file_rule key_rule = {HTTP_TLS_FILE_MAX, pem_check_key};

static const char *or_empty(const char *s)
{
    return s != NULL ? s : "";
}

static bool is_set(const char *s)
{
    return s != NULL && *s != '\0';
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Appends a line, which may contain a credential. */
static bool __attribute__((format(printf, 3, 4)))
append_line(struct curl_slist **list, struct err *err, const char *fmt, ...)
{
    struct buf line;
    va_list ap;
    buf_init(&line, HTTP_REQUEST_HEADER_MAX);
    va_start(ap, fmt);
    bool ok = buf_vprintf(&line, fmt, ap);
    va_end(ap);
    bool too_big = buf_too_big(&line);
    struct curl_slist *longer = ok ? curl_slist_append(*list, line.data) : NULL;
    buf_wipe(&line);
    if (too_big) {
        return err_set(err, ERR_LIMIT, "expected at most %d bytes", HTTP_REQUEST_HEADER_MAX);
    }
    if (longer == NULL) {
        return err_memory(err);
    }
    *list = longer;
    return true;
}

/* Returns true if the text cannot end the line: a header must not contain another one. */
static bool is_header_text(const char *s)
{
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s < 0x20 && *s != '\t') {
            return false;
        }
    }
    return true;
}

/* Says which header is over the limit, if that is the error. Returns false. */
static bool name_header(const char *name, struct err *err)
{
    return err->kind == ERR_LIMIT && err_wrap(err, "header %s", name);
}

static bool append_header(struct http_transfer *t, const char *name, const char *value,
                          struct err *err)
{
    bool text = is_header_text(name);
    if (*name == '\0' || !text || strpbrk(name, ": ;") != NULL || !is_header_text(value)) {
        return err_set(err, ERR_INPUT, "header %.64s: expected a name and a value of one line each",
                       text ? name : "(with control characters)");
    }
    /* "Name;" makes libcurl send a header with an empty value. */
    bool ok = *value != '\0' ? append_line(&t->headers, err, "%s: %s", name, value)
                             : append_line(&t->headers, err, "%s;", name);
    return ok || name_header(name, err);
}

static bool has_name(const struct http_header *headers, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcasecmp(headers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns true if the request or the settings have this header. */
static bool is_given(const struct http_request *r, const char *name)
{
    return has_name(r->headers, r->n_headers, name) ||
           has_name(r->settings->headers, r->settings->n_headers, name);
}

static bool append_given(struct http_transfer *t, const struct http_request *r, struct err *err)
{
    const struct http_settings *s = r->settings;
    bool ok = true;
    for (size_t i = 0; ok && i < r->n_headers; i++) {
        ok = append_header(t, r->headers[i].name, r->headers[i].value, err);
    }
    for (size_t i = 0; ok && i < s->n_headers; i++) {
        ok = has_name(r->headers, r->n_headers, s->headers[i].name) ||
             append_header(t, s->headers[i].name, s->headers[i].value, err);
    }
    return ok;
}

/* Suppresses headers that libcurl would add to an upload by itself: waiting for "100 Continue"
 * costs a second with servers that do not send it, and a body is a form only if the caller says so.
 * libcurl would sign a suppressed header, so a signed upload keeps its Expect header, but waits
 * only 1 ms. */
static bool append_suppressions(struct http_transfer *t, const struct http_request *r,
                                struct err *err)
{
    if (t->method != HTTP_POST && t->method != HTTP_PUT) {
        return true;
    }
    if (r->settings->auth == HTTP_AUTH_S3) {
        SET(t, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
        return true;
    }
    return (is_given(r, "Expect") || append_line(&t->headers, err, "Expect:")) &&
           (is_given(r, "Content-Type") || append_line(&t->headers, err, "Content-Type:"));
}

/* ---- credentials ----------------------------------------------------------------------------- */

static bool append_basic(struct http_transfer *t, const char *username, const char *password,
                         struct err *err)
{
    struct buf plain, coded;
    buf_init(&plain, HTTP_REQUEST_HEADER_MAX);
    buf_init(&coded, HTTP_REQUEST_HEADER_MAX);
    bool ok = buf_printf(&plain, "%s:%s", or_empty(username), or_empty(password)) &&
              base64_encode((struct sv){plain.data, plain.len}, &coded);
    if (ok) {
        ok = append_line(&t->headers, err, "Authorization: Basic %s", coded.data);
    } else if (buf_too_big(&plain) || buf_too_big(&coded)) {
        err_set(err, ERR_LIMIT, "expected at most %d bytes", HTTP_REQUEST_HEADER_MAX);
    } else {
        err_memory(err);
    }
    buf_wipe(&plain);
    buf_wipe(&coded);
    return ok || name_header("Authorization", err);
}

static bool set_basic(struct http_transfer *t, const char *username, const char *password,
                      struct err *err)
{
    if (t->easy == NULL) {
        return append_basic(t, username, password, err);
    }
    SET(t, CURLOPT_USERNAME, or_empty(username));
    SET(t, CURLOPT_PASSWORD, or_empty(password));
    return true;
}

static bool set_basic_auth(struct http_transfer *t, const struct http_settings *s, struct err *err)
{
    char *username = NULL;
    char *password = NULL;
    bool ok = http_files_secret(t->client->files, s->username_file, &username, err) &&
              http_files_secret(t->client->files, s->password_file, &password, err);
    ok = ok && set_basic(t, username != NULL ? username : s->username,
                         password != NULL ? password : s->password, err);
    secret_free(username);
    secret_free(password);
    return ok;
}

/* Sets the credentials for S3. The user name and the password are the two parts of an access key; a
 * temporary key has a session token as well. */
static bool set_s3_auth(struct http_transfer *t, const struct http_settings *s, struct err *err)
{
    char scope[128];
    char *secret = NULL;
    (void)snprintf(scope, sizeof(scope), "aws:amz:%s:s3", s->region);
    SET(t, CURLOPT_AWS_SIGV4, scope);
    /* libcurl 8.14 does not sign a path as it is. Names in buckets have no segment "." or "..", so
     * that nothing is left to change in it. */
    SET(t, CURLOPT_PATH_AS_IS, 0L);
    bool ok = set_basic_auth(t, s, err) &&
              http_files_secret(t->client->files, s->session_token_file, &secret, err);
    const char *token = secret != NULL ? secret : s->session_token;
    ok = ok && (token == NULL || append_header(t, "x-amz-security-token", token, err));
    secret_free(secret);
    return ok;
}

static bool append_authorization(struct http_transfer *t, const char *type, const char *credentials,
                                 struct err *err)
{
    if (!is_header_text(type) || !is_header_text(credentials)) {
        return err_set(err, ERR_INPUT, "credentials: expected one line of text");
    }
    return append_line(&t->headers, err, "Authorization: %s %s", type, credentials) ||
           name_header("Authorization", err);
}

static bool set_header_auth(struct http_transfer *t, const struct http_settings *s, struct err *err)
{
    char *secret;
    if (!http_files_secret(t->client->files, s->credentials_file, &secret, err)) {
        return false;
    }
    bool ok = append_authorization(t, s->auth_type != NULL ? s->auth_type : "Bearer",
                                   secret != NULL ? secret : or_empty(s->credentials), err);
    secret_free(secret);
    return ok || (s->credentials_file != NULL && err->kind != ERR_MEMORY &&
                  err_wrap(err, "%s", s->credentials_file));
}

static bool set_oauth2(struct http_transfer *t, const struct http_settings *s, struct err *err)
{
    const char *authorization = NULL;
    t->token.oauth2 = s->oauth2;
    t->token.transfer = t;
    t->result = http_tokens_get(t->client->tokens, &t->token, &authorization, err);
    t->needs_token = t->result == HTTP_DONE && authorization == NULL;
    return t->result == HTTP_DONE &&
           (t->needs_token || append_header(t, "Authorization", authorization, err));
}

bool http_options_authorize(struct http_transfer *t, const char *authorization, struct err *err)
{
    if (!append_header(t, "Authorization", authorization, err)) {
        return false;
    }
    t->needs_token = false;
    if (t->easy != NULL) {
        SET(t, CURLOPT_HTTPHEADER, t->headers);
    }
    return http_options_apply_hop(t, err);
}

/* Sets the credentials. A header of the request has precedence over the settings, and the settings
 * over the URL. */
static bool set_auth(struct http_transfer *t, const struct http_request *r, struct err *err)
{
    const struct http_settings *s = r->settings;
    if (is_given(r, "Authorization")) {
        return true;
    }
    switch (s->auth) {
    case HTTP_AUTH_BASIC:
        return set_basic_auth(t, s, err);
    case HTTP_AUTH_HEADER:
        return set_header_auth(t, s, err);
    case HTTP_AUTH_OAUTH2:
        return set_oauth2(t, s, err);
    case HTTP_AUTH_S3:
        return set_s3_auth(t, s, err);
    case HTTP_AUTH_NONE:
        break;
    }
    return (t->url.user == NULL && t->url.password == NULL) ||
           set_basic(t, t->url.user, t->url.password, err);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* Gets the PEM text from the settings or from a file; *ret is {NULL, 0} if there is neither. The
 * transfer keeps a reference to the file. */
static bool get_pem(struct http_transfer *t, const char *pem, const char *path,
                    const struct http_file_rule *rule, struct http_file **keep, struct sv *ret,
                    struct err *err)
{
    *ret = sv_from(pem);
    if (pem != NULL || path == NULL) {
        return true;
    }
    *keep = http_files_get(t->client->files, path, rule, clock_mono_ms(), err);
    if (*keep == NULL) {
        return false;
    }
    *ret = (struct sv){(*keep)->data, (*keep)->len};
    return true;
}

static struct curl_blob blob_of(struct sv pem)
{
    /* libcurl only reads it; its type has no const. */
    return (struct curl_blob){
        .data = (void *)(uintptr_t)pem.p, .len = pem.n, .flags = CURL_BLOB_NOCOPY};
}

/* Sets the CA in memory and not as a file, because libcurl would keep the certificates of a CA file
 * for a day. */
static bool set_ca(struct http_transfer *t, const struct http_settings *s, struct err *err)
{
    struct sv pem;
    if (!get_pem(t, s->tls.ca_pem, s->tls.ca_file, &certificates_rule, &t->ca, &pem, err)) {
        return false;
    }
    if (pem.n > 0) {
        struct curl_blob blob = blob_of(pem);
        SET(t, CURLOPT_CAINFO_BLOB, &blob);
        /* Only this CA is trusted: otherwise the system's directory would be trusted as well. */
        SET(t, CURLOPT_CAPATH, NULL);
    }
    return true;
}

static bool set_client_cert(struct http_transfer *t, const struct http_settings *s, struct err *err)
{
    struct sv cert, key;
    if (!get_pem(t, s->tls.cert_pem, s->tls.cert_file, &certificates_rule, &t->cert, &cert, err) ||
        !get_pem(t, s->tls.key_pem, s->tls.key_file, &key_rule, &t->key, &key, err)) {
        return false;
    }
    if (cert.n > 0) {
        /* One PEM text may contain both. */
        struct curl_blob cert_blob = blob_of(cert), key_blob = blob_of(key.n > 0 ? key : cert);
        SET(t, CURLOPT_SSLCERT_BLOB, &cert_blob);
        SET(t, CURLOPT_SSLKEY_BLOB, &key_blob);
    }
    return true;
}

static bool set_tls(struct http_transfer *t, const struct http_settings *s, struct err *err)
{
    static const struct {
        long min;
        long max;
    } versions[] = {
        [HTTP_TLS_DEFAULT] = {CURL_SSLVERSION_TLSv1_2, 0},
        [HTTP_TLS_1_0] = {CURL_SSLVERSION_TLSv1_0, CURL_SSLVERSION_MAX_TLSv1_0},
        [HTTP_TLS_1_1] = {CURL_SSLVERSION_TLSv1_1, CURL_SSLVERSION_MAX_TLSv1_1},
        [HTTP_TLS_1_2] = {CURL_SSLVERSION_TLSv1_2, CURL_SSLVERSION_MAX_TLSv1_2},
        [HTTP_TLS_1_3] = {CURL_SSLVERSION_TLSv1_3, CURL_SSLVERSION_MAX_TLSv1_3},
    };
    SET(t, CURLOPT_SSLVERSION, versions[s->tls.min_version].min | versions[s->tls.max_version].max);
    if (s->tls.insecure_skip_verify) {
        SET(t, CURLOPT_SSL_VERIFYPEER, 0L);
        SET(t, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    return set_ca(t, s, err) && set_client_cert(t, s, err);
}

/* ---- destination ----------------------------------------------------------------------------- */

static bool uses_server_name(const struct http_transfer *t)
{
    return t->url.https && is_set(t->request.settings->tls.server_name);
}

/* libcurl takes SNI and the name to verify from the URL. So the URL gets the server name, and the
 * connection is directed to the real host, whose name stays in the Host header. (A no_proxy list is
 * compared with the server name then.) */
static bool set_server_name(struct http_transfer *t, const struct http_request *r, struct err *err)
{
    if (!uses_server_name(t)) {
        return true;
    }
    bool v6 = strchr(t->url.host, ':') != NULL;
    const char *open = v6 ? "[" : "";
    const char *close = v6 ? "]" : "";
    unsigned port = t->url.port;
    bool ok = append_line(&t->connect_to, err, "::%s%s%s:%u", open, t->url.host, close, port);
    SET(t, CURLOPT_CONNECT_TO, t->connect_to);
    if (!ok || is_given(r, "Host")) {
        return ok;
    }
    return port == 443
               ? append_line(&t->headers, err, "Host: %s%s%s", open, t->url.host, close)
               : append_line(&t->headers, err, "Host: %s%s%s:%u", open, t->url.host, close, port);
}

/* Sets the headers of a CONNECT request. */
static bool set_proxy_headers(struct http_transfer *t, const struct http_settings *s,
                              struct err *err)
{
    for (size_t i = 0; i < s->n_proxy_headers; i++) {
        if (!append_line(&t->proxy_headers, err, "%s: %s", s->proxy_headers[i].name,
                         s->proxy_headers[i].value)) {
            return name_header(s->proxy_headers[i].name, err);
        }
    }
    if (t->proxy_headers != NULL) {
        SET(t, CURLOPT_PROXYHEADER, t->proxy_headers);
    }
    return true;
}

static bool is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || strchr(host, ':') != NULL;
}

/* Sets the host to look up. Takes over host. */
static void set_lookup(struct http_transfer *t, char *host, uint16_t port)
{
    if (host != NULL && is_address(host)) {
        free(host);
        host = NULL;
    }
    t->lookup_host = host;
    t->lookup_port = port;
    t->lookup.transfer = t;
}

static bool find_route(struct http_transfer *t, const struct http_settings *s, struct err *err)
{
    const char *proxy = proxy_of(&t->url, s);
    const char *exceptions = proxy_exceptions(s);
    /* libcurl compares the host of the URL that it gets, which may have the server name. */
    const char *name = uses_server_name(t) ? s->tls.server_name : t->url.host;
    char *host = NULL;
    uint16_t port = t->url.port;
    t->proxied = *proxy != '\0' && !proxy_is_excepted(exceptions, sv_from(name));
    if (!t->proxied) {
        host = strdup(t->url.host);
    } else if (!proxy_parse(proxy, &host, &port, err)) {
        return false;
    }
    if (host == NULL) {
        return err_memory(err);
    }
    set_lookup(t, host, port);
    return true;
}

static void set_route(struct http_transfer *t)
{
    const struct http_settings *s = t->request.settings;
    /* The value is empty and not NULL, because libcurl would read the environment otherwise. */
    SET(t, CURLOPT_PROXY, proxy_of(&t->url, s));
    SET(t, CURLOPT_NOPROXY, proxy_exceptions(s));
    if (t->lookup_host == NULL) {
        /* libcurl would keep an entry for the address, and search all entries at the end of each
         * transfer. Entries that it gets from http_options_resolve() must stay for a moment. */
        SET(t, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
    }
}

bool http_options_resolve(struct http_transfer *t, const char *addresses, struct err *err)
{
    curl_slist_free_all(t->resolve);
    t->resolve = NULL;
    /* "+": the entry may expire. */
    bool ok = append_line(&t->resolve, err, "+%s:%u:%s", t->lookup_host, t->lookup_port, addresses);
    SET(t, CURLOPT_RESOLVE, t->resolve);
    return ok;
}

/* ---- method and body ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    CURLoption option;
    CURLoption size_option; /* 0: without a body */
    const char *custom;     /* the method, if the option means another one */
} methods[] = {
    [HTTP_GET] = {"GET", CURLOPT_HTTPGET, 0, NULL},
    [HTTP_HEAD] = {"HEAD", CURLOPT_NOBODY, 0, NULL},
    [HTTP_POST] = {"POST", CURLOPT_POST, CURLOPT_POSTFIELDSIZE_LARGE, NULL},
    [HTTP_PUT] = {"PUT", CURLOPT_UPLOAD, CURLOPT_INFILESIZE_LARGE, NULL},
    [HTTP_DELETE] = {"DELETE", CURLOPT_HTTPGET, 0, "DELETE"},
};

const char *http_method_name(enum http_method m)
{
    return methods[m].name;
}

static bool choose_method(struct http_transfer *t, const struct http_request *r, struct err *err)
{
    const char *name = r->method != NULL ? r->method : "GET";
    size_t m = 0;
    while (m <= HTTP_DELETE && strcmp(name, methods[m].name) != 0) {
        m++;
    }
    if (m > HTTP_DELETE) {
        return err_set(err, ERR_INPUT,
                       "expected method GET, HEAD, POST, PUT or DELETE, got \"%.16s\"", name);
    }
    t->method = (enum http_method)m;
    return methods[m].size_option != 0 || r->n_body == 0 ||
           err_set(err, ERR_INPUT, "expected POST or PUT for a request with a body");
}

static void set_method(struct http_transfer *t)
{
    SET(t, methods[t->method].option, 1L);
    if (methods[t->method].custom != NULL) {
        SET(t, CURLOPT_CUSTOMREQUEST, methods[t->method].custom);
    }
    if (methods[t->method].size_option != 0) {
        SET(t, methods[t->method].size_option, (curl_off_t)t->body_size);
    }
}

static void set_constants(struct http_transfer *t)
{
    size_t buffer = t->request.receive_buffer;
    SET(t, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(t, CURLOPT_NOSIGNAL, 1L);
    SET(t, CURLOPT_PATH_AS_IS, 1L);
    /* libcurl refuses this if the hop before a redirect left its buffer, which already has this
     * size. */
    (void)curl_easy_setopt(t->easy, CURLOPT_BUFFERSIZE,
                           buffer == 0 ? (long)HTTP_RECEIVE_BUFFER : (long)buffer);
    SET(t, CURLOPT_UPLOAD_BUFFERSIZE, (long)HTTP_UPLOAD_BUFFER);
    SET(t, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(t, CURLOPT_ACCEPT_ENCODING, t->request.accept_gzip ? "gzip" : (const char *)NULL);
    /* Headers for the server, credentials among them, are not for a proxy. */
    SET(t, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    /* Ending a transfer during its name lookup must not wait for the resolver's thread. */
    SET(t, CURLOPT_QUICK_EXIT, 1L);
    SET(t, CURLOPT_ERRORBUFFER, t->curl_error);
    SET(t, CURLOPT_PRIVATE, t);
    SET(t, CURLOPT_USERAGENT, USER_AGENT);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool set_curl_url(struct http_transfer *t, struct err *err)
{
    const char *host = t->request.settings->tls.server_name;
    if (!uses_server_name(t)) {
        SET(t, CURLOPT_URL, t->url.text);
        return true;
    }
    CURLU *u = curl_url();
    char *text = NULL;
    CURLUcode code = u != NULL ? curl_url_set(u, CURLUPART_URL, t->url.text, CURLU_PATH_AS_IS)
                               : CURLUE_OUT_OF_MEMORY;
    code = code != CURLUE_OK ? code : curl_url_set(u, CURLUPART_HOST, host, 0);
    code = code != CURLUE_OK ? code : curl_url_get(u, CURLUPART_URL, &text, 0);
    if (code == CURLUE_OK) {
        SET(t, CURLOPT_URL, text);
    }
    curl_free(text);
    curl_url_cleanup(u);
    if (code == CURLUE_OUT_OF_MEMORY) {
        return err_memory(err);
    }
    return code == CURLUE_OK ||
           err_set(err, ERR_INPUT, "server_name: expected a host name, got \"%s\"", host);
}

static long to_curl_ms(int64_t ms)
{
    return ms < 1 ? 1 : ms > INT32_MAX / 2 ? INT32_MAX / 2 : (long)ms;
}

int64_t http_connect_limit_ms(const struct http_request *r)
{
    return r->connect_timeout_ms > 0 ? r->connect_timeout_ms : HTTP_CONNECT_TIMEOUT_MS;
}

bool http_options_apply_hop(struct http_transfer *t, struct err *err)
{
    const struct http_request *r = &t->request;
    int64_t connect = http_connect_limit_ms(r);
    t->hop_ns = clock_mono_ns();
    if (t->easy == NULL) {
        return true;
    }
    if (!set_curl_url(t, err)) {
        return false;
    }
    if (r->timeout_ms > 0) {
        int64_t left = r->timeout_ms - (t->hop_ns - t->start_ns) / NS_PER_MS;
        connect = connect < left ? connect : left;
    }
    /* CURLOPT_TIMEOUT_MS is not set: libcurl drops a timer that fires up to a millisecond early by
     * its own count, and the transfer would stay for ever. */
    SET(t, CURLOPT_CONNECTTIMEOUT_MS, to_curl_ms(connect) + HTTP_CONNECT_SLACK_MS);
    return !t->setopt_failed || err_memory(err);
}

static void set_version(struct http_transfer *t)
{
    bool only = t->request.http2_only;
    bool by_alpn = t->request.settings->enable_http2 || only;
    /* libcurl 7.88 fails with a request that asks for prior knowledge on a connection that has
     * begun with it. One that would upgrade a connection goes out there as it is. */
    t->only_kept = http_is_plain_http2(t);
    SET(t, CURLOPT_HTTP_VERSION,
        t->only_kept ? (long)CURL_HTTP_VERSION_2_0
        : by_alpn    ? (long)CURL_HTTP_VERSION_2TLS
                     : (long)CURL_HTTP_VERSION_1_1);
    /* A proxy does not speak it: its bytes go through a tunnel, as those of TLS do. */
    SET(t, CURLOPT_HTTPPROXYTUNNEL, only ? 1L : 0L);
    /* With TLS, requests that begin together wait for one connection instead of making one each. */
    SET(t, CURLOPT_PIPEWAIT, only && t->url.https ? 1L : 0L);
}

bool http_is_plain_http2(const struct http_transfer *t)
{
    return t->request.http2_only && !t->url.https;
}

void http_options_connect(struct http_transfer *t)
{
    t->only_kept = false;
    t->none_kept = false;
    /* The values are numbers, so nothing is allocated and the calls cannot fail. */
    curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, 1L);
}

/* Takes a handle and sets all options that do not add headers. */
static bool take_easy(struct http_transfer *t, struct err *err)
{
    t->easy = http_client_take_easy(t->client);
    if (t->easy == NULL) {
        return err_memory(err);
    }
    set_constants(t);
    http_transfer_set_callbacks(t);
    set_version(t);
    set_route(t);
    set_method(t);
    return set_proxy_headers(t, t->request.settings, err);
}

bool http_options_use_libcurl(struct http_transfer *t, struct err *err)
{
    if (!take_easy(t, err)) {
        return false;
    }
    SET(t, CURLOPT_HTTPHEADER, t->headers);
    return http_options_apply_hop(t, err);
}

bool http_options_apply(struct http_transfer *t, const struct http_request *r, struct err *err)
{
    const struct http_settings *s = r->settings;
    if (!choose_method(t, r, err) || !find_route(t, s, err)) {
        return false;
    }
    t->direct = direct_serves(t, r);
    if ((!t->direct && !take_easy(t, err)) || !append_given(t, r, err) || !set_auth(t, r, err) ||
        (t->url.https && !set_tls(t, s, err)) || !set_server_name(t, r, err) ||
        !append_suppressions(t, r, err)) {
        return false;
    }
    if (t->easy != NULL) {
        SET(t, CURLOPT_HTTPHEADER, t->headers);
    }
    return http_options_apply_hop(t, err);
}
