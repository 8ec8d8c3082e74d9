#include "base/labels.h"

#include <stdlib.h>

#include "base/intern.h"
#include "base/mix.h"

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
    return (struct label){.name = istr_sv(l->strings[2 * i]),
                          .value = istr_sv(l->strings[2 * i + 1])};
}

/* Compares the name that is searched with the name of a label. */
static int compare_name(const void *name, const void *label)
{
    struct istr *const *strings = label;
    return sv_cmp(*(const struct sv *)name, istr_sv(strings[0]));
}

struct sv labels_get(const struct labels *l, struct sv name)
{
    struct istr *const *strings =
        bsearch(&name, l->strings, l->count, 2 * sizeof(struct istr *), compare_name);
    return strings != NULL ? istr_sv(strings[1]) : SV("");
}

size_t labels_bytes(const struct labels *l)
{
    size_t n = 0;
    for (size_t i = 0; i < 2 * (size_t)l->count; i++) {
        n += l->strings[i]->len;
    }
    return n;
}

struct sv label_value(const struct label *labels, size_t n, struct sv name)
{
    for (size_t i = 0; i < n; i++) {
        if (sv_eq(labels[i].name, name)) {
            return labels[i].value;
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

/* Hashes only the bytes, with a fixed seed. Each step includes the length, so no separator is
 * needed. */
uint64_t labels_hash(const struct labels *l)
{
    uint64_t hash = hash_bytes("", 0, l->count);
    for (size_t i = 0; i < 2 * (size_t)l->count; i++) {
        hash = hash_bytes(l->strings[i]->text, l->strings[i]->len, hash);
    }
    return hash;
}

uint64_t labels_mark(const struct labels *l)
{
    uint64_t mark = mix64(l->count);
    for (size_t i = 0; i < 2 * (size_t)l->count; i++) {
        mark = mix64(mark ^ l->strings[i]->hash) + MIX_GOLDEN;
    }
    return mark;
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
