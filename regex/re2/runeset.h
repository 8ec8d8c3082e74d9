/* A growing set of runes as ranges, for a character class while it is parsed. */
#ifndef PROFPULL_REGEX_RE2_RUNESET_H
#define PROFPULL_REGEX_RE2_RUNESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rune_range {
    uint32_t lo;
    uint32_t hi;
};

/* A set. A zeroed struct is the empty set. It has one owner. Running out of memory sets `failed`,
 * which is checked once at the end. */
struct runeset {
    struct rune_range *at;
    size_t n;
    size_t cap;
    bool failed;
};

void runeset_done(struct runeset *s);
void runeset_add(struct runeset *s, uint32_t lo, uint32_t hi);
/* Adds a range and every rune that equals one of its runes when case is ignored. */
void runeset_add_folded(struct runeset *s, uint32_t lo, uint32_t hi);
void runeset_add_all(struct runeset *s, const struct runeset *other);
/* Sorts and merges the ranges, so that no two of them touch. */
void runeset_clean(struct runeset *s);
/* Turns a clean set into its complement within 0-10FFFF, which is clean as well. */
void runeset_negate(struct runeset *s);

#endif
