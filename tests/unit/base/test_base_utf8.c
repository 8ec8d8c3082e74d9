/* UTF-8 and the escaping of JSON. */
#include "base/utf8.h"
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#define R "\xef\xbf\xbd" /* U+FFFD */

TEST(repairs)
{
    const struct {
        const char *name;
        struct sv in;
        const char *repaired; /* NULL: valid as it is */
    } cases[] = {
        {"empty", SV(""), NULL},
        {"ascii", SV("abc\x7f"), NULL},
        {"two bytes, first and last", SV("\xc2\x80\xdf\xbf"), NULL},
        {"three bytes, first", SV("\xe0\xa0\x80"), NULL},
        {"below the surrogates", SV("\xed\x9f\xbf"), NULL},
        {"above the surrogates", SV("\xee\x80\x80"), NULL},
        {"three bytes, last", SV("\xef\xbf\xbf"), NULL},
        {"four bytes, first", SV("\xf0\x90\x80\x80"), NULL},
        {"four bytes, last", SV("\xf4\x8f\xbf\xbf"), NULL},
        {"replacement itself", SV(R), NULL},
        {"lone continuation", SV("a\x80"), "a" R},
        {"two lone continuations", SV("\x80\xbf"), R R},
        {"overlong slash, two bytes", SV("\xc0\xaf"), R R},
        {"overlong, c1", SV("\xc1\xbf"), R R},
        {"overlong, three bytes", SV("\xe0\x9f\xbf"), R R R},
        {"overlong, four bytes", SV("\xf0\x8f\xbf\xbf"), R R R R},
        {"first surrogate", SV("\xed\xa0\x80"), R R R},
        {"last surrogate", SV("\xed\xbf\xbf"), R R R},
        {"above U+10FFFF", SV("\xf4\x90\x80\x80"), R R R R},
        {"f5", SV("\xf5\x80\x80\x80"), R R R R},
        {"ff", SV("\xff"), R},
        {"cut after one of two", SV("x\xc3"), "x" R},
        {"cut after one of three", SV("x\xe2"), "x" R},
        {"cut after two of three", SV("x\xe2\x82"), "x" R R},
        {"cut after three of four", SV("x\xf0\x9f\x98"), "x" R R R},
        {"cut, then text",
         SV("\xe2\x82"
            "a"),
         R R "a"},
        {"bad third byte", SV("\xe2\x82\xc3\xa9"), R R "\xc3\xa9"},
        {"bad fourth byte", SV("\xf0\x9f\x98("), R R R "("},
        {"in the middle",
         SV("a\xff"
            "b\xfe"),
         "a" R "b" R},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *name = cases[i].name;
        const char *want = cases[i].repaired;
        SCOPED(buf) out = testing_buf(100);
        CHECK_INT(utf8_valid(cases[i].in), want == NULL, name);
        assert_true(utf8_repair(cases[i].in, &out));
        CHECK_STR(out.data, want == NULL ? cases[i].in.p : want, name);
        assert_true(utf8_valid((struct sv){.p = out.data, .n = out.len}));
    }
}

TEST(keeps_nuls)
{
    SCOPED(buf) out = testing_buf(100);
    assert_true(utf8_valid(SV("a\0b")));
    assert_true(utf8_repair(SV("a\0\xff"), &out));
    CHECK_INT(out.len, 5, "");
    assert_memory_equal(out.data, "a\0" R, 5);
    buf_done(&out);
    assert_true(utf8_repair((struct sv){.p = NULL, .n = 0}, &out));
    CHECK_INT(out.len, 0, "");
}

/* The rest of the character follows the view in memory, but must not be read. */
TEST(stops_at_the_end_of_the_view)
{
    static const char *const texts[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        for (size_t n = 1; n < strlen(texts[i]); n++) {
            struct sv v = {.p = texts[i], .n = n};
            SCOPED(buf) out = testing_buf(100);
            assert_false(utf8_valid(v));
            assert_true(utf8_repair(v, &out));
            CHECK_INT(out.len, 3 * n, "each byte replaced");
        }
    }
}

TEST(every_rune_survives_encoding)
{
    for (uint32_t rune = 0; rune <= 0x10ffff; rune++) {
        if (rune >= 0xd800 && rune <= 0xdfff) {
            continue; /* a surrogate */
        }
        char bytes[UTF8_BYTES_MAX];
        struct sv v = {bytes, utf8_encode(rune, bytes)};
        uint32_t back = 0;
        CHECK(utf8_valid(v) && utf8_decode(v, &back) == v.n && back == rune, "U+%04X",
              (unsigned)rune);
    }
}

/* A byte that does not belong is seen wherever it is in a text of any length. */
TEST(a_bad_byte_anywhere)
{
    for (size_t n = 0; n <= 40; n++) {
        SCOPED_MEMORY char *text =
            malloc(n + 1); /* of its size: a sanitizer sees a read past the end */
        assert_non_null(text);
        memset(text, 'a', n + 1);
        assert_true(utf8_valid((struct sv){text, n}));
        for (size_t i = 0; i < n; i++) {
            text[i] = (char)0xff;
            CHECK_INT(utf8_valid((struct sv){text, n}), false, "bad");
            text[i] = 'a';
        }
        for (size_t i = 0; i + 1 < n; i++) {
            memcpy(text + i, "\u00e9", 2);
            CHECK_INT(utf8_valid((struct sv){text, n}), true, "two bytes");
            memset(text + i, 'a', 2);
        }
    }
}

TEST(reports_a_full_buffer)
{
    SCOPED(buf) out = testing_buf(2);
    assert_false(utf8_repair(SV("a\xff"), &out));
    buf_clear(&out);
    assert_false(json_escape(SV("\"\""), &out));
}

TEST(escapes_json)
{
    const struct {
        struct sv in;
        const char *want;
    } cases[] = {
        {SV(""), ""},
        {SV("plain"), "plain"},
        {SV("say \"x\\y\"/"), "say \\\"x\\\\y\\\"/"},
        {SV("\b\f\n\r\t"), "\\b\\f\\n\\r\\t"},
        {SV("\0\x01\x1f\x7f"), "\\u0000\\u0001\\u001f\x7f"},
        {SV("\xe2\x82\xac\xff\xf0\x9f\x98\x80"), "\xe2\x82\xac" R "\xf0\x9f\x98\x80"},
        {SV("\xc3"), R},
        {SV("a\nb"), "a\\nb"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) out = testing_buf(100);
        assert_true(json_escape(cases[i].in, &out));
        CHECK_STR(out.data, cases[i].want, cases[i].want);
    }
}
