/* The builder is a sorted array of entries. Strings that are set are copied into an arena and stay
 * there until the reset, even when the label is changed or removed, so that views stay valid. The
 * strings of the base set are not copied: the builder holds a reference to the set, and they go
 * into the result without another search in the table. */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"

/* The ceiling of the strings. Values that were replaced count until the reset. */
#define ARENA_MAX ((size_t)4 * LABELS_BYTES_MAX)

struct entry {
    struct sv name;
    struct sv value;
    /* The strings of the base set, borrowed; NULL if the label was set in the builder. */
    struct istr *name_istr;
    struct istr *value_istr;
    uint64_t order; /* counts up; given when the label is set while it is absent */
};

struct labels_builder {
    struct intern *in;
    struct arena *arena;
    struct labels *base; /* a reference, or NULL */
    size_t count;
    size_t bytes;     /* bytes of all names and values in entries */
    uint64_t order;   /* the order of the label that was set last */
    uint64_t started; /* the value of `order` at labels_builder_start() */
    bool failed;
    bool over;    /* the builder has failed at a limit, not for lack of memory */
    bool changed; /* the content differs from base, or there is no base */
    struct entry entries[LABELS_MAX];
};

struct labels_builder *labels_builder_new(struct intern *in)
{
    /* The memory is not zeroed, because most of the entries are never touched. */
    struct labels_builder *b = malloc(sizeof(*b));
    if (b == NULL) {
        return NULL;
    }
    b->in = in;
    b->base = NULL;
    b->arena = arena_new(ARENA_MAX);
    if (b->arena == NULL) {
        return labels_builder_free(b);
    }
    labels_builder_reset(b, NULL);
    return b;
}

struct labels_builder *labels_builder_free(struct labels_builder *b)
{
    if (b != NULL) {
        labels_unref(b->base);
        arena_free(b->arena);
        free(b);
    }
    return NULL;
}

void labels_builder_reset(struct labels_builder *b, const struct labels *base)
{
    /* A reference changes nothing but the atomic count, so the caller's set may be const. */
    struct labels *held = base == NULL ? NULL : labels_ref((struct labels *)(uintptr_t)base);
    labels_unref(b->base);
    b->base = held;
    arena_reset(b->arena);
    b->count = 0;
    b->bytes = 0;
    b->order = b->started = 0;
    b->failed = false;
    b->over = false;
    b->changed = true;
    if (base == NULL) {
        return;
    }
    bool same_table = base->in == b->in;
    b->changed = !same_table;
    for (size_t i = 0; i < base->count; i++) {
        struct label label = labels_at(base, i);
        b->entries[i] = (struct entry){.name = label.name, .value = label.value};
        if (same_table) {
            b->entries[i].name_istr = base->strings[2 * i];
            b->entries[i].value_istr = base->strings[2 * i + 1];
        }
        b->bytes += label.name.n + label.value.n;
    }
    b->count = base->count;
}

