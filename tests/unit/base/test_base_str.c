/* Views, suggestions and the hash. */
#include "tests/unit/lib/testing.h"

#include <ctype.h>

#include "base/ascii.h"

#include <stdlib.h>

static const struct sv null_view = {.p = NULL, .n = 0};

TEST(compares)
{
    assert_true(sv_eq(SV("a"), sv_from("a")));
    assert_false(sv_eq(SV("a"), SV("ab")));
    assert_false(sv_eq(SV("a\0b"), SV("a\0c")));
    assert_true(sv_eq(null_view, SV("")));
    assert_true(sv_eq_str(SV("x"), "x"));
    CHECK_INT(sv_from(NULL).n, 0, "");
    assert_non_null(sv_from(NULL).p);

    assert_true(sv_cmp(SV("a"), SV("b")) < 0);
    assert_true(sv_cmp(SV("b"), SV("a")) > 0);
    assert_true(sv_cmp(SV("a"), SV("ab")) < 0);
    assert_true(sv_cmp(SV("ab"), SV("a")) > 0);
    CHECK_INT(sv_cmp(SV("ab"), SV("ab")), 0, "");
    CHECK_INT(sv_cmp(null_view, SV("")), 0, "");
    assert_true(sv_cmp(SV("\x80"), SV("z")) > 0); /* bytes have no sign */
    assert_true(sv_cmp(SV("Z"), SV("a")) < 0);
}

TEST(finds_ends)
{
    assert_true(sv_starts_with(SV("abc"), SV("ab")));
    assert_true(sv_starts_with(SV("abc"), SV("")));
    assert_true(sv_starts_with(null_view, null_view));
    assert_false(sv_starts_with(SV("abc"), SV("abcd")));
    assert_false(sv_starts_with(SV("abc"), SV("b")));
    assert_true(sv_ends_with(SV("abc"), SV("bc")));
    assert_true(sv_ends_with(SV("abc"), SV("abc")));
    assert_true(sv_ends_with(null_view, SV("")));
    assert_false(sv_ends_with(SV("abc"), SV("zabc")));
    assert_false(sv_ends_with(SV("abc"), SV("b")));
}

TEST(trims_and_cuts)
{
    assert_true(sv_eq_str(sv_trim(SV(" \t\r\n\v\fa b\n ")), "a b"));
    CHECK_INT(sv_trim(SV(" \n ")).n, 0, "");
    CHECK_INT(sv_trim(null_view).n, 0, "");
    assert_true(sv_eq_str(sv_trim(SV("\xc2\xa0x")), "\xc2\xa0x"));

    struct sv head = SV("untouched");
    struct sv tail = SV("untouched");
    assert_false(sv_cut(SV("abc"), ':', &head, &tail));
    assert_true(sv_eq_str(head, "untouched") && sv_eq_str(tail, "untouched"));
    assert_false(sv_cut(null_view, ':', &head, &tail));
    assert_true(sv_cut(SV("a:b:c"), ':', &head, &tail));
    assert_true(sv_eq_str(head, "a") && sv_eq_str(tail, "b:c"));
    assert_true(sv_cut(SV(":"), ':', &head, &tail));
    CHECK_INT(head.n + tail.n, 0, "");
    /* The result may replace the argument. */
    struct sv v = SV("x=y");
    assert_true(sv_cut(v, '=', &head, &v));
    assert_true(sv_eq_str(v, "y"));
}

