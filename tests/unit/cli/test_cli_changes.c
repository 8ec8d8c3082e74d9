/* `query diff` and `query peek`: made stacks, golden files in tests/unit/data/flame. */
#include "tests/unit/lib/testing.h"

#include <jansson.h>

#include "cli/query/changes.h"
#include "cli/query/peek.h"
#include "cli/query/top.h"
#include "tests/unit/cli/trees.h"

SCOPED_POINTER(tree, tree_free)

#define BYTES_MAX ((size_t)1024 * 1024)

static const char before[] = "main;json;grow 10\nmain;json;shrink 40\nmain;gone 20\nmain 30\n";
static const char after[] = "main;json;grow 70\nmain;json;shrink 15\nmain;new 25\nmain 30\n"
                            "main;\033[31mred 10\n";

TEST(functions_that_changed)
{
    static const struct {
        bool normalize;
        size_t limit;
        const char *golden;
    } cases[] = {{false, 0, "diff.txt"}, {true, 1, "diff-normalized.txt"}};
    SCOPED(tree) *base = tree_of(before);
    SCOPED(tree) *now = tree_of(after);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct changes c;
        SCOPED(arena) *arena = arena_new(BYTES_MAX);
        SCOPED(buf) out = testing_buf(BYTES_MAX);
        assert_true(changes_make(base, now, cases[i].normalize, arena, &c, &err));
        changes_print(&c, "count", cases[i].limit, &out);
        check_golden(&out, cases[i].golden);
        buf_clear(&out);
        changes_json(&c, "count", cases[i].limit, &out);
        json_auto_t *root = json_loadb(out.data, out.len, 0, NULL);
        assert_non_null(root);
        json_t *grew = json_array_get(json_object_get(root, "grew"), 0);
        CHECK_STR(json_string_value(json_object_get(grew, "name")), "grow", "");
        CHECK_INT(json_integer_value(json_object_get(grew, "self")), 70, "");
        CHECK_INT(json_integer_value(json_object_get(root, "base_total")),
                  cases[i].normalize ? 150 : 100, "");
    }
}

static const char calls[] = "main;parse;read 10\nmain;parse;parse;read 20\nmain;run;parse 5\n"
                            "init;parse;free 7\nmain;unparse 3\n";

static void peek_golden(const char *pattern, const char *golden)
{
    struct err err = ERR_INIT;
    struct peek p;
    SCOPED(tree) *t = tree_of(calls);
    SCOPED(arena) *arena = arena_new(BYTES_MAX);
    SCOPED(buf) out = testing_buf(BYTES_MAX);
    bool ok = peek_make(t, pattern, arena, &p, &err);
    CHECK_STR(err.msg, "", pattern);
    assert_true(ok);
    peek_print(&p, "count", &out);
    check_golden(&out, golden);
    buf_clear(&out);
    peek_json(&p, "count", &out);
    json_auto_t *root = json_loadb(out.data, out.len, 0, NULL);
    CHECK_INT(json_array_size(json_object_get(root, "functions")), p.n, pattern);
}

TEST(callers_and_callees)
{
    peek_golden("parse", "peek.txt"); /* a function has this name: only that one */
    peek_golden("pars.$", "peek-regex.txt");
}

TEST(functions_that_do_not_exist)
{
    static const struct text_case cases[] = {
        {"nope", "no function of the profile matches \"nope\""}, {"(", "\"(\" is not a regex: "}};
    SCOPED(tree) *t = tree_of(calls);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct peek p;
        SCOPED(arena) *arena = arena_new(BYTES_MAX);
        assert_false(peek_make(t, cases[i].text, arena, &p, &err));
        CHECK_CONTAINS(err.msg, cases[i].want, cases[i].text);
        CHECK_INT(err.kind, ERR_INPUT, cases[i].text);
    }
}

TEST(top_as_json)
{
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_of("a;b 5\na 3\n");
    SCOPED(buf) out = testing_buf(BYTES_MAX);
    assert_true(top_json(t, "bytes", 1, &out, &err));
    CHECK_STR(
        out.data,
        "{\"unit\":\"bytes\",\"total\":8,\"count\":2,\"functions\":[{\"name\":\"b\",\"self\":5,"
        "\"total\":5}]}\n",
        "");
}
