/* Label sets: see labels.h. One allocation each: the header and two pointers a label. */
#include "base/labels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/labels_make.h"
#include "base/utf8.h"

struct labels {
    atomic_uint refs;
    uint32_t count;
    struct intern *in;
    struct istr *strings[]; /* name, value, name, value, ..., sorted by name */
};

static struct istr *name_at(const struct labels *l, size_t i)
{
    return l->strings[2 * i];
}

static struct istr *value_at(const struct labels *l, size_t i)
{
    return l->strings[2 * i + 1];
}

struct labels *labels_make(struct intern *in, struct istr *const *strings, size_t count)
{
    struct labels *l = malloc(sizeof(*l) + 2 * count * sizeof(struct istr *));
    if (l == NULL) {
        return NULL;
    }
    atomic_init(&l->refs, 1);
    l->count = (uint32_t)count;
    l->in = in;
    if (count > 0) {
        memcpy(l->strings, strings, 2 * count * sizeof(struct istr *));
    }
    return l;
}

struct istr *labels_name_istr(const struct labels *l, size_t i)
{
    return name_at(l, i);
}

struct istr *labels_value_istr(const struct labels *l, size_t i)
{
    return value_at(l, i);
}

struct intern *labels_intern(const struct labels *l)
{
    return l->in;
}

struct labels *labels_ref(struct labels *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

struct labels *labels_unref(struct labels *l)
{
    if (l != NULL && atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) == 1) {
        for (size_t i = 0; i < 2 * (size_t)l->count; i++) {
            intern_put(l->in, l->strings[i]);
        }
        free(l);
    }
    return NULL;
}

size_t labels_count(const struct labels *l)
{
    return l->count;
}

struct label labels_at(const struct labels *l, size_t i)
{
    return (struct label){.name = istr_sv(name_at(l, i)), .value = istr_sv(value_at(l, i))};
}

struct sv labels_get(const struct labels *l, struct sv name)
{
    size_t low = 0;
    size_t high = l->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = sv_cmp(istr_sv(name_at(l, mid)), name);
        if (order == 0) {
            return istr_sv(value_at(l, mid));
        }
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return SV("");
}

bool labels_equal(const struct labels *a, const struct labels *b)
{
    if (a == b) {
        return true;
    }
    if (a->count != b->count) {
        return false;
    }
    bool same_table = a->in == b->in;
    for (size_t i = 0; i < 2 * (size_t)a->count; i++) {
        struct istr *x = a->strings[i];
        struct istr *y = b->strings[i];
        if (same_table ? x != y : !sv_eq(istr_sv(x), istr_sv(y))) {
            return false;
        }
    }
    return true;
}

/* Over the bytes alone, with a fixed seed. The lengths are part of each step, so no separator is
 * needed. */
uint64_t labels_hash(const struct labels *l)
{
    uint64_t hash = hash_bytes("", 0, l->count);
    for (size_t i = 0; i < 2 * (size_t)l->count; i++) {
        hash = hash_bytes(l->strings[i]->text, l->strings[i]->len, hash);
    }
    return hash;
}

/* What Go's strconv.Quote would not print as it is, as far as it turns up in text at all: controls,
 * white space other than the plain blank, invisible marks, private use, surrogates' neighbours. */
static bool is_unprintable(uint32_t rune)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0xa0},       {0xad, 0xad},        {0x1680, 0x1680},
        {0x180e, 0x180e}, {0x2000, 0x200f},   {0x2028, 0x202f},    {0x205f, 0x206f},
        {0x3000, 0x3000}, {0xe000, 0xf8ff},   {0xfeff, 0xfeff},    {0xfff0, 0xfffb},
        {0xfffe, 0xffff}, {0xe0000, 0xe00ff}, {0xf0000, 0x10ffff},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (rune >= ranges[i].first && rune <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

static void quote_rune(uint32_t rune, struct buf *out)
{
    static const char plain[] = "\a\b\f\n\r\t\v";
    static const char escaped[] = "abfnrtv";
    const char *at = rune == 0 || rune >= 0x80 ? NULL : strchr(plain, (int)rune);
    if (at != NULL) {
        buf_append(out, (const char[]){'\\', escaped[at - plain]}, 2);
    } else if (rune < 0x80) {
        buf_printf(out, "\\x%02" PRIx32, rune);
    } else {
        buf_printf(out, rune < 0x10000 ? "\\u%04" PRIx32 : "\\U%08" PRIx32, rune);
    }
}

/* Appends v in double quotes with the escapes of Go's strconv.Quote. */
static void quote_go(struct sv v, struct buf *out)
{
    buf_putc(out, '"');
    while (v.n > 0) {
        uint32_t rune;
        size_t len = utf8_decode(v, &rune);
        if (len == 0) {
            buf_printf(out, "\\x%02x", (unsigned)(unsigned char)v.p[0]);
            len = 1;
        } else if (is_unprintable(rune)) {
            quote_rune(rune, out);
        } else {
            if (rune == '"' || rune == '\\') {
                buf_putc(out, '\\');
            }
            buf_append(out, v.p, len);
        }
        v.p += len;
        v.n -= len;
    }
    buf_putc(out, '"');
}

/* Letters, digits and underscores, not starting with a digit: what stands without quotes. */
static bool is_plain_name(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        bool digit = c >= '0' && c <= '9';
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '_' && !(digit && i > 0)) {
            return false;
        }
    }
    return v.n > 0;
}

/* Other names are quoted, as Prometheus does. */
static void put_name(struct sv name, struct buf *out)
{
    if (is_plain_name(name)) {
        buf_append(out, name.p, name.n);
    } else {
        quote_go(name, out);
    }
}

bool labels_format(const struct labels *l, struct buf *out)
{
    buf_putc(out, '{');
    for (size_t i = 0; i < l->count; i++) {
        struct label label = labels_at(l, i);
        buf_puts(out, i == 0 ? "" : ", ");
        put_name(label.name, out);
        buf_putc(out, '=');
        quote_go(label.value, out);
    }
    return buf_putc(out, '}');
}

bool labels_format_json(const struct labels *l, struct buf *out)
{
    buf_putc(out, '{');
    for (size_t i = 0; i < l->count; i++) {
        struct label label = labels_at(l, i);
        buf_puts(out, i == 0 ? "" : ",");
        json_quote(label.name, out);
        buf_putc(out, ':');
        json_quote(label.value, out);
    }
    return buf_putc(out, '}');
}
