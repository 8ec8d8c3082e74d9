/* Finds the compilation unit of an address in files whose .debug_aranges does not list it: clang
 * and rustc write none. Private to symbols/.
 */
#ifndef PROFPULL_SYMBOLS_UNITS_H
#define PROFPULL_SYMBOLS_UNITS_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unit_range {
    uint64_t start;
    uint64_t end;
    Dwarf_Off unit;
};

struct units {
    struct unit_range *ranges; /* sorted by start; do not overlap in sound files */
    size_t n;
    size_t max;
    bool read;
    Dwarf_Die found; /* the unit that was found last */
};

void units_done(struct units *u);
/* Returns the unit, valid until the next call, or NULL. address: one of libdwfl; it is the Dwarf's
 * plus *ret_bias. The first call reads the ranges of all units. */
Dwarf_Die *units_find(struct units *u, Dwfl_Module *module, uint64_t address, Dwarf_Addr *ret_bias);

#endif
