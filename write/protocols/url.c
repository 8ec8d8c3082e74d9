#include "write/protocols/url.h"

#include <string.h>

static struct sv strip_slashes(struct sv v)
{
    while (v.n > 0 && v.p[v.n - 1] == '/') {
        v.n--;
    }
    return v;
}

bool url_join(struct sv base, struct sv path, struct sv query, struct buf *out)
{
    struct sv head = base;
    struct sv fragment;
    (void)sv_cut(base, '#', &head, &fragment);
    struct sv own_query = SV("");
    struct sv before = head;
    if (sv_cut(head, '?', &before, &own_query)) {
        head = before;
    }
    head = strip_slashes(head);

    buf_append(out, head.p, head.n);
    if (!sv_ends_with(head, path)) {
        buf_append(out, path.p, path.n);
    }
    if (own_query.n > 0 || query.n > 0) {
        buf_putc(out, '?');
    }
    buf_append(out, own_query.p, own_query.n);
    if (own_query.n > 0 && query.n > 0) {
        buf_putc(out, '&');
    }
    buf_append(out, query.p, query.n);
    return buf_ok(out);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

/* False on a bad escape or a NUL. */
static bool percent_decode(struct sv v, struct buf *out)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        if (c == '%') {
            int high = i + 2 < v.n ? hex_value(v.p[i + 1]) : -1;
            int low = i + 2 < v.n ? hex_value(v.p[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0') {
            return false;
        }
        buf_putc(out, c);
    }
    return true;
}

bool url_to_directory(struct sv url, struct buf *out, struct err *err)
{
    static const char expected[] = "expected a URL such as \"file:///var/lib/profiles\"";
    struct sv path = url;
    bool is_url = sv_starts_with(url, SV("file:"));
    if (is_url) {
        path = (struct sv){.p = url.p + 5, .n = url.n - 5};
        if (sv_starts_with(path, SV("//localhost/"))) {
            path = (struct sv){.p = path.p + 11, .n = path.n - 11};
        } else if (sv_starts_with(path, SV("///"))) {
            path = (struct sv){.p = path.p + 2, .n = path.n - 2};
        }
    }
    bool absolute = path.n > 0 && path.p[0] == '/' && !sv_starts_with(path, SV("//"));
    path = strip_slashes(path);
    if (!absolute || path.n == 0) {
        return err_set(err, ERR_INPUT, "%s with an absolute path, got \"%.*s\"", expected,
                       SV_ARG(url));
    }
    size_t start = out->len;
    bool ok = is_url ? percent_decode(path, out) : buf_append(out, path.p, path.n);
    if (!ok && buf_ok(out)) {
        return err_set(err, ERR_INPUT, "%s, got a bad %%-escape in \"%.*s\"", expected,
                       SV_ARG(url));
    }
    if (!buf_ok(out) || out->len == start) {
        return err_set(err, ERR_MEMORY, "out of memory for a path");
    }
    return true;
}
