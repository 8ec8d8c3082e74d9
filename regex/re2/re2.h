/* The syntax of Go's regexp (RE2) as a tree, and the tree as a pattern for PCRE2.
 *
 * re2_parse() accepts and refuses what Go's regexp does for `^(?s:` + pattern + `)$`, with two
 * deliberate exceptions: a pattern must be balanced by itself (`a)|(b` would escape the anchors),
 * and scripts with an underscore in their name (\p{Old_Italic}) are known. re2_emit() writes a
 * pattern that leaves PCRE2 nothing to interpret: no flags, no folding, every class spelled out.
 *
 * A tree is complete by itself: flags, case folding, escapes and named classes are resolved while
 * parsing, so that code that walks the tree needs neither the pattern nor the tables of case
 * folding. A tree stands for a match of the whole subject; the anchors for that are not part of it.
 *
 * The functions are pure. A tree has one owner.
 */
#ifndef PROFPULL_REGEX_RE2_RE2_H
#define PROFPULL_REGEX_RE2_RE2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/unicode.h"
#include "regex/re2/runeset.h"

/* Go's limits: copies of one item by nested counted repetitions, and levels of a tree. */
#define RE2_REPEAT_MAX 1000
#define RE2_HEIGHT_MAX 1000
#define RE2_UNLIMITED UINT32_MAX

/* The names are those of Go's regexp/syntax, where it has one. Leaves have no children. */
enum re2_op {
    RE2_EMPTY,   /* matches the empty text */
    RE2_LITERAL, /* one rune; never a surrogate */
    RE2_CLASS,   /* one rune of a set: node->set; matches nothing if the set is empty */
    RE2_ANY,     /* any one rune, the newline too */
    RE2_BEGIN_TEXT,
    RE2_END_TEXT,
    RE2_BEGIN_LINE,    /* at the start of the text or after a newline */
    RE2_END_LINE,      /* at the end of the text or before a newline */
    RE2_WORD_BOUNDARY, /* of ASCII letters, digits and underscores */
    RE2_NOT_WORD_BOUNDARY,
    RE2_CAPTURE,   /* one child; groups are numbered from 1 by their opening parentheses, which is
                      the order in which a walk from the root meets them */
    RE2_REPEAT,    /* one child; node->repeat */
    RE2_CONCAT,    /* two children or more, none of them RE2_CONCAT */
    RE2_ALTERNATE, /* two children or more, none of them RE2_ALTERNATE; the first that leads to a
                      match is preferred */
};

/* A Unicode class that is a member of a set, by name: its runes are not spelled out. */
struct re2_property {
    const struct re2_property *next;
    const struct unicode_class *def;
    bool negated; /* all runes but those of def */
    /* Only with negated, in a case-insensitive pattern: the runes of def->fold are not members
     * either. (Without negated, they are in the set's ranges.) */
    bool fold;
};

struct re2_node {
    enum re2_op op;
    unsigned height;        /* 1 for a leaf, at most RE2_HEIGHT_MAX */
    bool nullable;          /* the node can match the empty text */
    bool captures;          /* the node contains an RE2_CAPTURE */
    struct re2_node *next;  /* sibling */
    struct re2_node *first; /* child */
    union {
        uint32_t rune;  /* RE2_LITERAL */
        uint32_t group; /* RE2_CAPTURE: its number, from 1 */
        /* RE2_CLASS: the union of the ranges and the properties, or its complement. */
        struct {
            const struct rune_range *ranges; /* sorted, not adjacent, without surrogates */
            size_t n_ranges;
            const struct re2_property *properties; /* in no order */
            bool negated;                          /* only with properties */
            bool surrogate; /* empty, but one surrogate in the pattern, such as \x{d800} */
            uint32_t index; /* number of the class, below n_classes; no other node has it */
        } set;
        /* RE2_REPEAT: min to max times, as often as possible unless lazy. */
        struct {
            uint32_t min;
            uint32_t max; /* RE2_UNLIMITED: no upper bound */
            bool lazy;
            bool counted; /* written with {} */
        } repeat;
    };
};

struct re2 {
    const struct re2_node *root;
    size_t n_groups; /* number of groups, including group 0, the whole match */
    /* name of each group, a view of the pattern; empty if it has none */
    const struct sv *names;
    size_t n_classes;
    /* True if a repetition can match nothing and sets captures, such as (a*)*. PCRE2 sets other
     * captures than Go then. */
    bool repeats_empty_captures;
};

/* Parses a pattern, which must outlive the result. All memory comes from the arena and is released
 * with it. Returns NULL with an error in Go's words: "error parsing regexp: missing closing ): `(`
 * at byte 0". */
struct re2 *re2_parse(struct arena *arena, struct sv pattern, struct err *err);

/* Appends the PCRE2 pattern of one RE2_CLASS node: it matches one rune. */
void re2_emit_class(const struct re2_node *node, struct buf *out);

/* Appends a PCRE2 pattern, to be compiled with PCRE2_UTF and PCRE2_DOTALL and without PCRE2_UCP. It
 * matches only the whole subject. Returns false if the buffer failed. */
bool re2_emit(const struct re2 *re, struct buf *out);

#endif
