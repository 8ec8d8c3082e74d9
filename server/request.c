#include "server/request.h"

#include <string.h>

#include "base/ascii.h"

size_t request_head_length(struct sv data, size_t from)
{
    /* An end that was cut lies at most three bytes back. */
    for (size_t i = from < 3 ? 0 : from - 3; i + 1 < data.n; i++) {
        if (data.p[i] != '\n') {
            continue;
        }
        if (data.p[i + 1] == '\n') {
            return i + 2;
        }
        if (data.p[i + 1] == '\r' && i + 2 < data.n && data.p[i + 2] == '\n') {
            return i + 3;
        }
    }
    return 0;
}

/* Decodes %XX, and "+" if plus_is_space is true. A "%" or "+" that is no escape stays as it is. */
static struct sv decode(struct sv text, bool plus_is_space, char **out)
{
    char *start = *out;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        int high = c == '%' && i + 2 < text.n ? ascii_hex_value(text.p[i + 1]) : -1;
        int low = high >= 0 ? ascii_hex_value(text.p[i + 2]) : -1;
        if (low >= 0) {
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        *(*out)++ = c;
    }
    return (struct sv){.p = start, .n = (size_t)(*out - start)};
}

/* Returns the length of the text before the first of two characters; the whole length if it has
 * neither. */
static size_t span_to(struct sv text, char a, char b)
{
    size_t i = 0;
    while (i < text.n && text.p[i] != a && text.p[i] != b) {
        i++;
    }
    return i;
}

static struct sv first(struct sv text, size_t n)
{
    return (struct sv){.p = text.p, .n = n};
}

/* Takes the text before a character off the front, and removes the character as well. */
static struct sv cut_to(struct sv *text, char sign)
{
    size_t n = span_to(*text, sign, sign);
    struct sv part = first(*text, n);
    *text = sv_skip(*text, n < text->n ? n + 1 : n);
    return part;
}

/* ---- the first line -------------------------------------------------------------------------- */

static void parse_query(struct sv query, char **decoded, struct request *ret)
{
    while (query.n > 0 && ret->n_params < REQUEST_PARAMS_MAX) {
        struct sv value = cut_to(&query, '&');
        struct sv name = cut_to(&value, '=');
        struct request_param *param = &ret->params[ret->n_params++];
        param->name = decode(name, true, decoded);
        param->value = decode(value, true, decoded);
    }
}

/* Parses a path with its query. A scheme and a host may stand in front of it, as in requests to a
 * proxy. */
static bool parse_target(struct sv target, char *decoded, struct request *ret)
{
    static const char http[] = "http://";
    if (target.n > strlen(http) && strncasecmp(target.p, http, strlen(http)) == 0) {
        target = sv_skip(target, strlen(http));
        target = sv_skip(target, span_to(target, '/', '?'));
    }
    if (target.n == 0 || target.p[0] != '/') {
        return false;
    }
    target = first(target, span_to(target, '#', '#'));
    size_t path = span_to(target, '?', '?');
    ret->path = decode(first(target, path), false, &decoded);
    ret->query = sv_skip(target, path < target.n ? path + 1 : path);
    parse_query(ret->query, &decoded, ret);
    return true;
}

static bool parse_version(struct sv version, struct request *ret)
{
    ret->is_http_10 = sv_eq(version, SV("HTTP/1.0"));
    return ret->is_http_10 || (version.n == 8 && sv_starts_with(version, SV("HTTP/1.")) &&
                               version.p[7] >= '1' && version.p[7] <= '9');
}

static const char *const methods[REQUEST_METHODS] = {
    [REQUEST_GET] = "GET", [REQUEST_HEAD] = "HEAD",     [REQUEST_POST] = "POST",
    [REQUEST_PUT] = "PUT", [REQUEST_DELETE] = "DELETE", [REQUEST_OPTIONS] = "OPTIONS",
    [REQUEST_OTHER] = "",
};

const char *request_method_name(enum request_method method)
{
    return methods[method];
}

static enum request_method method_of(struct sv name)
{
    enum request_method method = REQUEST_GET;
    while (method < REQUEST_OTHER && !sv_eq_str(name, methods[method])) {
        method++;
    }
    return method;
}

static bool parse_first_line(struct sv line, char *decoded, struct request *ret)
{
    struct sv method;
    struct sv target;
    struct sv version;
    if (!sv_cut(line, ' ', &method, &target) || !sv_cut(target, ' ', &target, &version) ||
        method.n == 0 || !parse_version(version, ret)) {
        return false;
    }
    ret->method = method_of(method);
    return parse_target(target, decoded, ret);
}

/* ---- headers --------------------------------------------------------------------------------- */

static struct sv take_line(struct sv *rest)
{
    struct sv line = cut_to(rest, '\n');
    line.n -= line.n > 0 && line.p[line.n - 1] == '\r' ? 1 : 0;
    return line;
}

