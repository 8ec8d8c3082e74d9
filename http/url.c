#include "http/url.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"

/* The most digits of a query value that is shown: seconds=14, debug=1, from=1700000000. */
#define SHOWN_DIGITS_MAX 10

/* Copies a part of a URL to our own memory, because curl_free() must free libcurl's. */
static CURLUcode get_part(CURLU *u, CURLUPart part, unsigned flags, char **ret)
{
    char *text = NULL;
    CURLUcode code = curl_url_get(u, part, &text, flags);
    if (code != CURLUE_OK) {
        return code;
    }
    *ret = strdup(text);
    curl_free(text);
    return *ret != NULL ? CURLUE_OK : CURLUE_OUT_OF_MEMORY;
}

static CURLUcode get_optional(CURLU *u, CURLUPart part, CURLUcode absent, char **ret)
{
    CURLUcode code = get_part(u, part, CURLU_URLDECODE, ret);
    return code == absent ? CURLUE_OK : code;
}

/* Checks the scheme and the two slashes. libcurl accepts one to three slashes, and so takes
 * "http:///path" for a host named path. */
static CURLUcode check_scheme(const char *text, bool *ret_https)
{
    struct sv scheme = SV(""), rest = SV("");
    (void)sv_cut(sv_from(text), ':', &scheme, &rest);
    *ret_https = sv_eq_nocase(scheme, "https");
    if (!*ret_https && !sv_eq_nocase(scheme, "http")) {
        return CURLUE_UNSUPPORTED_SCHEME;
    }
    return sv_starts_with(rest, SV("//")) && !sv_starts_with(rest, SV("///")) ? CURLUE_OK
                                                                              : CURLUE_NO_HOST;
}

static CURLUcode take_port(CURLU *u, uint16_t *ret_port)
{
    char *text = NULL;
    uint64_t port = 0;
    CURLUcode code = curl_url_get(u, CURLUPART_PORT, &text, CURLU_DEFAULT_PORT);
    if (code != CURLUE_OK) {
        return code;
    }
    if (!parse_u64(sv_from(text), UINT16_MAX, &port) || port == 0) {
        code = CURLUE_BAD_PORT_NUMBER;
    }
    curl_free(text);
    *ret_port = (uint16_t)port;
    return code;
}

static CURLUcode take_host(CURLU *u, char **ret_host)
{
    CURLUcode code = get_part(u, CURLUPART_HOST, 0, ret_host);
    if (code != CURLUE_OK) {
        return code;
    }
    char *host = *ret_host;
    size_t n = strlen(host);
    if (n >= 2 && host[0] == '[' && host[n - 1] == ']') {
        memmove(host, host + 1, n - 2);
        host[n - 2] = '\0';
    }
    for (char *p = host; *p != '\0'; p++) {
        *p = ascii_lower(*p);
    }
    return *host != '\0' ? CURLUE_OK : CURLUE_NO_HOST;
}

static CURLUcode take_apart(CURLU *u, const char *text, struct url *url)
{
    CURLUcode code = curl_url_set(u, CURLUPART_URL, text, CURLU_PATH_AS_IS);
    code = code != CURLUE_OK ? code : check_scheme(text, &url->https);
    code = code != CURLUE_OK ? code : take_host(u, &url->host);
    code = code != CURLUE_OK ? code : take_port(u, &url->port);
    code = code != CURLUE_OK ? code : get_optional(u, CURLUPART_USER, CURLUE_NO_USER, &url->user);
    code = code != CURLUE_OK
               ? code
               : get_optional(u, CURLUPART_PASSWORD, CURLUE_NO_PASSWORD, &url->password);
    curl_url_set(u, CURLUPART_USER, NULL, 0);
    curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
    curl_url_set(u, CURLUPART_OPTIONS, NULL, 0);
    curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
    return code != CURLUE_OK ? code : get_part(u, CURLUPART_URL, 0, &url->text);
}

bool url_parse(const char *text, struct url *ret_url, struct err *err)
{
    *ret_url = (struct url){0};
    CURLU *u = curl_url();
    CURLUcode code = u != NULL ? take_apart(u, text, ret_url) : CURLUE_OUT_OF_MEMORY;
    curl_url_cleanup(u);
    if (code == CURLUE_OK) {
        return true;
    }
    url_done(ret_url);
    if (code == CURLUE_OUT_OF_MEMORY) {
        err_memory(err);
    } else {
        err_set(err, ERR_INPUT, "expected an http or https URL: %s", curl_url_strerror(code));
    }
    return false;
}

void url_done(struct url *url)
{
    free(url->text);
    free(url->host);
    secret_free(url->user);
    secret_free(url->password);
    *url = (struct url){0};
}

uint64_t url_origin_hash(const struct url *url)
{
    uint64_t rest = (uint64_t)url->port << 1 | url->https;
    return hash_bytes(url->host, strlen(url->host), rest);
}

