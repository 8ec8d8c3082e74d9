#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/private.h"

/* CURLE_TOO_LARGE of libcurl 8.6 and later: a header line without an end. */
#define CODE_TOO_LARGE 100

const char *http_result_name(enum http_result r)
{
    static const char *const names[HTTP_RESULTS] = {
        [HTTP_DONE] = "ok",
        [HTTP_ERR_RESOLVE] = "resolve",
        [HTTP_ERR_CONNECT] = "connect",
        [HTTP_ERR_TLS] = "tls",
        [HTTP_ERR_TIMEOUT] = "timeout",
        [HTTP_ERR_TOO_LARGE] = "too_large",
        [HTTP_ERR_NO_ROOM] = "no_room",
        [HTTP_ERR_REDIRECT] = "redirect",
        [HTTP_ERR_CUT] = "cut",
        [HTTP_ERR_PROTOCOL] = "protocol",
        [HTTP_ERR_ABORTED] = "aborted",
        [HTTP_ERR_DESCRIPTORS] = "descriptors",
        [HTTP_ERR_CONFIG] = "config",
        [HTTP_ERR_MEMORY] = "memory",
    };
    return (unsigned)r < HTTP_RESULTS ? names[r] : "unknown";
}

const char *http_method_name(enum http_method m)
{
    static const char *const names[] = {
        [HTTP_GET] = "GET", [HTTP_HEAD] = "HEAD", [HTTP_POST] = "POST", [HTTP_PUT] = "PUT"};
    return names[m];
}

static bool is_number(struct sv s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!isdigit((unsigned char)s.p[i])) {
            return false;
        }
    }
    return s.n > 0;
}

/* RFC 9110, 10.2.3: seconds or an HTTP-date. Who names a time beyond all bounds wants a long rest,
 * not none: the bound is what counts then. libcurl's parser of dates takes much that is none, so
 * the form is looked at first: a day's name and a time. */
int64_t http_retry_after(struct sv value, int64_t wall_ns)
{
    uint64_t seconds;
    char text[64];
    if (is_number(value)) {
        return (parse_u64(value, HTTP_RETRY_AFTER_MAX_S, &seconds) ? (int64_t)seconds
                                                                   : HTTP_RETRY_AFTER_MAX_S) *
               MS_PER_S;
    }
    if (value.n < 20 || value.n >= sizeof(text) || !isalpha((unsigned char)value.p[0]) ||
        memchr(value.p, ':', value.n) == NULL) {
        return -1;
    }
    memcpy(text, value.p, value.n);
    text[value.n] = '\0';
    time_t at = curl_getdate(text, NULL);
    int64_t now = wall_ns / NS_PER_S;
    if (at < 0) {
        return -1;
    }
    if (at - now > HTTP_RETRY_AFTER_MAX_S) {
        return HTTP_RETRY_AFTER_MAX_S * MS_PER_S;
    }
    return at <= now ? 0 : at * MS_PER_S - wall_ns / NS_PER_MS;
}

/* ---- the sentence ---------------------------------------------------------------------------- */

void http_result_explain(struct http_transfer *t, const char *reason)
{
    char url[URL_REDACTED_MAX];
    if (t->error == NULL) {
        t->error = malloc(sizeof(*t->error));
    }
    if (t->error == NULL) {
        return;
    }
    err_clear(t->error);
    url_redact(t->url.text != NULL ? t->url.text : "", url, sizeof(url));
    err_set(t->error, ERR_NETWORK, "%s %s: %s", http_method_name(t->method), url, reason);
}

struct reason {
    char text[512];
};

static bool may_use_proxy(const struct http_transfer *t)
{
    const struct http_settings *s = t->request.settings;
    return s != NULL && ((s->proxy_url != NULL && *s->proxy_url) || s->proxy_from_environment);
}

/* Where a proxy may be in between, libcurl's words name the host that could not be reached. */
static void put_os_error(const struct http_transfer *t, struct reason *out)
{
    long number = 0;
    char text[128];
    curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &number);
    if (number == 0) {
        (void)snprintf(out->text, sizeof(out->text), "cannot connect: %s",
                       t->curl_error[0] ? t->curl_error : curl_easy_strerror(t->code));
        return;
    }
    const char *reason = strerror_r((int)number, text, sizeof(text));
    bool more = may_use_proxy(t) && t->curl_error[0];
    (void)snprintf(out->text, sizeof(out->text), "%c%s%s%.200s%s",
                   tolower((unsigned char)reason[0]), reason + 1, more ? " (" : "",
                   more ? t->curl_error : "", more ? ")" : "");
}

