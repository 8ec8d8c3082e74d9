#include "api/tag_filter.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/utf8.h"
#include "regex/regex.h"

/* Memory for nodes, lists, and texts without their escapes: a few times the text. */
#define ARENA_MAX (TAG_FILTER_BYTES_MAX * 32)
#define NUMBER_TEXT_MAX 64

enum node_kind { NODE_OR, NODE_AND, NODE_COMPARE, NODE_IN, NODE_LIKE, NODE_REGEXP };

enum compare { EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL };

struct literal {
    struct sv text;
    bool is_number;
    double number;
    struct literal *next;
};

struct node {
    enum node_kind kind;
    bool negated;
    struct node *children; /* the operands of OR and AND */
    struct node *next;     /* the next child of the same parent */
    struct sv tag;
    enum compare compare;
    struct literal *literals;
    struct regex *regex;
    struct node *next_test; /* list of the tests that have a regex, for freeing them */
};

struct tag_filter {
    struct arena *arena;
    struct regex_scratch *scratch;
    struct node *root; /* NULL: everything matches */
    struct node *with_regex;
};

/* ---- tokens ---------------------------------------------------------------------------------- */

enum token_kind { END, WORD, TAG, TEXT, NUMBER, OPERATOR, OPEN, CLOSE, COMMA };

struct token {
    enum token_kind kind;
    struct sv text; /* without its quotes and escapes */
    size_t column;
    enum compare compare;
};

struct parser {
    struct tag_filter *filter;
    struct sv text;
    size_t at;
    /* memory for texts without their escapes, which together are never longer than the filter */
    char *texts;
    struct token token; /* the token that is read next */
    unsigned tests;
    unsigned depth;
    struct err *err;
};

static bool fail(struct parser *p, const char *expected)
{
    const struct token *t = &p->token;
    if (t->kind == END) {
        return err_set(p->err, ERR_INPUT, "tag_filter: column %zu: expected %s, got the end",
                       t->column, expected);
    }
    return err_set(p->err, ERR_INPUT, "tag_filter: column %zu: expected %s, got \"%.*s\"",
                   t->column, expected, SV_ARG(t->text));
}

static char at(const struct parser *p, size_t i)
{
    return i < p->text.n ? p->text.p[i] : '\0';
}

/* Returns the character that a backslash and c stand for in a text; '\0' if they are no escape. */
static char escaped(char c)
{
    static const char map[][2] = {{'n', '\n'}, {'t', '\t'},  {'r', '\r'}, {'b', '\b'},
                                  {'Z', 26},   {'\'', '\''}, {'"', '"'},  {'\\', '\\'}};
    for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++) {
        if (map[i][0] == c) {
            return map[i][1];
        }
    }
    return '\0';
}

/* Appends the character at p->at, which is in a quoted text, and advances. */
static void unescape(struct parser *p, char *out, size_t *n)
{
    char c = at(p, p->at++);
    char next = at(p, p->at);
    if (c == '\\' && p->at < p->text.n) {
        char plain = escaped(next);
        if (plain == '\0') {
            out[(*n)++] = c;
        }
        out[(*n)++] = plain == '\0' ? next : plain;
        p->at++;
        return;
    }
    out[(*n)++] = c;
}

/* Takes 'text', "text" or `tag`. A doubled quote stands for one quote. */
static bool take_quoted(struct parser *p, enum token_kind kind)
{
    char quote = at(p, p->at++);
    char *out = p->texts;
    size_t n = 0;
    while (p->at < p->text.n) {
        if (at(p, p->at) == quote && at(p, p->at + 1) != quote) {
            p->at++;
            p->token.kind = kind;
            p->token.text = (struct sv){out, n};
            p->texts += n;
            return true;
        }
        if (at(p, p->at) == quote) {
            p->at += 2;
            out[n++] = quote;
        } else if (kind == TAG) {
            out[n++] = at(p, p->at++);
        } else {
            unescape(p, out, &n);
        }
    }
    return err_set(p->err, ERR_INPUT,
                   "tag_filter: column %zu: the text that begins with %c is not closed",
                   p->token.column, quote);
}

static bool take_run(struct parser *p, enum token_kind kind, bool (*is_part)(int c))
{
    size_t from = p->at;
    while (p->at < p->text.n && is_part(at(p, p->at))) {
        p->at++;
    }
    p->token.kind = kind;
    p->token.text = (struct sv){p->text.p + from, p->at - from};
    return true;
}

