#include "scraper/targets/url.h"

#include <stdlib.h>
#include <string.h>

/* A path of URL_PATH_MAX bytes has at most every other one a slash. */
#define SEGMENTS_MAX (URL_PATH_MAX / 2 + 2)

struct segments {
    struct sv at[SEGMENTS_MAX];
    size_t n;
};

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* What RFC 3986 allows in a segment of a path besides %XX. */
static bool is_path_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("-._~!$&'()*+,;=:@", c) != NULL);
}

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

static void append_segment(struct buf *out, struct sv segment)
{
    buf_putc(out, '/');
    for (size_t i = 0; i < segment.n; i++) {
        char c = segment.p[i];
        bool escape =
            c == '%' && i + 2 < segment.n && is_hex(segment.p[i + 1]) && is_hex(segment.p[i + 2]);
        if (escape || is_path_char(c)) {
            buf_putc(out, c);
        } else {
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
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
    struct segments segments = {.n = 0};
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
    q->at[q->n] = (struct url_param){.name = name, .value = value, .order = q->n};
    q->n++;
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
            q->at[kept] = q->at[i];
            q->at[kept].order = kept;
            kept++;
        }
    }
    q->n = kept;
}

static int compare_params(const void *a, const void *b)
{
    const struct url_param *x = a;
    const struct url_param *y = b;
    int by_name = sv_cmp(x->name, y->name);
    if (by_name != 0) {
        return by_name;
    }
    return (x->order > y->order) - (x->order < y->order);
}

bool url_append_query(struct buf *out, struct url_query *q)
{
    if (q->n > 1) {
        qsort(q->at, q->n, sizeof(*q->at), compare_params);
    }
    for (size_t i = 0; i < q->n; i++) {
        buf_putc(out, i == 0 ? '?' : '&');
        percent_encode(q->at[i].name, out);
        buf_putc(out, '=');
        percent_encode(q->at[i].value, out);
    }
    return buf_ok(out);
}
