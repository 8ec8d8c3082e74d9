/* What the two halves of the RE2 parser share. Private to re2_*.c. */
#ifndef PROFPULL_RELABEL_RE2_PARSER_H
#define PROFPULL_RELABEL_RE2_PARSER_H

#include "relabel/re2/re2.h"

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

/* One open parenthesis, or the whole. */
struct re2_frame {
    struct re2_frame *up;
    struct re2_node *capture; /* NULL: the group only groups */
    struct re2_list branches; /* before the last '|' */
    struct re2_list items;    /* behind it */
    unsigned flags;           /* to restore at the end of the group */
    size_t offset;
};

struct re2_parser {
    struct arena *arena;
    struct sv whole;
    struct sv rest;
    unsigned flags;
    struct re2_frame *frame;
    const char
        *last_repeat; /* where the operator just read starts; NULL if it was something else */
    struct sv *names;
    size_t n_groups;
    struct err *err;
};

/* Sets the error as Go words it; expr is the part of the pattern that is wrong. Returns false. */
bool re2_fail(struct re2_parser *p, const char *what, struct sv expr);
bool re2_fail_memory(struct re2_parser *p);
/* From `from` up to where the parser is. */
struct sv re2_since(const struct re2_parser *p, const char *from);
/* Takes the next rune off p->rest; U+FFFD at the end. */
uint32_t re2_next(struct re2_parser *p);
/* A new leaf, or NULL with an error. */
struct re2_node *re2_node(struct re2_parser *p, enum re2_op op);
/* One rune, without case if the flag is set. */
struct re2_node *re2_literal(struct re2_parser *p, uint32_t rune);

/* p->rest starts with '[': reads the class. NULL with an error. */
struct re2_node *re2_class(struct re2_parser *p);
/* p->rest starts with a backslash that is no assertion and no \Q: one rune or a class. */
struct re2_node *re2_escape(struct re2_parser *p);

#endif
