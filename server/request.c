#include "server/request.h"

#include <string.h>

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

/* The value of a hexadecimal digit; 16 or more of any other sign. */
static unsigned hex_of(char c)
{
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0');
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a') + 10 : 16;
}

/* Decodes %XX, and + if it stands for a space; a sign that begins no escape stays. */
static struct sv decode(char *text, size_t n, bool plus_is_space)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%' && i + 2 < n && hex_of(text[i + 1]) < 16 && hex_of(text[i + 2]) < 16) {
            c = (char)(hex_of(text[i + 1]) << 4 | hex_of(text[i + 2]));
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        text[out++] = c;
    }
    return (struct sv){.p = text, .n = out};
}

/* The length up to the first of two signs, or all of it. */
static size_t span_to(const char *text, size_t n, char a, char b)
{
    size_t i = 0;
    while (i < n && text[i] != a && text[i] != b) {
        i++;
    }
    return i;
}

static void parse_query(char *query, size_t n, struct request *ret)
{
    while (n > 0 && ret->n_params < REQUEST_PARAMS_MAX) {
        size_t length = span_to(query, n, '&', '&');
        size_t name = span_to(query, length, '=', '=');
        size_t value = name < length ? name + 1 : length;
        ret->params[ret->n_params++] = (struct request_param){
            .name = decode(query, name, true),
            .value = decode(query + value, length - value, true),
        };
        length += length < n ? 1 : 0;
        query += length;
        n -= length;
    }
}

/* A path with its query, perhaps with a scheme and a host in front, as proxies are asked. */
static bool parse_target(char *target, size_t n, struct request *ret)
{
    static const char http[] = "http://";
    if (n > strlen(http) && strncasecmp(target, http, strlen(http)) == 0) {
        size_t host = span_to(target + strlen(http), n - strlen(http), '/', '?');
        target += strlen(http) + host;
        n -= strlen(http) + host;
    }
    if (n == 0 || target[0] != '/') {
        return false;
    }
    size_t path = span_to(target, n, '?', '#');
    size_t end = span_to(target, n, '#', '#');
    ret->path = decode(target, path, false);
    if (path < end) {
        parse_query(target + path + 1, end - path - 1, ret);
    }
    return true;
}

static bool parse_version(struct sv version, struct request *ret)
{
    ret->is_http_10 = sv_eq(version, SV("HTTP/1.0"));
    return ret->is_http_10 || (version.n == 8 && sv_starts_with(version, SV("HTTP/1.")) &&
                               version.p[7] >= '1' && version.p[7] <= '9');
}

bool request_parse(char *head, size_t n, struct request *ret)
{
    *ret = (struct request){.method = REQUEST_OTHER};
    size_t line = span_to(head, n, '\n', '\n');
    line -= line > 0 && head[line - 1] == '\r' ? 1 : 0;
    size_t method = span_to(head, line, ' ', ' ');
    if (method == 0 || method == line) {
        return false;
    }
    char *target = head + method + 1;
    size_t length = span_to(target, line - method - 1, ' ', ' ');
    size_t at = method + 1 + length + 1;
    if (at >= line || !parse_version((struct sv){head + at, line - at}, ret)) {
        return false;
    }
    if (sv_eq((struct sv){head, method}, SV("GET"))) {
        ret->method = REQUEST_GET;
    } else if (sv_eq((struct sv){head, method}, SV("HEAD"))) {
        ret->method = REQUEST_HEAD;
    }
    return parse_target(target, length, ret);
}

struct sv request_param(const struct request *r, const char *name)
{
    for (size_t i = 0; i < r->n_params; i++) {
        if (sv_eq_str(r->params[i].name, name)) {
            return r->params[i].value;
        }
    }
    return (struct sv){.p = NULL};
}
