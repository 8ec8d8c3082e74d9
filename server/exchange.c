#include "server/exchange.h"

#include <stdlib.h>

#include "pprof/gzip.h"

/* A smaller response is not compressed, because its head is about as long. */
#define DEFLATE_MIN 1024

/* ---- the request ----------------------------------------------------------------------------- */

bool exchange_decode(const char *header, struct sv coding, struct sv body, struct buf *buf,
                     struct sv *ret_body, struct err *err)
{
    *ret_body = body;
    if (coding.n == 0 || sv_eq_nocase(coding, "identity")) {
        return true;
    }
    if (!sv_eq_nocase(coding, "gzip") && !sv_eq_nocase(coding, "x-gzip")) {
        return err_set(err, ERR_REFUSED, "unknown %s \"%.*s\", expected gzip", header,
                       coding.n < 64 ? (int)coding.n : 64, coding.p);
    }
    if (!gzip_inflate_buf(body, buf, err)) {
        return false;
    }
    *ret_body = (struct sv){.p = buf->data, .n = buf->len};
    return true;
}

bool exchange_inflate(const struct exchange *x, struct buf *buf, struct sv *ret_body,
                      struct err *err)
{
    return exchange_decode("Content-Encoding", request_header(x->request, "Content-Encoding"),
                           x->body, buf, ret_body, err);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Returns true for the quality value 0: "0", "0.", "0.000". */
static bool is_zero(struct sv q)
{
    size_t n = 0;
    while (n < q.n && (q.p[n] == '0' || (q.p[n] == '.' && n == 1))) {
        n++;
    }
    return q.n > 0 && n == q.n;
}

/* Returns true if an element of Accept-Encoding, such as "gzip;q=0.5", names gzip. *ret_allowed is
 * false if its quality value is 0. */
static bool speaks_of_gzip(struct sv element, bool *ret_allowed)
{
    struct sv name = element;
    struct sv params = SV("");
    (void)sv_cut(element, ';', &name, &params);
    params = sv_trim(params);
    *ret_allowed = !(params.n > 2 && (params.p[0] | 0x20) == 'q' && params.p[1] == '=' &&
                     is_zero(sv_trim(sv_skip(params, 2))));
    name = sv_trim(name);
    return sv_eq_nocase(name, "gzip") || sv_eq_nocase(name, "x-gzip");
}

static bool takes_gzip(const struct request *r)
{
    struct sv list = request_header(r, "Accept-Encoding");
    while (list.n > 0) {
        struct sv element = list;
        struct sv rest = SV("");
        bool allowed;
        (void)sv_cut(list, ',', &element, &rest);
        if (speaks_of_gzip(element, &allowed)) {
            return allowed;
        }
        list = rest;
    }
    return false;
}

void exchange_deflate(struct exchange *x)
{
    struct sv plain = {.p = x->reply.data, .n = x->reply.len};
    struct scratch *s = plain.n >= DEFLATE_MIN && takes_gzip(x->request) ? scratch_new() : NULL;
    struct sv packed;
    if (s != NULL && gzip_deflate(s, plain, &packed) && packed.n < plain.n) {
        buf_clear(&x->reply);
        buf_append(&x->reply, packed.p, packed.n);
        buf_puts(&x->headers, "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n");
    }
    scratch_free(s);
}

void exchange_mark_partial(struct exchange *x)
{
    if (x->partial == NULL || x->partial->parts == 0) {
        return;
    }
    buf_printf(&x->headers, EXCHANGE_PARTIAL ": %zu; ", x->partial->parts);
    /* The reason may quote what a server has answered. */
    for (const char *c = x->partial->why; *c != '\0'; c++) {
        buf_putc(&x->headers, *c >= ' ' && *c <= '~' ? *c : ' ');
    }
    buf_puts(&x->headers, "\r\n");
}

void exchange_add_partial(struct exchange *x)
{
    struct buf *out = &x->reply;
    bool line = out->len > 0 && out->data[out->len - 1] == '\n';
    size_t n = out->len - line;
    if (x->partial == NULL || x->partial->parts == 0 || !buf_ok(out) || n < 2 ||
        out->data[n - 1] != '}') {
        return;
    }
    out->len = n - 1;
    buf_printf(out, ",\"partial\":{\"parts\":%zu", x->partial->parts);
    json_member("why", sv_from(x->partial->why), out);
    buf_puts(out, line ? "}}\n" : "}}");
}

void exchange_text(struct exchange *x, int status, const char *content_type, struct sv text)
{
    x->status = status;
    x->content_type = content_type;
    buf_clear(&x->reply);
    buf_append(&x->reply, text.p, text.n);
}
