#include "symbols/units.h"

#include <stdlib.h>

void units_done(struct units *u)
{
    free(u->ranges);
    *u = (struct units){.n = 0};
}

static void add_range(struct units *u, const struct unit_range *r)
{
    if (u->n == u->max) {
        size_t max = u->max == 0 ? 1024 : 2 * u->max;
        struct unit_range *grown = reallocarray(u->ranges, max, sizeof(*grown));
        if (grown == NULL) {
            return;
        }
        u->ranges = grown;
        u->max = max;
    }
    u->ranges[u->n++] = *r;
}

static void add_unit(struct units *u, Dwarf_Die *unit)
{
    Dwarf_Addr base;
    Dwarf_Addr start;
    Dwarf_Addr end;
    ptrdiff_t next = 0;
    while ((next = dwarf_ranges(unit, next, &base, &start, &end)) > 0) {
        if (start < end) {
            add_range(u, &(struct unit_range){start, end, dwarf_dieoffset(unit)});
        }
    }
}

static int by_start(const void *a, const void *b)
{
    const struct unit_range *x = a;
    const struct unit_range *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void read_units(struct units *u, Dwarf *dwarf)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    u->read = true;
    while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
        add_unit(u, &die);
    }
    if (u->n > 0) {
        qsort(u->ranges, u->n, sizeof(*u->ranges), by_start);
    }
}

/* Returns the last range that starts at or before the address, or NULL. */
static const struct unit_range *range_at(const struct units *u, uint64_t address)
{
    size_t low = 0;
    size_t high = u->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u->ranges[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && address < u->ranges[low - 1].end ? &u->ranges[low - 1] : NULL;
}

Dwarf_Die *units_find(struct units *u, Dwfl_Module *module, uint64_t address, Dwarf_Addr *ret_bias)
{
    Dwarf *dwarf = dwfl_module_getdwarf(module, ret_bias);
    if (dwarf == NULL) {
        return NULL;
    }
    if (!u->read) {
        read_units(u, dwarf);
    }
    const struct unit_range *r = range_at(u, address - *ret_bias);
    return r == NULL ? NULL : dwarf_offdie(dwarf, r->unit, &u->found);
}
