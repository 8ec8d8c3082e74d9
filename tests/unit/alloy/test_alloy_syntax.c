/* Alloy text -> tree: tokens, precedence, places of errors, recovery, limits. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "alloy/alloy.h"
#include "alloy/syntax.h"
#include "config/config.h"
#include "config/texts.h"
#include "tests/unit/lib/valid_config.h"

#define ARENA_MAX ((size_t)512 * 1024 * 1024)

/* ---- a tree as one line ---------------------------------------------------------------------- */

static void show_expr(const struct alloy_expr *e, struct buf *out);

static void show_items(const struct alloy_expr *e, struct buf *out)
{
    for (size_t i = 0; i < e->n_items; i++) {
        buf_puts(out, i == 0 ? "" : " ");
        if (e->kind == EXPR_OBJECT) {
            buf_printf(out, "%.*s=", SV_ARG(e->items[i].key));
        }
        show_expr(e->items[i].value, out);
    }
}

static void show_expr(const struct alloy_expr *e, struct buf *out)
{
    static const char *const operators[] = {
        [TOKEN_OR] = "||", [TOKEN_AND] = "&&", [TOKEN_NOT] = "!", [TOKEN_EQ] = "==",
        [TOKEN_NE] = "!=", [TOKEN_LT] = "<",   [TOKEN_LE] = "<=", [TOKEN_GT] = ">",
        [TOKEN_GE] = ">=", [TOKEN_ADD] = "+",  [TOKEN_SUB] = "-", [TOKEN_MUL] = "*",
        [TOKEN_DIV] = "/", [TOKEN_MOD] = "%",  [TOKEN_POW] = "^",
    };
    switch (e->kind) {
    case EXPR_NULL:
        buf_puts(out, "null");
        break;
    case EXPR_BOOL:
        buf_puts(out, e->truth ? "true" : "false");
        break;
    case EXPR_NUMBER:
    case EXPR_FLOAT:
    case EXPR_NAME:
        buf_append(out, e->text.p, e->text.n);
        break;
    case EXPR_STRING:
        buf_printf(out, "'%.*s'", SV_ARG(e->text));
        break;
    case EXPR_ARRAY:
        buf_putc(out, '[');
        show_items(e, out);
        buf_putc(out, ']');
        break;
    case EXPR_OBJECT:
        buf_putc(out, '{');
        show_items(e, out);
        buf_putc(out, '}');
        break;
    case EXPR_UNARY:
        buf_printf(out, "(%s ", operators[e->op]);
        show_expr(e->left, out);
        buf_putc(out, ')');
        break;
    case EXPR_BINARY:
        buf_printf(out, "(%s ", operators[e->op]);
        show_expr(e->left, out);
        buf_putc(out, ' ');
        show_expr(e->right, out);
        buf_putc(out, ')');
        break;
    case EXPR_FIELD:
        show_expr(e->left, out);
        buf_printf(out, ".%.*s", SV_ARG(e->text));
        break;
    case EXPR_INDEX:
        show_expr(e->left, out);
        buf_puts(out, "[");
        show_expr(e->right, out);
        buf_puts(out, "]");
        break;
    case EXPR_CALL:
        show_expr(e->left, out);
        buf_putc(out, '(');
        show_items(e, out);
        buf_putc(out, ')');
        break;
    }
}

static void show_body(const struct alloy_body *body, struct buf *out)
{
    for (const struct alloy_stmt *s = body->first; s != NULL; s = s->next) {
        buf_puts(out, s == body->first ? "" : "; ");
        buf_append(out, s->name.p, s->name.n);
        if (s->label.n > 0) {
            buf_printf(out, " \"%.*s\"", SV_ARG(s->label));
        }
        if (s->value != NULL) {
            buf_puts(out, " = ");
            show_expr(s->value, out);
        } else {
            buf_puts(out, " {");
            show_body(&s->body, out);
            buf_putc(out, '}');
        }
    }
}

/* The tree, and after it "!" with each error, as one line. */
static char *parse(struct sv text)
{
    struct arena *arena = arena_new(ARENA_MAX);
    struct config_errors *errors = config_errors_new();
    struct alloy_body body;
    SCOPED(buf) out = testing_buf(64 * 1024 * 1024);
    bool ok = alloy_parse(NULL, text, arena, errors, &body);
    assert_int_equal(ok, config_errors_count(errors) == 0);
    show_body(&body, &out);
    for (size_t i = 0; i < config_errors_count(errors); i++) {
        const struct config_error *e = config_errors_at(errors, i);
        buf_printf(&out, "! %d:%d %s", e->pos.line, e->pos.column, e->message);
    }
    arena_free(arena);
    config_errors_free(errors);
    assert_true(buf_ok(&out));
    char *line = strdup(out.data != NULL ? out.data : "");
    return line;
}

