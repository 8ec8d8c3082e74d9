/* Converts an address in a process to the virtual address in the file that was mapped. Private to
 * symbols/.
 */
#ifndef PROFPULL_SYMBOLS_SEGMENTS_H
#define PROFPULL_SYMBOLS_SEGMENTS_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/frames.h"

/* A file with more segments to load is refused: real ones have four to ten. */
#define SEGMENTS_MAX 256

struct segments {
    GElf_Phdr at[SEGMENTS_MAX]; /* PT_LOAD only */
    size_t n;
};

/* Reads the program headers. Returns false if there are none to load, or too many. */
bool segments_read(struct segments *s, Elf *elf);

/* Finds the virtual address. Address - start + offset is a place in the file, and the segment that
 * holds it gives the virtual address. In a file that only has debug information (`objcopy
 * --only-keep-debug`, as in Debian's -dbgsym packages), segments have lost their place in the file;
 * there the start of a mapping is the place in a segment that fits the mapping's offset. Returns
 * false if no segment holds the address. */
bool segments_find(const struct segments *s, const struct symbol_mapping *m, uint64_t address,
                   uint64_t *ret_virtual);

#endif
