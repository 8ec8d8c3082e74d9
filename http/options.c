#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "http/pem.h"
#include "http/private.h"

/* curl_easy_setopt() can fail for want of memory at each string. The failures are collected, so
 * that a run of options needs one check at its end. */
#define SET(t, option, value)                                                                      \
    do {                                                                                           \
        if (curl_easy_setopt((t)->easy, (option), (value)) != CURLE_OK)                            \
            (t)->setopt_failed = true;                                                             \
    } while (0)

static const struct http_file_rule secret_rule = {HTTP_SECRET_FILE_MAX, NULL};
static const struct http_file_rule certificates_rule = {HTTP_TLS_FILE_MAX, pem_check_certificates};
static const struct http_file_rule key_rule = {HTTP_TLS_FILE_MAX, pem_check_key};

static enum http_result no_memory(struct err *err)
{
    err_memory(err);
    return HTTP_ERR_MEMORY;
}

/* ---- headers --------------------------------------------------------------------------------- */

static bool append_line(struct http_transfer *t, const char *line)
{
    struct curl_slist *list = curl_slist_append(t->headers, line);
    if (list == NULL) {
        return false;
    }
    t->headers = list;
    return true;
}

/* Nothing that would end the line: a header must not smuggle in another one. */
static bool is_header_text(const char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < 0x20 && *s != '\t') {
            return false;
        }
    }
    return true;
}

