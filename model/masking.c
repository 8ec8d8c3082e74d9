#include "model/masking.h"

#include <string.h>

#include "http/url.h"

#define LABEL_URL "__meta_url"
#define PARAM SV("param_")
#define META SV("__meta_")
/* The shortest value that is overwritten. Shorter values occur in a page by chance. */
#define ECHO_MIN 4
#define VALUE_MAX ((size_t)8 * 1024)

/* ---- names ----------------------------------------------------------------------------------- */

bool mask_param(struct sv name, bool all)
{
    return all ? !sv_eq_str(name, "seconds") : url_name_is_secret(name);
}

bool mask_label(struct sv name, bool all)
{
    bool meta = sv_starts_with(name, META);
    struct sv prefix = SV("__param_");
    if (sv_starts_with(name, prefix)) {
        return mask_param(sv_skip(name, prefix.n), all);
    }
    for (size_t i = META.n; meta && i + PARAM.n < name.n; i++) {
        if (sv_starts_with(sv_skip(name, i), PARAM)) {
            return mask_param(sv_skip(name, i + PARAM.n), all);
        }
    }
    return false;
}

/* ---- percent-encoding ------------------------------------------------------------------------ */

/* Decodes into out, which has room for VALUE_MAX bytes; longer text is cut. */
static struct sv decode(struct sv v, char *out)
{
    size_t n = 0;
    while (v.n > 0 && n < VALUE_MAX) {
        int byte = url_decode_byte(v);
        out[n++] = byte >= 0 ? (char)byte : v.p[0] == '+' ? ' ' : v.p[0];
        v = sv_skip(v, byte >= 0 ? 3 : 1);
    }
    return (struct sv){.p = out, .n = n};
}

/* ---- queries --------------------------------------------------------------------------------- */

/* Takes the next parameter off a query. value.p is NULL if the parameter is a single word. Returns
 * false at the end. */
static bool next_param(struct sv *query, struct sv *ret_name, struct sv *ret_value)
{
    struct sv pair = *query;
    if (query->n == 0) {
        return false;
    }
    if (!sv_cut(pair, '&', &pair, query)) {
        *query = SV("");
    }
    if (!sv_cut(pair, '=', ret_name, ret_value)) {
        *ret_name = pair;
        *ret_value = (struct sv){.p = NULL, .n = 0};
    }
    return true;
}

static bool hides(struct sv name, bool all)
{
    char decoded[VALUE_MAX];
    return mask_param(decode(name, decoded), all);
}

bool mask_url(struct sv url, bool all, struct buf *out)
{
    struct sv query;
    struct sv name;
    struct sv value;
    if (!sv_cut(url, '?', &url, &query)) {
        return buf_append(out, url.p, url.n);
    }
    buf_append(out, url.p, url.n);
    for (char before = '?'; next_param(&query, &name, &value); before = '&') {
        buf_putc(out, before);
        if (value.p == NULL) { /* a single word may be a token too */
            buf_printf(out, "%s", all ? MASK : "");
            buf_append(out, name.p, all ? 0 : name.n);
            continue;
        }
        buf_append(out, name.p, name.n);
        buf_putc(out, '=');
        if (hides(name, all)) {
            buf_puts(out, MASK);
        } else {
            buf_append(out, value.p, value.n);
        }
    }
    return buf_ok(out);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void overwrite(struct sv secret, char *text, size_t n)
{
    char *at = text;
    while (secret.n >= ECHO_MIN &&
           (at = memmem(at, n - (size_t)(at - text), secret.p, secret.n)) != NULL) {
        memset(at, '*', secret.n);
        at += secret.n;
    }
}

void mask_echo(struct sv url, bool all, char *text, size_t n)
{
    char decoded[VALUE_MAX];
    struct sv query;
    struct sv name;
    struct sv value;
    if (!sv_cut(url, '?', &url, &query)) {
        return;
    }
    while (next_param(&query, &name, &value)) {
        if (value.p != NULL && hides(name, all)) {
            overwrite(value, text, n);
            overwrite(decode(value, decoded), text, n);
        }
    }
}

/* ---- labels ---------------------------------------------------------------------------------- */

bool mask_value(struct label l, bool all, struct buf *out)
{
    if (mask_label(l.name, all)) {
        return buf_puts(out, MASK);
    }
    return sv_eq_str(l.name, LABEL_URL) ? mask_url(l.value, all, out)
                                        : buf_append(out, l.value.p, l.value.n);
}

static void put_value(struct label l, bool all, struct buf *out)
{
    struct buf text;
    buf_init(&text, (sizeof(MASK) + 1) * (l.value.n + 1));
    bool ok = mask_value(l, all, &text);
    json_quote(ok ? (struct sv){text.data, text.len} : SV(MASK), out);
    buf_done(&text);
}

bool mask_labels_json(const struct labels *labels, bool all, struct buf *out)
{
    buf_putc(out, '{');
    for (size_t i = 0; i < labels_count(labels); i++) {
        struct label l = labels_at(labels, i);
        buf_puts(out, i == 0 ? "" : ",");
        json_quote(l.name, out);
        buf_putc(out, ':');
        put_value(l, all, out);
    }
    return buf_putc(out, '}');
}
