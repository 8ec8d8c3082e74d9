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

/* All zeros is the empty set. One owner. Running out of memory sets failed: check once at the end.
 */
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
/* Sorts and merges, so that no two ranges touch. */
void runeset_clean(struct runeset *s);
/* Turns a clean set into its complement within 0-10FFFF, clean again. */
void runeset_negate(struct runeset *s);

#endif
