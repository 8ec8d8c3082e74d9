/* Finds the function at an address by an index of each compilation unit. libdw finds a function by
 * reading the unit from its start, which takes milliseconds in large units; this index reads each
 * unit once. Private to symbols/.
 */
#ifndef PROFPULL_SYMBOLS_FUNCTIONS_H
#define PROFPULL_SYMBOLS_FUNCTIONS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct functions {
    struct map *units; /* indexes, by the offset of the unit's DIE; NULL: none yet */
};

void functions_done(struct functions *f);

/* Finds the function with code at an address of a unit; of several, the one that the unit lists
 * first. Functions in namespaces and classes count, those within functions do not. Returns false if
 * there is none, or if out of memory. */
bool functions_find(struct functions *f, Dwarf_Die *unit, uint64_t address, Dwarf_Die *ret);

#endif