static enum http_result append_header(struct http_transfer *t, const char *name, const char *value,
                                      struct err *err)
{
    if (!*name || !is_header_text(name) || strpbrk(name, ": ;") != NULL || !is_header_text(value)) {
        err_set(err, ERR_INPUT, "header %.64s: expected a name and a value of one line each",
                is_header_text(name) ? name : "(with control characters)");
        return HTTP_ERR_CONFIG;
    }
    struct buf line;
    buf_init(&line, HTTP_REQUEST_HEADER_MAX);
    /* "Name;" is how libcurl is told of a header with an empty value. */
    if (*value) {
        buf_printf(&line, "%s: %s", name, value);
    } else {
        buf_printf(&line, "%s;", name);
    }
    bool ok = buf_ok(&line) && append_line(t, line.data);
    if (buf_ok(&line)) {
        explicit_bzero(line.data, line.len);
    }
    bool too_big = buf_too_big(&line);
    buf_done(&line);
    if (too_big) {
        err_set(err, ERR_LIMIT, "header %s: expected at most %d bytes", name,
                HTTP_REQUEST_HEADER_MAX);
        return HTTP_ERR_CONFIG;
    }
    return ok ? HTTP_DONE : no_memory(err);
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

/* Set by the request or the settings. */
static bool is_given(const struct http_request *r, const char *name)
{
    return has_name(r->headers, r->n_headers, name) ||
           (r->settings != NULL && has_name(r->settings->headers, r->settings->n_headers, name));
}

static enum http_result append_given(struct http_transfer *t, const struct http_request *r,
                                     struct err *err)
{
    enum http_result result = HTTP_DONE;
    const struct http_settings *s = r->settings;
    for (size_t i = 0; i < r->n_headers && result == HTTP_DONE; i++) {
        result = append_header(t, r->headers[i].name, r->headers[i].value, err);
    }
    for (size_t i = 0; s != NULL && i < s->n_headers && result == HTTP_DONE; i++) {
        if (!has_name(r->headers, r->n_headers, s->headers[i].name)) {
            result = append_header(t, s->headers[i].name, s->headers[i].value, err);
        }
    }
    return result;
}

/* What libcurl would add of its own accord and must not: waiting for "100 Continue" costs a second
 * with servers that do not send it, and a body is a form only if the caller says so. */
static bool append_suppressions(struct http_transfer *t, const struct http_request *r)
{
    if (t->method != HTTP_POST && t->method != HTTP_PUT) {
        return true;
    }
    return (is_given(r, "Expect") || append_line(t, "Expect:")) &&
           (is_given(r, "Content-Type") || append_line(t, "Content-Type:"));
}

/* ---- credentials ----------------------------------------------------------------------------- */

/* The text of a file without white space at its ends, which the caller wipes and frees. */
static enum http_result read_secret(struct http_transfer *t, const char *path, char **ret_secret,
                                    struct err *err)
{
    struct http_file *file =
        http_files_get(t->client->files, path, &secret_rule, clock_mono_ms(), err);
    if (file == NULL) {
        return HTTP_ERR_CONFIG;
    }
    struct sv text = sv_trim((struct sv){file->data, file->len});
    char *copy = strndup(text.p, text.n);
    http_file_unref(file);
    if (copy == NULL) {
        return no_memory(err);
    }
    *ret_secret = copy;
    return HTTP_DONE;
}

static void wipe(char *secret)
{
    if (secret != NULL) {
        explicit_bzero(secret, strlen(secret));
    }
    free(secret);
}

static enum http_result set_basic(struct http_transfer *t, const struct http_settings *s,
                                  struct err *err)
{
    char *name = NULL;
    char *from_file = NULL;
    enum http_result result = HTTP_DONE;
    if (s->username_file != NULL) {
        result = read_secret(t, s->username_file, &name, err);
    }
    if (result == HTTP_DONE && s->password_file != NULL) {
        result = read_secret(t, s->password_file, &from_file, err);
    }
    if (result != HTTP_DONE) {
        wipe(name);
        return result;
    }
    SET(t, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
    SET(t, CURLOPT_USERNAME, name ? name : s->username ? s->username : "");
    SET(t, CURLOPT_PASSWORD, from_file ? from_file : s->password ? s->password : "");
    wipe(name);
    wipe(from_file);
    return HTTP_DONE;
}

static enum http_result add_authorization(struct http_transfer *t, const char *type,
                                          const char *credentials, struct err *err)
{
    if (!is_header_text(credentials)) {
        err_set(err, ERR_INPUT, "credentials: expected one line of text");
        return HTTP_ERR_CONFIG;
    }
    struct buf value;
    buf_init(&value, HTTP_REQUEST_HEADER_MAX);
    buf_printf(&value, "%s %s", type != NULL ? type : "Bearer", credentials);
    if (!buf_ok(&value)) {
        return no_memory(err);
    }
    enum http_result result = append_header(t, "Authorization", value.data, err);
    explicit_bzero(value.data, value.len);
    buf_done(&value);
    return result;
}

static enum http_result set_header_auth(struct http_transfer *t, const struct http_settings *s,
                                        struct err *err)
{
    if (s->credentials_file == NULL) {
        return add_authorization(t, s->auth_type, s->credentials != NULL ? s->credentials : "",
                                 err);
    }
    char *secret = NULL;
    enum http_result result = read_secret(t, s->credentials_file, &secret, err);
    if (result != HTTP_DONE) {
        return result;
    }
    result = add_authorization(t, s->auth_type, secret, err);
    if (result == HTTP_ERR_CONFIG) {
        err_wrap(err, "%s", s->credentials_file);
    }
    wipe(secret);
    return result;
}

static enum http_result set_oauth2(struct http_transfer *t, struct err *err)
{
    const char *value;
    enum http_result result = http_tokens_get(t, &value, err);
    t->needs_token = result == HTTP_DONE && value == NULL;
    if (result != HTTP_DONE || value == NULL) {
        return result;
    }
    return append_header(t, "Authorization", value, err);
}

enum http_result http_options_authorize(struct http_transfer *t, const char *value, struct err *err)
{
    enum http_result result = append_header(t, "Authorization", value, err);
    if (result != HTTP_DONE) {
        return result;
    }
    t->needs_token = false;
    SET(t, CURLOPT_HTTPHEADER, t->headers);
    return http_options_apply_hop(t, err);
}

/* A header of the request wins over the settings, the settings win over the URL. */
static enum http_result set_auth(struct http_transfer *t, const struct http_request *r,
                                 struct err *err)
{
    const struct http_settings *s = r->settings;
    if (is_given(r, "Authorization")) {
        return HTTP_DONE;
    }
    if (s != NULL && s->auth == HTTP_AUTH_BASIC) {
        return set_basic(t, s, err);
    }
    if (s != NULL && s->auth == HTTP_AUTH_HEADER) {
        return set_header_auth(t, s, err);
    }
    if (s != NULL && s->auth == HTTP_AUTH_OAUTH2) {
        return set_oauth2(t, err);
    }
    if (t->url.user != NULL || t->url.password != NULL) {
        SET(t, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(t, CURLOPT_USERNAME, t->url.user ? t->url.user : "");
        SET(t, CURLOPT_PASSWORD, t->url.password ? t->url.password : "");
    }
    return HTTP_DONE;
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* The PEM text from the settings or from a file; *ret is {NULL, 0} if there is neither. The file is
 * held for as long as the transfer lives. */
static enum http_result get_pem(struct http_transfer *t, const char *pem, const char *path,
                                const struct http_file_rule *rule, struct http_file **keep,
                                struct sv *ret, struct err *err)
{
    *ret = sv_from(pem);
    if (pem != NULL || path == NULL) {
        return HTTP_DONE;
    }
    *keep = http_files_get(t->client->files, path, rule, clock_mono_ms(), err);
    if (*keep == NULL) {
        return HTTP_ERR_CONFIG;
    }
    *ret = (struct sv){(*keep)->data, (*keep)->len};
    return HTTP_DONE;
}

static struct curl_blob blob_of(struct sv pem)
{
    /* libcurl only reads it; its type has no const. */
    return (struct curl_blob){
        .data = (void *)(uintptr_t)pem.p, .len = pem.n, .flags = CURL_BLOB_NOCOPY};
}

/* As memory and not as files: libcurl would keep the certificates of a CA file for a day. */
static enum http_result set_ca(struct http_transfer *t, const struct http_settings *s,
                               struct err *err)
{
    struct sv pem;
    enum http_result result =
        get_pem(t, s->tls.ca_pem, s->tls.ca_file, &certificates_rule, &t->ca, &pem, err);
    if (result != HTTP_DONE || pem.n == 0) {
        return result;
    }
    struct curl_blob blob = blob_of(pem);
    SET(t, CURLOPT_CAINFO_BLOB, &blob);
    /* This CA and no other: the directory of the system would be trusted beside it. */
    SET(t, CURLOPT_CAPATH, NULL);
    return HTTP_DONE;
}

static enum http_result set_client_cert(struct http_transfer *t, const struct http_settings *s,
                                        struct err *err)
{
    struct sv cert, key;
    enum http_result result =
        get_pem(t, s->tls.cert_pem, s->tls.cert_file, &certificates_rule, &t->cert, &cert, err);
    if (result == HTTP_DONE) {
        result = get_pem(t, s->tls.key_pem, s->tls.key_file, &key_rule, &t->key, &key, err);
    }
    if (result != HTTP_DONE || cert.n == 0) {
        return result;
    }
    /* One PEM text may hold both. */
    struct curl_blob cert_blob = blob_of(cert), key_blob = blob_of(key.n > 0 ? key : cert);
    SET(t, CURLOPT_SSLCERTTYPE, "PEM");
    SET(t, CURLOPT_SSLCERT_BLOB, &cert_blob);
    SET(t, CURLOPT_SSLKEYTYPE, "PEM");
    SET(t, CURLOPT_SSLKEY_BLOB, &key_blob);
    return HTTP_DONE;
}

/* 0: no bound. */
static long max_version(enum http_tls_version v)
{
    switch (v) {
    case HTTP_TLS_1_0:
        return CURL_SSLVERSION_MAX_TLSv1_0;
    case HTTP_TLS_1_1:
        return CURL_SSLVERSION_MAX_TLSv1_1;
    case HTTP_TLS_1_2:
        return CURL_SSLVERSION_MAX_TLSv1_2;
    case HTTP_TLS_1_3:
        return CURL_SSLVERSION_MAX_TLSv1_3;
    case HTTP_TLS_DEFAULT:
        break;
    }
    return 0;
}

static long min_version(enum http_tls_version v)
{
    switch (v) {
    case HTTP_TLS_1_0:
        return CURL_SSLVERSION_TLSv1_0;
    case HTTP_TLS_1_1:
        return CURL_SSLVERSION_TLSv1_1;
    case HTTP_TLS_1_3:
        return CURL_SSLVERSION_TLSv1_3;
    case HTTP_TLS_1_2:
    case HTTP_TLS_DEFAULT:
        break;
    }
    return CURL_SSLVERSION_TLSv1_2;
}

static enum http_result set_tls(struct http_transfer *t, const struct http_settings *s,
                                struct err *err)
{
    bool verify = s == NULL || !s->tls.insecure_skip_verify;
    SET(t, CURLOPT_SSLVERSION,
        s ? min_version(s->tls.min_version) | max_version(s->tls.max_version)
          : min_version(HTTP_TLS_DEFAULT));
    SET(t, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
    SET(t, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
    if (s == NULL) {
        return HTTP_DONE;
    }
    enum http_result result = set_ca(t, s, err);
    return result == HTTP_DONE ? set_client_cert(t, s, err) : result;
}

/* ---- where to -------------------------------------------------------------------------------- */

static bool uses_server_name(const struct http_transfer *t)
{
    const struct http_settings *s = t->request.settings;
    return t->url.https && s != NULL && s->tls.server_name != NULL && *s->tls.server_name;
}

/* "host", or "host:port" where the port is not the scheme's own. */
static bool put_authority(struct buf *out, const struct url *url, bool always_port)
{
    bool v6 = strchr(url->host, ':') != NULL;
    buf_printf(out, v6 ? "[%s]" : "%s", url->host);
    if (always_port || url->port != (url->https ? 443 : 80)) {
        buf_printf(out, ":%u", url->port);
    }
    return buf_ok(out);
}

/* libcurl takes SNI and the name to verify from the URL. So the URL is given the server name, and
 * the connection is led to the real host, whose name stays in the Host header. (A no_proxy list is
 * compared with the server name then.) */
static enum http_result set_server_name(struct http_transfer *t, const struct http_request *r,
                                        struct err *err)
{
    if (!uses_server_name(t)) {
        return HTTP_DONE;
    }
    struct buf line;
    buf_init(&line, HTTP_REQUEST_HEADER_MAX);
    buf_puts(&line, "::");
    if (put_authority(&line, &t->url, true)) {
        t->connect_to = curl_slist_append(NULL, line.data);
    }
    bool ok = t->connect_to != NULL;
    buf_clear(&line);
    buf_puts(&line, "Host: ");
    if (!is_given(r, "Host")) {
        ok = ok && put_authority(&line, &t->url, false) && append_line(t, line.data);
    }
    buf_done(&line);
    SET(t, CURLOPT_CONNECT_TO, t->connect_to);
    return ok ? HTTP_DONE : no_memory(err);
}

/* Go's rule, which Prometheus follows and libcurl does not: HTTP_PROXY counts for http as well. */
static const char *upper_case_proxy(const struct http_transfer *t)
{
    if (t->url.https ||
        getenv("http_proxy") != NULL) { /* NOLINT(concurrency-mt-unsafe): never changed */
        return NULL;
    }
    return getenv("HTTP_PROXY"); /* NOLINT(concurrency-mt-unsafe) */
}

/* What a proxy is told when it is asked for a tunnel. */
static bool set_proxy_headers(struct http_transfer *t, const struct http_settings *s)
{
    for (size_t i = 0; s != NULL && i < s->n_proxy_headers; i++) {
        struct buf line;
        buf_init(&line, HTTP_REQUEST_HEADER_MAX);
        buf_printf(&line, "%s: %s", s->proxy_headers[i].name, s->proxy_headers[i].value);
        struct curl_slist *list =
            buf_ok(&line) ? curl_slist_append(t->proxy_headers, line.data) : NULL;
        buf_done(&line);
        if (list == NULL) {
            return false;
        }
        t->proxy_headers = list;
    }
    if (t->proxy_headers != NULL) {
        SET(t, CURLOPT_PROXYHEADER, t->proxy_headers);
    }
    return true;
}

static void set_proxy(struct http_transfer *t, const struct http_settings *s)
{
    if (s != NULL && s->proxy_url != NULL && *s->proxy_url) {
        SET(t, CURLOPT_PROXY, s->proxy_url);
        /* Empty and not absent: else libcurl would look at the environment. */
        SET(t, CURLOPT_NOPROXY, s->no_proxy ? s->no_proxy : "");
        return;
    }
    if (s == NULL || !s->proxy_from_environment) {
        SET(t, CURLOPT_PROXY, "");
        return;
    }
    const char *proxy = upper_case_proxy(t);
    if (proxy != NULL) {
        SET(t, CURLOPT_PROXY, proxy);
    }
    if (s->no_proxy != NULL) {
        SET(t, CURLOPT_NOPROXY, s->no_proxy);
    }
}

/* ---- method and body ------------------------------------------------------------------------- */

static void set_curl_method(struct http_transfer *t)
{
    curl_off_t size = (curl_off_t)t->body_size;
    switch (t->method) {
    case HTTP_GET:
        SET(t, CURLOPT_HTTPGET, 1L);
        break;
    case HTTP_HEAD:
        SET(t, CURLOPT_NOBODY, 1L);
        break;
    case HTTP_POST:
        SET(t, CURLOPT_POST, 1L);
        SET(t, CURLOPT_POSTFIELDSIZE_LARGE, size);
        break;
    case HTTP_PUT:
        SET(t, CURLOPT_UPLOAD, 1L);
        SET(t, CURLOPT_INFILESIZE_LARGE, size);
        break;
    }
}

static void set_constants(struct http_transfer *t)
{
    SET(t, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(t, CURLOPT_FOLLOWLOCATION, 0L);
    SET(t, CURLOPT_NOSIGNAL, 1L);
    SET(t, CURLOPT_PATH_AS_IS, 1L);
    SET(t, CURLOPT_NOPROGRESS, 1L);
    size_t buffer = t->request.receive_buffer;
    /* Refused where the leg before a redirect left its buffer, which has this size. */
    (void)curl_easy_setopt(t->easy, CURLOPT_BUFFERSIZE,
                           buffer == 0 ? (long)HTTP_RECEIVE_BUFFER : (long)buffer);
    SET(t, CURLOPT_UPLOAD_BUFFERSIZE, (long)HTTP_UPLOAD_BUFFER);
    SET(t, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    /* Headers for the server, credentials among them, are not for a proxy. */
    SET(t, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    /* Ending a transfer during its name lookup must not wait for the resolver's thread. */
    SET(t, CURLOPT_QUICK_EXIT, 1L);
    SET(t, CURLOPT_ERRORBUFFER, t->curl_error);
    SET(t, CURLOPT_PRIVATE, t);
    if (t->client->user_agent != NULL) {
        SET(t, CURLOPT_USERAGENT, t->client->user_agent);
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum http_result set_curl_url(struct http_transfer *t, struct err *err)
{
    if (!uses_server_name(t)) {
        SET(t, CURLOPT_URL, t->url.text);
        return HTTP_DONE;
    }
    CURLU *u = curl_url();
    char *text = NULL;
    CURLUcode code = u != NULL ? curl_url_set(u, CURLUPART_URL, t->url.text, CURLU_PATH_AS_IS)
                               : CURLUE_OUT_OF_MEMORY;
    if (code == CURLUE_OK) {
        code = curl_url_set(u, CURLUPART_HOST, t->request.settings->tls.server_name, 0);
    }
    if (code == CURLUE_OK) {
        code = curl_url_get(u, CURLUPART_URL, &text, 0);
    }
    if (code == CURLUE_OK) {
        SET(t, CURLOPT_URL, text);
    }
    curl_free(text);
    curl_url_cleanup(u);
    if (code == CURLUE_OK) {
        return HTTP_DONE;
    }
    if (code == CURLUE_OUT_OF_MEMORY) {
        return no_memory(err);
    }
    err_set(err, ERR_INPUT, "server_name: expected a host name, got \"%s\"",
            t->request.settings->tls.server_name);
    return HTTP_ERR_CONFIG;
}

static long to_curl_ms(int64_t ms)
{
    return ms < 1 ? 1 : ms > INT32_MAX ? INT32_MAX : (long)ms;
}

enum http_result http_options_apply_hop(struct http_transfer *t, struct err *err)
{
    const struct http_request *r = &t->request;
    int64_t connect = r->connect_timeout_ms > 0 ? r->connect_timeout_ms : HTTP_CONNECT_TIMEOUT_MS;
    enum http_result result = set_curl_url(t, err);
    if (result != HTTP_DONE) {
        return result;
    }
    if (r->timeout_ms > 0) {
        /* One more: libcurl counts in whole milliseconds, and must not be early. */
        int64_t left = r->timeout_ms - (clock_mono_ns() - t->start_ns) / NS_PER_MS + 1;
        SET(t, CURLOPT_TIMEOUT_MS, to_curl_ms(left));
        if (connect > left) {
            connect = left;
        }
    }
    SET(t, CURLOPT_CONNECTTIMEOUT_MS, to_curl_ms(connect));
    return t->setopt_failed ? no_memory(err) : HTTP_DONE;
}

enum http_result http_options_apply(struct http_transfer *t, const struct http_request *r,
                                    struct err *err)
{
    const struct http_settings *s = r->settings;
    set_constants(t);
    set_curl_method(t);
    http_transfer_set_callbacks(t);
    SET(t, CURLOPT_HTTP_VERSION,
        s && s->enable_http2 ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    set_proxy(t, s);
    enum http_result result = append_given(t, r, err);
    if (result == HTTP_DONE) {
        result = set_auth(t, r, err);
    }
    if (result == HTTP_DONE) {
        result = t->url.https ? set_tls(t, s, err) : HTTP_DONE;
    }
    if (result == HTTP_DONE) {
        result = set_server_name(t, r, err);
    }
    if (result == HTTP_DONE && !(append_suppressions(t, r) && set_proxy_headers(t, s))) {
        result = no_memory(err);
    }
    if (result != HTTP_DONE) {
        return result;
    }
    SET(t, CURLOPT_HTTPHEADER, t->headers);
    return http_options_apply_hop(t, err);
}
