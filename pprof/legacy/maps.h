/* The mappings of a process, from the text of its /proc/<pid>/maps. They say which file contains an
 * address.
 *
 * Only executable mappings count. The rules are those of Google's pprof, so that both find the same
 * mappings. The functions are pure; any thread may call them.
 */
#ifndef PROFPULL_PPROF_LEGACY_MAPS_H
#define PROFPULL_PPROF_LEGACY_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "pprof/scratch.h"

/* The most mappings. Further ones are ignored, so that addresses in them belong to no file. Large
 * programs have some 300. */
#define LEGACY_MAPPINGS_MAX 2048

struct legacy_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset; /* offset of `start` in the file */
    struct sv file;  /* points into the text; empty if there is none */
};

struct legacy_maps {
    struct legacy_mapping *at; /* with room for one more; a mapping's id is its place + 1 */
    size_t n;
    uint32_t unknown; /* id of the mapping of addresses that no other one holds; 0: none yet */
};

/* Reads all lines that are mappings into memory of the scratch, and skips the others. The first
 * mapping is the program itself, if it can be recognised. Returns false if out of memory. */
bool legacy_maps_read(struct scratch *s, struct sv text, struct legacy_maps *ret);
/* Returns the id of the mapping that contains an address, or 0 for the address 0. May widen a
 * mapping, or add the mapping of unknown addresses, so read the mappings only after all addresses
 * have been placed. */
uint32_t legacy_maps_place(struct legacy_maps *m, uint64_t address);

#endif
