/* The queue and its spool with each of their allocations failing in turn: a clean error or a
 * balanced ledger, and nothing leaks. */
#include "tests/unit/write/spool_rig.h"

#include <stdlib.h>

#include "tests/unit/lib/failing_malloc.h"

static char *scenario_dir;

static void one_life(struct rig *r, unsigned first, unsigned *seen)
{
    struct err err = ERR_INIT;
    if (!rig_open_all(r, &err)) {
        assert_true(err.msg[0] != '\0' || !r->e);
        r->e = send_queue_free(r->e);
        return;
    }
    rig_settle(r);
    for (unsigned i = first; i < first + 12; i++) {
        rig_put(r, i, 3000);
        rig_pass(r, 200);
    }
    rig_pass(r, SPOOL_RETRY_MAX_MS);
    CHECK_MEMORY(r);
    (void)rig_send(r, 5, seen, 40);
    rig_close_all(r);
}

static void scenario(bool *ret_complete)
{
    struct rig r;
    unsigned seen[40] = {0};
    rig_init(&r, scenario_dir);
    r.quiet = true;
    r.max_bytes = 24 * 1024;
    /* Tables of strings are not what is tested here. */
    bool armed = failing_malloc_pause();
    r.in = intern_new();
    failing_malloc_resume(armed);
    one_life(&r, 0, seen);
    one_life(&r, 12, seen);
    bool failed = failing_malloc_stop();
    /* The last process has all the memory that it needs, and nothing remains after it. */
    assert_true(rig_open_all(&r, NULL));
    for (int i = 0; i < 5; i++) {
        r.now = clock_mono_ms() + 100000 + i * 100000;
        rig_settle(&r);
        (void)rig_send(&r, 99, seen, 40);
    }
    CHECK_INT(send_queue_status(r.e).ledger.queued, 0, "");
    unsigned lost = 0;
    for (unsigned i = 0; i < 24; i++) {
        assert_true(seen[i] <= 1 || failed);
        lost += seen[i] == 0;
    }
    /* One allocation fails: at worst one of the processes does not start. */
    assert_true(lost <= (failed ? 12 : 0));
    rig_done(&r);
    *ret_complete = lost == 0;
}

TEST(every_allocation_fails)
{
    scenario_dir = testing_mkdtemp();
    size_t runs = failing_malloc_each(FAIL_OURS, scenario);
    printf("%zu allocations\n", runs);
    assert_true(runs > 60);
    testing_rmdir(scenario_dir);
    free(scenario_dir);
}