static void put_timeout(const struct http_transfer *t, struct reason *out)
{
    char limit[32];
    format_duration_ms(t->request.timeout_ms, limit, sizeof(limit));
    if (t->sent_ns == 0) {
        (void)snprintf(out->text, sizeof(out->text), "no connection within %s", limit);
    } else if (!t->head_done) {
        (void)snprintf(out->text, sizeof(out->text), "no response within %s", limit);
    } else {
        (void)snprintf(out->text, sizeof(out->text),
                       "expected the whole response within %s, got %zu bytes", limit, t->body.len);
    }
}

static void put_connect(const struct http_transfer *t, struct reason *out)
{
    char limit[32];
    int64_t ms = t->request.connect_timeout_ms;
    if (t->code != CURLE_OPERATION_TIMEDOUT) {
        put_os_error(t, out);
        return;
    }
    format_duration_ms(ms > 0 ? ms : HTTP_CONNECT_TIMEOUT_MS, limit, sizeof(limit));
    (void)snprintf(out->text, sizeof(out->text), "no connection within %s", limit);
}

static void put_too_large(const struct http_transfer *t, struct reason *out)
{
    char limit[32];
    if (t->following) {
        (void)snprintf(out->text, sizeof(out->text), "redirect with a body over %d bytes",
                       HTTP_REDIRECT_BODY_MAX);
        return;
    }
    format_size(t->request.max_body, limit, sizeof(limit));
    if (t->content_length != UINT64_MAX) {
        (void)snprintf(out->text, sizeof(out->text),
                       "expected a body of at most %s, got one of %" PRIu64 " bytes", limit,
                       t->content_length);
    } else {
        (void)snprintf(out->text, sizeof(out->text),
                       "expected a body of at most %s, got a longer one", limit);
    }
}

static void put_no_room(const struct http_transfer *t, struct reason *out)
{
    char limit[32];
    format_size(t->client->bodies_max_bytes, limit, sizeof(limit));
    (void)snprintf(out->text, sizeof(out->text),
                   "no room for the rest of a body of %zu bytes and more: what is being received "
                   "has come to %s in all",
                   t->body.len, limit);
}

static void put_redirect(const struct http_transfer *t, struct reason *out)
{
    char to[URL_REDACTED_MAX];
    bool same = false;
    char *target = url_resolve(t->url.text, t->location != NULL ? t->location : "", &same);
    url_redact(target != NULL ? target : t->location != NULL ? t->location : "", to, sizeof(to));
    if (target != NULL && same) {
        (void)snprintf(out->text, sizeof(out->text), "more than %d redirects, the last to %.400s",
                       HTTP_REDIRECTS_MAX, to);
    } else {
        (void)snprintf(out->text, sizeof(out->text),
                       "status %ld redirects to %.400s, which is not followed", t->status, to);
    }
    free(target);
}

static void put_cut(const struct http_transfer *t, struct reason *out)
{
    const char *why = t->curl_error[0] ? t->curl_error : curl_easy_strerror(t->code);
    if (t->head_done && t->content_length != UINT64_MAX) {
        (void)snprintf(out->text, sizeof(out->text),
                       "the connection broke after %zu of %" PRIu64 " bytes: %s", t->body.len,
                       t->content_length, why);
    } else if (t->head_done) {
        (void)snprintf(out->text, sizeof(out->text), "the response broke after %zu bytes: %s",
                       t->body.len, why);
    } else if (t->code == CURLE_ABORTED_BY_CALLBACK) {
        (void)snprintf(out->text, sizeof(out->text), "the connection broke before a response");
    } else if (t->code == CURLE_OK) {
        (void)snprintf(out->text, sizeof(out->text), "the connection broke within the headers");
    } else {
        (void)snprintf(out->text, sizeof(out->text), "the connection broke before a response: %s",
                       why);
    }
}

static void put_protocol(const struct http_transfer *t, struct reason *out)
{
    if (t->header_lines > HTTP_HEADER_LINES_MAX) {
        (void)snprintf(out->text, sizeof(out->text), "expected at most %d header lines, got more",
                       HTTP_HEADER_LINES_MAX);
    } else if (t->header_bytes > HTTP_HEADER_BYTES_MAX) {
        (void)snprintf(out->text, sizeof(out->text),
                       "expected at most %d bytes of headers, got more", HTTP_HEADER_BYTES_MAX);
    } else {
        (void)snprintf(out->text, sizeof(out->text), "expected an HTTP response: %s",
                       t->curl_error[0] ? t->curl_error : curl_easy_strerror(t->code));
    }
}

