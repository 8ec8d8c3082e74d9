/* The functions at an address as DWARF describes them, inlined ones first. Private to symbols/.
 */
#ifndef PROFPULL_SYMBOLS_INLINES_H
#define PROFPULL_SYMBOLS_INLINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/functions.h"

/* Deeper inlining is cut: the innermost functions are left out. Compilers reach a few dozen. */
#define INLINES_MAX 256

/* A function at an address. The strings belong to the Dwarf. */
struct inlined {
    uint64_t die;          /* identifies the function, or this place where it was inlined */
    const char *name;      /* linkage name, otherwise the plain one; NULL: unknown */
    const char *call_file; /* where it was inlined; NULL: not inlined, or unknown */
    int64_t call_line;
    int64_t start_line;
};

/* Finds the functions at an address of a compilation unit, the innermost first. Returns their
 * number, 0 if there are none. address: as the Dwarf has it. */
size_t inlines_find(struct functions *f, Dwarf_Die *unit, uint64_t address,
                    struct inlined ret[INLINES_MAX]);

#endif
