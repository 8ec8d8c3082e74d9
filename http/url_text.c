#include "http/url.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"

bool url_is_unreserved(char c)
{
    return ascii_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static bool encode_byte(char c, struct buf *out)
{
    static const char hex[] = "0123456789ABCDEF";
    unsigned char byte = (unsigned char)c;
    return buf_append(out, (const char[]){'%', hex[byte >> 4], hex[byte & 15]}, 3);
}

int url_decode_byte(struct sv v)
{
    int high = v.n > 2 && v.p[0] == '%' ? ascii_hex_value(v.p[1]) : -1;
    int low = high >= 0 ? ascii_hex_value(v.p[2]) : -1;
    return low < 0 ? -1 : high * 16 + low;
}

bool url_encode(struct sv v, struct buf *out)
{
    for (size_t i = 0; i < v.n; i++) {
        if (url_is_unreserved(v.p[i])) {
            buf_putc(out, v.p[i]);
        } else {
            encode_byte(v.p[i], out);
        }
    }
    return buf_ok(out);
}

bool url_encode_pair(struct sv name, struct sv value, struct buf *out)
{
    url_encode(name, out);
    buf_putc(out, '=');
    return url_encode(value, out);
}

/* Decodes percent-encoding. Returns false on a bad escape or a NUL. */
static bool decode(struct sv v, struct buf *out)
{
    while (v.n > 0) {
        bool escaped = v.p[0] == '%';
        int c = escaped ? url_decode_byte(v) : v.p[0];
        if (c == '\0' || (escaped && c < 0)) {
            return false;
        }
        buf_putc(out, (char)c);
        v = sv_skip(v, escaped ? 3 : 1);
    }
    return true;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* The most segments of a path: at most every other byte of URL_PATH_MAX bytes is a slash. */
#define SEGMENTS_MAX (URL_PATH_MAX / 2 + 2)

struct segments {
    struct sv at[SEGMENTS_MAX];
    size_t n;
};

static bool check_path(struct sv v, struct err *err)
{
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        if (c <= ' ' || c == 0x7f) {
            return err_set(err, ERR_INPUT,
                           "invalid path: byte 0x%02x at position %zu; spaces and control "
                           "characters are not allowed",
                           c, i + 1);
        }
    }
    return true;
}

static void add_segment(struct segments *s, struct sv segment)
{
    if (segment.n == 0 || sv_eq_str(segment, ".")) {
        return;
    }
    if (sv_eq_str(segment, "..")) {
        s->n -= s->n > 0;
        return;
    }
    s->at[s->n++] = segment;
}

static void add_segments(struct segments *s, struct sv path)
{
    struct sv head;
    struct sv tail;
    while (sv_cut(path, '/', &head, &tail)) {
        add_segment(s, head);
        path = tail;
    }
    add_segment(s, path);
}

/* Returns true for the characters that RFC 3986 allows in a segment of a path without %XX. */
static bool is_segment_char(char c)
{
    return url_is_unreserved(c) || (c != '\0' && strchr("!$&'()*+,;=:@", c) != NULL);
}

static void append_segment(struct buf *out, struct sv segment)
{
    buf_putc(out, '/');
    for (size_t i = 0; i < segment.n; i++) {
        if (is_segment_char(segment.p[i]) || url_decode_byte(sv_skip(segment, i)) >= 0) {
            buf_putc(out, segment.p[i]);
        } else {
            encode_byte(segment.p[i], out);
        }
    }
}

bool url_append_path(struct buf *out, struct sv prefix, struct sv path, struct err *err)
{
    if (prefix.n > URL_PATH_MAX || path.n > URL_PATH_MAX - prefix.n) {
        return err_set(err, ERR_LIMIT, "path longer than %d bytes", URL_PATH_MAX);
    }
    if (!check_path(prefix, err) || !check_path(path, err)) {
        return false;
    }
    struct segments segments; /* not zeroed: it is large, and few of them are used */
    segments.n = 0;
    add_segments(&segments, prefix);
    add_segments(&segments, path);
    for (size_t i = 0; i < segments.n; i++) {
        append_segment(out, segments.at[i]);
    }
    if (segments.n == 0 || (path.n > 0 && path.p[path.n - 1] == '/')) {
        buf_putc(out, '/');
    }
    return buf_ok(out) || err_set(err, ERR_LIMIT, "path too long");
}

/* ---- queries --------------------------------------------------------------------------------- */

void url_query_done(struct url_query *q)
{
    free(q->at);
    *q = (struct url_query){.at = NULL};
}

void url_query_clear(struct url_query *q)
{
    q->n = 0;
}

bool url_query_add(struct url_query *q, struct sv name, struct sv value)
{
    if (q->n == q->cap) {
        size_t cap = q->cap == 0 ? 8 : q->cap * 2;
        struct url_param *at = reallocarray(q->at, cap, sizeof(*at));
        if (at == NULL) {
            return false;
        }
        q->at = at;
        q->cap = cap;
    }
    size_t i = q->n++;
    for (; i > 0 && sv_cmp(q->at[i - 1].name, name) > 0; i--) {
        q->at[i] = q->at[i - 1];
    }
    q->at[i] = (struct url_param){.name = name, .value = value};
    return true;
}

bool url_query_set(struct url_query *q, struct sv name, struct sv value)
{
    for (size_t i = 0; i < q->n; i++) {
        if (sv_eq(q->at[i].name, name)) {
            q->at[i].value = value;
            return true;
        }
    }
    return url_query_add(q, name, value);
}

void url_query_del(struct url_query *q, struct sv name)
{
    size_t kept = 0;
    for (size_t i = 0; i < q->n; i++) {
        if (!sv_eq(q->at[i].name, name)) {
            q->at[kept++] = q->at[i];
        }
    }
    q->n = kept;
}

bool url_append_query(struct buf *out, const struct url_query *q)
{
    for (size_t i = 0; i < q->n; i++) {
        buf_putc(out, i == 0 ? '?' : '&');
        url_encode_pair(q->at[i].name, q->at[i].value, out);
    }
    return buf_ok(out);
}

/* ---- whole URLs ------------------------------------------------------------------------------ */

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
    (void)sv_cut(head, '?', &head, &own_query);
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

/* Returns the path of a file URL after its scheme, still encoded. */
static struct sv file_path(struct sv path)
{
    if (sv_starts_with(path, SV("//localhost/"))) {
        return sv_skip(path, strlen("//localhost"));
    }
    return sv_starts_with(path, SV("///")) ? sv_skip(path, strlen("//")) : path;
}

bool url_to_directory(struct sv url, struct buf *out, struct err *err)
{
    static const char expected[] = "expected a URL such as \"file:///var/lib/profiles\"";
    struct sv scheme = SV("");
    struct sv path = url;
    bool is_url = sv_cut(url, ':', &scheme, &path) &&
                  (sv_eq_str(scheme, "file") || sv_eq_str(scheme, "store"));
    path = is_url ? file_path(path) : url;
    bool absolute = path.n > 0 && path.p[0] == '/' && !sv_starts_with(path, SV("//"));
    path = strip_slashes(path);
    if (!absolute || path.n == 0) {
        return err_set(err, ERR_INPUT, "%s with an absolute path, got \"%.*s\"", expected,
                       SV_ARG(url));
    }
    bool ok = is_url ? decode(path, out) : buf_append(out, path.p, path.n);
    if (!buf_ok(out)) {
        return err_set(err, ERR_MEMORY, "out of memory for a path");
    }
    return ok ||
           err_set(err, ERR_INPUT, "%s, got a bad %%-escape in \"%.*s\"", expected, SV_ARG(url));
}
