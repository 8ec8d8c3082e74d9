/* Every single allocation of buffers, arenas, tables and metrics failing once. */
#include "tests/unit/torture.h"

/* NOLINTBEGIN(bugprone-suspicious-include): with failing allocators */
#include "base/arena.c"
#include "base/buf.c"
#include "base/map.c"
#include "base/metrics.c"
/* NOLINTEND(bugprone-suspicious-include) */

#include "tests/unit/testing.h"

static void use_buf(bool *ret_complete)
{
    struct buf b;
    buf_init(&b, 100000);
    buf_reserve(&b, 10);
    for (int i = 0; i < 1000; i++) {
        buf_printf(&b, "%d,", i);
    }
    size_t len = 0;
    if (!buf_ok(&b)) {
        assert_false(buf_too_big(&b));
        CHECK_INT(b.len, 0, "");
    }
    char *p = buf_take(&b, &len);
    if (p != NULL) {
        CHECK_INT(len, 3890, "");
        CHECK_INT(strncmp(p, "0,1,2,", 6), 0, "");
    }
    free(p);
    buf_clear(&b);
    p = buf_take(&b, &len);
    *ret_complete = p != NULL;
    free(p);
    buf_done(&b);
}

static void use_arena(bool *ret_complete)
{
    struct arena *a = arena_new(1000000);
    size_t got = 0;
    for (size_t i = 0; a != NULL && i < 200; i++) {
        char *text = arena_printf(a, "%zu", i * 1000);
        char *block = arena_alloc(a, i * 20);
        if (text != NULL && block != NULL) {
            got++;
        }
        if (i == 100) {
            arena_reset(a);
        }
    }
    *ret_complete = got == 200;
    arena_free(a);
}

/* The counts are right, and a search always comes to an end. */
static void check_slots(const struct map *m)
{
    size_t live = 0;
    size_t dead = 0;
    for (size_t i = 0; i < m->n_slots; i++) {
        live += m->slots[i].hash >= LIVE_MIN;
        dead += m->slots[i].hash == DEAD;
        assert_true((m->slots[i].entry != NULL) == (m->slots[i].hash >= LIVE_MIN));
    }
    CHECK_INT(m->live, live, "");
    CHECK_INT(m->dead, dead, "");
    assert_true((live + dead) * 4 <= m->n_slots * 3);
}

static void use_map(bool *ret_complete)
{
    static int values[100];
    size_t put = 0;
    struct map *m = map_new();
    for (size_t i = 0; m != NULL && i < 100; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%zu", i);
        bool ok = map_put(m, sv_from(key), &values[i], NULL);
        put += ok;
        CHECK_INT(map_count(m), put, "what failed changed nothing");
        assert_ptr_equal(map_get(m, sv_from(key)), ok ? &values[i] : NULL);
        if (i % 5 == 0 && ok) {
            map_remove(m, sv_from(key));
            put--;
        }
        check_slots(m);
    }
    *ret_complete = put == 80;
    map_free(m, NULL);
}

static void collect_nothing(struct metrics_out *o, void *arg)
{
    (void)o;
    (void)arg;
}

static void use_metrics(bool *ret_complete)
{
    static const double bounds[] = {1, 2};
    const struct metric_desc counter = {
        .name = "c", .help = "", .type = METRIC_COUNTER, .labels = {"l"}};
    const struct metric_desc histogram = {
        .name = "h", .help = "", .type = METRIC_HISTOGRAM, .buckets = bounds, .n_buckets = 2};
    struct metrics *m = metrics_new();
    struct metric *c = metrics_register(m, &counter);
    struct metric *h = metrics_register(m, &histogram);
    bool collects = metrics_collector(m, collect_nothing, NULL);
    for (int i = 0; i < 600; i++) {
        char value[16];
        (void)snprintf(value, sizeof(value), "%d", i);
        metric_inc(metric_cell(c, (const char *const[]){value}));
    }
    metric_observe(metric_only(h), 1.5);
    struct buf page;
    buf_init(&page, 100000);
    bool rendered = metrics_render(m, &page);
    *ret_complete = collects && rendered && strstr(page.data, "c{l=\"510\"} 1\n") != NULL &&
                    strstr(page.data, "c{l=\"other\"} 89\n") != NULL &&
                    strstr(page.data, "h_count 1\n") != NULL;
    buf_done(&page);
    metrics_free(m);
}

/* At least as many failures as there are kinds of allocations in the scenario. */
static void buf_survives(void **state)
{
    (void)state;
    assert_in_range(torture(use_buf), 5, 100);
}

static void arena_survives(void **state)
{
    (void)state;
    assert_in_range(torture(use_arena), 5, 500);
}

static void map_survives(void **state)
{
    (void)state;
    assert_in_range(torture(use_map), 103, 200);
}

static void metrics_survive(void **state)
{
    (void)state;
    assert_in_range(torture(use_metrics), 1000, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buf_survives),
        cmocka_unit_test(arena_survives),
        cmocka_unit_test(map_survives),
        cmocka_unit_test(metrics_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
