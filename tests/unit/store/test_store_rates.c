/* Rates, levels and versions, with profiles whose numbers are known. */
#include <math.h>
#include <stdlib.h>

#include "store/query/rates.h"
#include "store/query/versions.h"
#include "tests/unit/lib/store_rig.h"

#define T0_MS (RIG_T0 / NS_PER_MS)
#define MINUTE_MS (INT64_C(60) * MS_PER_S)
#define CPU_TYPES "samples/count cpu/nanoseconds"
#define HEAP_TYPES "alloc_space/bytes inuse_space/bytes"

struct rates_rig {
    struct store_rig store;
    struct query q;
};

static void rates_rig_init(struct rates_rig *r)
{
    store_rig_init(&r->store);
    r->q = (struct query){.store = r->store.store,
                          .bytes_max = (size_t)64 * 1024 * 1024,
                          .arena = arena_new((size_t)64 * 1024 * 1024)};
    assert_non_null(r->q.arena);
}

static void rates_rig_done(struct rates_rig *r)
{
    arena_free(r->q.arena);
    store_rig_done(&r->store);
}
SCOPED_VALUE(rates_rig, rates_rig_done)

/* Puts a profile at a second after T0. skew_s: by how much the clock of the program, which writes
 * the time inside, is ahead. */
static void put_cpu(struct rates_rig *r, const char *labels, int64_t second, int64_t skew_s,
                    int64_t duration_ms, const struct pprof_row *rows, size_t n)
{
    struct pprof_spec spec = {.types = CPU_TYPES,
                              .period_type = "cpu/nanoseconds",
                              .time_nanos = RIG_T0 + (second + skew_s) * RIG_SECOND,
                              .duration_nanos = duration_ms * NS_PER_MS};
    SCOPED(buf) b = pprof_make(&spec, rows, n);
    struct store_put put;
    assert_int_equal(rig_put_bytes(&r->store, labels, RIG_T0 + second * RIG_SECOND,
                                   (struct sv){b.data, b.len}, PROFILE_PPROF, &put),
                     STORE_TAKEN);
}

static void put_heap(struct rates_rig *r, const char *labels, int64_t second, int64_t alloc,
                     int64_t inuse)
{
    const struct pprof_row row = {"main", "", {alloc, inuse}};
    rig_put(&r->store, labels, RIG_T0 + second * RIG_SECOND, HEAP_TYPES, &row, 1, NULL);
}

enum { CPU, ALLOC, INUSE, KINDS };

static void name_kinds(struct query_rate_kind ret[KINDS])
{
    ret[CPU] = (struct query_rate_kind){SV("cpu"), SV("nanoseconds"), MEASURE_WINDOW};
    ret[ALLOC] = (struct query_rate_kind){SV("alloc_space"), SV("bytes"), MEASURE_GROWTH};
    ret[INUSE] = (struct query_rate_kind){SV("inuse_space"), SV("bytes"), MEASURE_LEVEL};
}

static struct query_rates ask_kinds(struct rates_rig *r, int64_t minutes, bool by_service)
{
    struct err err = ERR_INIT;
    struct query_rates rates;
    struct query_rate_kind kinds[KINDS];
    name_kinds(kinds);
    const struct query_range range = {T0_MS, T0_MS + minutes * MINUTE_MS, NULL};
    const struct query_rate_options o = {
        .kinds = kinds, .n_kinds = KINDS, .step_ms = MINUTE_MS, .by_service = by_service};
    bool ok = query_rates(&r->q, &range, &o, &rates, &err);
    CHECK_STR(err.msg, "", "query_rates");
    assert_true(ok);
    assert_int_equal(rates.n_steps, minutes);
    assert_int_equal(rates.start_ms, T0_MS);
    return rates;
}

/* Checks the values of a kind of a service, "1 - 2.5": one for each step, "-" for none. */
static void check_values(const struct query_rates *rates, const char *service, size_t kind,
                         const char *want)
{
    SCOPED(buf) out = testing_buf(10000);
    for (size_t i = 0; i < rates->n; i++) {
        const double *v = rates->at[i].values[kind];
        for (size_t k = 0;
             sv_eq_str(rates->at[i].service, service) && v != NULL && k < rates->n_steps; k++) {
            buf_puts(&out, k > 0 ? " " : "");
            if (isnan(v[k])) {
                buf_puts(&out, "-");
            } else {
                buf_printf(&out, "%.6g", v[k]);
            }
        }
    }
    CHECK_STR(out.data, want, service);
}

SETUP_OF(rates_rig)

/* Half a core in one pod and a quarter in the other, in profiles of ten seconds every fifteen: the
 * rate counts the ten seconds that were profiled, by the clock of the program. */
