/* One limit of memory, and what everything gets of it. */
#include "tests/unit/lib/testing.h"

#include "config/memory.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

#define MIB (UINT64_C(1) << 20)

static uint64_t sum(const struct config_memory *m)
{
    return m->overhead + m->bodies + m->pending + m->work + m->baselines + m->merging + m->queues;
}

/* Whatever the limit and the number of endpoints: the shares fit in, and none is nothing. */
static void shares_fit(void **state)
{
    (void)state;
    for (uint64_t limit = 32 * MIB; limit < UINT64_C(1) << 42; limit += limit / 7) {
        for (size_t n = 1; n <= CONFIG_ENDPOINTS_MAX; n *= 2) {
            struct config_memory m;
            memory_plan(&(struct memory_input){.limit = limit, .n_queues = n}, &m);
            CHECK_INT(m.sum, sum(&m), "");
            assert_true(m.sum <= limit);
            CHECK_INT(m.queues, n * m.queue, "");
            assert_true(m.bodies >= MIB && m.baselines >= MIB && m.work >= MIB);
            assert_true(m.pending >= MIB / 2 && m.queue >= 16 * 1024);
            assert_true(m.queue <= MEMORY_QUEUE_DEFAULT && m.bodies <= MEMORY_BODIES_DEFAULT);
        }
    }
}

static void without_a_limit(void **state)
{
    (void)state;
    struct config_memory m;
    memory_plan(&(struct memory_input){.n_queues = 2}, &m);
    CHECK_INT(m.bodies, MEMORY_BODIES_DEFAULT, "");
    CHECK_INT(m.baselines, MEMORY_BASELINES_DEFAULT, "");
    CHECK_INT(m.queue, MEMORY_QUEUE_DEFAULT, "");
    CHECK_INT(m.queues, 2 * MEMORY_QUEUE_DEFAULT, "");
    CHECK_INT(m.pending, MEMORY_PENDING_DEFAULT, "");
    CHECK_INT(m.work, MEMORY_WORK_DEFAULT, "");
    CHECK_INT(m.overhead, 0, "");
}

/* What the file says stays, even if it does not fit. */
static void given_ceilings_stay(void **state)
{
    (void)state;
    struct config_memory m;
    struct memory_input in = {.limit = 200 * MIB, .n_queues = 3, .n_given = 1, .queues = 5 * MIB};
    memory_plan(&in, &m);
    assert_true(m.sum <= in.limit);
    CHECK_INT(m.queues, 5 * MIB + 2 * m.queue, "");
    in.baselines = 300 * MIB;
    in.bodies = 5 * MIB;
    memory_plan(&in, &m);
    CHECK_INT(m.baselines, 300 * MIB, "");
    CHECK_INT(m.bodies, 5 * MIB, "");
    CHECK_INT(m.sum, sum(&m), "");
    assert_true(m.sum > in.limit);
}

static struct config *parse(const char *global, uint64_t available)
{
    char text[1024];
    snprintf(
        text, sizeof(text),
        "global: {%s}\n"
        "write: [{name: a, url: http://x}, {name: b, url: http://y, queue: {max_bytes: 3MiB}}]\n",
        global);
    struct config_options o = {.protocols = testing_protocols, .memory_available = available};
    return valid_config("f", text, &o);
}

/* Four fifths of what the kernel leaves us, unless the file says otherwise. */
static void a_configuration_gets_its_shares(void **state)
{
    (void)state;
    struct config *c = parse("", 256 * MIB);
    CHECK_INT(c->memory.limit, 256 * MIB / 100 * MEMORY_PERCENT, "");
    assert_true(c->memory.sum <= c->memory.limit);
    CHECK_INT(c->global.bodies_max_bytes, c->memory.bodies, "");
    CHECK_INT(c->global.delta_state_max_bytes, c->memory.baselines, "");
    CHECK_INT(c->endpoints[0].queue_max_bytes, c->memory.queue, "a share");
    CHECK_INT(c->endpoints[1].queue_max_bytes, 3 * MIB, "as given");
    assert_true(c->endpoints[0].queue_max_bytes < MEMORY_QUEUE_DEFAULT);
    config_unref(c);
    c = parse("memory_limit: 128MiB, delta_state_max_bytes: 200MiB", 256 * MIB);
    CHECK_INT(c->memory.limit, 128 * MIB, "");
    CHECK_INT(c->global.delta_state_max_bytes, 200 * MIB, "");
    assert_true(c->memory.sum > c->memory.limit);
    config_unref(c);
    c = parse("", 0);
    CHECK_INT(c->memory.limit, 0, "");
    CHECK_INT(c->endpoints[0].queue_max_bytes, MEMORY_QUEUE_DEFAULT, "");
    CHECK_INT(c->global.bodies_max_bytes, MEMORY_BODIES_DEFAULT, "");
    config_unref(c);
}

/* A dump does not depend on the machine that it is made on, and shows the shares of a given limit.
 */
static void dumps(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1 << 20);
    struct config *c = parse("memory_limit: 1GiB", 0);
    assert_true(config_dump(c, &b));
    CHECK_CONTAINS(b.data, "\n  memory_limit: 1GiB\n", "");
    assert_null(strstr(b.data, "bodies_max_bytes: 256MiB"));
    config_unref(c);
    c = parse("", 0);
    buf_clear(&b);
    assert_true(config_dump(c, &b));
    assert_null(strstr(b.data, "memory_limit"));
    CHECK_CONTAINS(b.data, "bodies_max_bytes: 256MiB", "");
    config_unref(c);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_fit),
        cmocka_unit_test(without_a_limit),
        cmocka_unit_test(given_ceilings_stay),
        cmocka_unit_test(a_configuration_gets_its_shares),
        cmocka_unit_test(dumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