bool request_next_header(struct sv *rest, struct sv *ret_name, struct sv *ret_value)
{
    struct sv line = take_line(rest);
    if (!sv_cut(line, ':', ret_name, ret_value)) {
        return false;
    }
    *ret_value = sv_trim(*ret_value);
    return true;
}

/* Returns true for a token of RFC 9110, 5.6.2. */
static bool is_token(struct sv v)
{
    size_t i = 0;
    while (i < v.n && (ascii_is_alnum(v.p[i]) ||
                       (v.p[i] != '\0' && strchr("!#$%&'*+-.^_`|~", v.p[i]) != NULL))) {
        i++;
    }
    return v.n > 0 && i == v.n;
}

/* Checks that each line has a name. A line that continues the one before it has none: it is
 * refused, as RFC 9112, 5.2 allows. */
static bool headers_are_sound(struct sv rest)
{
    while (rest.n > 0) {
        struct sv line = take_line(&rest);
        struct sv name;
        struct sv value;
        if (line.n == 0) {
            return true;
        }
        if (!sv_cut(line, ':', &name, &value) || !is_token(name) ||
            memchr(value.p, '\0', value.n) != NULL || memchr(value.p, '\r', value.n) != NULL) {
            return false;
        }
    }
    return true;
}

static size_t count_headers(const struct request *r, const char *wanted)
{
    struct sv rest = r->headers;
    struct sv name;
    struct sv value;
    size_t n = 0;
    while (request_next_header(&rest, &name, &value)) {
        n += sv_eq_nocase(name, wanted);
    }
    return n;
}

struct sv request_header(const struct request *r, const char *wanted)
{
    struct sv rest = r->headers;
    struct sv name;
    struct sv value;
    while (request_next_header(&rest, &name, &value)) {
        if (sv_eq_nocase(name, wanted)) {
            return value;
        }
    }
    return (struct sv){.p = NULL};
}

static bool lists(struct sv list, const char *word)
{
    while (list.n > 0) {
        struct sv element = cut_to(&list, ',');
        if (sv_eq_nocase(sv_trim(cut_to(&element, ';')), word)) {
            return true;
        }
    }
    return false;
}

bool request_header_lists(const struct request *r, const char *wanted, const char *word)
{
    struct sv rest = r->headers;
    struct sv name;
    struct sv value;
    while (request_next_header(&rest, &name, &value)) {
        if (sv_eq_nocase(name, wanted) && lists(value, word)) {
            return true;
        }
    }
    return false;
}

/* ---- how the body comes ---------------------------------------------------------------------- */

/* Reads how the body is framed (RFC 9112, 6). Two lengths, or a length beside chunks, are refused:
 * with them, a request can be smuggled past a proxy that chooses the other one. */
static int parse_framing(struct request *r)
{
    struct sv coding = request_header(r, "Transfer-Encoding");
    struct sv length = request_header(r, "Content-Length");
    size_t n_lengths = count_headers(r, "Content-Length");
    if (coding.p != NULL) {
        if (length.p != NULL || r->is_http_10 || count_headers(r, "Transfer-Encoding") > 1) {
            return 400;
        }
        r->is_chunked = sv_eq_nocase(coding, "chunked");
        return r->is_chunked ? 0 : 501;
    }
    bool ok = n_lengths == 0 || (n_lengths == 1 && parse_u64(length, INT64_MAX, &r->body_length));
    return ok ? 0 : 400;
}

static int parse_expectation(struct request *r)
{
    struct sv expected = request_header(r, "Expect");
    if (expected.p == NULL || r->is_http_10) {
        return 0;
    }
    r->awaits_continue = sv_eq_nocase(expected, "100-continue");
    return r->awaits_continue ? 0 : 417;
}

int request_parse(struct sv head, char *decoded, struct request *ret)
{
    *ret = (struct request){.method = REQUEST_OTHER};
    ret->headers = head;
    struct sv line = take_line(&ret->headers);
    if (!parse_first_line(line, decoded, ret) || !headers_are_sound(ret->headers)) {
        return 400;
    }
    ret->keeps_alive = !ret->is_http_10 && !request_header_lists(ret, "Connection", "close");
    int status = parse_framing(ret);
    return status != 0 ? status : parse_expectation(ret);
}

/* ---- parameters ------------------------------------------------------------------------------ */

struct sv request_param_at(const struct request *r, const char *name, size_t i)
{
    for (size_t at = 0; at < r->n_params; at++) {
        if (sv_eq_str(r->params[at].name, name) && i-- == 0) {
            return r->params[at].value;
        }
    }
    return (struct sv){.p = NULL};
}

struct sv request_param(const struct request *r, const char *name)
{
    return request_param_at(r, name, 0);
}
