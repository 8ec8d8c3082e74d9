/* Templates, hashmod, Unicode and the regex interface. */
#include <stdlib.h>

#include "base/unicode.h"
#include "regex/re2/runeset.h"
#include "regex/regex.h"
#include "relabel/expand.h"
#include "relabel/relabel.h"
#include "tests/unit/lib/testing.h"

SCOPED_POINTER(regex_scratch, regex_scratch_free)
SCOPED_POINTER(regex, regex_free)

/* ---- templates ------------------------------------------------------------------------------- */

struct expansion_row {
    const char *regex;
    const char *subject;
    const char *text;
    const char *want;
};

static const struct expansion_row expansions[] = {
    {"(.*)", "x", "$1", "x"},
    {"(.*)", "x", "", ""},
    {"(.*)", "x", "plain", "plain"},
    {"(.*)", "x", "${1}", "x"},
    {"(.*)", "x", "$1y", ""},
    {"(.*)", "x", "${1}y", "xy"},
    {"(.*)", "x", "$1_", ""},
    {"(.*)", "x", "$1-", "x-"},
    {"(.*)", "x", "$$1", "$1"},
    {"(.*)", "x", "$$$1", "$x"},
    {"(.*)", "x", "$$$$", "$$"},
    {"(.*)", "x", "cost $", "cost $"},
    {"(.*)", "x", "$", "$"},
    {"(.*)", "x", "${", "${"},
    {"(.*)", "x", "${}", "${}"},
    {"(.*)", "x", "${1", "${1"},
    {"(.*)", "x", "${1-}", "${1-}"},
    {"(.*)", "x", "$-$1", "$-x"},
    {"(.*)", "x", "$ $1", "$ x"},
    {"(.*)", "x", "$0$0", "xx"},
    {"(.*)", "x", "$9", ""},
    {"(.*)", "x", "$01", ""},
    {"(.*)", "x", "$00", ""},
    {"(.*)", "x", "$100000000", ""},
    {"(.*)", "x", "$1000000000000000000000000000001", ""},
    {"(x)(y)", "xy", "$2$1$0", "yxxy"},
    {"(x)(z)?(y)", "xy", "[$2]", "[]"},
    {"(x)(z)?(y)", "xy", "[$3]", "[y]"},
    {"(?P<a>x)(?<b>y)", "xy", "$b${a}", "yx"},
    {"(?P<a>x)(?<b>y)", "xy", "$ab", ""},
    {"(?P<a>x)(?<b>y)", "xy", "$c.${d}.", ".."},
    {"(?P<n>a)|(?P<n>b)", "b", "$n", "b"},
    {"(?P<n>a)(?P<n>b)", "ab", "$n", "a"},
    {"(?P<1>a)(?P<01>b)", "ab", "$01-$1", "b-a"},
    {"(.*)", "\xe6\x97\xa5", "<$1>", "<\xe6\x97\xa5>"},
    /* Letters and digits of all scripts make a name. */
    {"(.*)", "x", "$1\xc3\xa9", ""},
    {"(.*)", "x", "$\xc3\xa9", ""},
    {"(.*)", "x", "${\xc3\xa9}y", "y"},
    {"(.*)", "x", "$1\xe2\x82\xac", "x\xe2\x82\xac"}, /* a euro sign does not */
    {"(.*)", "x", "$1\xd9\xa3", ""},                  /* ARABIC-INDIC DIGIT THREE */
    {"(.*)", "x", "$1\xe2\x85\xa3", "x\xe2\x85\xa3"}, /* ROMAN NUMERAL FOUR is no digit */
};

TEST(expansion_of_references)
{
    SCOPED(regex_scratch) *s = regex_scratch_new();
    SCOPED(buf) out = testing_buf(1000);
    for (size_t i = 0; i < sizeof(expansions) / sizeof(expansions[0]); i++) {
        const struct expansion_row *row = &expansions[i];
        struct err err = ERR_INIT;
        SCOPED(regex) *re = regex_new(sv_from(row->regex), 0, &err);
        CHECK_STR(err.msg, "", row->regex);
        CHECK_INT(regex_match(re, s, sv_from(row->subject), &err), REGEX_MATCH, row->regex);
        SCOPED(arena) *arena = arena_new(10000);
        struct expansion t;
        assert_true(expansion_init(&t, arena, sv_from(row->text), re));
        buf_clear(&out);
        buf_puts(&out, ""); /* an empty text, not none */
        assert_true(expansion_write(&t, s, sv_from(row->subject), &out));
        CHECK_STR(out.data, row->want, row->text);
        struct sv constant;
        if (expansion_is_constant(&t, &constant)) {
            assert_true(sv_eq_str(constant, row->want));
        } else {
            assert_true(strchr(row->text, '$') != NULL);
        }
    }
}

