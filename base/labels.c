#include "base/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/labels_make.h"

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

/* Over the bytes alone, with a fixed seed. Each step includes the length, so no separator is
 * needed.
 */
uint64_t labels_hash(const struct labels *l)
{
    uint64_t hash = hash_bytes("", 0, l->count);
    for (size_t i = 0; i < 2 * (size_t)l->count; i++) {
        hash = hash_bytes(l->strings[i]->text, l->strings[i]->len, hash);
    }
    return hash;
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
