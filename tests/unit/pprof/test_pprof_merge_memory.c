/* Merging without memory: each allocation fails once, and the merge stays as it was. */
#include "tests/unit/lib/testing.h"

#include "pprof/merge.h"
#include "tests/unit/lib/failing_malloc.h"
#include "tests/unit/lib/pprof_writer.h"

#define PROFILES 3

static struct buf profile(int64_t n)
{
    const struct pprof_spec spec = {.types = "alloc_objects/count inuse_objects/count",
                                    .time_nanos = n,
                                    .mapping_start = 0x1000};
    char frames[40][16];
    struct pprof_row rows[40];
    bool armed = failing_malloc_pause();
    for (int64_t i = 0; i < 40; i++) {
        snprintf(frames[i], sizeof(frames[i]), "f%d@%d m", (int)(n * i), (int)(n * i + 1));
        rows[i] = (struct pprof_row){frames[i], i % 2 == 0 ? "k=v" : NULL, {n, 1}};
    }
    struct buf b = pprof_make(&spec, rows, 40);
    failing_malloc_resume(armed);
    return b;
}

/* Writes it, again if that fails once. False if it failed. */
static bool write_out(struct merge *m, struct buf *out)
{
    struct err err = ERR_INIT;
    bool ok = merge_write(m, out, &err);
    if (!ok) {
        CHECK_STR(err.msg, "out of memory", "");
        buf_clear(out);
        assert_true(merge_write(m, out, &err));
    }
    return ok;
}

/* Each profile is added again if it failed, so that the result is always the same. */
static bool merge_all(struct merge *m, struct buf *out)
{
    bool complete = true;
    for (int64_t i = 0; i < PROFILES; i++) {
        struct err err = ERR_INIT;
        SCOPED(buf) body = profile(i + 1);
        if (!merge_add(m, (struct sv){body.data, body.len}, &err)) {
            CHECK_STR(err.msg, "out of memory", "");
            CHECK_INT(err.kind, ERR_MEMORY, "");
            complete = false;
            assert_true(merge_add(m, (struct sv){body.data, body.len}, &err));
        }
    }
    return write_out(m, out) && complete;
}

static struct buf expected;

static void merging(bool *complete)
{
    const struct merge_options o = {.bytes_max = (size_t)1024 * 1024};
    struct err err = ERR_INIT;
    struct merge *m = merge_new(&o, &err);
    if (m == NULL) {
        CHECK_STR(err.msg, "out of memory", "");
        return;
    }
    SCOPED(buf) out = testing_buf((size_t)1024 * 1024);
    *complete = merge_all(m, &out);
    bool armed = failing_malloc_pause();
    if (expected.len == 0) {
        buf_init(&expected, (size_t)1024 * 1024);
        buf_append(&expected, out.data, out.len);
    }
    CHECK_INT(out.len, expected.len, "");
    assert_memory_equal(out.data, expected.data, out.len);
    failing_malloc_resume(armed);
    merge_free(m);
}

TEST(each_fails_once)
{
    bool complete = false;
    merging(&complete); /* what is expected, without a failure */
    assert_true(complete);
    assert_true(failing_malloc_each(FAIL_OURS, merging) >= 30);
    buf_done(&expected);
}
