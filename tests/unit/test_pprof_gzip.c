/* Whole gzip bodies in and out, and their limits. */
#include "tests/unit/testing.h"

#include <stdlib.h>

#include "pprof/gzip.h"

struct zipped {
    char *data; /* from malloc(), of its size: a sanitizer sees a read past the end */
    size_t n;
};

static struct zipped zip(const char *text, size_t n)
{
    struct zipped z;
    struct scratch *s = scratch_new();
    assert_non_null(s);
    assert_true(gzip_pack(s, (struct sv){text, n}, &z.data, &z.n));
    scratch_free(s);
    return z;
}

static void there_and_back(void **state)
{
    (void)state;
    size_t n = 3000000;
    char *text = malloc(n);
    assert_non_null(text);
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        text[i] = (char)(x >> 29);
    }
    static const size_t sizes[] = {0, 1, 5000, 3000000};
    static const size_t hints[] = {0, 1, 4999, 5000, 10000000};
    for (size_t i = 0; i < 4; i++) {
        struct zipped zipped = zip(text, sizes[i]);
        struct scratch *s = scratch_new();
        assert_non_null(s);
        for (size_t j = 0; j < 5; j++) {
            struct sv out;
            struct err err = ERR_INIT;
            struct sv body = {zipped.data, zipped.n};
            assert_true(gzip_inflate(s, body, 10000000, hints[j], &out, &err));
            CHECK_INT(out.n, sizes[i], "");
            assert_memory_equal(out.p, text, sizes[i]);
            scratch_reset(s);
        }
        scratch_free(s);
        free(zipped.data);
    }
    free(text);
}

static void check_inflate(struct sv body, size_t max, enum err_kind want, const char *message,
                          const char *row)
{
    struct sv out;
    struct err err = ERR_INIT;
    struct scratch *s = scratch_new();
    assert_non_null(s);
    CHECK_INT(gzip_inflate(s, body, max, 0, &out, &err), want == ERR_NONE, row);
    CHECK_INT(err.kind, want, row);
    CHECK_STR(err.msg, message, row);
    assert_true(want == ERR_NONE || out.n == 0);
    scratch_free(s);
}

static void damaged_cut_or_too_large(void **state)
{
    (void)state;
    const char *damaged = "damaged or cut gzip";
    struct zipped z = zip("hello, hello, hello", 19);
    struct sv v = {z.data, z.n};
    for (size_t n = 0; n < v.n; n++) {
        check_inflate((struct sv){v.p, n}, 1000, ERR_INPUT, damaged, "cut");
    }
    z.data[z.n - 5] ^= 1;
    check_inflate(v, 1000, ERR_INPUT, damaged, "checksum");
    z.data[z.n - 5] ^= 1;
    memset(z.data + z.n - 4, 0xff, 4);
    check_inflate(v, 1000, ERR_INPUT, damaged, "a size that is a lie");
    z.data[z.n - 4] = 19;
    memset(z.data + z.n - 3, 0, 3);
    check_inflate(v, 1000, ERR_NONE, "", "whole");
    check_inflate(v, 19, ERR_NONE, "", "as much as may be");
    check_inflate(v, 18, ERR_LIMIT, "inflates to more than 18 bytes", "one byte more");
    free(z.data);
}

static void members_follow_each_other(void **state)
{
    (void)state;
    struct zipped a = zip("abc", 3);
    struct zipped b = zip("defg", 4);
    struct buf both;
    struct err err = ERR_INIT;
    buf_init(&both, 1000);
    buf_append(&both, a.data, a.n);
    buf_append(&both, b.data, b.n);
    struct sv out;
    struct scratch *s = scratch_new();
    assert_non_null(s);
    struct sv body = {both.data, both.len};
    assert_true(gzip_inflate(s, body, 1000, 0, &out, &err));
    CHECK_INT(out.n, 7, "");
    assert_memory_equal(out.p, "abcdefg", 7);
    scratch_free(s);
    check_inflate((struct sv){both.data, both.len}, 6, ERR_LIMIT, "inflates to more than 6 bytes",
                  "together");
    buf_putc(&both, 'x');
    check_inflate((struct sv){both.data, both.len}, 1000, ERR_INPUT, "damaged or cut gzip",
                  "garbage at the end");
    free(a.data);
    free(b.data);
    buf_done(&both);
}

/* A body may inflate to a hundred times its size; a small one to more. */
static void bomb_is_refused(void **state)
{
    (void)state;
    size_t n = 16 * 1024 * 1024;
    char *zeros = calloc(1, n);
    assert_non_null(zeros);
    struct zipped z = zip(zeros, n);
    assert_true(z.n * GZIP_RATIO_MAX < n);
    char message[64];
    snprintf(message, sizeof(message), "inflates to more than %zu bytes", z.n * GZIP_RATIO_MAX);
    check_inflate((struct sv){z.data, z.n}, 64 * 1024 * 1024, ERR_LIMIT, message, "bomb");
    free(z.data);
    z = zip(zeros, GZIP_SMALL);
    check_inflate((struct sv){z.data, z.n}, 64 * 1024 * 1024, ERR_NONE, "", "small");
    free(z.data);
    free(zeros);
}

/* A body that is plain already comes out as it is. */
static void plain_bodies(void **state)
{
    (void)state;
    struct scratch *s = scratch_new();
    struct zipped z = zip("hello", 5);
    struct sv out;
    struct err err = ERR_INIT;
    assert_true(gzip_plain(s, SV("hello"), 1, 0, &out, &err));
    assert_true(sv_eq_str(out, "hello"));
    assert_true(gzip_plain(s, (struct sv){z.data, z.n}, 5, 0, &out, &err));
    assert_true(sv_eq_str(out, "hello"));
    assert_false(gzip_plain(s, (struct sv){z.data, z.n}, 4, 0, &out, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "kind");
    free(z.data);
    scratch_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(damaged_cut_or_too_large),
        cmocka_unit_test(members_follow_each_other),
        cmocka_unit_test(bomb_is_refused),
        cmocka_unit_test(plain_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