TEST_ON(struct rates_rig *r, test_cores_are_time_by_time_covered)
{
    static const struct pprof_row half = {"main", "", {500, 5000000000}};
    static const struct pprof_row quarter = {"main", "", {250, 2500000000}};
    for (int64_t s = -30; s < 180; s += 15) {
        put_cpu(r, "__name__=process_cpu,pod=a,service_name=cart", s, 0, 10000, &half, 1);
        put_cpu(r, "__name__=process_cpu,pod=b,service_name=cart", s + 1, 8, 10000, &quarter, 1);
    }
    struct query_rates rates = ask_kinds(r, 3, true);
    assert_int_equal(rates.n, 1);
    check_values(&rates, "cart", CPU, "7.5e+08 7.5e+08 7.5e+08");
    assert_true(query_rate_mean(rates.at[0].values[CPU], rates.n_steps) == 7.5e8);
    assert_null(rates.at[0].values[ALLOC]);
}

/* A program that is busy in one of four profiles: the ones without a sample cover time, too. */
TEST_ON(struct rates_rig *r, test_idle_profiles_cover_time)
{
    static const struct pprof_row busy = {"main", "", {400, 4000000000}};
    for (int64_t s = 0; s < 120; s += 15) {
        put_cpu(r, "__name__=process_cpu,service_name=cron", s, 0, 10000, &busy,
                s % 60 == 0 ? 1 : 0);
    }
    struct query_rates rates = ask_kinds(r, 2, true);
    check_values(&rates, "cron", CPU, "1e+08 1e+08");
    /* Queries that count profiles do not see them. */
    rig_check(&r->store, RIG_POINTS, "{__type__=\"cpu\"}", 0, 60, "service_name",
              "cron 0 4000000000\ncron 60 4000000000\n");
    rig_check(&r->store, RIG_BODIES, NULL, 1, 59, NULL, "");
}

/* Labels of samples split a profile into series, which together cover its time once. */
TEST_ON(struct rates_rig *r, test_series_of_one_profile_cover_its_time_once)
{
    static const struct pprof_row rows[] = {{"a", "route=x", {100, 1000000000}},
                                            {"b", "route=y", {200, 2000000000}},
                                            {"c", "", {300, 3000000000}}};
    for (int64_t s = 0; s < 60; s += 15) {
        /* The route y is in one profile only. */
        put_cpu(r, "__name__=process_cpu,service_name=cart", s, 0, 10000, rows, 1);
    }
    put_cpu(r, "__name__=process_cpu,service_name=cart", 59, 0, 10000, rows, 3);
    struct query_rates rates = ask_kinds(r, 1, true);
    /* (4 x 1 s + 6 s) / 50 s */
    check_values(&rates, "cart", CPU, "2e+08");
}

TEST_ON(struct rates_rig *r, test_allocations_are_divided_by_the_time_since_the_profile_before)
{
    for (int64_t s = -60; s < 180; s += 15) {
        put_heap(r, "__name__=memory,pod=a,service_name=cart", s, 15 * 1024, 1000);
    }
    /* Its first profile has nothing before it, so its value is not used, and comes in the middle of
     * its step; then it misses a minute, which the next one covers. */
    put_heap(r, "__name__=memory,pod=b,service_name=cart", 30, 999999, 500);
    put_heap(r, "__name__=memory,pod=b,service_name=cart", 150, 120 * 100, 700);
    struct query_rates rates = ask_kinds(r, 3, true);
    check_values(&rates, "cart", ALLOC, "1074 1124 1124");
    check_values(&rates, "cart", INUSE, "1250 1500 1700");
}

/* A level is not summed over scrapes, but over instances; one that is scraped every other minute
 * counts in each, and one that has ended does not count any more. */
TEST_ON(struct rates_rig *r, test_levels_are_means_of_instances)
{
    for (int64_t s = 0; s < 360; s += 10) {
        put_heap(r, "__name__=memory,pod=a,service_name=cart", s, 1, s % 20 == 0 ? 900 : 1100);
    }
    put_heap(r, "__name__=memory,pod=b,service_name=cart", 0, 1, 50);
    put_heap(r, "__name__=memory,pod=b,service_name=cart", 120, 1, 70);
    struct query_rates rates = ask_kinds(r, 6, true);
    check_values(&rates, "cart", INUSE, "1050 1050 1070 1070 1000 1000");
    struct query_rates all = ask_kinds(r, 6, false);
    check_values(&all, "", INUSE, "1050 1050 1070 1070 1000 1000");
}

/* A pod takes the place of another in the middle of a step, in which both have profiles: there is
 * no peak. Neither is there a gap where the first one began or the last one ended. */
TEST_ON(struct rates_rig *r, test_a_pod_that_replaces_another_makes_no_peak)
{
    for (int64_t s = 90; s < 150; s += 10) {
        put_heap(r, "__name__=memory,pod=a,service_name=cart", s, 600, 1000);
    }
    for (int64_t s = 150; s < 210; s += 10) {
        put_heap(r, "__name__=memory,pod=b,service_name=cart", s, 600, 1000);
    }
    struct query_rates rates = ask_kinds(r, 6, true);
    check_values(&rates, "cart", INUSE, "- 1000 1000 1000 - -");
    check_values(&rates, "cart", ALLOC, "- 60 60 60 - -");
}

