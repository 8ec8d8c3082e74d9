/* The capped buffer: its invariants after every operation, the ceiling, the sticky failure. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/clock.h"

/* The invariants between any two calls. */
static void check_invariants(const struct buf *b)
{
    assert_non_null(b->data);
    assert_true(b->len <= b->max);
    assert_true(b->cap <= b->max + 1);
    assert_true(b->cap == 0 ? b->len == 0 : b->len < b->cap);
    CHECK_INT(b->data[b->len], '\0', "NUL after the content");
    if (!buf_ok(b)) {
        CHECK_INT(b->len, 0, "a failed buffer is empty");
        CHECK_INT(b->cap, 0, "a failed buffer holds no storage");
    } else {
        assert_false(buf_too_big(b));
    }
}

TEST(is_usable_empty)
{
    struct buf b = testing_buf(10);
    check_invariants(&b);
    CHECK_STR(b.data, "", "");
    CHECK_INT(b.cap, 0, "allocates nothing");
    assert_true(buf_append(&b, NULL, 0));
    buf_clear(&b);
    check_invariants(&b);
    buf_done(&b);
    buf_done(&b);
    check_invariants(&b);
}

TEST(appends)
{
    SCOPED(buf) b = testing_buf(1000);
    assert_true(buf_puts(&b, "ab"));
    assert_true(buf_putc(&b, 'c'));
    assert_true(buf_append(&b, "\0d", 2));
    assert_true(buf_printf(&b, "%s-%d", "e", 42));
    check_invariants(&b);
    CHECK_INT(b.len, 9, "");
    assert_memory_equal(b.data, "abc\0de-42", 10);
}

TEST(stops_at_the_ceiling)
{
    SCOPED(buf) b = testing_buf(5);
    assert_true(buf_puts(&b, "12345"));
    check_invariants(&b);
    CHECK_STR(b.data, "12345", "exactly the ceiling fits");
    assert_true(buf_append(&b, "", 0));
    assert_false(buf_putc(&b, '6'));
    check_invariants(&b);
    assert_false(buf_ok(&b));
    assert_true(buf_too_big(&b));
    /* Sticky, even for text that would fit. */
    assert_false(buf_puts(&b, "1"));
    assert_false(buf_append(&b, "", 0));
    assert_false(buf_printf(&b, "x"));
    buf_reserve(&b, 3);
    check_invariants(&b);
    assert_true(buf_too_big(&b));
    assert_null(buf_take(&b, NULL));
    assert_false(buf_ok(&b));
    buf_clear(&b);
    assert_true(buf_ok(&b));
    assert_true(buf_puts(&b, "again"));
    CHECK_STR(b.data, "again", "");
}

TEST(printf_stops_at_the_ceiling)
{
    SCOPED(buf) b = testing_buf(5);
    assert_true(buf_printf(&b, "%s", "12345"));
    check_invariants(&b);
    assert_false(buf_printf(&b, "%d", 6));
    check_invariants(&b);
    assert_true(buf_too_big(&b));
    buf_done(&b);
    assert_true(buf_ok(&b));
    assert_true(buf_printf(&b, "%05d", 7));
    CHECK_STR(b.data, "00007", "");
}

TEST(survives_huge_numbers)
{
    SCOPED(buf) b = testing_buf(SIZE_MAX);
    assert_true(buf_puts(&b, "x"));
    /* Longer than any memory: the ceiling refuses it, and the source is not read. */
    assert_false(buf_append(&b, "y", SIZE_MAX));
    assert_true(buf_too_big(&b));
    buf_clear(&b);
    buf_init(&b, 0);
    assert_true(buf_puts(&b, ""));
    check_invariants(&b);
    assert_false(buf_putc(&b, 'x'));
    check_invariants(&b);
}

TEST(reserves)
{
    SCOPED(buf) b = testing_buf(100);
    buf_reserve(&b, 50);
    check_invariants(&b);
    CHECK_INT(b.cap, 51, "");
    const char *data = b.data;
    for (int i = 0; i < 50; i++) {
        assert_true(buf_putc(&b, 'x'));
    }
    assert_ptr_equal(b.data, data);
    buf_reserve(&b, 10);
    CHECK_INT(b.cap, 51, "never shrinks");
    buf_reserve(&b, SIZE_MAX);
    check_invariants(&b);
    CHECK_INT(b.cap, 101, "capped");
    CHECK_INT(b.len, 50, "");
}

TEST(takes)
{
    size_t len = 99;
    SCOPED(buf) b = testing_buf(1000);
    buf_puts(&b, "hello");
    char *p = buf_take(&b, &len);
    CHECK_STR(p, "hello", "");
    CHECK_INT(len, 5, "");
    free(p);
    check_invariants(&b);
    CHECK_INT(b.cap, 0, "");
    p = buf_take(&b, &len);
    assert_non_null(p);
    CHECK_STR(p, "", "an empty one gives a string as well");
    CHECK_INT(len, 0, "");
    free(p);
    assert_true(buf_puts(&b, "usable again"));
}

/* Random operations against a plain array. */
TEST(agrees_with_a_model)
{
    enum { MAX = 300 };
    char model[MAX];
    size_t len = 0;
    bool failed = false;
    struct rng rng;
    rng_seed(&rng, 1);
    SCOPED(buf) b = testing_buf(MAX);
    for (int round = 0; round < 20000; round++) {
        char chunk[64];
        size_t n = (size_t)rng_range(&rng, 0, (int64_t)sizeof(chunk));
        memset(chunk, (int)rng_range(&rng, 'a', 'z'), sizeof(chunk));
        int64_t what = rng_range(&rng, 0, 100);
        if (what < 40) {
            bool fits = !failed && n <= MAX - len;
            CHECK_INT(buf_append(&b, chunk, n), fits, "append");
            if (fits) {
                memcpy(model + len, chunk, n);
                len += n;
            } else {
                failed = true;
                len = 0;
            }
        } else if (what < 60) {
            bool fits = !failed && n <= MAX - len;
            CHECK_INT(buf_printf(&b, "%.*s", (int)n, chunk), fits, "printf");
            if (fits) {
                memcpy(model + len, chunk, n);
                len += n;
            } else {
                failed = true;
                len = 0;
            }
        } else if (what < 80) {
            buf_reserve(&b, n * 10);
        } else {
            buf_clear(&b);
            len = 0;
            failed = false;
        }
        check_invariants(&b);
        CHECK_INT(buf_ok(&b), !failed, "");
        CHECK_INT(b.len, len, "");
        assert_memory_equal(b.data, model, len);
    }
}
