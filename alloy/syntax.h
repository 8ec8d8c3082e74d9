/* Parses Alloy text into a tree of statements and expressions with their places. The parser knows
 * no components.
 *
 * The tree lives in the caller's arena, is read-only and has no cycles; its texts are views of the
 * source, which must outlive it. All syntax errors of a text are reported in one run: after each,
 * the parser goes on at the next statement. Text that exceeds one of the limits below is an error.
 */
#ifndef PROFPULL_ALLOY_SYNTAX_H
#define PROFPULL_ALLOY_SYNTAX_H

#include <stdbool.h>
#include <stddef.h>

#include "alloy/scan.h"
#include "base/arena.h"
#include "base/str.h"
#include "config/errors.h"

/* The deepest nesting of blocks, and of brackets. */
#define ALLOY_DEPTH_MAX 64
/* The most operators in one chain, such as a + b + c. */
#define ALLOY_CHAIN_MAX 1000
#define ALLOY_TOKENS_MAX 200000
/* The most bytes of one string. */
#define ALLOY_STRING_MAX ((size_t)1024 * 1024)

enum alloy_expr_kind {
    EXPR_NULL,
    EXPR_BOOL,   /* truth */
    EXPR_NUMBER, /* text: digits */
    EXPR_FLOAT,  /* text */
    EXPR_STRING, /* text: without quotes and escapes */
    EXPR_NAME,   /* text */
    EXPR_ARRAY,  /* items */
    EXPR_OBJECT, /* items with keys */
    EXPR_UNARY,  /* op, left */
    EXPR_BINARY, /* op, left, right */
    EXPR_FIELD,  /* left.text */
    EXPR_INDEX,  /* left[right] */
    EXPR_CALL,   /* left(items) */
};

struct alloy_expr;

struct alloy_item {
    struct sv key; /* key in an object, as in the source, without its quotes */
    struct config_place key_place;
    const struct alloy_expr *value;
};

struct alloy_expr {
    enum alloy_expr_kind kind;
    enum alloy_token_kind op;
    struct config_place place; /* where it begins */
    struct config_place at;    /* place of a field's name; otherwise the same as `place` */
    struct sv source;          /* its text in the source, for messages */
    struct sv text;
    bool truth;
    unsigned height; /* height of the tree below it */
    const struct alloy_expr *left;
    const struct alloy_expr *right;
    const struct alloy_item *items;
    size_t n_items;
};

struct alloy_stmt;

struct alloy_body {
    const struct alloy_stmt *first;
    struct config_place end; /* place of the closing bracket, or of the end of the text */
};

/* An attribute (value is set) or a block. */
struct alloy_stmt {
    const struct alloy_stmt *next;
    struct config_place place;
    struct sv name;  /* the name of a block includes its dots, but no space around them */
    struct sv label; /* empty if there is none */
    struct config_place label_place;
    const struct alloy_expr *value;
    struct alloy_body body;
};

/* Parses a file. file: its name in errors, or NULL if `errors` has it already. False if there were
 * errors, which are added to `errors`; *ret_body has the statements that could be parsed. Invalid
 * UTF-8 is an error at its place. */
bool alloy_parse(const char *file, struct sv source, struct arena *arena,
                 struct config_errors *errors, struct alloy_body *ret_body);
/* Parses a single expression; NULL if there were errors. */
const struct alloy_expr *alloy_parse_expr(struct sv source, struct arena *arena,
                                          struct config_errors *errors);

#endif
