/* A recursive-descent parser with one token of look-ahead. A function returns NULL or false after
 * it has reported an error; the statement that contains it is then passed over. */
#include <string.h>

#include "alloy/syntax.h"
#include "base/utf8.h"

struct parser {
    struct alloy_scanner scanner;
    struct arena *arena;
    struct config_errors *errors;
    struct alloy_token token; /* the next one */
    size_t last_end;          /* end of the previous token */
    size_t n_tokens;
    int brackets;    /* number of open brackets before the next token */
    unsigned depth;  /* depth of the recursion */
    unsigned blocks; /* number of open blocks */
    bool failed;
    bool stopped;   /* a limit of the whole text was exceeded: no further error is reported */
    int error_line; /* line of the last error: at most one error is reported for each line */
};

/* ---- errors and tokens ----------------------------------------------------------------------- */

static void report(struct parser *p, struct config_place place, const char *message)
{
    p->failed = true;
    if (p->stopped || place.line == p->error_line) {
        return;
    }
    p->error_line = place.line;
    config_errors_add_in(p->errors, place.file, place.line, place.column, "",
                         message != NULL ? message : "out of memory");
}

/* Reports a limit of the whole text, and reads no further. */
static void stop(struct parser *p, const char *message)
{
    report(p, p->token.place, message);
    p->stopped = true;
    p->token.kind = TOKEN_END;
}

/* Reports that something else was expected. */
static void expected(struct parser *p, const char *what)
{
    const struct alloy_token *t = &p->token;
    if (t->kind == TOKEN_ILLEGAL) {
        report(p, p->scanner.problem_place, p->scanner.problem);
        return;
    }
    report(p, t->place,
           arena_printf(p->arena, "expected %s, got %s", what, alloy_token_show(t, p->arena)));
}

static int bracket(enum alloy_token_kind kind)
{
    switch (kind) {
    case TOKEN_LCURLY:
    case TOKEN_LPAREN:
    case TOKEN_LBRACK:
        return 1;
    case TOKEN_RCURLY:
    case TOKEN_RPAREN:
    case TOKEN_RBRACK:
        return -1;
    default:
        return 0;
    }
}

static void advance(struct parser *p)
{
    if (p->stopped) {
        return;
    }
    p->brackets += bracket(p->token.kind);
    p->last_end = p->token.start + p->token.text.n;
    p->token = alloy_scan(&p->scanner);
    if (++p->n_tokens > ALLOY_TOKENS_MAX) {
        stop(p, arena_printf(p->arena, "the file has more than %d tokens", ALLOY_TOKENS_MAX));
    }
}

static bool accept(struct parser *p, enum alloy_token_kind kind)
{
    if (p->token.kind != kind) {
        return false;
    }
    advance(p);
    return true;
}

