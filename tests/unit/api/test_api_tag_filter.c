/* Conditions of DeepFlow's queries on tags: what matches, and what is refused with its place. */
#include "tests/unit/lib/testing.h"

#include <string.h>

#include "api/tag_filter.h"
#include "tests/unit/lib/failing_malloc.h"

SCOPED_POINTER(tag_filter, tag_filter_free)

/* The tags of one profile. */
static struct sv value_of(void *arg, struct sv tag)
{
    static const char *const tags[][2] = {
        {"pod", "cart-7f"},      {"pod_ns", "shop"},         {"k8s.label.app", "cart"},
        {"port", "8080"},        {"app_service", "O'Neill"}, {"path", "a*b%c_d\\e"},
        {"city", "K\xc3\xb6ln"}, {"broken", "\xff"},
    };
    (void)arg;
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        if (sv_eq_str(tag, tags[i][0])) {
            return sv_from(tags[i][1]);
        }
    }
    return SV("");
}

TEST(conditions_match)
{
    static const struct {
        const char *text;
        bool matches;
    } cases[] = {
        {"", true},
        {" \t\n ", true},
        {"pod='cart-7f'", true},
        {"pod = 'cart'", false},
        {"pod != 'cart'", true},
        {"pod <> 'cart-7f'", false},
        {"pod=\"cart-7f\"", true},
        {"`k8s.label.app` = 'cart'", true},
        {"k8s.label.app = 'cart'", true},
        {"`k8s.label.team`=''", true},
        {"region='x'", false},
        {"region!='x'", true},
        {"app_service = 'O''Neill'", true},
        {"app_service = 'O\\'Neill'", true},
        {"app_service = \"O'Neill\"", true},
        /* numbers by value, texts bytewise */
        {"port = 8080", true},
        {"port = 8080.0", true},
        {"port = '8080.0'", false},
        {"port > 999", true},
        {"port > '999'", false},
        {"port >= 8080 and port <= 8080", true},
        {"port < 8.08e3", false},
        {"port < -1", false},
        {"pod > 5", true},
        /* lists */
        {"pod IN ('a', 'cart-7f')", true},
        {"pod in('a')", false},
        {"pod NOT IN ('a','b')", true},
        {"port in (1, 8080)", true},
        {"port not in (1, 8080)", false},
        /* wildcards */
        {"pod LIKE 'cart*'", true},
        {"pod LIKE 'cart%'", true},
        {"pod LIKE '%7f'", true},
        {"pod LIKE '*art*f'", true},
        {"pod LIKE 'cart'", false},
        {"pod LIKE 'cart-__'", true},
        {"pod LIKE 'cart-_'", false},
        {"pod NOT LIKE 'web*'", true},
        {"pod LIKE '*'", true},
        {"region LIKE '*'", true},
        {"region LIKE '_'", false},
        {"region LIKE ''", true},
        {"pod LIKE '%a%a%'", false},
        {"city LIKE 'K_ln'", true},
        {"path LIKE 'a\\*b\\%c\\_d\\\\\\\\e'", true},
        {"path LIKE 'a\\*\\*%'", false},
        /* regexes match anywhere */
        {"pod REGEXP 'art'", true},
        {"pod regexp '^cart-[0-9a-f]+$'", true},
        {"pod REGEXP '^art'", false},
        {"pod REGEXP 'x|art'", true},
        {"pod REGEXP '^x|f$'", true},
        {"pod REGEXP '\\d'", true},
        {"pod REGEXP '\\\\d'", true},
        {"pod REGEXP '(?i)CART'", true},
        {"pod NOT REGEXP 'art'", false},
        {"broken REGEXP '.*'", false},
        /* precedence: NOT, AND, OR */
        {"pod='x' OR pod='cart-7f' AND pod_ns='shop'", true},
        {"(pod='x' OR pod='cart-7f') AND pod_ns='x'", false},
        {"pod='cart-7f' OR pod='x' AND pod_ns='x'", true},
        {"NOT pod='x' AND pod_ns='shop'", true},
        {"NOT (pod='x' AND pod_ns='shop')", true},
        {"NOT (pod='cart-7f' OR pod='x')", false},
        {"not not pod='cart-7f'", true},
        {"NOT pod NOT IN ('cart-7f')", true},
        {"((pod='cart-7f'))", true},
        {"pod='a' or pod='b' or pod='cart-7f'", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        bool matches = false;
        SCOPED(tag_filter) *f = tag_filter_parse(sv_from(cases[i].text), &err);
        CHECK(f != NULL && tag_filter_matches(f, value_of, NULL, &matches, &err) &&
                  matches == cases[i].matches,
              "%s: %s%s", cases[i].text, err.msg, matches ? "matches" : "does not match");
    }
}

TEST(mistakes_name_their_column)
{
    static const struct text_case cases[] = {
        {"pod", "column 4: expected =, !="},
        {"pod=", "column 5: expected a text in quotes or a number, got the end"},
        {"pod=x", "column 5: expected a text in quotes or a number, got \"x\""},
        {"pod='x", "column 5: the text that begins with ' is not closed"},
        {"`pod='x'", "column 1: the text that begins with ` is not closed"},
        {"pod='x' pod='y'", "column 9: expected AND, OR or the end, got \"pod\""},
        {"pod='x' AND", "column 12: expected the name of a tag, got the end"},
        {"(pod='x'", "column 9: expected AND, OR or \")\", got the end"},
        {"pod='x')", "column 8: expected AND, OR or the end, got \")\""},
        {"pod IN 'x'", "column 8: expected \"(\", got \"x\""},
        {"pod IN ()", "column 9: expected a text in quotes or a number, got \")\""},
        {"pod IN ('x'", "column 12: expected \",\" or \")\", got the end"},
        {"pod LIKE 5", "column 10: expected a text in quotes, got \"5\""},
        {"pod NOT = 5", "column 9: expected IN, LIKE or REGEXP, got \"=\""},
        {"pod REGEXP '('", "tag_filter: "},
        {"pod REGEXP ')('", "tag_filter: "},
        {"port = 5x", "column 8: expected a number, got \"5x\""},
        {"'x' = pod", "column 1: expected the name of a tag, got \"x\""},
        {"pod = 'x' ; drop", "column 11: unexpected \";\""},
        {"pod == 'x'", "column 6: expected a text"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct tag_filter *f = tag_filter_parse(sv_from(cases[i].text), &err);
        CHECK(f == NULL && err.kind == ERR_INPUT && strstr(err.msg, cases[i].want) != NULL,
              "%s: \"%s\", expected \"%s\"", cases[i].text, err.msg, cases[i].want);
    }
}

/* Repeats a piece, with something before, between and after. */
static struct buf repeat(const char *before, const char *piece, size_t n, const char *after)
{
    struct buf text = testing_buf((size_t)1024 * 1024);
    for (size_t i = 0; i < n; i++) {
        buf_puts(&text, before);
    }
    buf_puts(&text, piece);
    for (size_t i = 0; i < n; i++) {
        buf_puts(&text, after);
    }
    assert_true(buf_ok(&text));
    return text;
}

static void expect(struct buf *text, enum err_kind kind)
{
    struct err err = ERR_INIT;
    struct tag_filter *f = tag_filter_parse((struct sv){text->data, text->len}, &err);
    assert_int_equal(err.kind, kind);
    assert_true((f == NULL) == (kind != ERR_NONE));
    tag_filter_free(f);
    buf_done(text);
}

TEST(sizes_are_limited)
{
    struct buf text = repeat("(", "a=1", TAG_FILTER_DEPTH_MAX, ")");
    expect(&text, ERR_NONE);
    text = repeat("(", "a=1", TAG_FILTER_DEPTH_MAX + 1, ")");
    expect(&text, ERR_LIMIT);
    text = repeat("NOT ", "a=1", 10000, "");
    expect(&text, ERR_NONE);
    text = repeat("", "a=1", TAG_FILTER_TESTS_MAX - 1, " OR a=1");
    expect(&text, ERR_NONE);
    text = repeat("", "a=1", TAG_FILTER_TESTS_MAX, " OR a=1");
    expect(&text, ERR_LIMIT);
    text = repeat(" ", "", TAG_FILTER_BYTES_MAX, "");
    expect(&text, ERR_NONE);
    text = repeat(" ", "", TAG_FILTER_BYTES_MAX + 1, "");
    expect(&text, ERR_LIMIT);
    text = repeat("", "a IN (1", 20000, ",'b'");
    expect(&text, ERR_LIMIT);
    text = repeat("", "a IN (1", 15000, ",'b'");
    buf_puts(&text, ")");
    expect(&text, ERR_NONE);
    text = repeat("", "a LIKE '", TAG_FILTER_LIKE_MAX, "x");
    buf_puts(&text, "'");
    expect(&text, ERR_NONE);
    text = repeat("", "a LIKE '", TAG_FILTER_LIKE_MAX + 1, "x");
    buf_puts(&text, "'");
    expect(&text, ERR_LIMIT);
    text = repeat("", "a REGEXP '", 5000, "x");
    buf_puts(&text, "'");
    expect(&text, ERR_LIMIT);
}

TEST(only_utf8_is_read)
{
    struct err err = ERR_INIT;
    assert_null(tag_filter_parse(SV("pod='\xff'"), &err));
    assert_int_equal(err.kind, ERR_INPUT);
    assert_null(tag_filter_parse(SV("pod"), NULL));
    assert_null(tag_filter_free(NULL));
}

static void filter_all(bool *ret_complete)
{
    struct err err = ERR_INIT;
    bool matches = false;
    SCOPED(tag_filter) *f =
        tag_filter_parse(SV("pod LIKE 'c*' AND pod REGEXP 'c.*-[0-9]f' OR x IN (1, '2')"), &err);
    *ret_complete = f != NULL && tag_filter_matches(f, value_of, NULL, &matches, &err) && matches;
    assert_true(*ret_complete || err.kind != ERR_NONE);
}

TEST(memory_may_run_out)
{
    assert_true(failing_malloc_each(FAIL_OURS, filter_all) > 3);
}