/* Returns the index of the name, or the index at which it would be inserted. */
static size_t find(const struct labels_builder *b, struct sv name, bool *ret_found)
{
    size_t low = 0;
    size_t high = b->count;
    *ret_found = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = sv_cmp(b->entries[mid].name, name);
        if (order == 0) {
            *ret_found = true;
            return mid;
        }
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static void fail(struct labels_builder *b, bool over)
{
    if (!b->failed) {
        b->failed = true;
        b->over = over;
    }
}

/* Makes a copy that lives until the reset. Fails the builder if there is no room. */
static bool copy(struct labels_builder *b, struct sv text, struct sv *ret_copy)
{
    char *p = arena_strndup(b->arena, text.p, text.n);
    if (p == NULL) {
        fail(b, text.n + 1 > ARENA_MAX - arena_used(b->arena));
        return false;
    }
    *ret_copy = (struct sv){.p = p, .n = text.n};
    return true;
}

static void replace_value(struct labels_builder *b, struct entry *e, struct sv value)
{
    struct sv copied;
    if (e->order <= b->started) {
        e->order = ++b->order;
    }
    if (sv_eq(e->value, value)) {
        return;
    }
    if (b->bytes - e->value.n + value.n > LABELS_BYTES_MAX) {
        fail(b, true);
        return;
    }
    if (copy(b, value, &copied)) {
        b->bytes = b->bytes - e->value.n + value.n;
        e->value = copied;
        b->changed = true;
        e->value_istr = NULL;
    }
}

static void add(struct labels_builder *b, size_t at, struct sv name, struct sv value)
{
    struct entry e = {.order = ++b->order};
    if (b->count >= LABELS_MAX || b->bytes + name.n + value.n > LABELS_BYTES_MAX) {
        fail(b, true);
        return;
    }
    if (!copy(b, name, &e.name) || !copy(b, value, &e.value)) {
        return;
    }
    memmove(&b->entries[at + 1], &b->entries[at], (b->count - at) * sizeof(*b->entries));
    b->entries[at] = e;
    b->changed = true;
    b->count++;
    b->bytes += name.n + value.n;
}

void labels_builder_set(struct labels_builder *b, struct sv name, struct sv value)
{
    bool found;
    if (value.n == 0) {
        labels_builder_del(b, name);
        return;
    }
    /* A single text past the limit must not overflow the sums. */
    if (b->failed || name.n > LABELS_BYTES_MAX || value.n > LABELS_BYTES_MAX) {
        fail(b, true);
        return;
    }
    size_t at = find(b, name, &found);
    if (found) {
        replace_value(b, &b->entries[at], value);
    } else {
        add(b, at, name, value);
    }
}

void labels_builder_set_str(struct labels_builder *b, const char *name, const char *value)
{
    labels_builder_set(b, sv_from(name), sv_from(value));
}

void labels_builder_del(struct labels_builder *b, struct sv name)
{
    bool found;
    size_t at = find(b, name, &found);
    if (found) {
        b->bytes -= b->entries[at].name.n + b->entries[at].value.n;
        b->changed = true;
        b->count--;
        memmove(&b->entries[at], &b->entries[at + 1], (b->count - at) * sizeof(*b->entries));
    }
}

struct sv labels_builder_get(const struct labels_builder *b, struct sv name)
{
    bool found;
    size_t at = find(b, name, &found);
    return found ? b->entries[at].value : SV("");
}

size_t labels_builder_count(const struct labels_builder *b)
{
    return b->count;
}

struct label labels_builder_at(const struct labels_builder *b, size_t i)
{
    return (struct label){.name = b->entries[i].name, .value = b->entries[i].value};
}

void labels_builder_start(struct labels_builder *b)
{
    b->started = b->order;
}

static int by_order(const void *x, const void *y)
{
    const struct entry *a = *(const struct entry *const *)x;
    const struct entry *b = *(const struct entry *const *)y;
    return (a->order > b->order) - (a->order < b->order);
}

size_t labels_builder_in_order(const struct labels_builder *b, struct label ret[LABELS_MAX])
{
    const struct entry *later[LABELS_MAX];
    size_t n = 0;
    size_t n_later = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (b->entries[i].order <= b->started) {
            ret[n++] = labels_builder_at(b, i);
        } else {
            later[n_later++] = &b->entries[i];
        }
    }
    if (n_later > 1) {
        qsort(later, n_later, sizeof(void *), by_order);
    }
    for (size_t i = 0; i < n_later; i++) {
        ret[n++] = (struct label){.name = later[i]->name, .value = later[i]->value};
    }
    return n;
}

bool labels_builder_ok(const struct labels_builder *b)
{
    return !b->failed;
}

bool labels_builder_over(const struct labels_builder *b)
{
    return b->over;
}

bool labels_builder_explain(const struct labels_builder *b, struct err *err)
{
    return b->over ? err_set(err, ERR_LIMIT, "more than %d labels or %zu bytes of them", LABELS_MAX,
                             LABELS_BYTES_MAX)
                   : err_memory(err);
}

static struct istr *intern_or_ref(struct intern *in, struct istr *known, struct sv text)
{
    return known != NULL ? istr_ref(known) : intern_get(in, text);
}

struct labels *labels_builder_build(struct labels_builder *b)
{
    if (b->failed) {
        return NULL;
    }
    if (!b->changed) {
        return labels_ref(b->base);
    }
    struct labels *l = malloc(sizeof(*l) + 2 * b->count * sizeof(struct istr *));
    if (l == NULL) {
        return NULL;
    }
    atomic_init(&l->refs, 1);
    l->count = (uint32_t)b->count;
    l->in = b->in;
    for (size_t n = 0; n < 2 * b->count; n++) {
        const struct entry *e = &b->entries[n / 2];
        l->strings[n] = n % 2 == 0 ? intern_or_ref(b->in, e->name_istr, e->name)
                                   : intern_or_ref(b->in, e->value_istr, e->value);
        if (l->strings[n] == NULL) {
            while (n > 0) {
                intern_put(b->in, l->strings[--n]);
            }
            free(l);
            return NULL;
        }
    }
    return l;
}
