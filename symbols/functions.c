#include "symbols/functions.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/sv.h"

/* Namespaces nest a few deep; files of strangers are cut. */
#define DEPTH_MAX 64
/* Ranges of functions do not overlap in sound files. So many are looked at before an address. */
#define OVERLAPS_MAX 8

struct range {
    uint64_t start;
    uint64_t end;
    Dwarf_Off die;
};

struct index {
    struct range *ranges; /* sorted by start */
    size_t n;
    size_t max;
};

static void index_free(void *arg)
{
    struct index *x = arg;
    free(x->ranges);
    free(x);
}

void functions_done(struct functions *f)
{
    f->units = map_free(f->units, index_free);
}

/* ---- reading a unit -------------------------------------------------------------------------- */

static bool add_range(struct index *x, const struct range *r)
{
    if (x->n == x->max) {
        size_t max = x->max == 0 ? 64 : 2 * x->max;
        struct range *grown = reallocarray(x->ranges, max, sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        x->ranges = grown;
        x->max = max;
    }
    x->ranges[x->n++] = *r;
    return true;
}

static bool add_function(struct index *x, Dwarf_Die *die)
{
    Dwarf_Addr base;
    struct range r = {.die = dwarf_dieoffset(die)};
    bool ok = true;
    for (ptrdiff_t next = dwarf_ranges(die, 0, &base, &r.start, &r.end); next > 0 && ok;
         next = dwarf_ranges(die, next, &base, &r.start, &r.end)) {
        ok = r.start >= r.end || add_range(x, &r);
    }
    return ok;
}

static bool holds_functions(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
           tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
           tag == DW_TAG_enumeration_type;
}

/* Reads the children of a DIE. */
/* NOLINTNEXTLINE(misc-no-recursion): the depth is bounded */
static bool add_children(struct index *x, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die child;
    bool ok = true;
    int rc = dwarf_child(parent, &child);
    while (rc == 0 && ok) {
        int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram) {
            ok = add_function(x, &child);
        } else if (holds_functions(tag) && depth < DEPTH_MAX) {
            ok = add_children(x, &child, depth + 1);
        }
        rc = dwarf_siblingof(&child, &child);
    }
    return ok;
}

static int by_start(const void *a, const void *b)
{
    const struct range *x = a;
    const struct range *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static struct index *index_read(Dwarf_Die *unit)
{
    struct index *x = calloc(1, sizeof(*x));
    if (x == NULL) {
        return NULL;
    }
    if (!add_children(x, unit, 0)) {
        index_free(x);
        return NULL;
    }
    if (x->n > 0) {
        qsort(x->ranges, x->n, sizeof(*x->ranges), by_start);
    }
    return x;
}

/* Returns the index of a unit, or NULL if out of memory. */
static const struct index *index_of(struct functions *f, Dwarf_Die *unit)
{
    Dwarf_Off offset = dwarf_dieoffset(unit);
    struct sv key = {(const char *)&offset, sizeof(offset)};
    f->units = f->units != NULL ? f->units : map_new();
    struct index *x = f->units == NULL ? NULL : map_get(f->units, key);
    if (f->units != NULL && x == NULL) {
        x = index_read(unit);
        if (x != NULL && !map_put(f->units, key, x, NULL)) {
            index_free(x);
            x = NULL;
        }
    }
    return x;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Returns the number of ranges that start at or before the address. */
static size_t count_until(const struct index *x, uint64_t address)
{
    size_t low = 0;
    size_t high = x->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (x->ranges[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool functions_find(struct functions *f, Dwarf_Die *unit, uint64_t address, Dwarf_Die *ret)
{
    const struct index *x = index_of(f, unit);
    const struct range *found = NULL;
    size_t end = x == NULL ? 0 : count_until(x, address);
    for (size_t i = end; i > 0 && end - i < OVERLAPS_MAX; i--) {
        const struct range *r = &x->ranges[i - 1];
        if (address < r->end && (found == NULL || r->die < found->die)) {
            found = r;
        }
    }
    return found != NULL && dwarf_offdie(dwarf_cu_getdwarf(unit->cu), found->die, ret) != NULL;
}