static bool is_tag_character(int c)
{
    return ascii_is_word(c) || c == '.';
}

static bool is_number_character(int c)
{
    return ascii_is_alnum(c) || c == '.' || c == '+' || c == '-';
}

static bool take_symbol(struct parser *p)
{
    static const struct {
        struct sv text;
        enum token_kind kind;
        enum compare compare;
    } symbols[] = {
        {{"<=", 2}, OPERATOR, LESS_EQUAL}, {{">=", 2}, OPERATOR, GREATER_EQUAL},
        {{"!=", 2}, OPERATOR, NOT_EQUAL},  {{"<>", 2}, OPERATOR, NOT_EQUAL},
        {{"=", 1}, OPERATOR, EQUAL},       {{"<", 1}, OPERATOR, LESS},
        {{">", 1}, OPERATOR, GREATER},     {{"(", 1}, OPEN, EQUAL},
        {{")", 1}, CLOSE, EQUAL},          {{",", 1}, COMMA, EQUAL},
    };
    struct sv rest = sv_skip(p->text, p->at);
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        if (sv_starts_with(rest, symbols[i].text)) {
            p->token.kind = symbols[i].kind;
            p->token.compare = symbols[i].compare;
            p->token.text = symbols[i].text;
            p->at += symbols[i].text.n;
            return true;
        }
    }
    uint32_t rune;
    size_t n = utf8_decode(rest, &rune);
    return err_set(p->err, ERR_INPUT, "tag_filter: column %zu: unexpected \"%.*s\"",
                   p->token.column, (int)n, rest.p);
}

static bool advance(struct parser *p)
{
    while (p->at < p->text.n && strchr(" \t\r\n", at(p, p->at)) != NULL) {
        p->at++;
    }
    char c = at(p, p->at);
    p->token = (struct token){.kind = END, .column = p->at + 1};
    if (p->at >= p->text.n) {
        return true;
    }
    if (c == '\'' || c == '"') {
        return take_quoted(p, TEXT);
    }
    if (c == '`') {
        return take_quoted(p, TAG);
    }
    if (ascii_is_digit(c) || c == '-' || c == '+' || c == '.') {
        return take_run(p, NUMBER, is_number_character);
    }
    return ascii_is_word(c) ? take_run(p, WORD, is_tag_character) : take_symbol(p);
}

static bool is_keyword(const struct parser *p, const char *word)
{
    return p->token.kind == WORD && sv_eq_nocase(p->token.text, word);
}

