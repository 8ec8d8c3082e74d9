#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "http/private.h"

enum http_result http_result_of(const struct err *err)
{
    return err->kind == ERR_MEMORY ? HTTP_ERR_MEMORY : HTTP_ERR_CONFIG;
}

static bool is_number(struct sv s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!ascii_is_digit(s.p[i])) {
            return false;
        }
    }
    return s.n > 0;
}

/* Seconds or an HTTP-date (RFC 9110, section 10.2.3). A server that names a time that is too large
 * wants a long pause, not none, so it gets the longest one. libcurl's parser of dates accepts much
 * that is no date, so the form is checked first: a day's name and a time. */
int64_t http_retry_after(struct sv value, int64_t wall_ns)
{
    char text[64];
    if (is_number(value)) {
        uint64_t seconds = HTTP_RETRY_AFTER_MAX_S;
        (void)parse_u64(value, HTTP_RETRY_AFTER_MAX_S, &seconds);
        return (int64_t)seconds * MS_PER_S;
    }
    if (value.n < 20 || value.n >= sizeof(text) || !ascii_is_alpha(value.p[0]) ||
        memchr(value.p, ':', value.n) == NULL) {
        return -1;
    }
    (void)snprintf(text, sizeof(text), "%.*s", SV_ARG(value));
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

/* ---- reasons --------------------------------------------------------------------------------- */

void http_result_explain(struct http_transfer *t, const char *reason)
{
    char url[URL_REDACTED_MAX];
    if (t->error == NULL) {
        t->error = malloc(sizeof(*t->error));
    }
    if (t->error == NULL) {
        return;
    }
    url_redact(t->url.text != NULL ? t->url.text : "", url, sizeof(url));
    err_set(t->error, ERR_NETWORK, "%s %s: %s", http_method_name(t->method), url, reason);
}

bool http_result_show_location(const struct http_transfer *t, char *out, size_t size)
{
    bool same = false;
    out[0] = '\0';
    if (t->location == NULL || t->url.text == NULL) {
        return false;
    }
    char *target = url_resolve(t->url.text, t->location, &same);
    url_redact(target != NULL ? target : t->location, out, size);
    free(target);
    return same;
}

#define REASON(out, ...) err_set((out), ERR_NETWORK, __VA_ARGS__)

/* Returns libcurl's own words for the error. */
static const char *curl_words(const struct http_transfer *t)
{
    return t->curl_error[0] != '\0' ? t->curl_error : curl_easy_strerror(t->code);
}

static bool may_use_proxy(const struct http_settings *s)
{
    return (s->proxy_url != NULL && *s->proxy_url != '\0') || s->proxy_from_environment;
}

/* Writes the system's words for the error. If there may be a proxy, libcurl's words are used,
 * because they name the host that could not be reached. */
static void put_os_error(const struct http_transfer *t, struct err *out)
{
    char text[128];
    if (t->os_error == 0) {
        REASON(out, "cannot connect: %s", curl_words(t));
        return;
    }
    const char *reason = strerror_r(t->os_error, text, sizeof(text));
    REASON(out, "%c%s", ascii_lower(reason[0]), reason + 1);
    if (may_use_proxy(t->request.settings) && t->curl_error[0] != '\0') {
        err_append(out, " (%.200s)", t->curl_error);
    }
}

static void put_lookup(const struct http_transfer *t, const char *limit, struct err *out)
{
    REASON(out, "no address of %.253s within %s", t->lookup_host, limit);
}

static void put_timeout(const struct http_transfer *t, struct err *out)
{
    char limit[32];
    bool stalled = t->limit == HTTP_LIMIT_PROGRESS;
    format_duration_ms(stalled ? t->request.progress_timeout_ms : t->request.timeout_ms, limit,
                       sizeof(limit));
    if (t->in_lookup) {
        put_lookup(t, limit, out);
    } else if (t->sent_ns == 0) {
        REASON(out, "no connection within %s", limit);
    } else if (!t->head_done) {
        REASON(out, "no response within %s", limit);
    } else if (stalled) {
        REASON(out, "nothing more of the response within %s", limit);
    } else {
        REASON(out, "expected the whole response within %s, got %zu bytes", limit, t->body.len);
    }
}

static void put_connect(const struct http_transfer *t, struct err *out)
{
    char limit[32];
    if (t->code != CURLE_OPERATION_TIMEDOUT) {
        put_os_error(t, out);
        return;
    }
    format_duration_ms(http_connect_limit_ms(&t->request), limit, sizeof(limit));
    if (t->in_lookup) {
        put_lookup(t, limit, out);
        return;
    }
    REASON(out, "no connection within %s", limit);
}

static void put_address(const struct http_transfer *t, struct err *out)
{
    REASON(out, "the name resolves to %s", t->refused_address);
}

static void put_too_large(const struct http_transfer *t, struct err *out)
{
    char limit[32];
    if (t->following) {
        REASON(out, "redirect with a body over %d bytes", HTTP_REDIRECT_BODY_MAX);
        return;
    }
    format_size(t->request.max_body, limit, sizeof(limit));
    REASON(out, "expected a body of at most %s, got ", limit);
    if (t->content_length != UINT64_MAX) {
        err_append(out, "one of %" PRIu64 " bytes", t->content_length);
    } else {
        err_append(out, "a longer one");
    }
}

static void put_no_room(const struct http_transfer *t, struct err *out)
{
    char limit[32];
    format_size(t->client->bodies_max_bytes, limit, sizeof(limit));
    REASON(out,
           "no room for the rest of a body of %zu bytes and more: the bodies that are being "
           "received take %s in all",
           t->body.len, limit);
}

static void put_redirect(const struct http_transfer *t, struct err *out)
{
    char to[URL_REDACTED_MAX];
    if (http_result_show_location(t, to, sizeof(to))) {
        REASON(out, "more than %d redirects, the last to %.400s", HTTP_REDIRECTS_MAX, to);
    } else {
        REASON(out, "status %ld redirects to %.400s, which is not followed", t->status, to);
    }
}

static void put_cut(const struct http_transfer *t, struct err *out)
{
    if (t->head_done && t->content_length != UINT64_MAX) {
        REASON(out, "the connection broke after %zu of %" PRIu64 " bytes: %s", t->body.len,
               t->content_length, curl_words(t));
    } else if (t->head_done) {
        REASON(out, "the response broke after %zu bytes: %s", t->body.len, curl_words(t));
    } else if (t->code == CURLE_ABORTED_BY_CALLBACK) {
        REASON(out, "the connection broke before a response");
    } else if (t->code == CURLE_OK) {
        REASON(out, "the connection broke within the headers");
    } else {
        REASON(out, "the connection broke before a response: %s", curl_words(t));
    }
}

/* Returns true if a header line was too long. libcurl 7 reports a line over its own limit, which we
 * never see, as "out of memory". */
static bool is_long_line(const struct http_transfer *t)
{
    bool reported = t->code == CURLE_OUT_OF_MEMORY || t->code == HTTP_CODE_TOO_LARGE;
    return reported && t->sent_ns != 0 && !t->head_done;
}

static void put_protocol(const struct http_transfer *t, struct err *out)
{
    if (t->limit == HTTP_LIMIT_HELD) {
        REASON(out, "the connection was cut: reading from it has blocked all others for %d ms",
               GUARD_CPU_MS);
    } else if (t->limit == HTTP_LIMIT_WIRE) {
        REASON(out,
               "expected at most as many bytes of framing as of content and %d more, got %" PRIu64
               " bytes of content",
               HTTP_WIRE_SLACK, t->received);
    } else if (t->limit == HTTP_LIMIT_PIECES) {
        REASON(out, "expected at least %d bytes at a time, got %" PRIu64 " bytes in smaller pieces",
               HTTP_PIECE_BYTES, t->received);
    } else if (t->limit == HTTP_LIMIT_STRAY) {
        REASON(out, "the server sent bytes before the request was sent");
    } else if (t->limit == HTTP_LIMIT_SWITCH) {
        REASON(out, "expected an HTTP response: a change of protocol that was not requested");
    } else if (t->limit == HTTP_LIMIT_EARLY) {
        REASON(out, "the response, with status %ld, began before the request was sent", t->status);
    } else if (t->header_lines > HTTP_HEADER_LINES_MAX) {
        REASON(out, "expected at most %d header lines, got more", HTTP_HEADER_LINES_MAX);
    } else if (t->header_bytes > HTTP_HEADER_BYTES_MAX) {
        REASON(out, "expected at most %d bytes of headers, got more", HTTP_HEADER_BYTES_MAX);
    } else if (is_long_line(t)) {
        REASON(out, "expected at most %d bytes of headers, got a longer line without its end",
               HTTP_HEADER_BYTES_MAX);
    } else {
        REASON(out, "expected an HTTP response: %s", curl_words(t));
    }
}

static const struct {
    const char *name;
    /* The reason: a sentence, or a function that writes one; libcurl's words if there is neither.
     */
    const char *text;
    void (*put)(const struct http_transfer *t, struct err *out);
} results[HTTP_RESULTS] = {
    [HTTP_DONE] = {.name = "ok"},
    [HTTP_ERR_RESOLVE] = {.name = "resolve"},
    [HTTP_ERR_CONNECT] = {"connect", .put = put_connect},
    [HTTP_ERR_TLS] = {.name = "tls"},
    [HTTP_ERR_TIMEOUT] = {"timeout", .put = put_timeout},
    [HTTP_ERR_TOO_LARGE] = {"too_large", .put = put_too_large},
    [HTTP_ERR_NO_ROOM] = {"no_room", .put = put_no_room},
    [HTTP_ERR_REDIRECT] = {"redirect", .put = put_redirect},
    [HTTP_ERR_CUT] = {"cut", .put = put_cut},
    [HTTP_ERR_PROTOCOL] = {"protocol", .put = put_protocol},
    [HTTP_ERR_ABORTED] = {"aborted", .text = "cancelled by the reader"},
    [HTTP_ERR_DESCRIPTORS] =
        {"descriptors",
         .text = "no file descriptor left: this process has reached its limit of open files"},
    [HTTP_ERR_ADDRESS] = {"address", .put = put_address},
    [HTTP_ERR_CONFIG] = {.name = "config"},
    [HTTP_ERR_MEMORY] = {"memory", .text = "out of memory"},
};

const char *http_result_name(enum http_result r)
{
    return (unsigned)r < HTTP_RESULTS ? results[r].name : "unknown";
}

/* ---- classification -------------------------------------------------------------------------- */

static enum http_result from_code(const struct http_transfer *t)
{
    switch ((int)t->code) {
    case CURLE_OK:
        /* libcurl takes the end of a connection within the headers for the end of the response. */
        return t->head_done ? HTTP_DONE : HTTP_ERR_CUT;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
        return HTTP_ERR_RESOLVE;
    case CURLE_COULDNT_CONNECT:
    case CURLE_INTERFACE_FAILED:
    case CURLE_PROXY:
        return t->no_descriptor ? HTTP_ERR_DESCRIPTORS : HTTP_ERR_CONNECT;
    case CURLE_OPERATION_TIMEDOUT:
        /* The only limit of libcurl's own is that of connecting. */
        return HTTP_ERR_CONNECT;
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
        /* Before the request was sent, only a proxy can have broken the connection. */
        return t->sent_ns != 0 ? HTTP_ERR_CUT : HTTP_ERR_CONNECT;
    case CURLE_OUT_OF_MEMORY:
    case HTTP_CODE_TOO_LARGE:
        return is_long_line(t) ? HTTP_ERR_PROTOCOL : HTTP_ERR_MEMORY;
    default:
        return HTTP_ERR_PROTOCOL;
    }
}

/* Returns true if a server has refused a body before it has read it, and then closed the
 * connection. Then its answer counts, and not the failure to send that followed. */
static bool is_early_answer(const struct http_transfer *t)
{
    return t->result == HTTP_ERR_CUT && t->head_done && t->status >= 300 && t->body_size > 0;
}

void http_result_classify(struct http_transfer *t)
{
    struct err reason = ERR_INIT;
    if (!t->stopped) {
        t->result = from_code(t);
    }
    if (is_early_answer(t)) {
        t->result = HTTP_DONE;
    }
    if (t->result == HTTP_DONE) {
        return;
    }
    const char *text = results[t->result].text;
    if (results[t->result].put != NULL) {
        results[t->result].put(t, &reason);
        text = reason.msg;
    }
    http_result_explain(t, text != NULL ? text : curl_words(t));
}
