/* Reused memory: pieces, the memory that a reset keeps, and the pool. */
#include "tests/unit/lib/testing.h"

#include <stdint.h>
#include <stdlib.h>

#include "pprof/scratch.h"

SCOPED_POINTER(scratch, scratch_free)

TEST(pieces_are_apart_and_aligned)
{
    struct scratch *s = scratch_new();
    assert_non_null(s);
    for (int round = 0; round < 4; round++) {
        unsigned char *all[50];
        for (size_t i = 0; i < 50; i++) {
            size_t n = 1 + i * i * 40;
            all[i] = i % 2 == 0 ? scratch_zeroed(s, n, 1) : scratch_array(s, n, 1);
            assert_non_null(all[i]);
            for (size_t j = 0; i % 2 == 0 && j < n; j++) {
                CHECK_INT(all[i][j], 0, "zeroed");
            }
            memset(all[i], (int)i + 1, n);
        }
        for (size_t i = 0; i < 50; i++) {
            size_t n = 1 + i * i * 40;
            CHECK_INT(all[i][0], i + 1, "apart from the others");
            CHECK_INT(all[i][n - 1], i + 1, "apart from the others");
        }
        scratch_reset(s);
    }
    double *aligned = scratch_array(s, 3, 1) == NULL ? NULL : scratch_array(s, 1, sizeof(double));
    CHECK_INT((uintptr_t)aligned % sizeof(double), 0, "");
    assert_non_null(scratch_array(s, 0, 8));
    assert_null(scratch_array(s, SIZE_MAX / 2, 8));
    scratch_free(s);
    assert_null(scratch_free(NULL));
}

TEST(piece_grows)
{
    SCOPED(scratch) *s = scratch_new();
    assert_non_null(s);
    char *p = scratch_grow(s, NULL, 0, 10);
    assert_non_null(p);
    memset(p, 'x', 10);
    assert_null(scratch_grow(s, p, 10, SIZE_MAX / 2));
    char *q = scratch_grow(s, p, 10, 200000);
    assert_non_null(q);
    assert_memory_equal(q, "xxxxxxxxxx", 10);
    memset(q + 10, 1, 200000 - 10);
}

/* After one round a scratch holds what the round needed, and does not grow with more rounds. */
TEST(used_again)
{
    SCOPED(scratch) *s = scratch_new();
    assert_non_null(s);
    size_t after_two = 0;
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < 20; i++) {
            assert_non_null(scratch_array(s, 100000, 1));
        }
        struct buf *b = scratch_buf(s);
        CHECK_INT(b->len, 0, "empty");
        assert_true(buf_puts(b, "something"));
        scratch_reset(s);
        after_two = round == 1 ? scratch_bytes(s) : after_two;
    }
    CHECK_INT(scratch_bytes(s), after_two, "no more than after two rounds");
}

/* The pool hands out what came back last, and keeps only so much. */
TEST(one_piece_is_kept)
{
    SCOPED(scratch) *s = scratch_new();
    bool made;
    assert_non_null(s);
    char *kept = scratch_kept(s, 1000, &made);
    assert_true(kept != NULL && made && kept[0] == 0 && kept[999] == 0);
    kept[999] = 1;
    assert_true(scratch_bytes(s) >= 1000);
    scratch_reset(s);
    assert_ptr_equal(scratch_kept(s, 1000, &made), kept);
    assert_true(!made && kept[999] == 1);
    scratch_limit(s, 999);
    assert_int_equal(scratch_bytes(s), 0);
    assert_null(scratch_kept(s, 1000, &made));
    assert_true(!made && scratch_is_over(s));
    assert_null(scratch_kept(NULL, 1000, &made));
}

