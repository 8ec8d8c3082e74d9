#include "jfr/contexts.h"

#include <stdlib.h>

#include "jfr/jfr.h"
#include "pprof/gzip.h"
#include "pprof/wire.h"

/* Field numbers of the messages LabelsSnapshot and Context, and of an entry of a map. */
enum { SNAPSHOT_CONTEXTS = 1, SNAPSHOT_STRINGS = 2 };
enum { CONTEXT_LABELS = 1 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

static bool damaged(const struct wire_reader *r, struct err *err)
{
    return err_set(err, ERR_INPUT, "labels: %s at byte %zu", r->problem, r->field_start);
}

static bool read_entry(struct sv entry, struct jfr_numbered *ret, struct err *err)
{
    struct wire_reader r = wire_reader_of(entry);
    struct wire_field f;
    *ret = (struct jfr_numbered){.bytes = {"", 0}};
    while (wire_next(&r, &f)) {
        if (f.number == ENTRY_KEY && f.type == WIRE_VARINT) {
            ret->id = (int64_t)f.value;
        } else if (f.number == ENTRY_VALUE && f.type == WIRE_BYTES) {
            ret->bytes = f.bytes;
        }
    }
    return r.problem == NULL || damaged(&r, err);
}

static bool add(struct jfr_contexts *x, struct jfr_numbered **list, size_t *n, size_t *cap,
                struct sv entry, struct err *err)
{
    struct jfr_numbered *grown = budget_grow(x->budget, *list, cap, *n + 1, sizeof(*grown), err);
    if (grown == NULL) {
        return false;
    }
    *list = grown;
    return read_entry(entry, &grown[(*n)++], err);
}

static int compare(const void *a, const void *b)
{
    const struct jfr_numbered *x = a;
    const struct jfr_numbered *y = b;
    if (x->id != y->id) {
        return x->id < y->id ? -1 : 1;
    }
    /* Among entries with the same id, the later one comes first, so that sort() keeps it. */
    return (x->bytes.p < y->bytes.p) - (x->bytes.p > y->bytes.p);
}

/* Sorts the list. Of entries with the same number, only the last one in the message stays. */
static size_t sort(struct jfr_numbered *list, size_t n)
{
    size_t left = 0;
    if (n > 0) {
        qsort(list, n, sizeof(*list), compare);
    }
    for (size_t i = 0; i < n; i++) {
        if (left == 0 || list[left - 1].id != list[i].id) {
            list[left++] = list[i];
        }
    }
    return left;
}

static bool read_snapshot(struct jfr_contexts *x, struct sv plain, struct err *err)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f;
    while (wire_next(&r, &f)) {
        bool ok = true;
        if (f.number == SNAPSHOT_CONTEXTS && f.type == WIRE_BYTES) {
            ok = add(x, &x->contexts, &x->n_contexts, &x->contexts_cap, f.bytes, err);
        } else if (f.number == SNAPSHOT_STRINGS && f.type == WIRE_BYTES) {
            ok = add(x, &x->strings, &x->n_strings, &x->strings_cap, f.bytes, err);
        }
        if (!ok) {
            return false;
        }
    }
    x->n_contexts = sort(x->contexts, x->n_contexts);
    x->n_strings = sort(x->strings, x->n_strings);
    return r.problem == NULL || damaged(&r, err);
}

bool jfr_contexts_read(struct jfr_contexts *x, struct sv snapshot, struct budget *budget,
                       struct err *err)
{
    struct sv plain = snapshot;
    *x = (struct jfr_contexts){.budget = budget};
    if (snapshot.n == 0) {
        return true;
    }
    if (gzip_is(snapshot)) {
        x->inflated = scratch_new();
        if (!gzip_plain(x->inflated, snapshot, JFR_LABELS_MAX, 0, &plain, err)) {
            return err_wrap(err, "labels");
        }
    }
    return read_snapshot(x, plain, err);
}

void jfr_contexts_done(struct jfr_contexts *x)
{
    free(x->contexts);
    free(x->strings);
    scratch_free(x->inflated);
    *x = (struct jfr_contexts){.budget = x->budget};
}

static const struct jfr_numbered *find(const struct jfr_numbered *list, size_t n, int64_t id)
{
    size_t low = 0;
    size_t high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && list[low].id == id ? &list[low] : NULL;
}

struct sv jfr_contexts_string(const struct jfr_contexts *x, int64_t id)
{
    const struct jfr_numbered *s = find(x->strings, x->n_strings, id);
    return s != NULL ? s->bytes : (struct sv){"", 0};
}

bool jfr_contexts_has(const struct jfr_contexts *x, int64_t context)
{
    size_t at = 0;
    struct sv name;
    struct sv value;
    return jfr_contexts_next(x, context, &at, &name, &value);
}

bool jfr_contexts_next(const struct jfr_contexts *x, int64_t context, size_t *at,
                       struct sv *ret_name, struct sv *ret_value)
{
    const struct jfr_numbered *c = find(x->contexts, x->n_contexts, context);
    struct wire_reader r = wire_reader_of(c != NULL ? c->bytes : (struct sv){"", 0});
    struct wire_field f;
    r.at = *at;
    while (wire_next(&r, &f)) {
        *at = r.at;
        if (f.number != CONTEXT_LABELS || f.type != WIRE_BYTES) {
            continue;
        }
        uint64_t entry[ENTRY_VALUE + 1] = {0};
        wire_read_numbers(f.bytes, entry, ENTRY_VALUE + 1);
        *ret_name = jfr_contexts_string(x, (int64_t)entry[ENTRY_KEY]);
        *ret_value = jfr_contexts_string(x, (int64_t)entry[ENTRY_VALUE]);
        if (ret_name->n > 0 && ret_value->n > 0) {
            return true;
        }
    }
    return false;
}
