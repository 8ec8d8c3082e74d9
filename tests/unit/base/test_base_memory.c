/* Buffers, arenas, tables and metrics, with each allocation failing once. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "tests/unit/lib/failing_malloc.h"

static void use_buf(bool *ret_complete)
{
    SCOPED(buf) b = testing_buf(100000);
    buf_reserve(&b, 10);
    for (int i = 0; i < 1000; i++) {
        buf_printf(&b, "%d,", i);
    }
    size_t len = 0;
    if (!buf_ok(&b)) {
        assert_false(buf_too_big(&b));
        CHECK_INT(b.len, 0, "");
    }
    SCOPED_MEMORY char *p = buf_take(&b, &len);
    if (p != NULL) {
        CHECK_INT(len, 3890, "");
        CHECK_INT(strncmp(p, "0,1,2,", 6), 0, "");
    }
    free(p);
    buf_clear(&b);
    p = buf_take(&b, &len);
    *ret_complete = p != NULL;
}

static void use_arena(bool *ret_complete)
{
    SCOPED(arena) *a = arena_new(1000000);
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
}

/* A walk meets as many entries as are counted and each is found under its key; a search for what is
 * not there comes to an end, which it would not in a table without an empty slot. */
static void check_map(const struct map *m, size_t count)
{
    size_t cursor = 0;
    size_t live = 0;
    struct sv key;
    void *value;
    while (map_next(m, &cursor, &key, &value)) {
        live++;
        assert_ptr_equal(map_get(m, key), value);
    }
    CHECK_INT(live, count, "");
    CHECK_INT(map_count(m), count, "what failed changed nothing");
    for (unsigned i = 0; i < 8; i++) {
        char missing[16];
        (void)snprintf(missing, sizeof(missing), "missing %u", i);
        assert_null(map_get(m, sv_from(missing)));
    }
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
        assert_ptr_equal(map_get(m, sv_from(key)), ok ? &values[i] : NULL);
        if (i % 5 == 0 && ok) {
            map_remove(m, sv_from(key));
            put--;
        }
        check_map(m, put);
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
    SCOPED(metrics) *m = metrics_new();
    struct metric *c = metrics_register(m, &counter);
    struct metric *h = metrics_register(m, &histogram);
    bool collects = metrics_collector(m, collect_nothing, NULL);
    for (int i = 0; i < 600; i++) {
        char value[16];
        (void)snprintf(value, sizeof(value), "%d", i);
        metric_inc(metric_cell(c, (const char *const[]){value}));
    }
    metric_observe(metric_only(h), 1.5);
    SCOPED(buf) page = testing_buf(100000);
    bool rendered = metrics_render(m, &page);
    *ret_complete = collects && rendered && strstr(page.data, "c{l=\"510\"} 1\n") != NULL &&
                    strstr(page.data, "c{l=\"other\"} 89\n") != NULL &&
                    strstr(page.data, "h_count 1\n") != NULL;
}

/* At least one failure for each kind of allocation in the scenario. */
TEST(buf_survives)
{
    assert_in_range(failing_malloc_each(FAIL_OURS, use_buf), 5, 100);
}

TEST(arena_survives)
{
    assert_in_range(failing_malloc_each(FAIL_OURS, use_arena), 5, 500);
}

TEST(map_survives)
{
    assert_in_range(failing_malloc_each(FAIL_OURS, use_map), 103, 200);
}

TEST(metrics_survive)
{
    assert_in_range(failing_malloc_each(FAIL_OURS, use_metrics), 1000, 10000);
}