/* Takes a keyword if it is the next token. */
static bool take_keyword(struct parser *p, const char *word, bool *ret_taken)
{
    *ret_taken = is_keyword(p, word);
    return !*ret_taken || advance(p);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static struct node *new_node(struct parser *p, enum node_kind kind)
{
    struct node *n = arena_alloc(p->filter->arena, sizeof(*n));
    if (n == NULL) {
        err_memory(p->err);
        return NULL;
    }
    n->kind = kind;
    return n;
}

/* Reads the whole text as a number. */
static bool read_number(struct sv v, double *ret)
{
    char text[NUMBER_TEXT_MAX];
    char *end;
    if (v.n == 0 || v.n >= sizeof(text) || !is_number_character(v.p[0])) {
        return false;
    }
    memcpy(text, v.p, v.n);
    text[v.n] = '\0';
    *ret = strtod(text, &end);
    return end == text + v.n && isfinite(*ret);
}

static bool take_literal(struct parser *p, struct node *n)
{
    if (p->token.kind != TEXT && p->token.kind != NUMBER) {
        return fail(p, "a text in quotes or a number");
    }
    struct literal *l = arena_alloc(p->filter->arena, sizeof(*l));
    if (l == NULL) {
        return err_memory(p->err);
    }
    l->text = p->token.text;
    l->is_number = p->token.kind == NUMBER;
    if (l->is_number && !read_number(l->text, &l->number)) {
        return fail(p, "a number");
    }
    l->next = n->literals;
    n->literals = l;
    return advance(p);
}

static bool take_list(struct parser *p, struct node *n)
{
    n->kind = NODE_IN;
    if (p->token.kind != OPEN) {
        return fail(p, "\"(\"");
    }
    do {
        if (!advance(p) || !take_literal(p, n)) {
            return false;
        }
    } while (p->token.kind == COMMA);
    return p->token.kind == CLOSE ? advance(p) : fail(p, "\",\" or \")\"");
}

static bool take_text(struct parser *p, struct node *n)
{
    return p->token.kind == TEXT ? take_literal(p, n) : fail(p, "a text in quotes");
}

static bool take_like(struct parser *p, struct node *n)
{
    n->kind = NODE_LIKE;
    if (!take_text(p, n)) {
        return false;
    }
    return n->literals->text.n <= TAG_FILTER_LIKE_MAX ||
           err_set(p->err, ERR_LIMIT, "tag_filter: a pattern of LIKE has %zu bytes, more than %zu",
                   n->literals->text.n, TAG_FILTER_LIKE_MAX);
}

/* Compiles a regex that may match anywhere, as RE2 searches do; our regexes are anchored. */
static bool compile(struct parser *p, struct node *n, struct sv pattern)
{
    struct regex *alone = regex_new(pattern, 0, p->err);
    if (alone == NULL) {
        return err_wrap(p->err, "tag_filter");
    }
    regex_free(alone);
    struct buf whole;
    buf_init(&whole, REGEX_PATTERN_MAX);
    buf_printf(&whole, "(?s:.*)(?:%.*s)(?s:.*)", SV_ARG(pattern));
    if (buf_ok(&whole)) {
        n->regex = regex_new((struct sv){whole.data, whole.len}, 0, p->err);
    } else {
        err_memory(p->err);
    }
    buf_done(&whole);
    if (n->regex == NULL) {
        return err_wrap(p->err, "tag_filter");
    }
    n->next_test = p->filter->with_regex;
    p->filter->with_regex = n;
    return true;
}

static bool take_regexp(struct parser *p, struct node *n)
{
    n->kind = NODE_REGEXP;
    if (!take_text(p, n)) {
        return false;
    }
    struct sv pattern = n->literals->text;
    if (pattern.n + sizeof("(?s:.*)(?:)(?s:.*)") > REGEX_PATTERN_MAX) {
        return err_set(p->err, ERR_LIMIT, "tag_filter: a regex has %zu bytes, more than %d",
                       pattern.n, REGEX_PATTERN_MAX - (int)sizeof("(?s:.*)(?:)(?s:.*)"));
    }
    return compile(p, n, pattern);
}

/* Reads the predicate after a tag, or after a tag and NOT. */
static bool take_predicate(struct parser *p, struct node *n)
{
    static const struct {
        const char *word;
        bool (*take)(struct parser *p, struct node *n);
    } predicates[] = {{"IN", take_list}, {"LIKE", take_like}, {"REGEXP", take_regexp}};
    for (size_t i = 0; i < sizeof(predicates) / sizeof(predicates[0]); i++) {
        if (is_keyword(p, predicates[i].word)) {
            return advance(p) && predicates[i].take(p, n);
        }
    }
    return fail(p, n->negated ? "IN, LIKE or REGEXP"
                              : "=, !=, <>, <, <=, >, >=, [NOT] IN, [NOT] LIKE or [NOT] REGEXP");
}

static struct node *parse_test(struct parser *p)
{
    struct node *n = new_node(p, NODE_COMPARE);
    if (n == NULL) {
        return NULL;
    }
    if (++p->tests > TAG_FILTER_TESTS_MAX) {
        err_set(p->err, ERR_LIMIT, "tag_filter: more than %d tests", TAG_FILTER_TESTS_MAX);
        return NULL;
    }
    if (p->token.kind != WORD && p->token.kind != TAG) {
        fail(p, "the name of a tag");
        return NULL;
    }
    n->tag = p->token.text;
    if (!advance(p)) {
        return NULL;
    }
    if (p->token.kind == OPERATOR) {
        n->compare = p->token.compare;
        return advance(p) && take_literal(p, n) ? n : NULL;
    }
    return take_keyword(p, "NOT", &n->negated) && take_predicate(p, n) ? n : NULL;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static struct node *parse_or(struct parser *p);

static struct node *parse_primary(struct parser *p)
{
    if (p->token.kind != OPEN) {
        return parse_test(p);
    }
    if (++p->depth > TAG_FILTER_DEPTH_MAX) {
        err_set(p->err, ERR_LIMIT, "tag_filter: parentheses nested more than %d deep",
                TAG_FILTER_DEPTH_MAX);
        return NULL;
    }
    struct node *inner = advance(p) ? parse_or(p) : NULL;
    p->depth--;
    if (inner != NULL && p->token.kind != CLOSE) {
        fail(p, "AND, OR or \")\"");
        return NULL;
    }
    return inner != NULL && advance(p) ? inner : NULL;
}

static struct node *parse_not(struct parser *p)
{
    bool negated = false;
    bool taken = false;
    do {
        if (!take_keyword(p, "NOT", &taken)) {
            return NULL;
        }
        negated ^= taken;
    } while (taken);
    struct node *n = parse_primary(p);
    if (n != NULL) {
        n->negated ^= negated;
    }
    return n;
}

/* Reads operands with a keyword between them. A single operand is returned without a node around
 * it. */
static struct node *parse_list(struct parser *p, enum node_kind kind, const char *word,
                               struct node *(*operand)(struct parser *p))
{
    struct node *list = NULL;
    struct node *first = operand(p);
    struct node *last = first;
    bool more = false;
    while (last != NULL && take_keyword(p, word, &more) && more) {
        if (list == NULL && (list = new_node(p, kind)) == NULL) {
            return NULL;
        }
        list->children = first;
        last->next = operand(p);
        last = last->next;
    }
    if (last == NULL || p->err->kind != ERR_NONE) {
        return NULL;
    }
    return list == NULL ? first : list;
}

static struct node *parse_and(struct parser *p)
{
    return parse_list(p, NODE_AND, "AND", parse_not);
}

static struct node *parse_or(struct parser *p)
{
    return parse_list(p, NODE_OR, "OR", parse_and);
}

static bool parse(struct parser *p)
{
    if (!advance(p)) {
        return false;
    }
    if (p->token.kind == END) {
        return true;
    }
    p->filter->root = parse_or(p);
    return p->filter->root != NULL && (p->token.kind == END || fail(p, "AND, OR or the end"));
}

struct tag_filter *tag_filter_parse(struct sv text, struct err *err)
{
    struct err own = ERR_INIT;
    struct err *to = err == NULL ? &own : err;
    if (text.n > TAG_FILTER_BYTES_MAX) {
        err_set(to, ERR_LIMIT, "tag_filter: %zu bytes are more than %zu", text.n,
                TAG_FILTER_BYTES_MAX);
        return NULL;
    }
    if (!utf8_valid(text)) {
        err_set(to, ERR_INPUT, "tag_filter: not UTF-8");
        return NULL;
    }
    struct tag_filter *f = calloc(1, sizeof(*f));
    if (f == NULL || (f->arena = arena_new(ARENA_MAX)) == NULL ||
        (f->scratch = regex_scratch_new()) == NULL) {
        err_memory(to);
        return tag_filter_free(f);
    }
    struct parser p = {.filter = f, .text = text, .err = to};
    if ((p.texts = arena_alloc(f->arena, text.n + 1)) == NULL) {
        err_memory(to);
        return tag_filter_free(f);
    }
    return parse(&p) ? f : tag_filter_free(f);
}

struct tag_filter *tag_filter_free(struct tag_filter *f)
{
    if (f != NULL) {
        for (struct node *n = f->with_regex; n != NULL; n = n->next_test) {
            regex_free(n->regex);
        }
        regex_scratch_free(f->scratch);
        arena_free(f->arena);
        free(f);
    }
    return NULL;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

struct evaluation {
    struct tag_filter *filter;
    tag_filter_value *value;
    void *arg;
    struct err *err;
    bool failed;
};

static int compare(struct sv value, const struct literal *l)
{
    double number;
    if (l->is_number && read_number(value, &number)) {
        return (number > l->number) - (number < l->number);
    }
    return sv_cmp(value, l->text);
}

static bool satisfies(enum compare op, int order)
{
    static const bool table[][3] = {
        [EQUAL] = {false, true, false},   [NOT_EQUAL] = {true, false, true},
        [LESS] = {true, false, false},    [LESS_EQUAL] = {true, true, false},
        [GREATER] = {false, false, true}, [GREATER_EQUAL] = {false, true, true},
    };
    return table[op][(order > 0) - (order < 0) + 1];
}

/* Takes one unit of a pattern: a wildcard, a character, or an escaped character. */
static size_t unit(struct sv pattern, char *ret_kind, struct sv *ret_text)
{
    uint32_t rune;
    bool is_escape = pattern.p[0] == '\\' && pattern.n > 1;
    struct sv rest = sv_skip(pattern, is_escape ? 1 : 0);
    size_t n = utf8_decode(rest, &rune);
    n = n == 0 ? 1 : n;
    *ret_text = (struct sv){rest.p, n};
    *ret_kind = '\0';
    if (!is_escape) {
        *ret_kind = rest.p[0] == '*' ? '%' : rest.p[0];
        *ret_kind = *ret_kind == '%' || *ret_kind == '_' ? *ret_kind : '\0';
    }
    return n + (is_escape ? 1 : 0);
}

/* Consumes one unit, which is no "%", from pattern and value. Returns false if they differ. */
static bool step(struct sv *pattern, struct sv *value)
{
    char kind;
    struct sv text;
    uint32_t rune;
    size_t n = unit(*pattern, &kind, &text);
    size_t width = value->n == 0 ? 0 : utf8_decode(*value, &rune);
    width = width == 0 && value->n > 0 ? 1 : width;
    if (kind == '%' || width == 0 || (kind == '\0' && !sv_eq((struct sv){value->p, width}, text))) {
        return false;
    }
    *pattern = sv_skip(*pattern, n);
    *value = sv_skip(*value, width);
    return true;
}

static bool at_any(struct sv pattern, size_t *ret_n)
{
    char kind = '\0';
    struct sv text;
    *ret_n = pattern.n == 0 ? 0 : unit(pattern, &kind, &text);
    return kind == '%';
}

/* Matches LIKE. "%" matches as little as possible; if a later unit fails, only the last "%" is
 * extended. */
static bool like(struct sv pattern, struct sv value)
{
    struct sv retry_pattern = {NULL, 0};
    struct sv retry_value = {NULL, 0};
    bool can_retry = false;
    for (;;) {
        size_t n;
        if (at_any(pattern, &n)) {
            pattern = sv_skip(pattern, n);
            retry_pattern = pattern;
            retry_value = value;
            can_retry = true;
        } else if (pattern.n == 0 && value.n == 0) {
            return true;
        } else if (pattern.n == 0 || !step(&pattern, &value)) {
            if (!can_retry || retry_value.n == 0) {
                return false;
            }
            uint32_t rune;
            size_t width = utf8_decode(retry_value, &rune);
            retry_value = sv_skip(retry_value, width == 0 ? 1 : width);
            pattern = retry_pattern;
            value = retry_value;
        }
    }
}

static bool matches_regex(struct evaluation *e, const struct node *n, struct sv value)
{
    if (!utf8_valid(value)) {
        return false;
    }
    enum regex_result r = regex_match(n->regex, e->filter->scratch, value, e->err);
    e->failed |= r == REGEX_FAILED;
    return r == REGEX_MATCH;
}

static bool is_in(struct sv value, const struct literal *l)
{
    while (l != NULL && compare(value, l) != 0) {
        l = l->next;
    }
    return l != NULL;
}

static bool test(struct evaluation *e, const struct node *n)
{
    struct sv value = e->value(e->arg, n->tag);
    switch (n->kind) {
    case NODE_IN:
        return is_in(value, n->literals);
    case NODE_LIKE:
        return like(n->literals->text, value);
    case NODE_REGEXP:
        return matches_regex(e, n, value);
    case NODE_COMPARE:
    case NODE_OR:
    case NODE_AND:
    default:
        return satisfies(n->compare, compare(value, n->literals));
    }
}

/* Evaluates a node. The depth of the recursion is limited by the number of nested parentheses. */
static bool holds(struct evaluation *e, const struct node *n)
{
    bool is_and = n->kind == NODE_AND;
    bool result = is_and;
    if (n->children == NULL) {
        return test(e, n) != n->negated;
    }
    for (const struct node *c = n->children; c != NULL && result == is_and; c = c->next) {
        result = holds(e, c);
    }
    return result != n->negated;
}

bool tag_filter_matches(struct tag_filter *f, tag_filter_value *value, void *arg, bool *ret_matches,
                        struct err *err)
{
    struct evaluation e = {.filter = f, .value = value, .arg = arg, .err = err};
    *ret_matches = f->root == NULL || holds(&e, f->root);
    return !e.failed;
}