TEST(expansion_ceiling)
{
    struct err err = ERR_INIT;
    SCOPED(regex) *re = regex_new(SV("(.*)"), 0, &err);
    SCOPED(regex_scratch) *s = regex_scratch_new();
    CHECK_INT(regex_match(re, s, SV("0123456789"), &err), REGEX_MATCH, "");
    SCOPED(arena) *arena = arena_new(10000);
    struct expansion t;
    assert_true(expansion_init(&t, arena, SV("$1$1"), re));
    SCOPED(buf) out = testing_buf(15);
    assert_false(expansion_write(&t, s, SV("0123456789"), &out));
    assert_true(buf_too_big(&out));
}

/* ---- hashmod --------------------------------------------------------------------------------- */

/* The last eight bytes of the MD5 of a value, as hashmod computes them: the modulus leaves them as
 * they are. */
static uint64_t hashmod(struct sv value)
{
    const struct config_rule rule = {.action = ACTION_HASHMOD,
                                     .source_labels = {(const char *const[]){"a"}, 1},
                                     .target_label = "h",
                                     .modulus = UINT64_MAX};
    SCOPED(intern) *in = intern_new();
    SCOPED(labels_builder) *b = labels_builder_new(in);
    struct relabel_scratch *s = relabel_scratch_new();
    struct relabel *r = relabel_new(&(struct config_rules){&rule, 1}, NULL);
    uint64_t hash = 0;
    labels_builder_set(b, SV("a"), value);
    CHECK_INT(relabel_apply(r, s, b, NULL, NULL).outcome, RELABEL_KEPT, "");
    assert_true(parse_u64(labels_builder_get(b, SV("h")), UINT64_MAX, &hash));
    relabel_free(r);
    relabel_scratch_free(s);
    return hash;
}

static void check_hashmod(struct sv value, const char *md5_hex)
{
    CHECK_INT(hashmod(value), strtoull(md5_hex + 16, NULL, 16), md5_hex);
}

/* The messages of RFC 1321, appendix A.5. */
TEST(hashmod_of_rfc_1321)
{
    static const char *const rows[][2] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_hashmod(sv_from(rows[i][0]), rows[i][1]);
    }
}

/* Lengths around the ends of MD5's blocks, all of 'a' (by md5sum). */
TEST(hashmod_around_block_ends)
{
    static const struct {
        size_t n;
        const char *want;
    } rows[] = {
        {55, "ef1772b6dff9a122358552954ad0df65"},  {56, "3b0c8ac703f828b04c6c197006d17218"},
        {57, "652b906d60af96844ebd21b674f35e93"},  {63, "b06521f39153d618550606be297466d5"},
        {64, "014842d480b571495a4a0363793f7367"},  {65, "c743a45e0d2e6a95cb859adae0248435"},
        {119, "8a7bd0732ed6a28ce75f6dabc90e1613"}, {120, "5f61c0ccad4cac44c75ff505e1f1e537"},
        {128, "e510683b3f5ffe4093d021808bc6ff70"}, {200, "887f30b43b2867f4a9accceee7d16e6c"},
    };
    char text[256];
    memset(text, 'a', sizeof(text));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_hashmod((struct sv){text, rows[i].n}, rows[i].want);
    }
}

/* ---- Unicode --------------------------------------------------------------------------------- */

