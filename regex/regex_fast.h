/* Regexes that are compared directly, without an engine. Private to regex/. */
#ifndef PROFPULL_REGEX_REGEX_FAST_H
#define PROFPULL_REGEX_REGEX_FAST_H

#include "base/arena.h"
#include "regex/re2/re2.h"
#include "regex/regex.h"

/* The most groups that a fast regex may have, besides group 0. */
#define REGEX_FAST_GROUPS_MAX 2

enum regex_fast_kind {
    REGEX_FAST_NONE,
    REGEX_FAST_LITERALS, /* one of these texts */
    REGEX_FAST_AFFIXES,  /* a prefix, anything of at least `least` runes (0 or 1), a suffix */
};

struct regex_fast {
    enum regex_fast_kind kind;
    const struct sv *literals;
    size_t n_literals;
    struct sv prefix;
    struct sv suffix;
    size_t least;
    size_t n_groups; /* besides group 0 */
    /* Each group is either the whole or the part between prefix and suffix. */
    bool group_is_middle[REGEX_FAST_GROUPS_MAX];
};

/* Classifies the tree and copies its texts into the arena. The kind is REGEX_FAST_NONE if the regex
 * needs an engine or memory ran out. */
struct regex_fast regex_fast_new(const struct re2 *re, struct arena *arena);
/* Compares a subject with a fast regex. Returns true and fills spans[0 .. n_groups] if it
 * matches. */
bool regex_fast_match(const struct regex_fast *fast, struct sv subject, struct regex_span *spans);

#endif