struct parse_case {
    const char *text;
    const char *want;
};

static void check(const struct parse_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        SCOPED_MEMORY char *got = parse(sv_from(cases[i].text));
        if (strcmp(got, cases[i].want) != 0) {
            fail_msg("%s\n  got:  %s\n  want: %s", cases[i].text, got, cases[i].want);
        }
    }
}

#define CHECK_ALL(cases) check(cases, sizeof(cases) / sizeof((cases)[0]))

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(statements_and_blocks)
{
    static const struct parse_case cases[] = {
        {"", ""},
        {"\xef\xbb\xbf"
         "a = 1",
         "a = 1"},
        {"a {\n b = 1\n c = 2\n}", "a {b = 1; c = 2}"},
        {"a { b = 1 }", "a {b = 1}"},
        {"a { b { c = 1 } }\n\n\nd = 2\n", "a {b {c = 1}}; d = 2"},
        {"discovery.relabel \"pods\" { }", "discovery.relabel \"pods\" {}"},
        {"a . b \"l\" { }", "a.b \"l\" {}"},
        {"a \"\" { }", "a {}"},
        {"a \"\xc3\xa9\" { }", "a \"\xc3\xa9\" {}"},
        {"\xc3\xa9\xe6\x97\xa5 = 1", "\xc3\xa9\xe6\x97\xa5 = 1"},
        {"a = 1 // c\n// d\nb = 2 /* e */\n/* f\n */ c = 3", "a = 1; b = 2; c = 3"},
        {"a = 1 /* c \n */ b = 2", "a = 1; b = 2"},
        {"a = 1\r\nb = 2\r\n", "a = 1; b = 2"},
        {"a = x.\ny", "a = x.y"},
        {"a =\n1", "a = 1"},
        {"a = 1 +\n2", "a = (+ 1 2)"},
        {"a = (1 +\n2)", "a = (+ 1 2)"},
    };
    CHECK_ALL(cases);
}

TEST(expressions)
{
    static const struct parse_case cases[] = {
        {"a = 1 + 2 * 3 - 4 / 3", "a = (- (+ 1 (* 2 3)) (/ 4 3))"},
        {"a = 2 ^ 3 ^ 2", "a = (^ 2 (^ 3 2))"},
        {"a = -2 ^ 2", "a = (^ (- 2) 2)"},
        {"a = 1 < 2 == true", "a = (== (< 1 2) true)"},
        {"a = !x || y && z != null", "a = (|| (! x) (&& y (!= z null)))"},
        {"a = (1 + 2) * 3", "a = (* (+ 1 2) 3)"},
        {"a = .5 + 5. + 1e3 + 1.5E-3", "a = (+ (+ (+ .5 5.) 1e3) 1.5E-3)"},
        {"a = f(1, \"x\")[0].b.c(2)", "a = f(1 'x')[0].b.c(2)"},
        {"a = []", "a = []"},
        {"a = [\n1,\n2,\n]", "a = [1 2]"},
        {"a = f(\n1,\n2,\n)", "a = f(1 2)"},
        {"a = {\n  x = 1, // c\n  y = 2, /* d */\n}", "a = {x=1 y=2}"},
        {"a = {\"a\\n\" = 1, `b` = 2, \"\" = 3}", "a = {a\\n=1 b=2 \"\"=3}"},
        {"a = \"t\\tx\\x41\\u00e9\\U0001F600\\101\\\"\"", "a = 't\tx"
                                                          "A\xc3\xa9\xf0\x9f\x98\x80"
                                                          "A\"'"},
        {"a = `raw\\n\"x\"\r\ny`", "a = 'raw\\n\"x\"\ny'"},
    };
    CHECK_ALL(cases);
}

#define ONE_A_LINE ": one statement per line"
#define ON_ANOTHER_LINE " is on another line"