TEST(letter_case)
{
    static const struct {
        const char *text, *lower, *upper;
    } rows[] = {
        {"", "", ""},
        {"bAr123Foo", "bar123foo", "BAR123FOO"},
        {"ÀÉ-Straße", "àé-straße", "ÀÉ-STRAßE"},
        {"ΑΣς", "ασς", "ΑΣΣ"},
        {"İıſK", "iıſk", "İISK"},
        {"ǄǅǆΩ", "ǆǆǆω", "ǄǄǄΩ"},
        {"ÿŸĸ", "ÿÿĸ", "ŸŸĸ"},
        {"ᏸᎠꭰ", "ᏸꭰꭰ", "ᏰᎠᎠ"},
        {"𐐀𐐨𞤀", "𐐨𐐨𞤢", "𐐀𐐀𞤀"},
        {"日本 1", "日本 1", "日本 1"},
    };
    SCOPED(buf) out = testing_buf(1000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        buf_clear(&out);
        buf_puts(&out, "");
        assert_true(append_in_case(sv_from(rows[i].text), false, &out));
        CHECK_STR(out.data, rows[i].lower, rows[i].text);
        buf_clear(&out);
        buf_puts(&out, "");
        assert_true(append_in_case(sv_from(rows[i].text), true, &out));
        CHECK_STR(out.data, rows[i].upper, rows[i].text);
    }
}

/* Sums over all runes, as Go's unicode package gives them: one wrong entry changes a sum. */
TEST(case_tables)
{
    uint64_t lower = 0;
    uint64_t upper = 0;
    uint64_t fold = 0;
    for (uint64_t rune = 0; rune <= RUNE_MAX; rune++) {
        lower = lower * 31 + rune_to_case((uint32_t)rune, false);
        upper = upper * 31 + rune_to_case((uint32_t)rune, true);
        fold = fold * 31 + rune_fold((uint32_t)rune);
    }
    assert_true(lower == UINT64_C(6667803932044710544));
    assert_true(upper == UINT64_C(6588865143157233593));
    assert_true(fold == UINT64_C(9872791679272703696));
}

TEST(class_names)
{
    static const char *const rows[][2] = {
        {"Lu", "Lu"},
        {"lu", "Lu"},
        {"LC", "L&"},
        {"Greek", "sc:Greek"},
        {"gREEK", "sc:Greek"},
        {"Old_Italic", "sc:Old_Italic"},
        {"old italic", "sc:Old_Italic"},
        {"Uppercase-Letter", "Lu"},
        {"digit", "Nd"},
        {"L&", NULL},
        {"", NULL},
        {"Foo", NULL},
        {"Xan", NULL},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct unicode_class *class_of = unicode_class_find(sv_from(rows[i][0]));
        CHECK_STR(class_of == NULL ? NULL : class_of->pcre, rows[i][1], rows[i][0]);
    }
    /* Sorted, as the search needs it; and known to the PCRE2 of this system, unless newer.
     */
    size_t unknown = 0;
    for (size_t i = 0; i < unicode_n_classes; i++) {
        assert_true(i == 0 || strcmp(unicode_classes[i - 1].key, unicode_classes[i].key) < 0);
        char pattern[80];
        snprintf(pattern, sizeof(pattern), "\\p{%s}", unicode_classes[i].key);
        struct err err = ERR_INIT;
        SCOPED(regex) *re = regex_new(sv_from(pattern), 0, &err);
        if (re == NULL) {
            CHECK_CONTAINS(err.msg, "does not know that Unicode class", pattern);
            unknown++;
        }
    }
    assert_true(unknown <= 2); /* Kawi and Nag Mundari came with Unicode 15 */
}

TEST(rune_sets)
{
    struct runeset s = {0};
    runeset_add(&s, 'd', 'f');
    runeset_add(&s, 'a', 'b');
    runeset_add(&s, 'c', 'c');
    runeset_add(&s, 'b', 'e');
    runeset_add(&s, 'x', 'x');
    runeset_clean(&s);
    CHECK_INT(s.n, 2, "");
    CHECK_INT(s.at[0].lo, 'a', "");
    CHECK_INT(s.at[0].hi, 'f', "");
    runeset_negate(&s);
    CHECK_INT(s.n, 3, "");
    CHECK_INT(s.at[2].hi, RUNE_MAX, "");
    CHECK_INT(s.at[2].lo, 'y', "");
    runeset_negate(&s);
    CHECK_INT(s.n, 2, "");
    CHECK_INT(s.at[1].lo, 'x', "");
    runeset_done(&s);
    runeset_negate(&s);
    CHECK_INT(s.n, 1, "");
    CHECK_INT(s.at[0].hi, RUNE_MAX, "");
    runeset_negate(&s);
    CHECK_INT(s.n, 0, "");
    runeset_done(&s);
}

/* ---- regexes --------------------------------------------------------------------------------- */