static void put_reason(const struct http_transfer *t, struct reason *out)
{
    switch (t->result) {
    case HTTP_ERR_CONNECT:
        put_connect(t, out);
        break;
    case HTTP_ERR_TIMEOUT:
        put_timeout(t, out);
        break;
    case HTTP_ERR_TOO_LARGE:
        put_too_large(t, out);
        break;
    case HTTP_ERR_NO_ROOM:
        put_no_room(t, out);
        break;
    case HTTP_ERR_REDIRECT:
        put_redirect(t, out);
        break;
    case HTTP_ERR_CUT:
        put_cut(t, out);
        break;
    case HTTP_ERR_PROTOCOL:
        put_protocol(t, out);
        break;
    case HTTP_ERR_MEMORY:
        (void)snprintf(out->text, sizeof(out->text), "out of memory");
        break;
    case HTTP_ERR_ABORTED:
        (void)snprintf(out->text, sizeof(out->text), "given up by the reader");
        break;
    case HTTP_ERR_DESCRIPTORS:
        (void)snprintf(out->text, sizeof(out->text),
                       "no file descriptor left (the limit is that of this program)");
        break;
    case HTTP_DONE:
    case HTTP_ERR_RESOLVE:
    case HTTP_ERR_TLS:
    case HTTP_ERR_CONFIG:
        (void)snprintf(out->text, sizeof(out->text), "%s",
                       t->curl_error[0] ? t->curl_error : curl_easy_strerror(t->code));
        break;
    }
}

/* ---- classification -------------------------------------------------------------------------- */

/* The deadline of the request, or only that for connecting? A millisecond is libcurl's rounding. */
static enum http_result which_timeout(const struct http_transfer *t)
{
    int64_t passed_ms = (t->end_ns - t->start_ns) / NS_PER_MS;
    if (t->sent_ns != 0 || (t->request.timeout_ms > 0 && passed_ms + 1 >= t->request.timeout_ms)) {
        return HTTP_ERR_TIMEOUT;
    }
    return HTTP_ERR_CONNECT;
}

static enum http_result from_code(const struct http_transfer *t)
{
    switch ((int)t->code) {
    case CURLE_OK:
        /* To libcurl a connection that ends within the headers is the end of the response. */
        return t->head_done ? HTTP_DONE : HTTP_ERR_CUT;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
        return HTTP_ERR_RESOLVE;
    case CURLE_COULDNT_CONNECT:
    case CURLE_INTERFACE_FAILED:
    case CURLE_PROXY:
        return t->no_descriptor ? HTTP_ERR_DESCRIPTORS : HTTP_ERR_CONNECT;
    case CURLE_OPERATION_TIMEDOUT:
        return which_timeout(t);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_SSL_SHUTDOWN_FAILED:
        return HTTP_ERR_TLS;
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
    case CURLE_BAD_FUNCTION_ARGUMENT:
        return HTTP_ERR_CONFIG;
    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_FAIL_REWIND:
        /* Before the request could be sent it was a proxy that broke off. */
        return t->sent_ns != 0 ? HTTP_ERR_CUT : HTTP_ERR_CONNECT;
    case CURLE_OUT_OF_MEMORY:
    case CODE_TOO_LARGE:
        /* libcurl 7 says "out of memory" of a header line that is over its own limit. */
        return t->sent_ns != 0 && !t->head_done ? HTTP_ERR_PROTOCOL : HTTP_ERR_MEMORY;
    default:
        return HTTP_ERR_PROTOCOL;
    }
}

/* A server may refuse a body before it has read it, and then close the connection: what counts is
 * that it answered, not that sending failed afterwards. */
static bool is_early_answer(const struct http_transfer *t)
{
    return t->result == HTTP_ERR_CUT && t->head_done && t->status >= 300 && t->body_size > 0;
}

void http_result_classify(struct http_transfer *t)
{
    struct reason reason;
    if (!t->stopped) {
        t->result = from_code(t);
    }
    if (is_early_answer(t)) {
        t->result = HTTP_DONE;
    }
    if (t->result == HTTP_DONE) {
        return;
    }
    put_reason(t, &reason);
    http_result_explain(t, reason.text);
}