TEST(syntax_errors_have_places)
{
    static const struct parse_case cases[] = {
        {"a = 1 b = 2", "a = 1! 1:7 expected the end of the line, got \"b\"" ONE_A_LINE},
        {"a { b = 1, c = 2 }",
         "a {b = 1}! 1:10 expected the end of the line, got \",\"" ONE_A_LINE},
        {"a { b {} c {} }", "a {b {}}! 1:10 expected the end of the line, got \"c\"" ONE_A_LINE},
        {"a \"l\"\n{ }\nb = 1", "b = 1! 1:6 expected \"{\", got the end of the line"},
        {"a \"l-m\" { }", "! 1:3 expected \"=\", or a label of letters, digits and \"_\" that does "
                          "not begin with a digit"},
        {"a `l` { }", "! 1:3 expected a label in double quotes, got one in backticks"},
        {"a l { }", "! 1:3 expected \"=\", \"{\" or a label in double quotes, got \"l\""},
        {"a.b = 1", "! 1:1 the name of an attribute is a single word without \".\""},
        {"a \"l\" = 1", "! 1:1 an attribute has no label"},
        {"a = [\n1,\n2\n]",
         "! 3:2 expected \",\" before the end of the line: the \"]\"" ON_ANOTHER_LINE},
        {"a = {\n  x = 1 // c\n}",
         "! 2:9 expected \",\" before the end of the line: the \"}\"" ON_ANOTHER_LINE},
        {"a = 1\n+ 2", "a = 1! 2:1 expected a name at the beginning of a statement, got \"+\""},
        {"a = x[0,]", "! 1:8 expected \"]\", got \",\""},
        {"a = {,}", "! 1:6 expected the name of a field (a word or a string), got \",\""},
        {"a = {\"x\": 1}", "! 1:9 unexpected \":\" (U+003A)"},
        {"a = \"x\nb = 1", "b = 1! 1:5 the string is not closed: expected '\"' on the same line"},
        {"a = \"a\\d\"", "! 1:8 unknown escape \"\\d\" in a string; did you mean \"\\\\d\"?"},
        {"a = \"\\ud800\"",
         "! 1:7 a wrong escape in a string: expected \\ooo, \\xhh, \\uhhhh or \\Uhhhhhhhh with the "
         "number of a character"},
        {"# c\na = 1", "a = 1! 1:1 unexpected \"#\"; comments begin with \"//\""},
        {"a = 1 /* c */ b = 2", "a = 1! 1:15 expected the end of the line, got \"b\"" ONE_A_LINE},
        {"a {\n", "! 2:1 expected \"}\", got the end of the file"},
        {"true = 1", "! 1:1 expected a name at the beginning of a statement, got \"true\""},
        {"a-b = 1", "! 1:2 expected \"=\", \"{\" or a label in double quotes, got \"-\""},
        {"a = block \"x\" { y = 1 }", "! 1:5 expected an expression, got a block"},
        {"a = 1.2.3", "a = 1.2! 1:8 expected the end of the line, got \".3\"" ONE_A_LINE},
        {"a = 0x10", "a = 0! 1:6 expected the end of the line, got \"x10\"" ONE_A_LINE},
        {"a = 1 & 2", "a = 1! 1:7 expected \"&&\", got \"&\""},
        {"a = 1e", "! 1:5 expected digits in the exponent of a number"},
        {"a = '", "! 1:5 a string in single quotes; use double quotes"},
        {"a = 1\n\n\nb = =\nc = =\nd = 1", "a = 1; d = 1! 4:5 expected an expression, got \"=\"! "
                                           "5:5 expected an expression, got \"=\""},
        {"a =\xc2\xa0"
         "1",
         "! 1:4 unexpected character U+00A0"},
        {"a = 1; b = 2", "a = 1! 1:6 unexpected \";\" (U+003B)"},
        {"a = `x\ny", "! 1:5 the string is not closed: expected \"`\""},
        {"a = 1 /* x", "a = 1! 1:7 a comment that begins with \"/*\" is not closed by \"*/\""},
        {"a = \"\xff\"", "! 1:6 expected UTF-8, got a byte that is not part of a character"},
        {"\xc3\xa9 = =", "! 1:5 expected an expression, got \"=\""}, /* columns count characters */
        {"}\na = 1", "a = 1! 1:1 expected a statement, got \"}\""},
    };
    CHECK_ALL(cases);
}

TEST(an_error_costs_one_statement)
{
    static const struct parse_case cases[] = {
        {"a {\n b = [1, {x = }]\n c = 1\n}\nd = 2",
         "a {c = 1}; d = 2! 2:15 expected an expression, got \"}\""},
        {"a = f(\n1\n)\nb = 1",
         "b = 1! 2:2 expected \",\" before the end of the line: the \")\"" ON_ANOTHER_LINE},
        {"a {\n b = 1 c = 2\n d = 3\n}\ne = 4",
         "a {b = 1; d = 3}; e = 4! 2:8 expected the end of the line, got \"c\"" ONE_A_LINE},
        {"x y {\n a = 1\n}\nb = 1",
         "b = 1! 1:3 expected \"=\", \"{\" or a label in double quotes, got \"y\""},
    };
    CHECK_ALL(cases);
}

