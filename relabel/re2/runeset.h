/* A growing set of runes as ranges: what a character class is made of while it is parsed. */
#ifndef PROFPULL_RELABEL_RE2_RUNESET_H
#define PROFPULL_RELABEL_RE2_RUNESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rune_range {
    uint32_t lo;
    uint32_t hi;
};

/* Zeroed is an empty set. One owner. Out of memory makes it failed; check once at the end. */
struct runeset {
    struct rune_range *at;
    size_t n;
    size_t cap;
    bool failed;
};

void runeset_done(struct runeset *s);
void runeset_add(struct runeset *s, uint32_t lo, uint32_t hi);
/* Adds a range and all that equals one of its runes without case. */
void runeset_add_folded(struct runeset *s, uint32_t lo, uint32_t hi);
void runeset_add_all(struct runeset *s, const struct runeset *other);
/* Sorts and merges, so that no two ranges touch. */
void runeset_clean(struct runeset *s);
/* Turns a clean set into its complement within 0-10FFFF, clean again. */
void runeset_negate(struct runeset *s);

#endif
