#include "http/request_head.h"

#include <inttypes.h>
#include <string.h>

#include "http/private.h"

/* Returns the path and the query of a URL, which follow the host. */
static struct sv target_of(const char *url)
{
    const char *host = strstr(url, "://") + 3;
    return sv_from(host + strcspn(host, "/?"));
}

static void put_host(const struct url *url, struct buf *out)
{
    bool v6 = strchr(url->host, ':') != NULL;
    buf_printf(out, v6 ? "Host: [%s]" : "Host: %s", url->host);
    if (url->port != 80) {
        buf_printf(out, ":%u", (unsigned)url->port);
    }
    buf_puts(out, "\r\n");
}

/* Returns true if the list has a line for this header, even one without a value. */
static bool has_header(const struct http_transfer *t, const char *name)
{
    size_t n = strlen(name);
    for (const struct curl_slist *l = t->headers; l != NULL; l = l->next) {
        if (sv_eq_nocase((struct sv){l->data, strcspn(l->data, ":;")}, name) &&
            l->data[n] != '\0') {
            return true;
        }
    }
    return false;
}

static void put_default(const struct http_transfer *t, const char *name, const char *value,
                        struct buf *out)
{
    if (!has_header(t, name)) {
        buf_printf(out, "%s: %s\r\n", name, value);
    }
}

/* The lines are in the form that libcurl reads: "Name: value", "Name;" for an empty value, "Name:"
 * for a header that is not to be sent. */
static void put_line(const char *line, struct buf *out)
{
    size_t n = strlen(line);
    if (line[n - 1] == ';' && memchr(line, ':', n) == NULL) {
        buf_append(out, line, n - 1);
        buf_puts(out, ":\r\n");
    } else if (line[n - 1] != ':' || memchr(line, ':', n - 1) != NULL) {
        buf_append(out, line, n);
        buf_puts(out, "\r\n");
    }
}

bool request_head_write(const struct http_transfer *t, struct buf *out)
{
    struct sv target = target_of(t->url.text);
    buf_printf(out, "%s %s", http_method_name(t->method),
               target.n == 0 || target.p[0] == '?' ? "/" : "");
    buf_append(out, target.p, target.n);
    buf_puts(out, " HTTP/1.1\r\n");
    put_host(&t->url, out);
    put_default(t, "User-Agent", USER_AGENT, out);
    put_default(t, "Accept", "*/*", out);
    for (const struct curl_slist *l = t->headers; l != NULL; l = l->next) {
        put_line(l->data, out);
    }
    if (t->method == HTTP_POST || t->method == HTTP_PUT) {
        buf_printf(out, "Content-Length: %" PRIu64 "\r\n", t->body_size);
    }
    return buf_puts(out, "\r\n");
}
