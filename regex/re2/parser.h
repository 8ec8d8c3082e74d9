/* Declarations that the two halves of the RE2 parser share: parse.c reads the structure of a
 * pattern, class.c reads character classes, escapes and single runes. Private to regex/re2/.
 */
#ifndef PROFPULL_REGEX_RE2_PARSER_H
#define PROFPULL_REGEX_RE2_PARSER_H

#include "regex/re2/re2.h"

/* The flags of a pattern, in the order of their letters: (?imsU). */
enum re2_flag {
    RE2_FLAG_FOLD = 1 << 0,        /* i */
    RE2_FLAG_MULTI_LINE = 1 << 1,  /* m */
    RE2_FLAG_DOT_NEWLINE = 1 << 2, /* s */
    RE2_FLAG_UNGREEDY = 1 << 3,    /* U */
};

struct re2_list {
    struct re2_node *head;
    struct re2_node *tail;
    size_t n;
};

/* An open group, or the whole pattern. */
struct re2_frame {
    struct re2_frame *up;
    struct re2_node *capture; /* NULL for a group that captures nothing */
    struct re2_list branches; /* before the last '|' */
    struct re2_list items;    /* after it */
    unsigned flags;           /* flags to restore at the end of the group */
    const char *start;
};

struct re2_parser {
    struct arena *arena;
    struct sv whole;
    struct sv rest; /* still to be read */
    unsigned flags;
    struct re2_frame *frame;
    /* The start of the repetition that was read last; NULL if the last item was not a
     * repetition. */
    const char *last_repeat;
    struct sv *names;
    size_t n_groups;
    uint32_t n_classes;
    bool repeats_empty_captures;
    /* The class that is being read, and storage for one of its members; used by class.c only. */
    struct runeset set;
    struct runeset part;
    const struct re2_property *properties;
    struct err *err;
};

/* Sets the error in the words of Go's regexp; expr is the wrong part of the pattern. Returns
 * false. */
bool re2_fail(struct re2_parser *p, const char *what, struct sv expr);
bool re2_fail_memory(struct re2_parser *p);
/* Skips a prefix of p->rest. Returns false if p->rest does not begin with it. */
bool re2_take(struct re2_parser *p, struct sv prefix);
/* Returns the part of the pattern from `from` up to p->rest. */
struct sv re2_since(const struct re2_parser *p, const char *from);
/* Reads the next rune. Returns U+FFFD at the end of the pattern. */
uint32_t re2_next(struct re2_parser *p);
/* Makes a leaf. Returns NULL with an error. */
struct re2_node *re2_node(struct re2_parser *p, enum re2_op op);
/* Makes a node for one rune, case-insensitive if the flag is set. Returns NULL with an error. */
struct re2_node *re2_literal(struct re2_parser *p, uint32_t rune);
/* Makes a node for the dot. Returns NULL with an error. */
struct re2_node *re2_dot(struct re2_parser *p);

/* Reads a class; p->rest starts with '['. Returns NULL with an error. */
struct re2_node *re2_class(struct re2_parser *p);
/* Reads an escape that stands for a rune or a class; p->rest starts with the backslash. */
struct re2_node *re2_escape(struct re2_parser *p);

#endif
