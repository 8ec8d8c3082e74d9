/* Text -> tree: kinds, places, aliases, merge keys, limits, syntax errors. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "config/config.h"
#include "config/yaml.h"

static const struct yaml_node *parse(struct arena *a, const char *text)
{
    const struct yaml_node *root = NULL;
    struct yaml_place place;
    struct err err = ERR_INIT;
    CHECK(yaml_parse(sv_from(text), a, &root, &place, &err), "%d:%d: %s", place.line, place.column,
          err.msg);
    return root;
}

/* The tree as one line: scalars bare, [lists], {mappings}. */
static void show(const struct yaml_node *n, struct buf *out)
{
    if (n->kind == YAML_SCALAR) {
        buf_append(out, n->text.p, n->text.n);
        return;
    }
    buf_putc(out, n->kind == YAML_LIST ? '[' : '{');
    for (size_t i = 0; i < n->n_items; i++) {
        buf_puts(out, i == 0 ? "" : " ");
        if (n->items[i].key != NULL) {
            show(n->items[i].key, out);
            buf_putc(out, ':');
        }
        show(n->items[i].value, out);
    }
    buf_putc(out, n->kind == YAML_LIST ? ']' : '}');
}

TEST(texts_become_trees)
{
    static const struct text_case cases[] = {
        {"a", "a"},
        {"a: 1\nb: [x, 'y z']\n", "{a:1 b:[x y z]}"},
        {"{\"a\": {\"b\": [1, true, null]}}", "{a:{b:[1 true null]}}"},
        {"a:\nb: ~\n", "{a: b:~}"},
        {"a: |\n  x\n  y\n", "{a:x\ny\n}"},
        {"\xef\xbb\xbf"
         "a: b\n",
         "{a:b}"}, /* a byte order mark */
        {"\xef\xbb\xbf"
         "a:\n  x: 1\nb:\n- c\n",
         "{a:{x:1} b:[c]}"},
        {"\xef\xbb\xbf"
         "---\na: b\n",
         "{a:b}"},
        {"a: &x [1, 2]\nb: *x\n", "{a:[1 2] b:[1 2]}"},
        {"a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\n", "{a:{p:1 q:2} b:{q:3 p:1}}"},
        {"a: &x {p: 1}\nb: &y {p: 2, q: 2}\nc: {<<: [*x, *y], r: 3}\n",
         "{a:{p:1} b:{p:2 q:2} c:{r:3 p:1 q:2}}"},
        {"a: &x {p: 1}\nb: &y {<<: *x, q: 2}\nc:\n  <<: *y\n  p: 9\n",
         "{a:{p:1} b:{q:2 p:1} c:{p:9 q:2}}"},
        {"a: {\"<<\": 1}\n", "{a:{<<:1}}"}, /* in quotes it is a key like any other */
        {"--- \na: b\n...\n", "{a:b}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(arena) *a = arena_new(1 << 20);
        SCOPED(buf) out = testing_buf(1 << 16);
        show(parse(a, cases[i].text), &out);
        CHECK_STR(out.data, cases[i].want, cases[i].text);
    }
}

TEST(texts_without_nodes_have_no_root)
{
    SCOPED(arena) *a = arena_new(1 << 20);
    assert_null(parse(a, ""));
    assert_null(parse(a, "# only a comment\n"));
}

TEST(nodes_have_positions)
{
    SCOPED(arena) *a = arena_new(1 << 20);
    const struct yaml_node *root = parse(a, "a: b\n\nlist:\n  - é: x\n    ü: {y: 1}\n");
    CHECK_INT(root->line, 1, "");
    CHECK_INT(root->column, 1, "");
    CHECK_INT(yaml_get(root, "a")->column, 4, "");
    const struct yaml_node *element = yaml_get(root, "list")->items->value;
    CHECK_INT(element->line, 4, "");
    CHECK_INT(element->column, 5, "");
    const struct yaml_node *y = yaml_get(yaml_get(element, "ü"), "y");
    CHECK_INT(y->line, 5, "");
    CHECK_INT(y->column, 12, "columns count characters, not bytes");
    assert_null(yaml_get(root, "b"));
    assert_null(yaml_get(y, "a key of a scalar"));
}

TEST(kinds_of_scalars)
{
    SCOPED(arena) *a = arena_new(1 << 20);
    const struct yaml_node *root =
        parse(a, "a: x\nb: 'x'\nc:\nd: ~\ne: 'null'\nf: null\ng: |\n  t\n");
    assert_true(yaml_get(root, "a")->plain);
    assert_false(yaml_get(root, "b")->plain);
    assert_false(yaml_get(root, "g")->plain);
    assert_true(yaml_is_null(yaml_get(root, "c")));
    assert_true(yaml_is_null(yaml_get(root, "d")));
    assert_false(yaml_is_null(yaml_get(root, "e")));
    assert_true(yaml_is_null(yaml_get(root, "f")));
    CHECK_STR(yaml_what(yaml_get(root, "c")), "null", "");
    CHECK_STR(yaml_what(yaml_get(root, "b")), "a string", "");
    CHECK_STR(yaml_what(yaml_get(root, "a")), "a value", "");
    CHECK_STR(yaml_what(root), "a mapping", "");
}

TEST(marked_not_refused)
{
    SCOPED(arena) *a = arena_new(1 << 20);
    const struct yaml_node *root =
        parse(a, "a: 1\nb: 2\na: 3\nc: !!binary eA==\nd: \"x\\0y\"\ne: {<<: 1}\nf: {? [k] : v}\n");
    assert_ptr_equal(root->items[2].duplicate_of, root->items[0].key);
    assert_null(root->items[0].duplicate_of);
    CHECK_CONTAINS(yaml_get(root, "c")->problem, "tags", "");
    CHECK_CONTAINS(yaml_get(root, "d")->problem, "NUL", "");
    CHECK_STR(yaml_get(root, "d")->text.p, "x", "");
    CHECK_CONTAINS(yaml_get(root, "e")->problem, "<<", "");
    CHECK_INT(yaml_get(root, "f")->items->key->kind, YAML_LIST, "");
}

static void check_failure(const char *text, size_t n, int line, int column, const char *message)
{
    SCOPED(arena) *a = arena_new(64 << 20);
    const struct yaml_node *root = NULL;
    struct yaml_place place;
    struct err err = ERR_INIT;
    bool ok = yaml_parse((struct sv){text, n}, a, &root, &place, &err);
    CHECK_INT(ok, false, message);
    CHECK_CONTAINS(err.msg, message, "");
    CHECK_INT(place.line, line, message);
    CHECK_INT(place.column, column, message);
    assert_null(root);
}

TEST(syntax_errors_have_positions)
{
    static const struct {
        const char *text;
        int line, column;
        const char *message;
    } cases[] = {
        {"a: [1\nb: 2\n", 2, 2, "not valid YAML: did not find expected ',' or ']'"},
        {"a: 'x\n", 2, 1, "not valid YAML: found unexpected end of stream"},
        {"a: 1\n\tb: 2\n", 2, 1, "not valid YAML: a tab; indent with spaces"},
        {"a: b: c\n", 1, 5, "not valid YAML: mapping values are not allowed"},
        {"a: 1\n---\nb: 2\n", 2, 1, "a second document begins: only one is allowed"},
        {"a: *x\n", 1, 4, "alias *x: no anchor &x is complete before it"},
        {"a: &x [*x]\n", 1, 8, "alias *x: no anchor &x is complete before it"},
        {"a: 1\nb: \xff\n", 2, 1, "this line is not valid UTF-8"},
        {"a: \xed\xa0\x80\n", 1, 1, "this line is not valid UTF-8"},
        {"a: b\nc: d\x01\n", 2, 5, "control characters are not allowed"},
        {"\xff\xfe"
         "a",
         1, 1, "this line is not valid UTF-8"}, /* UTF-16 */
        {"%YAML 2.0\n---\na\n", 1, 1, "not valid YAML: found incompatible YAML document"},
        {"a: @x\n", 1, 4, "cannot start any token"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_failure(cases[i].text, strlen(cases[i].text), cases[i].line, cases[i].column,
                      cases[i].message);
    }
}

TEST(large_texts_are_refused)
{
    size_t n = CONFIG_FILE_MAX + 1;
    SCOPED_MEMORY char *text = testing_memory(n);
    memset(text, '#', n);
    check_failure(text, n, 0, 0, "larger than 4194304 bytes");
    SCOPED(arena) *a = arena_new(1 << 20);
    const struct yaml_node *root = NULL;
    struct yaml_place place;
    assert_true(yaml_parse((struct sv){text, n - 1}, a, &root, &place, NULL));
}

TEST(deep_texts_are_refused)
{
    char text[2 * CONFIG_DEPTH_MAX + 8] = "";
    memset(text, '[', CONFIG_DEPTH_MAX);
    memset(text + CONFIG_DEPTH_MAX, ']', CONFIG_DEPTH_MAX);
    struct arena *a = arena_new(1 << 20);
    CHECK_INT(parse(a, text)->height, CONFIG_DEPTH_MAX - 1, "");
    arena_free(a);
    memset(text, '[', CONFIG_DEPTH_MAX + 1);
    check_failure(text, CONFIG_DEPTH_MAX + 1, 1, CONFIG_DEPTH_MAX + 1, "nested deeper than 64");
    /* Libyaml itself would take this: 200,000 levels. */
    size_t n = 200000;
    SCOPED_MEMORY char *deep = testing_memory(n);
    memset(deep, '[', n);
    check_failure(deep, n, 1, CONFIG_DEPTH_MAX + 1, "nested deeper than 64 levels");
}

/* Depth counts through aliases: each line is four levels deeper than the one before. */
TEST(depth_counts_through_aliases)
{
    SCOPED(buf) b = testing_buf(1 << 16);
    buf_puts(&b, "- &a0 x\n");
    for (int i = 1; i <= 16; i++) {
        buf_printf(&b, "- &a%d [[[[*a%d]]]]\n", i, i - 1);
    }
    check_failure(b.data, b.len, 17, 12, "nested deeper than 64 levels");
}

/* The "billion laughs" attack in 400 bytes. */
TEST(alias_bomb_is_refused)
{
    SCOPED(buf) b = testing_buf(1 << 16);
    buf_puts(&b, "- &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 9; i++) {
        buf_printf(&b, "- &a%d [", i);
        for (int j = 0; j < 10; j++) {
            buf_printf(&b, "%s*a%d", j == 0 ? "" : ", ", i - 1);
        }
        buf_puts(&b, "]\n");
    }
    check_failure(b.data, b.len, 6, 8, "more than 200000 values (aliases expanded)");
}

/* The same with merge keys, and with many plain nodes. */
TEST(too_many_nodes_are_refused)
{
    SCOPED(buf) b = testing_buf(CONFIG_FILE_MAX);
    buf_puts(&b, "a: [");
    for (int i = 0; i < CONFIG_NODES_MAX; i++) {
        buf_puts(&b, "x,");
    }
    buf_puts(&b, "]");
    assert_true(buf_ok(&b));
    check_failure(b.data, b.len, 1, 5 + 2 * (CONFIG_NODES_MAX - 3), "more than 200000 values");
    buf_clear(&b);
    buf_puts(&b, "base: &b {");
    for (int i = 0; i < 1000; i++) {
        buf_printf(&b, "k%d: v,", i);
    }
    buf_puts(&b, "}\nall:\n");
    for (int i = 0; i < 200; i++) {
        buf_puts(&b, " - {<<: *b}\n");
    }
    check_failure(b.data, b.len, 52, 9, "more than 200000 values");
}

TEST(no_memory_at_any_size)
{
    const char *text = "a: &x {b: [1, 2, 3], c: d}\ne: {<<: *x}\n";
    struct arena *whole = arena_new(1 << 20);
    parse(whole, text);
    size_t need = arena_used(whole);
    arena_free(whole);
    for (size_t max = 0; max < need; max += 8) {
        SCOPED(arena) *a = arena_new(max);
        const struct yaml_node *root = NULL;
        struct yaml_place place;
        struct err err = ERR_INIT;
        assert_false(yaml_parse(sv_from(text), a, &root, &place, &err));
        CHECK_STR(err.msg, "not enough memory for this file", "");
        CHECK_INT(err.kind, ERR_MEMORY, "");
    }
}
