/* The syntax of Go's regexp (RE2) as a tree, and the tree as a pattern for PCRE2.
 *
 * re2_parse() accepts and refuses what Go's regexp does for `^(?s:` + pattern + `)$`, with two
 * exceptions on purpose: a pattern must be balanced by itself (`a)|(b` would escape the anchors),
 * and scripts with an underscore in their name (\p{Old_Italic}) are known. re2_emit() writes a
 * pattern that leaves PCRE2 nothing to interpret: no flags, no folding, every class spelled out.
 *
 * Pure functions; a tree has one owner.
 */
#ifndef PROFPULL_RELABEL_RE2_RE2_H
#define PROFPULL_RELABEL_RE2_RE2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "relabel/re2/runeset.h"
#include "relabel/re2/unicode.h"

/* Go's limits: copies of one piece by counted repetition, and levels of a tree. */
#define RE2_REPEAT_MAX 1000
#define RE2_HEIGHT_MAX 1000
#define RE2_UNLIMITED UINT32_MAX

enum re2_op {
    RE2_EMPTY,
    RE2_LITERAL, /* rune */
    RE2_CLASS,
    RE2_ANY, /* every rune, the newline too */
    RE2_BEGIN_TEXT,
    RE2_END_TEXT,
    RE2_BEGIN_LINE,
    RE2_END_LINE,
    RE2_WORD_BOUNDARY,
    RE2_NOT_WORD_BOUNDARY,
    RE2_CAPTURE,   /* one child */
    RE2_REPEAT,    /* one child */
    RE2_CONCAT,    /* two children or more, none of them RE2_CONCAT */
    RE2_ALTERNATE, /* two children or more, none of them RE2_ALTERNATE */
};

/* A Unicode class within a class. */
struct re2_property {
    const struct unicode_class *def;
    bool negated;
    bool fold; /* without case: def->fold belongs to it */
};

struct re2_node {
    enum re2_op op;
    unsigned height; /* 1 for a leaf */
    struct re2_node *next;
    struct re2_node *first;
    union {
        uint32_t rune;
        struct {
            const struct rune_range *ranges; /* sorted, apart, without surrogates */
            size_t n_ranges;
            const struct re2_property *properties;
            size_t n_properties;
            bool negated; /* only with properties: all but the ranges and properties */
        } set;            /* RE2_CLASS */
        struct {
            uint32_t min;
            uint32_t max; /* RE2_UNLIMITED: no end */
            bool lazy;
            bool counted; /* written with {} */
        } repeat;
    };
};

struct re2 {
    const struct re2_node *root;
    size_t n_groups;        /* with group 0, the whole */
    const struct sv *names; /* of each group; empty if it has none */
};

/* All memory comes from the arena; the result dies with it. pattern must outlive it too. */
struct re2 *re2_parse(struct arena *arena, struct sv pattern, struct err *err);

/* Appends a PCRE2 pattern, to be compiled with PCRE2_UTF and PCRE2_DOTALL and without PCRE2_UCP. It
 * matches from the start to the end of the subject only. False if the buffer failed. */
bool re2_emit(const struct re2 *re, struct buf *out);

#endif
