#include "api/receive/multipart.h"

#include <string.h>

#include "base/ascii.h"

/* ---- Content-Type ---------------------------------------------------------------------------- */

/* Returns the text before the first ";", and sets *ret_params to the parameters after it. */
static struct sv media_type(struct sv v, struct sv *ret_params)
{
    struct sv head = v;
    *ret_params = (struct sv){"", 0};
    (void)sv_cut(v, ';', &head, ret_params);
    return sv_trim(head);
}

bool multipart_is_type(struct sv content_type)
{
    struct sv params;
    return sv_eq_nocase(media_type(content_type, &params), "multipart/form-data");
}

/* Takes a token, or the inside of a quoted string (with its backslashes), from the start of *v. */
static struct sv take_value(struct sv *v)
{
    struct sv value = {v->p, 0};
    if (v->n == 0 || v->p[0] != '"') {
        while (value.n < v->n && v->p[value.n] != ';') {
            value.n++;
        }
        *v = sv_skip(*v, value.n);
        return sv_trim(value);
    }
    *v = sv_skip(*v, 1);
    value.p = v->p;
    while (value.n < v->n && v->p[value.n] != '"') {
        value.n += v->p[value.n] == '\\' && value.n + 1 < v->n ? 2 : 1;
    }
    *v = sv_skip(*v, value.n);
    while (v->n > 0 && v->p[0] != ';') {
        *v = sv_skip(*v, 1);
    }
    return value;
}

/* Returns the value of a parameter in `a=b; c="d"`; its p is NULL if there is none. */
static struct sv find_param(struct sv params, const char *name)
{
    while (params.n > 0) {
        struct sv key = {params.p, 0};
        while (key.n < params.n && params.p[key.n] != '=' && params.p[key.n] != ';') {
            key.n++;
        }
        params = sv_skip(params, key.n);
        if (params.n > 0 && params.p[0] == '=') {
            params = sv_skip(params, 1);
            struct sv value = take_value(&params);
            if (sv_eq_nocase(sv_trim(key), name)) {
                return value;
            }
        }
        params = params.n > 0 ? sv_skip(params, 1) : params; /* skips the ";" */
    }
    return (struct sv){NULL, 0};
}

bool multipart_boundary(struct sv content_type, struct sv *ret_boundary)
{
    struct sv params;
    (void)media_type(content_type, &params);
    *ret_boundary = find_param(params, "boundary");
    return ret_boundary->p != NULL && ret_boundary->n > 0 &&
           ret_boundary->n <= MULTIPART_BOUNDARY_MAX;
}

/* ---- the body -------------------------------------------------------------------------------- */

/* Returns true if rest can follow a boundary: blanks and the end of the line, or "--". */
static bool ends_delimiter(struct sv rest)
{
    return rest.n == 0 || strchr("\r\n-\t ", rest.p[0]) != NULL;
}

/* Finds the next "--boundary" at the start of a line. False if there is none. */
static bool find_delimiter(struct sv in, struct sv boundary, size_t *ret_at)
{
    char delimiter[MULTIPART_BOUNDARY_MAX + 2] = "--";
    size_t n = boundary.n + 2;
    memcpy(delimiter + 2, boundary.p, boundary.n);
    const char *p = in.p;
    const char *end = in.p + in.n;
    while ((p = memmem(p, (size_t)(end - p), delimiter, n)) != NULL) {
        struct sv rest = {p + n, (size_t)(end - p) - n};
        if ((p == in.p || p[-1] == '\n') && ends_delimiter(rest)) {
            *ret_at = (size_t)(p - in.p);
            return true;
        }
        p++;
    }
    return false;
}

/* Skips the line of a delimiter, and notes whether it is the last delimiter. */
static void pass_delimiter(struct multipart *m, size_t at)
{
    m->rest = sv_skip(m->rest, at + m->boundary.n + 2);
    m->ended = sv_starts_with(m->rest, SV("--"));
    const char *end = m->rest.n > 0 ? memchr(m->rest.p, '\n', m->rest.n) : NULL;
    m->rest = sv_skip(m->rest, end == NULL ? m->rest.n : (size_t)(end + 1 - m->rest.p));
}

bool multipart_start(struct multipart *m, struct sv body, struct sv boundary, struct err *err)
{
    size_t at;
    *m = (struct multipart){.rest = body, .boundary = boundary};
    if (body.n == 0 || !find_delimiter(body, boundary, &at)) {
        return err_set(err, ERR_INPUT, "the form has no part: its boundary is not in the body");
    }
    pass_delimiter(m, at);
    return true;
}

/* Takes a line without its line break. False if there is no line break. */
static bool take_line(struct sv *in, struct sv *ret)
{
    const char *end = in->n > 0 ? memchr(in->p, '\n', in->n) : NULL;
    if (end == NULL) {
        return false;
    }
    *ret = (struct sv){in->p, (size_t)(end - in->p)};
    *in = sv_skip(*in, ret->n + 1);
    ret->n -= ret->n > 0 && ret->p[ret->n - 1] == '\r';
    return true;
}

/* Takes the lines of the head up to the empty line. */
static bool take_head(struct sv *part, struct sv *ret_name, struct err *err)
{
    struct sv line;
    *ret_name = (struct sv){"", 0};
    while (take_line(part, &line)) {
        struct sv key;
        struct sv value;
        if (line.n == 0) {
            return true;
        }
        if (sv_cut(line, ':', &key, &value) && sv_eq_nocase(sv_trim(key), "content-disposition")) {
            struct sv params;
            (void)media_type(value, &params);
            struct sv name = find_param(params, "name");
            *ret_name = name.p == NULL ? *ret_name : name;
        }
    }
    return err_set(err, ERR_INPUT, "part of the form: its head has no end");
}

bool multipart_next(struct multipart *m, struct multipart_part *ret, struct err *err)
{
    size_t at;
    if (m->ended) {
        return false;
    }
    if (m->n == MULTIPART_PARTS_MAX) {
        return err_set(err, ERR_LIMIT, "the form has more than %d parts", MULTIPART_PARTS_MAX);
    }
    if (!find_delimiter(m->rest, m->boundary, &at)) {
        return err_set(err, ERR_INPUT, "part %zu of the form is cut: no boundary ends it",
                       m->n + 1);
    }
    struct sv part = {m->rest.p, at};
    if (!take_head(&part, &ret->name, err)) {
        return err_wrap(err, "number %zu", m->n + 1);
    }
    part.n -= part.n > 0 && part.p[part.n - 1] == '\n';
    part.n -= part.n > 0 && part.p[part.n - 1] == '\r';
    ret->content = part;
    m->n++;
    pass_delimiter(m, at);
    return true;
}