static bool expect(struct parser *p, enum alloy_token_kind kind, const char *what)
{
    if (accept(p, kind)) {
        return true;
    }
    expected(p, what);
    return false;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static struct alloy_expr *parse_expr(struct parser *p);

/* Makes an expression that begins where `from` does; if `from` is NULL, at the next token. */
static struct alloy_expr *new_expr(struct parser *p, enum alloy_expr_kind kind,
                                   const struct alloy_expr *from)
{
    struct alloy_expr *e = arena_alloc(p->arena, sizeof(*e));
    if (e == NULL) {
        stop(p, "the file needs too much memory");
        return NULL;
    }
    e->kind = kind;
    e->place = from != NULL ? from->place : p->token.place;
    e->at = e->place;
    e->source.p = from != NULL ? from->source.p : p->scanner.source.p + p->token.start;
    return e;
}

/* Completes an expression that ends before the next token. */
static struct alloy_expr *complete(struct parser *p, struct alloy_expr *e)
{
    unsigned left = e->left != NULL ? e->left->height : 0;
    unsigned right = e->right != NULL ? e->right->height : 0;
    e->height = left > right ? left : right;
    for (size_t i = 0; i < e->n_items; i++) {
        unsigned item = e->items[i].value->height;
        e->height = e->height > item ? e->height : item;
    }
    e->height++;
    e->source.n = (size_t)(p->scanner.source.p + p->last_end - e->source.p);
    if (e->height > ALLOY_CHAIN_MAX) {
        report(p, e->place,
               arena_printf(p->arena, "more than %d operators in one expression", ALLOY_CHAIN_MAX));
        return NULL;
    }
    return e;
}

/* A growing list of items. */
struct items {
    struct alloy_item *at;
    size_t n;
    size_t size;
};

static bool add_item(struct parser *p, struct items *list, struct alloy_item item)
{
    if (list->n == list->size) {
        size_t size = list->size == 0 ? 4 : 2 * list->size;
        struct alloy_item *at = arena_array(p->arena, size, sizeof(*at));
        if (at == NULL) {
            stop(p, "the file needs too much memory");
            return false;
        }
        if (list->n > 0) {
            memcpy(at, list->at, list->n * sizeof(*at));
        }
        list->at = at;
        list->size = size;
    }
    list->at[list->n++] = item;
    return true;
}

/* Parses a field of an object up to its value. */
static bool parse_key(struct parser *p, struct alloy_item *item)
{
    const struct alloy_token *t = &p->token;
    bool quoted = t->kind == TOKEN_STRING || t->kind == TOKEN_RAW_STRING;
    if (!quoted && t->kind != TOKEN_IDENT) {
        expected(p, "the name of a field (a word or a string)");
        return false;
    }
    item->key_place = t->place;
    item->key = t->text;
    /* Alloy resolves no escapes in keys, and keeps the quotes of an empty one. */
    if (quoted && t->text.n > 2) {
        item->key = (struct sv){t->text.p + 1, t->text.n - 2};
    }
    advance(p);
    return expect(p, TOKEN_ASSIGN, "\"=\" after the name of a field");
}

/* Parses the elements of an array, an object or a call, and the closing bracket. */
static bool parse_items(struct parser *p, struct alloy_expr *e, enum alloy_token_kind close,
                        const char *shown)
{
    struct items list = {0};
    while (p->token.kind != close) {
        struct alloy_item item = {0};
        if (e->kind == EXPR_OBJECT && !parse_key(p, &item)) {
            return false;
        }
        item.value = parse_expr(p);
        if (item.value == NULL || !add_item(p, &list, item)) {
            return false;
        }
        if (p->token.kind == TOKEN_TERMINATOR) {
            report(p, p->token.place,
                   arena_printf(p->arena,
                                "expected \",\" before the end of the line: the %s is on "
                                "another line",
                                shown));
            return false;
        }
        if (!accept(p, TOKEN_COMMA)) {
            break;
        }
    }
    e->items = list.at;
    e->n_items = list.n;
    return expect(p, close, arena_printf(p->arena, "\",\" or %s", shown));
}

static struct alloy_expr *parse_list(struct parser *p, enum alloy_expr_kind kind,
                                     enum alloy_token_kind close, const char *shown)
{
    struct alloy_expr *e = new_expr(p, kind, NULL);
    advance(p);
    if (e == NULL || !parse_items(p, e, close, shown)) {
        return NULL;
    }
    return complete(p, e);
}

static struct alloy_expr *parse_parentheses(struct parser *p)
{
    struct alloy_token open = p->token;
    advance(p);
    struct alloy_expr *e = parse_expr(p);
    if (e == NULL || !expect(p, TOKEN_RPAREN, "\")\"")) {
        return NULL;
    }
    e->place = open.place;
    e->source.p = open.text.p;
    return complete(p, e);
}

static struct alloy_expr *parse_literal(struct parser *p)
{
    static const enum alloy_expr_kind kinds[] = {
        [TOKEN_IDENT] = EXPR_NAME,    [TOKEN_NUMBER] = EXPR_NUMBER,     [TOKEN_FLOAT] = EXPR_FLOAT,
        [TOKEN_STRING] = EXPR_STRING, [TOKEN_RAW_STRING] = EXPR_STRING, [TOKEN_TRUE] = EXPR_BOOL,
        [TOKEN_FALSE] = EXPR_BOOL,    [TOKEN_NULL] = EXPR_NULL,
    };
    struct alloy_expr *e = new_expr(p, kinds[p->token.kind], NULL);
    if (e == NULL) {
        return NULL;
    }
    e->text = e->kind == EXPR_STRING ? p->token.value : p->token.text;
    e->truth = p->token.kind == TOKEN_TRUE;
    if (e->kind == EXPR_STRING && e->text.n > ALLOY_STRING_MAX) {
        report(p, e->place, "a string of more than 1 MiB");
        return NULL;
    }
    advance(p);
    return complete(p, e);
}

static struct alloy_expr *parse_primary(struct parser *p)
{
    switch (p->token.kind) {
    case TOKEN_IDENT:
    case TOKEN_NUMBER:
    case TOKEN_FLOAT:
    case TOKEN_STRING:
    case TOKEN_RAW_STRING:
    case TOKEN_TRUE:
    case TOKEN_FALSE:
    case TOKEN_NULL:
        return parse_literal(p);
    case TOKEN_LPAREN:
        return parse_parentheses(p);
    case TOKEN_LBRACK:
        return parse_list(p, EXPR_ARRAY, TOKEN_RBRACK, "\"]\"");
    case TOKEN_LCURLY:
        return parse_list(p, EXPR_OBJECT, TOKEN_RCURLY, "\"}\"");
    default:
        expected(p, "an expression");
        return NULL;
    }
}

static struct alloy_expr *parse_field(struct parser *p, struct alloy_expr *e)
{
    e->at = p->token.place;
    e->text = p->token.text;
    return expect(p, TOKEN_IDENT, "the name of a field after \".\"") ? complete(p, e) : NULL;
}

static struct alloy_expr *parse_index(struct parser *p, struct alloy_expr *e)
{
    e->right = parse_expr(p);
    return e->right != NULL && expect(p, TOKEN_RBRACK, "\"]\"") ? complete(p, e) : NULL;
}

static struct alloy_expr *parse_call(struct parser *p, struct alloy_expr *e)
{
    return parse_items(p, e, TOKEN_RPAREN, "\")\"") ? complete(p, e) : NULL;
}

/* Parses a primary expression with the fields, indices and calls that follow it. */
static struct alloy_expr *parse_operand(struct parser *p)
{
    static const struct {
        enum alloy_token_kind token;
        enum alloy_expr_kind kind;
        struct alloy_expr *(*parse)(struct parser *p, struct alloy_expr *e);
    } suffixes[] = {
        {TOKEN_DOT, EXPR_FIELD, parse_field},
        {TOKEN_LBRACK, EXPR_INDEX, parse_index},
        {TOKEN_LPAREN, EXPR_CALL, parse_call},
    };
    const size_t n = sizeof(suffixes) / sizeof(suffixes[0]);
    struct alloy_expr *left = parse_primary(p);
    while (left != NULL) {
        size_t i = 0;
        while (i < n && suffixes[i].token != p->token.kind) {
            i++;
        }
        if (i == n) {
            return left;
        }
        struct alloy_expr *e = new_expr(p, suffixes[i].kind, left);
        if (e == NULL) {
            return NULL;
        }
        e->left = left;
        advance(p);
        left = suffixes[i].parse(p, e);
    }
    return NULL;
}

/* Parses prefix operators and their operand. Every bracket and prefix passes through here, so the
 * depth of the recursion is limited here. */
static struct alloy_expr *parse_unary(struct parser *p)
{
    if (p->depth >= ALLOY_DEPTH_MAX) {
        report(p, p->token.place,
               arena_printf(p->arena, "brackets or operators nested more than %d deep",
                            ALLOY_DEPTH_MAX));
        return NULL;
    }
    p->depth++;
    struct alloy_expr *e;
    if (p->token.kind == TOKEN_NOT || p->token.kind == TOKEN_SUB) {
        e = new_expr(p, EXPR_UNARY, NULL);
        if (e != NULL) {
            e->op = p->token.kind;
            advance(p);
            e->left = parse_unary(p);
            e = e->left != NULL ? complete(p, e) : NULL;
        }
    } else {
        e = parse_operand(p);
    }
    p->depth--;
    return e;
}

/* Returns the precedence of an operator; 0 for other tokens. */
static int precedence(enum alloy_token_kind kind)
{
    static const int levels[] = {
        [TOKEN_OR] = 1,  [TOKEN_AND] = 2, [TOKEN_EQ] = 3,  [TOKEN_NE] = 3,  [TOKEN_LT] = 3,
        [TOKEN_LE] = 3,  [TOKEN_GT] = 3,  [TOKEN_GE] = 3,  [TOKEN_ADD] = 4, [TOKEN_SUB] = 4,
        [TOKEN_MUL] = 5, [TOKEN_DIV] = 5, [TOKEN_MOD] = 5, [TOKEN_POW] = 6,
    };
    return (size_t)kind < sizeof(levels) / sizeof(levels[0]) ? levels[kind] : 0;
}

/* Parses operators with a precedence of at least `least`. "^" groups from right to left, the others
 * from left to right. */
static struct alloy_expr *parse_binary(struct parser *p, int least)
{
    struct alloy_expr *left = parse_unary(p);
    int level;
    while (left != NULL && (level = precedence(p->token.kind)) >= least && level > 0) {
        struct alloy_expr *e = new_expr(p, EXPR_BINARY, left);
        if (e == NULL) {
            return NULL;
        }
        e->op = p->token.kind;
        e->left = left;
        advance(p);
        p->depth += e->op == TOKEN_POW;
        e->right = parse_binary(p, e->op == TOKEN_POW ? level : level + 1);
        p->depth -= e->op == TOKEN_POW;
        left = e->right != NULL ? complete(p, e) : NULL;
    }
    return left;
}

static struct alloy_expr *parse_expr(struct parser *p)
{
    return parse_binary(p, 1);
}

/* ---- statements ------------------------------------------------------------------------------ */

static bool parse_body(struct parser *p, struct alloy_body *body);

/* Parses the name of a statement: words with dots between them. */
static bool parse_name(struct parser *p, struct sv *ret_name, bool *ret_dotted)
{
    struct buf name;
    *ret_name = p->token.text;
    *ret_dotted = false;
    if (!expect(p, TOKEN_IDENT, "a name at the beginning of a statement")) {
        return false;
    }
    if (p->token.kind != TOKEN_DOT) {
        return true;
    }
    buf_init(&name, ALLOY_STRING_MAX);
    buf_append(&name, ret_name->p, ret_name->n);
    bool ok = true;
    while (ok && accept(p, TOKEN_DOT)) {
        buf_putc(&name, '.');
        buf_append(&name, p->token.text.p, p->token.text.n);
        ok = expect(p, TOKEN_IDENT, "a name after \".\"");
    }
    const char *copy = buf_ok(&name) ? arena_strndup(p->arena, name.data, name.len) : NULL;
    if (ok && copy == NULL) {
        stop(p, "the file needs too much memory");
    }
    *ret_name = (struct sv){copy, copy != NULL ? name.len : 0};
    *ret_dotted = true;
    buf_done(&name);
    return ok && copy != NULL;
}

static bool parse_attribute(struct parser *p, struct alloy_stmt *s, bool dotted)
{
    if (dotted || s->label_place.line > 0) {
        report(p, s->place,
               dotted ? "the name of an attribute is a single word without \".\""
                      : "an attribute has no label");
        return false;
    }
    advance(p);
    struct alloy_token first = p->token;
    s->value = parse_expr(p);
    bool block = s->value != NULL && s->value->kind == EXPR_NAME &&
                 (p->token.kind == TOKEN_LCURLY || p->token.kind == TOKEN_STRING);
    if (block) {
        report(p, first.place, "expected an expression, got a block");
        return false;
    }
    return s->value != NULL;
}

static bool parse_label(struct parser *p, struct alloy_stmt *s)
{
    const struct alloy_token *t = &p->token;
    s->label_place = t->place;
    s->label = (struct sv){t->text.p + 1, t->text.n - 2};
    if (t->kind == TOKEN_RAW_STRING) {
        report(p, t->place, "expected a label in double quotes, got one in backticks");
        return false;
    }
    if (s->label.n > 0 && !alloy_is_identifier(s->label)) {
        report(p, t->place,
               "expected \"=\", or a label of letters, digits and \"_\" that does not begin with a "
               "digit");
        return false;
    }
    advance(p);
    return true;
}

static bool parse_block(struct parser *p, struct alloy_stmt *s)
{
    if (p->token.kind != TOKEN_LCURLY) {
        expected(p, s->label_place.line > 0 ? "\"{\"" : "\"=\", \"{\" or a label in double quotes");
        return false;
    }
    if (p->blocks == ALLOY_DEPTH_MAX) {
        stop(p, arena_printf(p->arena, "blocks nested more than %d deep", ALLOY_DEPTH_MAX));
        return false;
    }
    advance(p);
    p->blocks++;
    bool ok = parse_body(p, &s->body);
    p->blocks--;
    return ok && expect(p, TOKEN_RCURLY, "\"}\"");
}

static bool parse_statement(struct parser *p, struct alloy_stmt *s)
{
    bool dotted;
    s->place = p->token.place;
    if (!parse_name(p, &s->name, &dotted)) {
        return false;
    }
    if ((p->token.kind == TOKEN_STRING || p->token.kind == TOKEN_RAW_STRING) &&
        !parse_label(p, s)) {
        return false;
    }
    return p->token.kind == TOKEN_ASSIGN ? parse_attribute(p, s, dotted) : parse_block(p, s);
}

/* Skips the rest of a statement that has an error, up to the line end that ends it, a name on
 * another line, or the bracket that closes the block around it. */
static void pass_statement(struct parser *p, int brackets)
{
    int line = p->token.place.line;
    while (p->token.kind != TOKEN_END) {
        bool outside = p->brackets <= brackets;
        bool next = p->token.kind == TOKEN_IDENT && p->token.place.line > line;
        if (outside && (next || p->token.kind == TOKEN_RCURLY)) {
            return;
        }
        if (p->token.kind == TOKEN_TERMINATOR && outside) {
            advance(p);
            /* If the error is in the head of a block, its body is skipped as well. */
            if (p->token.kind != TOKEN_LCURLY) {
                return;
            }
        }
        advance(p);
    }
}

/* Parses one statement and the line end after it. False if no memory is left. */
static bool parse_line(struct parser *p, const struct alloy_stmt ***tail)
{
    int brackets = p->brackets;
    struct alloy_stmt *s = arena_alloc(p->arena, sizeof(*s));
    if (s == NULL) {
        stop(p, "the file needs too much memory");
        return false;
    }
    bool ok = parse_statement(p, s);
    if (ok) {
        **tail = s;
        *tail = &s->next;
    }
    if (ok && (p->token.kind == TOKEN_END || p->token.kind == TOKEN_RCURLY ||
               accept(p, TOKEN_TERMINATOR))) {
        return true;
    }
    if (ok && p->token.kind != TOKEN_ILLEGAL) {
        report(p, p->token.place,
               arena_printf(p->arena,
                            "expected the end of the line, got %s: one statement per line",
                            alloy_token_show(&p->token, p->arena)));
    } else if (ok) {
        expected(p, "the end of the line");
    }
    pass_statement(p, brackets);
    return true;
}

/* Parses the statements up to "}" or the end of the text, and appends them to the list that ends at
 * *tail. False if no memory is left. */
static bool parse_statements(struct parser *p, const struct alloy_stmt ***tail)
{
    bool ok = true;
    while (ok && p->token.kind != TOKEN_END && p->token.kind != TOKEN_RCURLY) {
        if (!accept(p, TOKEN_TERMINATOR)) {
            ok = parse_line(p, tail);
        }
    }
    return ok;
}

static bool parse_body(struct parser *p, struct alloy_body *body)
{
    const struct alloy_stmt **tail = &body->first;
    bool ok = parse_statements(p, &tail);
    body->end = p->token.place;
    return ok;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Reports invalid UTF-8, which the scanner cannot handle. */
static bool check_utf8(const char *file, struct sv source, struct config_errors *errors)
{
    struct config_place place = {1, 1, file};
    for (size_t at = 0; at < source.n;) {
        uint32_t rune;
        size_t n = utf8_decode(sv_skip(source, at), &rune);
        if (n == 0) {
            config_errors_add_in(errors, file, place.line, place.column, "",
                                 "expected UTF-8, got a byte that is not part of a character");
            return false;
        }
        place.column = rune == '\n' ? 1 : place.column + 1;
        place.line += rune == '\n';
        at += n;
    }
    return true;
}

static bool start(struct parser *p, const char *file, struct sv source, struct arena *arena,
                  struct config_errors *errors)
{
    *p = (struct parser){.arena = arena, .errors = errors};
    if (!check_utf8(file, source, errors)) {
        return false;
    }
    alloy_scanner_init(&p->scanner, file, source, arena);
    p->token = alloy_scan(&p->scanner);
    return true;
}

bool alloy_parse(const char *file, struct sv source, struct arena *arena,
                 struct config_errors *errors, struct alloy_body *ret_body)
{
    struct parser p;
    *ret_body = (struct alloy_body){.end = {1, 1, file}};
    if (!start(&p, file, source, arena, errors)) {
        return false;
    }
    const struct alloy_stmt **tail = &ret_body->first;
    while (parse_statements(&p, &tail) && p.token.kind == TOKEN_RCURLY) {
        expected(&p, "a statement");
        p.brackets = 1; /* advance() subtracts this "}", which closes no block */
        advance(&p);
    }
    ret_body->end = p.token.place;
    return !p.failed;
}

const struct alloy_expr *alloy_parse_expr(struct sv source, struct arena *arena,
                                          struct config_errors *errors)
{
    struct parser p;
    if (!start(&p, NULL, source, arena, errors)) {
        return NULL;
    }
    const struct alloy_expr *e = parse_expr(&p);
    if (e != NULL && p.token.kind == TOKEN_TERMINATOR) {
        advance(&p);
    }
    if (e != NULL && p.token.kind != TOKEN_END) {
        expected(&p, "the end of the expression");
    }
    return p.failed ? NULL : e;
}
