#include <string.h>

#include "store/query/query_private.h"

/* Limit of a projection: more than the labels of a series can have. */
#define PROJECTION_BYTES_MAX ((size_t)4 * 1024 * 1024)

static bool is_named(const struct projection *p, struct sv name)
{
    for (size_t i = 0; i < p->n_names; i++) {
        if (sv_eq(p->names[i], name)) {
            return true;
        }
    }
    return false;
}

static bool put_text(struct sv text, struct buf *out)
{
    uint32_t n = (uint32_t)text.n;
    return buf_append(out, &n, sizeof(n)) && buf_append(out, text.p, text.n);
}

bool projection_put(const struct projection *p, const struct label *labels, size_t n,
                    struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (is_named(p, labels[i].name) != p->others &&
            (!put_text(labels[i].name, out) || !put_text(labels[i].value, out))) {
            return false;
        }
    }
    return true;
}

/* Takes a text off the front. */
static struct sv take_text(struct sv *bytes)
{
    uint32_t n;
    memcpy(&n, bytes->p, sizeof(n));
    struct sv text = {bytes->p + sizeof(n), n};
    *bytes = sv_skip(*bytes, sizeof(n) + n);
    return text;
}

static struct sv copy(struct arena *arena, struct sv text)
{
    return (struct sv){arena_strndup(arena, text.p, text.n), text.n};
}

bool projection_read(struct sv bytes, struct arena *arena, struct query_labels *ret,
                     struct err *err)
{
    size_t n = 0;
    for (struct sv rest = bytes; rest.n > 0; n++) {
        (void)take_text(&rest);
        (void)take_text(&rest);
    }
    *ret = (struct query_labels){.at = arena_array(arena, n + 1, sizeof(*ret->at)), .n = n};
    if (ret->at == NULL) {
        return query_no_room(err);
    }
    for (size_t i = 0; i < n; i++) {
        ret->at[i].name = copy(arena, take_text(&bytes));
        ret->at[i].value = copy(arena, take_text(&bytes));
        if (ret->at[i].name.p == NULL || ret->at[i].value.p == NULL) {
            return query_no_room(err);
        }
    }
    return true;
}

int query_labels_cmp(const struct query_labels *a, const struct query_labels *b)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        int order = sv_cmp(a->at[i].name, b->at[i].name);
        order = order != 0 ? order : sv_cmp(a->at[i].value, b->at[i].value);
        if (order != 0) {
            return order;
        }
    }
    return (a->n > b->n) - (a->n < b->n);
}

void projections_init(struct projections *p, const struct projection *what, struct budget *budget)
{
    *p = (struct projections){.what = *what, .budget = budget};
    merge_table_init(&p->table, query_seed());
    buf_init(&p->bytes, PROJECTION_BYTES_MAX);
}

void projections_done(struct projections *p)
{
    merge_table_done(&p->table);
    buf_done(&p->bytes);
}

bool projections_add(struct projections *p, const struct label *labels, size_t n, uint32_t *ret,
                     struct err *err)
{
    buf_clear(&p->bytes);
    if (!projection_put(&p->what, labels, n, &p->bytes)) {
        return buf_too_big(&p->bytes) ? query_no_room(err) : err_memory(err);
    }
    return merge_table_add(&p->table, p->budget, p->bytes.data, p->bytes.len, p->bytes.len, ret,
                           err);
}

/* Takes a label off the front. Returns its bytes, name and value included. */
static struct sv take_label(struct sv *bytes, struct label *ret)
{
    struct sv rest = *bytes;
    ret->name = take_text(&rest);
    ret->value = take_text(&rest);
    struct sv taken = {bytes->p, bytes->n - rest.n};
    *bytes = rest;
    return taken;
}

/* Writes the labels that two projections share, in order of names, as both are. */
static bool put_common(struct sv a, struct sv b, struct buf *out)
{
    struct label x;
    struct label y;
    while (a.n > 0 && b.n > 0) {
        struct sv rest_a = a;
        struct sv rest_b = b;
        struct sv bytes = take_label(&rest_a, &x);
        (void)take_label(&rest_b, &y);
        int order = sv_cmp(x.name, y.name);
        if (order == 0 && sv_eq(x.value, y.value) && !buf_append(out, bytes.p, bytes.n)) {
            return false;
        }
        a = order <= 0 ? rest_a : a;
        b = order >= 0 ? rest_b : b;
    }
    return true;
}

bool projections_common(struct projections *p, uint32_t a, uint32_t b, uint32_t *ret,
                        struct err *err)
{
    struct sv x;
    struct sv y;
    if (a == b) {
        *ret = a;
        return true;
    }
    x.p = merge_table_get(&p->table, a, &x.n);
    y.p = merge_table_get(&p->table, b, &y.n);
    buf_clear(&p->bytes);
    if (!put_common(x, y, &p->bytes)) {
        return buf_too_big(&p->bytes) ? query_no_room(err) : err_memory(err);
    }
    return merge_table_add(&p->table, p->budget, p->bytes.data, p->bytes.len, p->bytes.len, ret,
                           err);
}

bool projections_get(const struct projections *p, uint32_t i, struct arena *arena,
                     struct query_labels *ret, struct err *err)
{
    size_t n;
    const char *bytes = merge_table_get(&p->table, i, &n);
    return projection_read((struct sv){bytes, n}, arena, ret, err);
}