TEST(suggests)
{
    static const char *const keys[] = {"http",           "https", "scrape_interval",
                                       "scrape_timeout", "url",   "ab"};
    static const struct text_case cases[] = {
        {"htttp", "http"},
        {"htttps", "https"},
        {"hpts", NULL}, /* two of four letters */
        {"htpts", "https"},
        {"scrape_intervall", "scrape_interval"},
        {"scrap_interva", "scrape_interval"},
        {"scrap_interv", NULL}, /* three away */
        {"ulr", "url"},
        {"xyz", NULL},
        {"ba", NULL}, /* one swap is half of the word */
        {"", NULL},
        {"url", "url"},
        {"a_word_of_more_than_sixty_four_letters_which_nobody_mistypes_as_anything", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_STR(suggest(sv_from(cases[i].text), keys, 6), cases[i].want, cases[i].text);
    }
    assert_null(suggest(SV("x"), NULL, 0));
}

TEST(hash_is_fixed)
{
    /* Phases and shards depend on these: a change moves every target. */
    assert_true(hash_bytes("", 0, 0) == UINT64_C(0xddfc0e09c28df2ae));
    assert_true(hash_bytes("profpull", 8, 0) == UINT64_C(0x62752eccbaf31312));
    assert_true(hash_bytes("10.0.0.1:6060/debug/pprof/heap", 30, 7) ==
                UINT64_C(0x3ca8db6191a24df0));
    static const uint64_t short_ones[] = {
        UINT64_C(0xe324f179be27bba4), UINT64_C(0x437c8dd640202c0e), UINT64_C(0x2da62dd921ddc5ba),
        UINT64_C(0x81fa363add646f3a), UINT64_C(0xe879bca4c6f8d753), UINT64_C(0xd59e0307f3d37e7b),
        UINT64_C(0xc78bb1713b83ff44),
    };
    for (size_t n = 1; n < 8; n++) {
        assert_true(hash_bytes("abcdefg", n, 0) == short_ones[n - 1]);
    }
}

TEST(hash_sees_every_byte)
{
    char text[64] = {0};
    uint64_t hashes[65];
    for (size_t n = 0; n <= 64; n++) {
        hashes[n] = hash_bytes(text, n, 0); /* zeros of every length */
        for (size_t i = 0; i < n; i++) {
            assert_true(hashes[i] != hashes[n]);
        }
    }
    assert_true(hash_bytes("abc", 3, 0) != hash_bytes("abc", 3, 1));
    assert_true(hash_bytes(NULL, 0, 5) == hash_bytes("x", 0, 5));
}

TEST(hash_ignores_alignment)
{
    char room[64] = {0};
    for (size_t n = 0; n < 40; n++) {
        uint64_t first = 0;
        for (size_t shift = 0; shift < 8; shift++) {
            for (size_t i = 0; i < n; i++) {
                room[shift + i] = (char)(i * 37);
            }
            uint64_t hash = hash_bytes(room + shift, n, 3);
            first = shift == 0 ? hash : first;
            assert_true(hash == first);
        }
    }
}

/* Flipping one bit of the input flips each bit of the output in about half of the cases. */
TEST(hash_mixes)
{
    enum { TEXTS = 2000, LEN = 21 };
    unsigned flips[64] = {0};
    for (unsigned t = 0; t < TEXTS; t++) {
        char text[LEN + 1];
        (void)snprintf(text, sizeof(text), "10.0.%03u.%03u:6060/he", t / 250, t % 250);
        uint64_t before = hash_bytes(text, LEN, 0);
        unsigned bit = t % (8 * LEN);
        text[bit / 8] = (char)(text[bit / 8] ^ (1 << (bit % 8)));
        uint64_t changed = before ^ hash_bytes(text, LEN, 0);
        for (unsigned i = 0; i < 64; i++) {
            flips[i] += (unsigned)(changed >> i) & 1;
        }
    }
    for (unsigned i = 0; i < 64; i++) {
        assert_in_range(flips[i], TEXTS / 2 - 150, TEXTS / 2 + 150);
    }
}

/* Strings as similar as targets are spread evenly over an interval. */
TEST(hash_spreads_phases)
{
    enum { TARGETS = 10000, BUCKETS = 15, EXPECTED = TARGETS / BUCKETS };
    static const uint64_t intervals_ms[] = {15000, 60000, 7500, 16384};
    for (size_t k = 0; k < sizeof(intervals_ms) / sizeof(intervals_ms[0]); k++) {
        unsigned buckets[BUCKETS] = {0};
        for (unsigned t = 0; t < TARGETS; t++) {
            char text[100];
            int n = snprintf(text, sizeof(text), "http://10.244.%u.%u:6060/debug/pprof/heap",
                             t / 250, t % 250);
            uint64_t phase = hash_bytes(text, (size_t)n, 0) % intervals_ms[k];
            buckets[phase * BUCKETS / intervals_ms[k]]++;
        }
        for (unsigned i = 0; i < BUCKETS; i++) {
            /* Five standard deviations. */
            assert_in_range(buckets[i], EXPECTED - 125, EXPECTED + 125);
        }
    }
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

TEST(hash_does_not_collide)
{
    enum { N = 100000 };
    SCOPED_MEMORY uint64_t *hashes = testing_memory(N * sizeof(*hashes));
    for (unsigned i = 0; i < N; i++) {
        hashes[i] = hash_bytes(&(uint32_t){i}, 4, 0);
    }
    qsort(hashes, N, sizeof(*hashes), compare_u64);
    for (unsigned i = 1; i < N; i++) {
        assert_true(hashes[i - 1] != hashes[i]);
    }
}

/* In the C locale, in which the tests run, the C library agrees. */
TEST(ascii_classes)
{
    for (int c = 0; c < 256; c++) {
        bool ascii = c < 0x80;
        CHECK_INT(ascii_is_digit(c), ascii && isdigit(c) != 0, "digit");
        CHECK_INT(ascii_is_lower(c), ascii && islower(c) != 0, "lower");
        CHECK_INT(ascii_is_upper(c), ascii && isupper(c) != 0, "upper");
        CHECK_INT(ascii_is_alpha(c), ascii && isalpha(c) != 0, "alpha");
        CHECK_INT(ascii_is_alnum(c), ascii && isalnum(c) != 0, "alnum");
        CHECK_INT(ascii_is_word(c), (ascii && isalnum(c) != 0) || c == '_', "word");
        CHECK_INT(ascii_hex_value(c) >= 0, ascii && isxdigit(c) != 0, "hexadecimal");
        CHECK_INT((unsigned char)ascii_lower((char)c), ascii ? tolower(c) : c, "lower case");
    }
    CHECK_INT(ascii_hex_value('9'), 9, "");
    CHECK_INT(ascii_hex_value('a'), 10, "");
    CHECK_INT(ascii_hex_value('F'), 15, "");
    CHECK_INT(ascii_hex_value((char)-1), -1, "a negative char");
}

TEST(json_members_are_separated_by_commas)
{
    SCOPED(buf) out = testing_buf(1024);
    buf_putc(&out, '{');
    json_member("a", SV("x\"{"), &out);
    json_key("b", &out);
    buf_puts(&out, "{");
    json_key("c", &out);
    buf_puts(&out, "1}");
    assert_true(json_member("d", SV(""), &out));
    CHECK_STR(out.data, "{\"a\":\"x\\\"{\",\"b\":{\"c\":1},\"d\":\"\"", "");
}
