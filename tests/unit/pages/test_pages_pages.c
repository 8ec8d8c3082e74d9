/* Texts and numbers from outside, as the pages show them. */
#include <string.h>

#include "pages/html.h"
#include "pages/svg.h"
#include "pages/v1_profiles.h"
#include "pages/value.h"
#include "tests/unit/lib/testing.h"

SCOPED_POINTER(tree, tree_free)

#define HOSTILE "</script><script>alert('1')</script>\"&"

TEST(text_is_escaped)
{
    SCOPED(buf) out = testing_buf(4096);
    html_text(&out, SV("<a href=\"x\">'&\0"));
    assert_string_equal(out.data, "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\xef\xbf\xbd");
    buf_clear(&out);
    html_param(&out, SV("a b&c=\"<\xc3\xa9"));
    assert_string_equal(out.data, "a%20b%26c%3D%22%3C%C3%A9");
    assert_int_equal(html_param_size(SV("a b&c=\"<\xc3\xa9")), out.len);
    buf_clear(&out);
    html_label(&out, (struct label){SV("__param_token"), SV("geheim")}, false);
    assert_string_equal(out.data, "<span>__param_token=&lt;secret&gt;</span>");
}

static uint32_t child(struct tree *t, uint32_t parent, struct sv name)
{
    uint32_t number;
    uint32_t node;
    assert_true(tree_name(t, name, &number, NULL));
    assert_true(tree_child(t, parent, number, &node, NULL));
    return node;
}

static struct tree *hostile_tree(void)
{
    struct tree *t = tree_new((size_t)1 << 20, NULL);
    assert_non_null(t);
    uint32_t node = child(t, 0, SV(HOSTILE));
    tree_add(t, node, 3);
    tree_add(t, child(t, node, SV("main.work")), 4);
    return t;
}

TEST(names_of_functions_stay_text)
{
    SCOPED(tree) *t = hostile_tree();
    SCOPED(arena) *arena = arena_new((size_t)1 << 20);
    struct flamegraph g;
    assert_true(tree_flamegraph(t, 0, arena, &g, NULL));
    struct view v = {.profile_type = {.sample_unit = SV("count")}};
    SCOPED(buf) out = testing_buf((size_t)1 << 20);
    v1_put_flamegraph(&v, &g, &out);
    assert_null(strchr(out.data, '<'));
    assert_non_null(strstr(out.data, "\"total\":7"));
    assert_non_null(strstr(out.data, "\"main.work\""));
    buf_clear(&out);
    svg_flamegraph(&out, &g, false, SV("count"));
    assert_null(strstr(out.data, "<script"));
    assert_non_null(strstr(out.data, "&lt;script&gt;"));
    assert_non_null(strstr(out.data, "main.work: 4, 57.1 %, self 4"));
}

/* Sums that have reached the limits are drawn somewhere, without overflows. */
TEST(the_largest_sums_are_drawn)
{
    SCOPED(tree) *left = tree_new((size_t)1 << 20, NULL);
    SCOPED(tree) *right = tree_new((size_t)1 << 20, NULL);
    SCOPED(arena) *arena = arena_new((size_t)1 << 20);
    struct flamegraph g;
    tree_add(left, child(left, 0, SV("a")), INT64_MAX);
    tree_add(right, child(right, 0, SV("a")), INT64_MAX);
    assert_true(tree_diff(left, right, 0, arena, &g, NULL));
    SCOPED(buf) out = testing_buf((size_t)1 << 20);
    svg_flamegraph(&out, &g, true, SV("count"));
    assert_non_null(strstr(out.data, "<title>a: "));
}

TEST(values_are_read_by_people)
{
    static const struct {
        int64_t value;
        const char *unit, *text;
    } rows[] = {
        {0, "nanoseconds", "0"},       {1500000000, "nanoseconds", "1.50 s"},
        {20, "milliseconds", "20 ms"}, {7200, "seconds", "2 h"},
        {1536, "bytes", "1.50 KiB"},   {12, "bytes", "12 B"},
        {1234567, "count", "1.23 M"},  {999, "count", "999"},
        {-2048, "bytes", "-2 KiB"},    {5, "<unknown>", "5"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) out = testing_buf(64);
        value_put(&out, rows[i].value, sv_from(rows[i].unit));
        assert_string_equal(out.data, rows[i].text);
    }
}

/* Lines may break after '/' and '.', and before '('; what is between is escaped. */
TEST(names_break_between_words)
{
    static const struct {
        const char *name, *html;
    } rows[] = {
        {"main", "main"},
        {"net/http.(*conn).serve", "net/<wbr>http.<wbr>(*conn).<wbr>serve"},
        {"f(int)", "f<wbr>(int)"},
        {"a<b>.c", "a&lt;b&gt;.<wbr>c"},
        {"(x)", "(x)"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) out = testing_buf(4096);
        html_name(&out, sv_from(rows[i].name));
        CHECK_STR(out.data, rows[i].html, rows[i].name);
    }
}
