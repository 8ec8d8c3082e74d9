/* Splits Alloy text into tokens with their places.
 *
 * Alloy is the language of Grafana Alloy's configuration files. A line end ends a statement, so the
 * scanner inserts a TERMINATOR there if the last token could end one. Every error becomes a token
 * that the parser reports or skips; the scanner itself never stops before the end of the text.
 * Texts of tokens are views of the source; values of strings live in the arena.
 */
#ifndef PROFPULL_ALLOY_SCAN_H
#define PROFPULL_ALLOY_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "config/errors.h"

enum alloy_token_kind {
    TOKEN_END, /* the end of the text */
    TOKEN_TERMINATOR,
    TOKEN_ILLEGAL, /* scanner.problem says why */
    TOKEN_IDENT,
    TOKEN_NUMBER,
    TOKEN_FLOAT,
    TOKEN_STRING,
    TOKEN_RAW_STRING,
    TOKEN_TRUE,
    TOKEN_FALSE,
    TOKEN_NULL,
    TOKEN_OR,
    TOKEN_AND,
    TOKEN_NOT,
    TOKEN_ASSIGN,
    TOKEN_EQ,
    TOKEN_NE,
    TOKEN_LT,
    TOKEN_LE,
    TOKEN_GT,
    TOKEN_GE,
    TOKEN_ADD,
    TOKEN_SUB,
    TOKEN_MUL,
    TOKEN_DIV,
    TOKEN_MOD,
    TOKEN_POW,
    TOKEN_LCURLY,
    TOKEN_RCURLY,
    TOKEN_LPAREN,
    TOKEN_RPAREN,
    TOKEN_LBRACK,
    TOKEN_RBRACK,
    TOKEN_COMMA,
    TOKEN_DOT,
};

/* A token; line and column count from 1, and columns count characters. */
struct alloy_token {
    enum alloy_token_kind kind;
    struct config_place place;
    struct sv text;  /* as written in the source */
    struct sv value; /* value of a string: without quotes, with escapes resolved */
    size_t start;    /* offset of text in the source */
};

struct alloy_scanner {
    struct sv source;
    struct arena *arena;
    size_t at;
    struct config_place place;
    bool may_end; /* the last token may end a statement */
    /* The message of the last TOKEN_ILLEGAL. */
    const char *problem;
    struct config_place problem_place;
};

/* The source must be valid UTF-8 and outlive the scanner, as must the name of the file. */
void alloy_scanner_init(struct alloy_scanner *s, const char *file, struct sv source,
                        struct arena *arena);
/* Returns the next token. After TOKEN_END it always returns TOKEN_END. */
struct alloy_token alloy_scan(struct alloy_scanner *s);
/* Returns a token as messages show it: `"{"`, `the end of the line`, `the end of the file`,
 * `"foo"`. The text is static or in the arena. */
const char *alloy_token_show(const struct alloy_token *t, struct arena *arena);
/* A letter, a digit or "_" as they may stand in an identifier. */
bool alloy_is_identifier(struct sv text);

#endif
