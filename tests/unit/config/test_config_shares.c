/* One limit of memory, and what everything gets of it. */
#include "tests/unit/lib/testing.h"

#include "config/memory.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

#define MIB (UINT64_C(1) << 20)

static uint64_t sum(const struct config_memory *m)
{
    return m->overhead + m->bodies + m->pending + m->work + m->baselines + m->merging + m->queues +
           m->queries + m->received;
}

/* Whatever the limit and the number of endpoints: the shares fit in, and none is nothing. */
TEST(shares_fit)
{
    for (uint64_t limit = 32 * MIB; limit < UINT64_C(1) << 42; limit += limit / 7) {
        for (size_t n = 1; n <= CONFIG_ENDPOINTS_MAX; n *= 2) {
            struct config_memory m;
            struct memory_input in = {
                .limit = limit,
                .n_queues = n,
                .query = {.used = n % 4 == 2, .concurrency = (unsigned)n},
                .receive = {.used = n % 3 == 1, .concurrency = 2},
            };
            memory_plan(&in, &m);
            CHECK_INT(m.queries, in.query.used ? n * in.query.request + in.query.bodies : 0, "");
            CHECK_INT(m.received, in.receive.used ? 2 * in.receive.request + in.receive.bodies : 0,
                      "");
            assert_true(in.query.request >= 16 * 1024 && in.query.bodies >= MIB / 4);
            assert_true(in.receive.request >= MIB / 2 && in.receive.bodies >= MIB / 4);
            assert_true(in.query.request <= MEMORY_QUERY_DEFAULT);
            assert_true(in.receive.bodies <= MEMORY_RECEIVE_BODIES_DEFAULT);
            CHECK_INT(m.sum, sum(&m), "");
            assert_true(m.sum <= limit);
            CHECK_INT(m.queues, n * m.queue, "");
            assert_true(m.bodies >= MIB / 2 && m.baselines >= MIB && m.work >= MIB / 2);
            assert_true(m.pending >= MIB / 2 && m.queue >= 16 * 1024);
            assert_true(m.queue <= MEMORY_QUEUE_DEFAULT && m.bodies <= MEMORY_BODIES_DEFAULT);
        }
    }
}

TEST(without_a_limit)
{
    struct config_memory m;
    struct memory_input in = {.n_queues = 2, .query = {.used = true, .concurrency = 2}};
    memory_plan(&in, &m);
    CHECK_INT(in.query.request, MEMORY_QUERY_DEFAULT, "");
    CHECK_INT(in.query.bodies, MEMORY_QUERY_BODIES_DEFAULT, "");
    CHECK_INT(in.receive.request, MEMORY_RECEIVE_DEFAULT, "");
    CHECK_INT(in.receive.bodies, MEMORY_RECEIVE_BODIES_DEFAULT, "");
    CHECK_INT(m.queries, 2 * MEMORY_QUERY_DEFAULT + MEMORY_QUERY_BODIES_DEFAULT, "");
    CHECK_INT(m.received, 0, "nothing is received");
    CHECK_INT(m.bodies, MEMORY_BODIES_DEFAULT, "");
    CHECK_INT(m.baselines, MEMORY_BASELINES_DEFAULT, "");
    CHECK_INT(m.queue, MEMORY_QUEUE_DEFAULT, "");
    CHECK_INT(m.queues, 2 * MEMORY_QUEUE_DEFAULT, "");
    CHECK_INT(m.pending, MEMORY_PENDING_DEFAULT, "");
    CHECK_INT(m.work, MEMORY_WORK_DEFAULT, "");
    CHECK_INT(m.overhead, 0, "");
}

/* Ceilings that the file sets stay, even if they do not fit. */
TEST(given_ceilings_stay)
{
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
TEST(a_configuration_gets_its_shares)
{
    SCOPED(config) *c = parse("", 256 * MIB);
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
}

/* Without a store and a receiver, nothing is set aside for requests, and the shares are those of a
 * process that only scrapes. With them, everything else shares what they leave. */
TEST(requests_get_a_share)
{
    struct config_memory without;
    struct config_memory with;
    struct memory_input in = {.limit = 512 * MIB, .n_queues = 1};
    memory_plan(&in, &without);
    CHECK_INT(without.queries + without.received, 0, "");
    in = (struct memory_input){.limit = 512 * MIB,
                               .n_queues = 1,
                               .query = {.used = true, .concurrency = 2},
                               .receive = {.used = true, .concurrency = 4}};
    memory_plan(&in, &with);
    assert_true(with.sum <= in.limit);
    assert_true(with.queries > 80 * MIB && with.received > 80 * MIB);
    assert_true(with.bodies < without.bodies && with.baselines < without.baselines);
    in.query.request = 400 * MIB;
    memory_plan(&in, &with);
    CHECK_INT(in.query.request, 400 * MIB, "as given");
    CHECK_INT(with.queries, 800 * MIB + in.query.bodies, "");
    assert_true(with.sum > in.limit);
}

/* The sections `query` and `receive` get the shares of what they are used for. */
TEST(servers_of_a_configuration)
{
    static const struct {
        const char *text;
        bool queried, received;
    } rows[] = {
        {"write: [{name: a, url: http://x}]\n", false, false},
        {"write: [{name: a, url: \"store:///tmp/x\"}]\n", true, false},
        {"write: [{name: a, url: http://x}]\nreceive: {listen: 127.0.0.1:0}\n", false, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_options o = {.protocols = testing_protocols, .memory_available = 320 * MIB};
        SCOPED(config) *c = valid_config("f", rows[i].text, &o);
        assert_true(c->memory.sum <= c->memory.limit);
        CHECK_INT(c->memory.queries > 0, rows[i].queried, rows[i].text);
        CHECK_INT(c->memory.received > 0, rows[i].received, rows[i].text);
        assert_true(c->query.concurrency * c->query.max_bytes + c->query.bodies_max_bytes <=
                    c->memory.limit / 2);
        CHECK_INT(c->receive.server.max_bytes > 0, rows[i].received, "");
        assert_true(c->receive.server.max_bytes < MEMORY_RECEIVE_DEFAULT);
    }
}

/* A dump does not depend on the machine that it is made on, and shows the shares of a given limit.
 */
TEST(dumps)
{
    SCOPED(buf) b = testing_buf(1 << 20);
    SCOPED(config) *c = parse("memory_limit: 1GiB", 0);
    assert_true(config_dump(c, &b));
    CHECK_CONTAINS(b.data, "\n  memory_limit: 1GiB\n", "");
    assert_null(strstr(b.data, "bodies_max_bytes: 256MiB"));
    config_unref(c);
    c = parse("", 0);
    buf_clear(&b);
    assert_true(config_dump(c, &b));
    assert_null(strstr(b.data, "memory_limit"));
    CHECK_CONTAINS(b.data, "bodies_max_bytes: 256MiB", "");
}
