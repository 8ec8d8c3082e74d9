/* What is said of the shares of memory: metrics, and a line in the log. */
#include "tests/unit/testing.h"

#include "agent/memory.h"
#include "config/memory.h"

#define MIB (UINT64_C(1) << 20)
#define SHARE(name) testing_metric(metrics, "profpull_memory_share_bytes{share=\"" name "\"}")

static void report(const struct memory_input *in, const char *warning, const char *line)
{
    struct config_memory m;
    struct metrics *metrics = metrics_new();
    struct testing_log *log = testing_log_new();
    if (warning != NULL) {
        testing_log_expect(log, warning);
    }
    memory_plan(in, &m);
    memory_report(&m, testing_log(log), metrics);
    CHECK_CONTAINS(testing_log_text(log), line, "");
    CHECK_INT(testing_metric(metrics, "profpull_memory_limit_bytes"), in->limit, "");
    CHECK_INT(SHARE("overhead"), m.overhead, "");
    CHECK_INT(SHARE("bodies"), m.bodies, "");
    CHECK_INT(SHARE("pending"), m.pending, "");
    CHECK_INT(SHARE("work"), m.work, "");
    CHECK_INT(SHARE("baselines"), m.baselines, "");
    CHECK_INT(SHARE("merging"), m.merging, "");
    CHECK_INT(SHARE("queues"), m.queues, "");
    testing_log_done(log);
    metrics_free(metrics);
}

static void shares_are_said(void **state)
{
    (void)state;
    report(&(struct memory_input){.limit = 200 * MIB, .n_queues = 1}, NULL,
           "msg=\"memory is shared out\" memory_limit=209715200 ");
    report(&(struct memory_input){.n_queues = 1}, NULL, "");
}

static void too_much_is_a_warning(void **state)
{
    (void)state;
    report(&(struct memory_input){.limit = 200 * MIB, .baselines = 256 * MIB, .n_queues = 1},
           "the configured ceilings come to more than the memory limit", "baselines=268435456 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_said),
        cmocka_unit_test(too_much_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
