/* The arena. */
#include "tests/unit/lib/testing.h"

#include <stdalign.h>
#include <stdlib.h>

static bool is_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Allocations of many sizes are zeroed, aligned and disjoint. */
TEST(hands_out)
{
    enum { N = 600 };
    char *blocks[N];
    struct arena *a = arena_new((size_t)16 * 1024 * 1024);
    assert_non_null(a);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < N; i++) {
            size_t size = i * 37 % 5000;
            blocks[i] = arena_alloc(a, size);
            assert_non_null(blocks[i]);
            CHECK_INT((uintptr_t)blocks[i] % alignof(max_align_t), 0, "");
            assert_true(is_zero(blocks[i], size));
            memset(blocks[i], (int)(i % 255) + 1, size);
        }
        for (size_t i = 0; i < N; i++) {
            size_t size = i * 37 % 5000;
            for (size_t k = 0; k < size; k++) {
                CHECK_INT((unsigned char)blocks[i][k], i % 255 + 1, "");
            }
        }
        /* Allocations after a reset are zeroed too. */
        arena_reset(a);
        CHECK_INT(arena_used(a), 0, "");
    }
    arena_free(a);
    assert_null(arena_free(NULL));
}

TEST(has_a_ceiling)
{
    SCOPED(arena) *a = arena_new(1024);
    assert_null(arena_alloc(a, 1025));
    assert_null(arena_alloc(a, SIZE_MAX));
    assert_null(arena_array(a, SIZE_MAX / 2, 3));
    assert_null(arena_strndup(a, "x", SIZE_MAX));
    CHECK_INT(arena_used(a), 0, "what was refused costs nothing");
    assert_non_null(arena_alloc(a, 512));
    assert_non_null(arena_alloc(a, 512));
    CHECK_INT(arena_used(a), 1024, "all of it can be had");
    assert_null(arena_alloc(a, 1));
    assert_null(arena_alloc(a, 0));
    assert_null(arena_strdup(a, ""));
    assert_null(arena_printf(a, "%d", 1));
    arena_reset(a);
    assert_non_null(arena_alloc(a, 1024));
}

TEST(copies_text)
{
    SCOPED(arena) *a = arena_new(100000);
    CHECK_STR(arena_strdup(a, "abc"), "abc", "");
    CHECK_STR(arena_strndup(a, "abcdef", 3), "abc", "");
    CHECK_STR(arena_strndup(a, NULL, 0), "", "");
    CHECK_STR(arena_printf(a, "%s=%d", "x", 5), "x=5", "");
    char *long_text = arena_printf(a, "%9000d", 1);
    CHECK_INT(strlen(long_text), 9000, "");
    int *numbers = arena_array(a, 10, sizeof(*numbers));
    for (int i = 0; i < 10; i++) {
        CHECK_INT(numbers[i], 0, "");
    }
    assert_non_null(arena_array(a, 0, 8));
    assert_non_null(arena_array(a, 8, 0));
}