/* Resolves a reference against the base. The result still has its userinfo. */
static char *join(const char *base, const char *location)
{
    char *joined = NULL;
    CURLU *u = curl_url();
    if (u != NULL && curl_url_set(u, CURLUPART_URL, base, CURLU_PATH_AS_IS) == CURLUE_OK &&
        curl_url_set(u, CURLUPART_URL, location, CURLU_URLENCODE) == CURLUE_OK) {
        get_part(u, CURLUPART_URL, 0, &joined);
    }
    curl_url_cleanup(u);
    return joined;
}

char *url_resolve(const char *base, const char *location, bool *ret_same_origin)
{
    struct url from, to = {0};
    char *result = NULL;
    char *joined = join(base, location);
    if (joined != NULL && url_parse(base, &from, NULL)) {
        if (url_parse(joined, &to, NULL)) {
            *ret_same_origin =
                from.https == to.https && from.port == to.port && strcmp(from.host, to.host) == 0;
            result = to.text;
            to.text = NULL;
        }
        url_done(&to);
        url_done(&from);
    }
    free(joined);
    return result;
}

/* ---- for errors and logs --------------------------------------------------------------------- */

static bool contains(struct sv name, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= name.n; i++) {
        if (sv_eq_nocase((struct sv){.p = name.p + i, .n = n}, word)) {
            return true;
        }
    }
    return false;
}

/* Returns true if a part of the name, between characters that are not letters or digits, is this
 * word. */
static bool has_part(struct sv name, const char *word)
{
    size_t start = 0;
    for (size_t i = 0; i <= name.n; i++) {
        if (i == name.n || !ascii_is_alnum(name.p[i])) {
            if (sv_eq_nocase((struct sv){.p = name.p + start, .n = i - start}, word)) {
                return true;
            }
            start = i + 1;
        }
    }
    return false;
}

bool url_name_is_secret(struct sv name)
{
    static const char *const anywhere[] = {"token",  "key",     "pass",   "pwd",    "secret",
                                           "auth",   "credent", "cookie", "bearer", "session",
                                           "signat", "private", "jwt"};
    static const char *const parts[] = {"sig", "sas", "sid", "pin", "otp"};
    for (size_t i = 0; i < sizeof(anywhere) / sizeof(anywhere[0]); i++) {
        if (contains(name, anywhere[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (has_part(name, parts[i])) {
            return true;
        }
    }
    return false;
}

static bool is_short_number(struct sv v)
{
    uint64_t n;
    return v.n <= SHOWN_DIGITS_MAX && parse_u64(v, UINT64_MAX, &n);
}

static void redact_query(struct sv query, struct buf *out)
{
    bool more = true;
    for (char before = '?'; more; before = '&') {
        struct sv pair = query, name, value;
        more = sv_cut(query, '&', &pair, &query);
        buf_putc(out, before);
        if (!sv_cut(pair, '=', &name, &value)) {
            /* A single word may be a token too. */
            buf_puts(out, "...");
            continue;
        }
        buf_append(out, name.p, name.n);
        buf_putc(out, '=');
        if (is_short_number(value) && !url_name_is_secret(name)) {
            buf_append(out, value.p, value.n);
        } else {
            buf_puts(out, "...");
        }
    }
}

/* Writes a text that may not be a URL, without everything up to the last @ and from the first ?
 * on. */
static void redact_text(struct sv v, struct buf *out)
{
    struct sv rest;
    (void)sv_cut(v, '#', &v, &rest);
    const char *at = memrchr(v.p, '@', v.n);
    if (at != NULL) {
        buf_puts(out, "...@");
        v = sv_skip(v, (size_t)(at + 1 - v.p));
    }
    bool has_query = sv_cut(v, '?', &v, &rest);
    buf_append(out, v.p, v.n);
    buf_puts(out, has_query ? "?..." : "");
}

static void redact_url(const struct url *url, struct buf *out)
{
    struct sv path = sv_from(url->text);
    struct sv query;
    bool has_query = sv_cut(path, '?', &path, &query);
    buf_append(out, path.p, path.n);
    if (has_query) {
        redact_query(query, out);
    }
}

void url_redact(const char *text, char *out, size_t size)
{
    struct url url;
    struct buf b;
    /* The buffer has more room than is shown, so that a long URL is cut and not lost. */
    buf_init(&b, strlen(text) * 4 + 64);
    if (url_parse(text, &url, NULL)) {
        redact_url(&url, &b);
        url_done(&url);
    } else {
        redact_text(sv_from(text), &b);
    }
    (void)snprintf(out, size, "%s", buf_ok(&b) ? b.data : "(URL)");
    if (buf_ok(&b) && b.len >= size && size > 4) {
        memcpy(out + size - 4, "...", 4);
    }
    buf_done(&b);
}
