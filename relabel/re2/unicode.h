/* What relabelling needs to know of Unicode: simple case mapping, case folding and the names of
 * character classes, all as Go's unicode package has them.
 *
 * The tables are generated (unicode_tables.c). Nothing here depends on the locale. Any thread.
 */
#ifndef PROFPULL_RELABEL_RE2_UNICODE_H
#define PROFPULL_RELABEL_RE2_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define RUNE_MAX 0x10ffffu
/* Code points that are no characters and cannot be in UTF-8. */
#define SURROGATE_MIN 0xd800u
#define SURROGATE_MAX 0xdfffu

/* The simple mappings: one rune to one rune, the same if there is none. */
uint32_t rune_lower(uint32_t rune);
uint32_t rune_upper(uint32_t rune);
/* The next rune in the cycle of those that are equal without case: K, k, KELVIN SIGN, K. */
uint32_t rune_fold(uint32_t rune);

/* Appends v, which must be valid UTF-8, with each rune mapped (strings.ToLower, ToUpper). */
bool lower_append(struct sv v, struct buf *out);
bool upper_append(struct sv v, struct buf *out);

/* ---- tables ---------------------------------------------------------------------------------- */

/* In a range of pairs, runes at even offset are upper case and the one behind is its lower case. */
#define CASE_PAIRS INT32_MAX

struct case_range {
    uint32_t lo;
    uint32_t hi;
    int32_t to_upper; /* what to add */
    int32_t to_lower;
};
extern const struct case_range unicode_case_ranges[];
extern const size_t unicode_n_case_ranges;

/* Where folding is not simply the other case. */
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

/* A name as \p{...} takes it. */
struct unicode_class {
    const char *key;  /* lower case without '_', '-' and ' ' */
    const char *pcre; /* what PCRE2 calls it */
    /* The runes that a case-insensitive regex has to add; NULL if none. */
    const struct fold_range *fold;
    size_t n_fold;
};
extern const struct unicode_class unicode_classes[];
extern const size_t unicode_n_classes;

/* Finds a class by name; case, '_', '-' and ' ' do not count. NULL if Go has no such class. */
const struct unicode_class *unicode_class_find(struct sv name);

#endif