TEST(fast_or_not)
{
    static const struct {
        const char *regex;
        bool fast;
    } rows[] = {
        {"", true},        {"(.*)", true},      {".*", true},      {".+", true},
        {"(.+)", true},    {"(.*?)", true},     {"foo", true},     {"(foo)", true},
        {"^foo$", true},   {"a|b", true},       {"(a|b|)", true},  {"^(?:a|b)$", false},
        {"(?:a|b)", true}, {"foo.*", true},     {"(foo.*)", true}, {"foo(.+)", true},
        {".*foo", true},   {"a(.*)b", true},    {"((.*))", true},  {"[\\s\\S]*", true},
        {"a\\.b", true},   {"\\Qa.b\\E", true}, {"日本", true},    {"[a]", true},
        {"(?i)1", true},   {"(?-s).*", false},  {"(?i)a", false},  {"[ab]", false},
        {"a.b", false},    {"(a)(b)", false},   {".*a.*", false},  {"(a)|b", false},
        {"\\d+", false},   {"a*", false},       {".?", false},     {".{2,}", false},
        {"(?m)^a", false}, {"\\ba", false},     {"^*a", false},    {"^a|b$", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        SCOPED(regex) *re = regex_new(sv_from(rows[i].regex), 0, &err);
        CHECK_STR(err.msg, "", rows[i].regex);
        CHECK_INT(regex_is_fast(re), rows[i].fast, rows[i].regex);
    }
}

/* Every fast form against PCRE2 on all texts of up to four runes of a small alphabet. */
TEST(fast_is_right)
{
    static const char *const regexes[] = {
        "",         "(.*)",   ".*",     ".+",      "(.+)",           "(.*?)",  "(.+?)",
        "ab",       "(ab)",   "^ab$",   "a|b|ab|", "(a|ba)",         "(|a)",   "a.*",
        "a.+",      "a(.*)",  "a(.+)",  "(a.*)",   "(a(.*))",        ".*b",    ".+b",
        "(.*)b",    "(.+)b",  "a.*b",   "a(.*)b",  "a(.+?)b",        "(a.+b)", "((.*))",
        "((.+)b)",  "ab.*ab", "é(.*)é", "é|aé",    "\xef\xbf\xbd|b", "(?:a)",  "^a|b$",
        "^^(.*)$$",
    };
    static const char *const alphabet[] = {"a", "b", "\n", "é"};
    SCOPED(regex_scratch) *fast_scratch = regex_scratch_new();
    SCOPED(regex_scratch) *slow_scratch = regex_scratch_new();
    for (size_t i = 0; i < sizeof(regexes) / sizeof(regexes[0]); i++) {
        struct err err = ERR_INIT;
        SCOPED(regex) *fast = regex_new(sv_from(regexes[i]), 0, &err);
        SCOPED(regex) *slow = regex_new(sv_from(regexes[i]), REGEX_NO_FAST, &err);
        CHECK_STR(err.msg, "", regexes[i]);
        CHECK_INT(regex_is_fast(fast), true, regexes[i]);
        CHECK_INT(regex_is_fast(slow), false, regexes[i]);
        CHECK_INT(regex_groups(fast), regex_groups(slow), regexes[i]);
        for (unsigned code = 0; code < 5 * 5 * 5 * 5; code++) {
            char subject[32] = "";
            for (unsigned rest = code; rest > 0 && rest % 5 > 0; rest /= 5) {
                memcpy(subject + strlen(subject), alphabet[rest % 5 - 1],
                       strlen(alphabet[rest % 5 - 1]) + 1);
            }
            struct sv text = sv_from(subject);
            enum regex_result want = regex_match(slow, slow_scratch, text, &err);
            CHECK_INT(regex_match(fast, fast_scratch, text, &err), want, regexes[i]);
            for (size_t g = 0; want == REGEX_MATCH && g < regex_groups(fast); g++) {
                CHECK_INT(regex_group(fast_scratch, g).start, regex_group(slow_scratch, g).start,
                          regexes[i]);
                CHECK_INT(regex_group(fast_scratch, g).end, regex_group(slow_scratch, g).end,
                          regexes[i]);
            }
        }
    }
}

TEST(too_long)
{
    char *text = test_malloc(REGEX_PATTERN_MAX + 1);
    memset(text, 'a', REGEX_PATTERN_MAX + 1);
    struct err err = ERR_INIT;
    struct regex *re = regex_new((struct sv){text, REGEX_PATTERN_MAX}, 0, &err);
    assert_non_null(re);
    regex_free(re);
    assert_null(regex_new((struct sv){text, REGEX_PATTERN_MAX + 1}, 0, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "");
    CHECK_STR(err.msg, "4097 bytes long, at most 4096 are allowed", "");
    test_free(text);
}

/* Patterns that PCRE2 finds too large or nested too deeply run all the same, as in Go. */
TEST(too_large_for_pcre2)
{
    struct err err = ERR_INIT;
    SCOPED(regex_scratch) *s = regex_scratch_new();
    SCOPED(regex) *re =
        regex_new(SV("(?:[a-c][d-f]|[g-i][k-l]|mn|op|qr|st|uv|wx|yz){1000}"), 0, &err);
    assert_non_null(re);
    char text[2000];
    for (size_t i = 0; i < sizeof(text); i += 2) {
        memcpy(text + i, "hk", 2);
    }
    CHECK_INT(regex_match(re, s, (struct sv){text, sizeof(text)}, &err), REGEX_MATCH, "");
    CHECK_INT(regex_match(re, s, (struct sv){text, 1998}, &err), REGEX_NO_MATCH, "");
    regex_free(re);
    SCOPED(buf) nested = testing_buf(10000);
    for (size_t i = 0; i < 600; i++) {
        buf_puts(&nested, "(?:");
    }
    buf_putc(&nested, 'a');
    for (size_t i = 0; i < 600; i++) {
        buf_puts(&nested, ")?");
    }
    re = regex_new((struct sv){nested.data, nested.len}, 0, &err);
    assert_non_null(re);
    CHECK_INT(regex_match(re, s, SV("a"), &err), REGEX_MATCH, "");
    CHECK_INT(regex_match(re, s, SV("aa"), &err), REGEX_NO_MATCH, "");
}

/* Counted repetitions can ask for more memory than any rule is worth. */
TEST(too_large)
{
    static const char *const regexes[] = {
        "(?:abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghi"
        "jklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstu"
        "vwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz){"
        "1000}",
        "(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)[bc]{1000}[cd]{1000}[de]{1000}"
        "[ef]{1000}[fg]{1000}[gh]{1000}[hi]{1000}[ij]{1000}[jk]{1000}[kl]{1000}[lm]{1000}[mn]{1000}"
        "[no]{1000}[op]{1000}[pq]{1000}[qr]{1000}[rs]{1000}[st]{1000}[tu]{1000}[uv]{1000}[vw]{1000}"
        "(?:(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)(l)(m)(n)(o)(p)(q)(r)(s)(t)(u)(v)(w)(x)(y)(z)){1000}"
        "(?:(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)(l)(m)(n)(o)(p)(q)(r)(s)(t)(u)(v)(w)(x)(y)(z)){1000}"};
    for (size_t i = 0; i < sizeof(regexes) / sizeof(regexes[0]); i++) {
        struct err err = ERR_INIT;
        assert_null(regex_new(sv_from(regexes[i]), 0, &err));
        CHECK_INT(err.kind, ERR_LIMIT, regexes[i]);
        CHECK_CONTAINS(err.msg, "the regex is too large: at most 250000 steps", regexes[i]);
    }
}

/* Texts on which a backtracking matcher would take a time that doubles with each character, or
 * grows with the square of the length: an answer comes, and it is Go's. Timing is not asserted:
 * without a bound these would not end. */
TEST(hostile_texts)
{
    enum { LENGTH = 262144 };
    static const struct {
        const char *regex;
        char fill;
        const char *end; /* of the text */
        enum regex_result want;
    } rows[] = {
        {"(a+)+b", 'a', "c", REGEX_NO_MATCH},
        {"(a+)+b", 'a', "b", REGEX_MATCH},
        {"(a|aa)+b", 'a', "c", REGEX_NO_MATCH},
        {"(?:(a+)+b|x)", 'a', "bb", REGEX_NO_MATCH},
        {"\\s*(.*?)\\s*;(\\d+)", ' ', "", REGEX_NO_MATCH},
        {"\\s*(.*?)\\s*;(\\d+)", ' ', "x;17", REGEX_MATCH},
        {".*.*.*.*.*=.*", 'a', "", REGEX_NO_MATCH},
        {"(?:(a)(,)|b)*", 'b', "a,", REGEX_MATCH},
        {"(\\w+\\.?)+:\\d+", 'p', ":", REGEX_NO_MATCH},
    };
    char *text = test_malloc(LENGTH + 8);
    SCOPED(regex_scratch) *s = regex_scratch_new();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = strlen(rows[i].end);
        memset(text, rows[i].fill, LENGTH);
        memcpy(text + LENGTH, rows[i].end, n);
        for (unsigned flags = 0; flags <= REGEX_NO_JIT; flags += REGEX_NO_JIT) {
            struct err err = ERR_INIT;
            SCOPED(regex) *re = regex_new(sv_from(rows[i].regex), flags, &err);
            CHECK_INT(regex_match(re, s, (struct sv){text, LENGTH + n}, &err), rows[i].want,
                      rows[i].regex);
            CHECK_STR(err.msg, "", rows[i].regex);
            CHECK_INT(regex_match(re, s, (struct sv){text + LENGTH - 40, 40 + n}, &err),
                      rows[i].want, rows[i].regex);
        }
    }
    test_free(text);
}

/* The captures of a match that only the linear program can finish. */
TEST(long_captures)
{
    enum { LENGTH = 900 * 1000 };
    char *text = test_malloc(LENGTH);
    for (size_t i = 0; i < LENGTH; i++) {
        text[i] = i % 2 == 0 ? 'a' : ',';
    }
    SCOPED(regex_scratch) *s = regex_scratch_new();
    struct err err = ERR_INIT;
    SCOPED(regex) *re = regex_new(SV("(?:(a)(,)|b)*"), 0, &err);
    CHECK_INT(regex_match(re, s, (struct sv){text, 2000}, &err), REGEX_MATCH, "");
    CHECK_INT(regex_group(s, 1).start, 1998, "");
    CHECK_INT(regex_match(re, s, (struct sv){text, LENGTH}, &err), REGEX_MATCH, "");
    CHECK_INT(regex_group(s, 1).start, LENGTH - 2, "");
    CHECK_INT(regex_group(s, 2).end, LENGTH, "");
    regex_free(re);
    re = regex_new(SV("[a,]*?(,)"), 0, &err);
    CHECK_INT(regex_match(re, s, (struct sv){text, 50000}, &err), REGEX_MATCH, "");
    CHECK_INT(regex_group(s, 1).start, 49999, "");
    regex_free(re);
    re = regex_new(SV("a,.*,"), 0, &err);
    CHECK_INT(regex_match(re, s, (struct sv){text, LENGTH}, &err), REGEX_MATCH, "");
    test_free(text);
}

/* Groups after the last one that took part are unset, also after a match that had more. */
TEST(stale_groups)
{
    struct regex_scratch *s = regex_scratch_new();
    struct err err = ERR_INIT;
    struct regex *many = regex_new(SV("(a)(b)(c)(d)(e)"), 0, &err);
    struct regex *some = regex_new(SV("(a)|(b)|(c)(x)?"), 0, &err);
    CHECK_INT(regex_match(many, s, SV("abcde"), &err), REGEX_MATCH, "");
    CHECK_INT(regex_match(some, s, SV("a"), &err), REGEX_MATCH, "");
    CHECK_INT(regex_groups(some), 5, "");
    CHECK_INT(regex_group(s, 1).end, 1, "");
    for (size_t i = 2; i < 5; i++) {
        assert_true(regex_group(s, i).start == REGEX_UNSET);
    }
    regex_free(many);
    regex_free(some);
    assert_null(regex_scratch_free(s));
    assert_null(regex_scratch_free(NULL));
    assert_null(regex_free(NULL));
}

TEST(many_groups)
{
    char text[4 * 1000 + 1] = "";
    for (size_t i = 0; i < 1000; i++) {
        memcpy(text + 4 * i, "(a)?", 5);
    }
    SCOPED(regex_scratch) *s = regex_scratch_new();
    struct err err = ERR_INIT;
    SCOPED(regex) *re = regex_new(sv_from(text), 0, &err);
    CHECK_STR(err.msg, "", "");
    CHECK_INT(regex_groups(re), 1001, "");
    CHECK_INT(regex_match(re, s, SV("aa"), &err), REGEX_MATCH, "");
    CHECK_INT(regex_group(s, 2).end, 2, "");
    assert_true(regex_group(s, 1000).start == REGEX_UNSET);
}