/* n times `unit`, with `before` and `after`. */
static char *repeat(const char *before, const char *unit, size_t n, const char *after)
{
    size_t size = strlen(before) + n * strlen(unit) + strlen(after) + 1;
    char *text = testing_memory(size);
    char *at = stpcpy(text, before);
    for (size_t i = 0; i < n; i++) {
        at = stpcpy(at, unit);
    }
    memcpy(at, after, strlen(after) + 1);
    return text;
}

TEST(limits_are_errors)
{
    static const struct {
        const char *before, *unit;
        size_t n;
        const char *after, *want;
    } cases[] = {
        {"a = ", "(", 2000000, "1", "nested more than 64 deep"},
        {"a = ", "[", 10000, "", "nested more than 64 deep"},
        {"a = ", "-", 10000, "1", "nested more than 64 deep"},
        {"a = 1", "^1", 10000, "", "nested more than 64 deep"},
        {"a = 1", "+1", 10000, "", "more than 1000 operators"},
        {"a = x", ".y", 10000, "", "more than 1000 operators"},
        {"", "a {\n", 10000, "", "blocks nested more than 64 deep"},
        {"a = [", "1,", 110000, "]", "more than 200000 tokens"},
        {"a = \"", "xxxxxxxx", 131073, "\"", "a string of more than 1 MiB"},
        {"", "\"", 1000000, "", "expected a name"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED_MEMORY char *text =
            repeat(cases[i].before, cases[i].unit, cases[i].n, cases[i].after);
        SCOPED_MEMORY char *got = parse(sv_from(text));
        if (strstr(got, cases[i].want) == NULL) {
            fail_msg("%zu: got %s, want %s", i, got, cases[i].want);
        }
    }
    /* Just within them. */
    SCOPED_MEMORY char *text = repeat("a = ", "(", 63, "1");
    SCOPED_MEMORY char *whole = repeat(text, ")", 63, "");
    SCOPED_MEMORY char *got = parse(sv_from(whole));
    assert_string_equal(got, "a = 1");
}

TEST(a_nul_is_refused)
{
    SCOPED_MEMORY char *got = parse(SV("a = 1\0\nb = 2"));
    assert_string_equal(got, "a = 1; b = 2! 1:6 unexpected character U+0000");
}

TEST(texts_of_expressions_are_kept)
{
    SCOPED(arena) *arena = arena_new(ARENA_MAX);
    SCOPED(config_errors) *errors = config_errors_new();
    const struct alloy_expr *e = alloy_parse_expr(SV(" f( a.b ,\n\"x\") + (1 ) "), arena, errors);
    assert_non_null(e);
    assert_true(sv_eq_str(e->source, "f( a.b ,\n\"x\") + (1 )"));
    assert_true(sv_eq_str(e->left->source, "f( a.b ,\n\"x\")"));
    assert_true(sv_eq_str(e->right->source, "(1 )"));
    assert_true(sv_eq_str(e->left->items[0].value->source, "a.b"));
    assert_int_equal(e->left->items[0].value->at.column, 7);
    assert_null(alloy_parse_expr(SV("1 2"), arena, errors));
    assert_int_equal(config_errors_count(errors), 1);
}

TEST(texts_are_known_by_their_beginning)
{
    static const struct {
        const char *text;
        bool alloy;
    } cases[] = {
        {"logging {\n}", true},
        {"pyroscope.write \"w\" {", true},
        {"  \n\t// c\n/* d\n */ a = 1", true},
        {"\xef\xbb\xbfimport.file\t\"x\" {", true},
        {"// only a comment", true},
        {"/* without an end", true},
        {"", false},
        {" \n", false},
        {"\xef\xbb\xbf", false},
        {"global:\n", false},
        {"global :\n", false},
        {"a\n= 1", false},
        {"# a = 1\n", false},
        {"---\na = 1\n", false},
        {"- a = 1\n", false},
        {"{a: 1}", false},
        {"\"a\": 1", false},
        {"/", false},
        {"word", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(alloy_is_text(sv_from(cases[i].text)), cases[i].alloy, cases[i].text);
    }
}
