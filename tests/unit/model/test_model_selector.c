/* Label selectors: what they match, and where and how they are wrong. The cases were recorded from
 * Pyroscope, whose grammar is that of Prometheus. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "model/selector.h"

SCOPED_POINTER(selector, selector_free)

#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
#define L(a, b)                                                                                    \
    {                                                                                              \
        TEXT(a), TEXT(b)                                                                           \
    }

/* Two series: service_name vecdemo with pod a, vecdemo3 with pod c. */
static const struct label first[] = {
    L("__name__", "process_cpu"),
    L("a.b", "dotted"),
    L("pod", "a"),
    L("service_name", "vecdemo"),
};
static const struct label second[] = {
    L("__name__", "process_cpu"),
    L("pod", "c"),
    L("service_name", "vecdemo3"),
    L("uml", "\xc3\xa4"),
};
static const struct label broken[] = {L("pod", "a\xff")};

static bool matches_text(const char *text, const struct label *labels, size_t n)
{
    struct err err = ERR_INIT;
    SCOPED(selector) *s = selector_parse(sv_from(text), &err);
    CHECK(s != NULL, "%s: %s", text, err.msg);
    bool ok = selector_matches(s, labels, n);
    return ok;
}

TEST(test_matches)
{
    static const struct {
        const char *text;
        bool first, second;
    } cases[] = {
        {"{}", true, true},
        {" { } ", true, true},
        {"{service_name=~\"vec.*\"}", true, true},
        {"{service_name=~\"vec\"}", false, false},
        {"{service_name!=\"vecdemo\"}", false, true},
        {"{pod=\"\"}", false, false},
        {"{pod!=\"\"}", true, true},
        {"{nope=\"\"}", true, true},
        {"{nope!=\"\"}", false, false},
        {"{nope!~\"a|c\"}", true, true},
        {"{nope=~\".*\"}", true, true},
        {"{nope=~\".+\"}", false, false},
        {"process_cpu{service_name=\"vecdemo\"}", true, false},
        {"process_cpu", true, true},
        {"a:b:c{}", false, false},
        {"{pod='a'}", true, false},
        {"{pod=`a`}", true, false},
        {"{pod=\"a\",}", true, false},
        {"{ pod = \"a\" }", true, false},
        {"\n{\tpod\r\n=\n\"a\"\n,\n}", true, false},
        {"{pod=\"\\u0061\"}", true, false},
        {"{pod=\"\\x61\"}", true, false},
        {"{pod=\"\\141\"}", true, false},
        {"{pod=\"\\U00000061\"}", true, false},
        {"{pod!=\"\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\\'\"}", true, true},
        {"{pod=`\\u0061`}", false, false},
        {"{uml=\"\\u00e4\"}", false, true},
        {"{uml=~\"\\\\x{e4}\"}", false, true},
        {"{uml=~\".\"}", false, true},
        {"{service_name=~\"vec(demo|x)\",pod=~\".+\"}", true, false},
        {"{pod=~\"(?i)A\"}", true, false},
        {"{pod=~\"a|b\"}", true, false},
        {"{pod!~\"a|b\"}", false, true},
        {"vecdemo", false, false},
        {"{\"process_cpu\"}", true, true},
        {"{\"process_cpu\", pod='c'}", false, true},
        {"{\"a.b\"=\"dotted\"}", true, false},
        {"{'a.b'!='dotted'}", false, true},
        {"{pod=\"a\",pod=\"b\"}", false, false},
        {"{pod=\"a\",pod=~\".\"}", true, false},
        {"process_cpu{__name__=\"process_cpu\"}", true, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(matches_text(cases[i].text, first, 4), cases[i].first, cases[i].text);
        CHECK_INT(matches_text(cases[i].text, second, 4), cases[i].second, cases[i].text);
    }
}

TEST(test_value_that_is_not_text)
{
    assert_false(matches_text("{pod=~\".*\"}", broken, 1));
    assert_true(matches_text("{pod!~\".*\"}", broken, 1));
    assert_true(matches_text("{pod=\"a\\xff\"}", broken, 1));
}

TEST(test_errors)
{
    static const struct text_case cases[] = {
        {"", "unknown position: parse error: unexpected end of input"},
        {" \n", "unknown position: parse error: unexpected end of input"},
        {"{pod=\"a\"", "1:9: parse error: unexpected end of input inside braces"},
        {"{service_name=", "1:15: parse error: unexpected end of input inside braces"},
        {"{", "1:2: parse error: unexpected end of input inside braces"},
        {"{pod=a}",
         "1:6: parse error: unexpected identifier \"a\" in label matching, expected string"},
        {"{}x", "1:3: parse error: unexpected identifier \"x\""},
        {"{pod=~\"(\"}", "1:2: parse error: error parsing regexp: missing closing ): `(` at byte "
                         "0"},
        {"{pod=\"a\"}[5m]", "1:10: parse error: unexpected \"[\""},
        {"sum({pod=\"a\"})", "1:4: parse error: unexpected \"(\""},
        {"{\n  pod=a}",
         "2:7: parse error: unexpected identifier \"a\" in label matching, expected string"},
        {"{pod \"a\"}", "1:6: parse error: unexpected \"\"\" in label matching, expected label "
                        "matching operator"},
        {"{pod}",
         "1:5: parse error: unexpected \"}\" in label matching, expected label matching operator"},
        {"{,}", "1:2: parse error: unexpected \",\" in label matching, expected a label or \"}\""},
        {"{pod=\"a\",,}",
         "1:10: parse error: unexpected \",\" in label matching, expected a label or \"}\""},
        {"{pod=\"a\" x=\"b\"}", "1:10: parse error: unexpected identifier \"x\" in label matching, "
                                "expected \",\" or \"}\""},
        {"{pod=\"a}", "1:6: parse error: unterminated quoted string"},
        {"{pod=\"a\n\"}", "1:6: parse error: unterminated quoted string"},
        {"{pod=\"\\q\"}", "1:8: parse error: unknown escape sequence"},
        {"{pod=\"\\ud800\"}", "1:13: parse error: unknown escape sequence"},
        {"{pod=\"\\777\"}", "1:11: parse error: unknown escape sequence"},
        {"{pod=\"\\x6\"}", "1:10: parse error: unknown escape sequence"},
        {"{pod=\"\\", "1:6: parse error: unknown escape sequence"},
        {"{1a=\"b\"}",
         "1:2: parse error: unexpected \"1\" in label matching, expected a label or \"}\""},
        {"{a.b=\"b\"}",
         "1:3: parse error: unexpected \".\" in label matching, expected label matching operator"},
        {"1", "1:1: parse error: unexpected \"1\""},
        {"\"process_cpu\"", "1:1: parse error: unexpected \"\"\""},
        {"{}\xff", "1:3: parse error: unexpected \"?\""},
        {"{pod=~\"\\xff\"}",
         "1:2: parse error: error parsing regexp: invalid UTF-8: `\xff` at byte "
         "0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        assert_null(selector_parse(sv_from(cases[i].text), &err));
        CHECK_STR(err.msg, cases[i].want, cases[i].text);
        CHECK_INT(err.kind, ERR_INPUT, cases[i].text);
    }
}

TEST(test_limits)
{
    struct err err = ERR_INIT;
    struct selector *s = selector_new(&err);
    assert_non_null(s);
    for (int i = 0; i < SELECTOR_MATCHERS_MAX; i++) {
        assert_true(selector_add(s, SV("a"), MATCH_EQUAL, SV("b"), &err));
    }
    assert_false(selector_add(s, SV("a"), MATCH_EQUAL, SV("b"), &err));
    CHECK_STR(err.msg, "more than 256 matchers", "");
    CHECK_INT(err.kind, ERR_LIMIT, "");
    selector_free(s);

    struct sv text = {calloc(1, SELECTOR_BYTES_MAX + 1), SELECTOR_BYTES_MAX + 1};
    assert_non_null(text.p);
    memset((char *)(uintptr_t)text.p, 'a', text.n);
    assert_null(selector_parse(text, &err));
    CHECK_STR(err.msg, "a selector of 65537 bytes, at most 65536 are allowed", "");
    s = selector_new(&err);
    assert_true(selector_add(s, SV("a"), MATCH_EQUAL, (struct sv){text.p, text.n - 2}, &err));
    assert_false(selector_add(s, SV("a"), MATCH_EQUAL, SV(""), &err));
    CHECK_STR(err.msg, "more than 65536 bytes of names and values", "");
    assert_true(selector_add(s, SV(""), MATCH_EQUAL, SV(""), &err));
    selector_free(s);
    free((char *)(uintptr_t)text.p);
}

TEST(test_added_matchers_hold_as_well)
{
    struct err err = ERR_INIT;
    SCOPED(selector) *s = selector_new(&err);
    assert_true(selector_matches(s, first, 4));
    assert_true(selector_add_parsed(s, SV("{service_name=~'vec.*'}"), &err));
    assert_true(selector_matches(s, second, 4));
    assert_true(selector_add_parsed(s, SV("{pod='a'}"), &err));
    assert_true(selector_matches(s, first, 4));
    assert_false(selector_matches(s, second, 4));
    assert_true(selector_add(s, SV("pod"), MATCH_NOT_REGEX, SV("a"), &err));
    assert_false(selector_matches(s, first, 4));
}

/* Printed matchers are read as the same ones. */
TEST(test_printed_matchers_are_read_again)
{
    static const char *const rows[] = {
        "{pod=\"a\"}",       "{pod!=\"\"}",        "{pod=~\"a.*|b\"}",
        "{pod!~\"[0-9]+\"}", "{\"my.pod\"=\"a\"}", "{pod=\"\\\"\\\\\\u0001\\n<\303\251\"}",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        struct selector_matcher m;
        SCOPED(selector) *s = selector_parse(sv_from(rows[i]), &err);
        CHECK_STR(err.msg, "", rows[i]);
        SCOPED(buf) out = testing_buf(1000);
        assert_true(selector_at(s, 0, &m));
        buf_puts(&out, "{");
        assert_true(selector_put(&m, &out));
        buf_puts(&out, "}");
        CHECK_STR(out.data, rows[i], rows[i]);
        assert_false(selector_at(s, 1, &m));
    }
}

TEST(test_equal)
{
    struct err err = ERR_INIT;
    SCOPED(selector) *s = selector_parse(SV("{pod=~'a',pod='a',pod='b',x!='y',empty=''}"), &err);
    assert_non_null(s);
    assert_non_null(selector_equal(s, "pod"));
    assert_true(sv_eq_str(*selector_equal(s, "pod"), "a"));
    assert_null(selector_equal(s, "x"));
    /* A missing label equals "": an index does not have it. */
    assert_null(selector_equal(s, "empty"));
}