TEST(pool_keeps_so_much)
{
    struct scratch_pool *p = scratch_pool_new(SCRATCH_POOL_MAX);
    struct scratch *s[3];
    assert_non_null(p);
    for (size_t i = 0; i < 3; i++) {
        s[i] = scratch_pool_take(p, SIZE_MAX);
        assert_non_null(s[i]);
        struct buf *b = scratch_buf(s[i]); /* memory in sanitizer builds, too */
        buf_reserve(b, SCRATCH_POOL_MAX / 2 - 1000);
        assert_true(scratch_bytes(s[i]) > SCRATCH_POOL_MAX / 3);
    }
    CHECK_INT(scratch_pool_bytes(p), 0, "none is idle");
    scratch_pool_give(p, s[0]);
    scratch_pool_give(p, s[1]);
    size_t two = scratch_pool_bytes(p);
    assert_true(two > SCRATCH_POOL_MAX / 2 && two <= SCRATCH_POOL_MAX);
    scratch_pool_give(p, s[2]); /* one too many */
    CHECK_INT(scratch_pool_bytes(p), two, "freed");
    scratch_pool_give(p, NULL);
    assert_ptr_equal(scratch_pool_take(p, SIZE_MAX), s[1]);
    assert_ptr_equal(scratch_pool_take(p, SIZE_MAX), s[0]);
    CHECK_INT(scratch_pool_bytes(p), 0, "");
    scratch_pool_give(p, s[0]);
    scratch_pool_limit(p, SCRATCH_POOL_MAX / 4);
    CHECK_INT(scratch_pool_bytes(p), 0, "surplus");
    s[0] = scratch_pool_take(p, SIZE_MAX);
    scratch_pool_give(p, s[0]);
    scratch_pool_ref(p);
    scratch_pool_unref(p);
    scratch_pool_give(p, s[1]);
    scratch_pool_unref(p);
    assert_null(scratch_pool_unref(NULL));
}

static struct scratch *take_of_size(struct scratch_pool *p, size_t size)
{
    struct scratch *s = scratch_pool_take(p, SIZE_MAX);
    assert_non_null(s);
    buf_reserve(scratch_buf(s), size);
    return s;
}

/* Small work leaves what large work needs as it is, and what is too large goes after a while. */
TEST(pool_hands_out_by_size)
{
    struct scratch_pool *p = scratch_pool_new(SCRATCH_POOL_MAX);
    struct scratch *small = take_of_size(p, 1000), *large = take_of_size(p, 100000);
    assert_non_null(p);
    scratch_pool_give(p, large);
    scratch_pool_give(p, small);
    size_t both = scratch_pool_bytes(p);
    assert_ptr_equal(scratch_pool_take(p, 5000), small);
    assert_ptr_equal(scratch_pool_take(p, 200000), large);
    scratch_pool_give(p, small);
    scratch_pool_give(p, large);
    assert_ptr_equal(scratch_pool_take(p, SIZE_MAX), large);
    struct scratch *other = scratch_pool_take(p, 100);
    assert_ptr_not_equal(other, small);
    CHECK_INT(scratch_pool_bytes(p) + scratch_bytes(large), both, "neither has lost anything");
    scratch_pool_give(p, other);
    scratch_pool_give(p, large);
    for (int i = 1; i < SCRATCH_IDLE_ROUNDS; i++) {
        scratch_pool_give(p, scratch_pool_take(p, 5000));
        CHECK_INT(scratch_pool_bytes(p), both, "still kept");
    }
    scratch_pool_give(p, scratch_pool_take(p, 5000));
    CHECK_INT(scratch_pool_bytes(p), scratch_bytes(small), "nobody needs the large one");
    scratch_pool_unref(p);
}

/* Blocks, the buffer and what was allocated elsewhere count together. */
TEST(a_ceiling)
{
    struct err err = ERR_INIT;
    struct scratch *s = scratch_new();
    scratch_limit(s, 1000000);
    assert_non_null(scratch_array(s, 1, 300000));
    assert_non_null(scratch_array(s, 1, 300000));
    assert_true(scratch_bytes(s) <= 1000000);
    assert_true(scratch_charge(s, 200000));
    assert_false(scratch_is_over(s));
    assert_null(scratch_array(s, 1, 300000));
    assert_true(scratch_is_over(s));
    err_memory(&err);
    scratch_explain(s, &err);
    CHECK_INT(err.kind, ERR_LIMIT, "");
    CHECK_STR(err.msg, "needs more than 1000000 bytes of working memory", "");
    scratch_reset(s);
    assert_false(scratch_is_over(s));
    assert_false(scratch_charge(s, 1000001));
    scratch_reset(s);
    assert_non_null(scratch_array(s, 1, 500000));
    struct buf *b = scratch_buf(s);
    while (buf_append(b, "0123456789", 10)) {
        assert_true(scratch_bytes(s) <= 1000001);
    }
    assert_true(scratch_is_over(s));
    scratch_reset(s);
    scratch_limit(s, 1000);
    CHECK_INT(scratch_bytes(s), 0, "what it held is more than it may");
    scratch_limit(s, SIZE_MAX);
    assert_non_null(scratch_array(s, 1, 5000000));
    err_clear(&err);
    err_memory(&err);
    scratch_explain(s, &err);
    CHECK_INT(err.kind, ERR_MEMORY, "another cause");
    scratch_free(s);
    assert_false(scratch_charge(NULL, 1));
    assert_false(scratch_is_over(NULL));
}