TEST_ON(struct rates_rig *r, test_services_are_groups_and_gaps_stay)
{
    put_heap(r, "__name__=memory,service_name=a", 0, 1, 1);
    put_heap(r, "__name__=memory,service_name=a", 15 * 60, 1, 3);
    put_heap(r, "__name__=memory,service_name=b", 60, 1, 2);
    struct query_rates rates = ask_kinds(r, 16, true);
    assert_int_equal(rates.n, 2);
    assert_false(rates.is_cut);
    check_values(&rates, "a", INUSE, "1 - - - - - - - - - - - - - - 3");
    check_values(&rates, "b", INUSE, "- 2 - - - - - - - - - - - - - -");
    check_values(&rates, "b", ALLOC, "- - - - - - - - - - - - - - - -");
    assert_true(isnan(query_rate_mean(NULL, 3)));
    assert_true(query_rate_mean(rates.at[0].values[INUSE], 16) == 2 ||
                query_rate_mean(rates.at[1].values[INUSE], 16) == 2);
}

TEST_ON(struct rates_rig *r, test_limits_of_rates)
{
    struct err err = ERR_INIT;
    struct query_rates rates;
    struct query_rate_kind kinds[KINDS];
    name_kinds(kinds);
    put_heap(r, "__name__=memory,service_name=a", 0, 1, 1);
    struct query_range range = {T0_MS, T0_MS + 2000 * MINUTE_MS, NULL};
    const struct query_rate_options o = {.kinds = kinds, .n_kinds = KINDS, .step_ms = MINUTE_MS};
    assert_false(query_rates(&r->q, &range, &o, &rates, &err));
    CHECK_STR(err.msg, "expected at most 1000 steps, got 2000", "steps");
    err = (struct err)ERR_INIT;
    range.end_ms = T0_MS + MINUTE_MS;
    put_heap(r, "__name__=memory,service_name=b", 0, 1, 1);
    const struct query_rate_options few = {.kinds = kinds,
                                           .n_kinds = KINDS,
                                           .step_ms = MINUTE_MS,
                                           .instances_max = 3,
                                           .by_service = true};
    assert_true(query_rates(&r->q, &range, &few, &rates, &err));
    assert_true(rates.is_cut);
    check_values(&rates, "a", INUSE, "1");
    r->q.bytes_max = 1000;
    assert_false(query_rates(&r->q, &range, &o, &rates, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
}

TEST(test_types_are_measured_by_what_they_are)
{
    static const struct {
        const char *id;
        enum query_measure measure;
    } rows[] = {
        {"process_cpu:cpu:nanoseconds:cpu:nanoseconds", MEASURE_WINDOW},
        {"fgprof:time:nanoseconds::", MEASURE_WINDOW},
        {"memory:alloc_space:bytes:space:bytes", MEASURE_GROWTH},
        {"memory:alloc_objects:count:space:bytes", MEASURE_GROWTH},
        {"mutex:delay:nanoseconds:contentions:count", MEASURE_GROWTH},
        {"memory:inuse_space:bytes:space:bytes", MEASURE_LEVEL},
        {"goroutine:goroutine:count:goroutine:count", MEASURE_LEVEL},
        {"threadcreate:threadcreate:count::", MEASURE_LEVEL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct profile_type type;
        assert_true(profile_type_parse(sv_from(rows[i].id), &type, NULL));
        CHECK_INT((int)query_measure_of(&type), (int)rows[i].measure, rows[i].id);
    }
}

TEST_ON(struct rates_rig *r, test_versions_are_dated_by_their_first_profile)
{
    struct err err = ERR_INIT;
    struct query_versions versions;
    put_heap(r, "__name__=memory,pod=a,service_name=cart,version=v1", 0, 1, 1);
    put_heap(r, "__name__=memory,pod=a,service_name=cart,version=v1", 30, 1, 1);
    put_heap(r, "__name__=memory,pod=c,service_name=cart,version=v2", 4000, 1, 1);
    put_heap(r, "__name__=memory,pod=b,service_name=cart,version=v2", 3700, 1, 1);
    put_heap(r, "__name__=memory,pod_template_hash=5f,service_name=web", 60, 1, 1);
    put_heap(r, "__name__=memory,pod_template_hash=5f,service_git_ref=abc,service_name=web", 90, 1,
             1);
    put_heap(r, "__name__=memory,service_name=old", 60, 1, 1);
    const struct query_range range = {T0_MS, T0_MS + 7200 * MS_PER_S, NULL};
    assert_true(query_versions(&r->q, &range, &versions, &err));
    SCOPED(buf) out = testing_buf(10000);
    for (size_t i = 0; i < versions.n; i++) {
        const struct query_version *v = &versions.at[i];
        buf_printf(&out, "%.*s %.*s %d\n", SV_ARG(v->service), SV_ARG(v->version),
                   (int)((v->first_ms - T0_MS) / MS_PER_S));
    }
    CHECK_STR(out.data, "cart v1 0\ncart v2 3700\nold  60\nweb 5f 60\nweb abc 90\n", "versions");
    assert_false(versions.is_cut);
}
