/* The parts of Unicode that relabelling and configurations need: simple case mapping, case folding
 * and the names of character classes, as in Go's unicode package.
 *
 * The tables are generated (unicode_tables.c). These functions do not depend on the locale; any
 * thread may call them.
 */
#ifndef PROFPULL_BASE_UNICODE_H
#define PROFPULL_BASE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define RUNE_MAX 0x10ffffu
/* Code points that are not characters and cannot occur in UTF-8. */
#define SURROGATE_MIN 0xd800u
#define SURROGATE_MAX 0xdfffu

/* Maps a rune to upper or lower case by Unicode's simple mappings, one rune to one rune. A rune
 * without a mapping is returned unchanged. */
uint32_t rune_to_case(uint32_t rune, bool upper);
/* Returns the next rune in the cycle of runes that are equal when case is ignored: K, k, KELVIN
 * SIGN, K. */
uint32_t rune_fold(uint32_t rune);

/* Appends v, which must be valid UTF-8, with each rune mapped (strings.ToLower, ToUpper). */
bool append_in_case(struct sv v, bool upper, struct buf *out);

/* ---- tables ---------------------------------------------------------------------------------- */

/* In a range of pairs, a rune at an even offset is upper case and the next one is its lower case.
 */
#define CASE_PAIRS INT32_MAX

struct case_range {
    uint32_t lo;
    uint32_t hi;
    int32_t to_upper; /* the number that is added to a rune */
    int32_t to_lower;
};
extern const struct case_range unicode_case_ranges[];
extern const size_t unicode_n_case_ranges;

/* A step of a cycle of rune_fold(), for a rune whose folding is not simply the other case. */
struct case_orbit {
    uint32_t rune;
    uint32_t next;
};
extern const struct case_orbit unicode_orbits[];
extern const size_t unicode_n_orbits;

struct fold_range {
    uint32_t lo;
    uint32_t hi;
    uint32_t stride;
};

/* A class that \p{...} can name. */
struct unicode_class {
    const char *key;  /* lower case without '_', '-' and ' ' */
    const char *pcre; /* the name in PCRE2 */
    /* The runes that a case-insensitive regex adds to the class; NULL if none. */
    const struct fold_range *fold;
    size_t n_fold;
};
extern const struct unicode_class unicode_classes[];
extern const size_t unicode_n_classes;

/* Finds a class by name, ignoring case, '_', '-' and ' '. Returns NULL if Go has no such class. */
const struct unicode_class *unicode_class_find(struct sv name);

#endif
