/* Deltas without memory: each allocation fails once, and only the delta is lost. */
#include "tests/unit/lib/testing.h"

#include "pprof/delta.h"
#include "tests/unit/lib/failing_malloc.h"
#include "tests/unit/lib/pprof_writer.h"

static struct buf profile(int64_t n)
{
    const struct pprof_spec spec = {.types = "alloc_objects/count inuse_objects/count",
                                    .time_nanos = n};
    const struct pprof_row rows[] = {
        {"a@1 m@2", "k=v", {n, 1}}, {"b m", "n=7", {n, 0}}, {"c m", NULL, {n, 0}}};
    bool armed = failing_malloc_pause();
    struct buf b = pprof_make(&spec, rows, 3);
    failing_malloc_resume(armed);
    return b;
}

static void check_failure(enum delta_result r, const struct delta_output *out,
                          const struct err *err)
{
    CHECK_INT(r, DELTA_NO_MEMORY, "");
    CHECK_STR(err->msg, "out of memory", "");
    assert_null(out->data);
    assert_null(out->next);
}

/* A first profile and a second one; *complete if both were made. */
static void two_profiles(bool *complete, struct scratch *scratch)
{
    struct buf bodies[2] = {profile(10), profile(15)};
    struct delta_state *baseline = NULL;
    size_t made = 0;
    for (size_t i = 0; i < 2; i++) {
        struct delta_input in = {
            .body = {bodies[i].data, bodies[i].len}, .baseline = baseline, .scratch = scratch};
        struct delta_output out;
        struct err err = ERR_INIT;
        enum delta_result r = delta_make(&in, &out, &err);
        if (scratch != NULL) {
            scratch_reset(scratch);
        }
        if (r > DELTA_PASSED) {
            check_failure(r, &out, &err);
            continue;
        }
        CHECK_INT(r, baseline == NULL ? DELTA_FIRST : DELTA_MADE, "");
        CHECK_INT(out.samples_out, baseline == NULL ? 1 : 3, "");
        CHECK_INT(out.next == NULL ? 0 : out.next->n, 3, "");
        delta_state_unref(baseline);
        baseline = out.next;
        out.next = NULL;
        delta_output_done(&out);
        made++;
    }
    delta_state_unref(baseline);
    buf_done(&bodies[0]);
    buf_done(&bodies[1]);
    *complete = made == 2;
}

static void own_scratch(bool *complete)
{
    SCOPED(scratch) *scratch = scratch_new();
    two_profiles(complete, scratch);
}

static void pooled_scratch(bool *complete)
{
    struct scratch_pool *pool = scratch_pool_new(SCRATCH_POOL_MAX);
    if (pool == NULL) {
        return;
    }
    struct scratch *scratch = scratch_pool_take(pool, SIZE_MAX);
    two_profiles(complete, scratch);
    scratch_pool_give(pool, scratch);
    scratch_pool_unref(pool);
}

TEST(each_fails_once)
{
    assert_true(failing_malloc_each(FAIL_OURS, own_scratch) >= 8);
    assert_true(failing_malloc_each(FAIL_OURS, pooled_scratch) >= 8);
}
