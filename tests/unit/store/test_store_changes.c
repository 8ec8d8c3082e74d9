/* Changes between two versions: the statistics on programs whose truth is known, and the way
 * from profiles in a store to a verdict. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "store/changes/report.h"
#include "store/changes/student.h"
#include "store/changes/watch.h"
#include "tests/unit/lib/changes_world.h"
#include "tests/unit/lib/rollout.h"
#include "tests/unit/lib/store_rig.h"

#define ARENA_BYTES ((size_t)64 * 1024 * 1024)
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

/* ---- statistics ------------------------------------------------------------------------------ */

/* Values of the tables of Student's t. */
TEST(student)
{
    assert_true(fabs(student_p(2.776445, 4) - 0.05) < 1e-6);
    assert_true(fabs(student_p(-2.776445, 4) - 0.05) < 1e-6);
    assert_true(fabs(student_p(1.959964, 1e6) - 0.05) < 1e-5);
    assert_true(fabs(student_p(0, 3) - 1) < 1e-9);
    assert_true(fabs(student_p(63.65674, 1) - 0.01) < 1e-6);
    assert_true(fabs(student_t(0.05, 10) - 2.228139) < 1e-5);
    assert_true(fabs(student_t(0.001, 2) - 31.59905) < 1e-3);
}

struct tally {
    size_t flagged;
    size_t found; /* the planted function was said to have grown */
};

static struct tally try_worlds(uint64_t seed, size_t n, size_t instances, double load,
                               double growth)
{
    struct tally t = {.flagged = 0};
    struct arena *arena = arena_new(ARENA_BYTES);
    assert_non_null(arena);
    for (size_t i = 0; i < n; i++) {
        struct changes_world w;
        struct verdicts v;
        struct err err = ERR_INIT;
        const struct world_options opt = {.seed = seed + i,
                                          .instances = {instances, instances},
                                          .minutes = 30,
                                          .load = {1, load},
                                          .growth = growth,
                                          .share = 0.1,
                                          .noise = 1};
        world_init(&w, &opt);
        assert_true(verdicts_make(&w.o, arena, &v, &err));
        t.flagged += v.n_changed > 0;
        for (size_t k = 0; k < v.n; k++) {
            const struct cost_change *self = &v.at[k].cost[COST_SELF];
            t.found += v.at[k].index == WORLD_PLANTED && self->changed && self->effect > 0;
        }
        world_done(&w);
        arena_reset(arena);
    }
    arena_free(arena);
    return t;
}

/* `make bench-changes` counts more of them. The seeds are fixed, so the counts are, too, except
 * for the last digits of exp() and log(). */
TEST(same_program_is_not_flagged)
{
    assert_in_range(try_worlds(1000, 40, 3, 1, 0).flagged, 0, 3);
    assert_in_range(try_worlds(2000, 20, 3, 0.5, 0).flagged, 0, 2);
    assert_in_range(try_worlds(3000, 20, 3, 2, 0).flagged, 0, 2);
    assert_in_range(try_worlds(4000, 10, 10, 1, 0).flagged, 0, 1);
}

TEST(growth_is_found_at_every_load)
{
    assert_in_range(try_worlds(5000, 20, 3, 1, 0.1).found, 16, 20);
    assert_in_range(try_worlds(6000, 20, 3, 0.5, 0.1).found, 16, 20);
    assert_in_range(try_worlds(7000, 20, 3, 2, 0.1).found, 16, 20);
    assert_in_range(try_worlds(8000, 10, 10, 1, 0.1).found, 10, 10);
}

/* One function becomes most of the program: the shares of all others fall, and none of them is said
 * to have changed. */
TEST(others_do_not_fall)
{
    struct changes_world w;
    struct verdicts v;
    struct err err = ERR_INIT;
    const struct world_options opt = {.seed = 11,
                                      .instances = {3, 3},
                                      .minutes = 30,
                                      .load = {1, 1},
                                      .growth = 9,
                                      .share = 0.1,
                                      .noise = 1};
    SCOPED(arena) *arena = arena_new(ARENA_BYTES);
    world_init(&w, &opt);
    assert_true(verdicts_make(&w.o, arena, &v, &err));
    assert_true(v.can_tell);
    assert_int_equal(v.at[0].index, WORLD_PLANTED);
    assert_true(v.at[0].cost[COST_SELF].changed);
    for (size_t i = 1; i < v.n; i++) {
        assert_false(v.at[i].cost[COST_SELF].changed);
    }
    /* At the same load, the program costs 0.9 more, and the share of the others falls to 1 / 1.9.
     */
    assert_true(fabs(v.ratio - 1.9) < 0.15);
    assert_true(fabs(v.shift - (1 / 1.9 - 1)) < 0.05);
    world_done(&w);
}

TEST(one_instance_allows_no_verdict)
{
    struct changes_world w;
    struct verdicts v;
    struct err err = ERR_INIT;
    const struct world_options opt = {.seed = 12,
                                      .instances = {1, 3},
                                      .minutes = 30,
                                      .load = {1, 1},
                                      .growth = 3,
                                      .share = 0.1,
                                      .noise = 1};
    SCOPED(arena) *arena = arena_new(ARENA_BYTES);
    world_init(&w, &opt);
    assert_true(verdicts_make(&w.o, arena, &v, &err));
    assert_false(v.can_tell);
    assert_int_equal(v.n_changed, 0);
    assert_int_equal(v.n_tested, 0);
    assert_int_equal(v.at[0].index, WORLD_PLANTED); /* ranked all the same */
    assert_true(isinf(v.at[0].cost[COST_SELF].effect_high));
    assert_true(v.ratio == 1);
    world_done(&w);
}

TEST(nothing_to_compare)
{
    struct observations o = {.n_functions = 0};
    struct verdicts v;
    struct err err = ERR_INIT;
    SCOPED(arena) *arena = arena_new(ARENA_BYTES);
    assert_true(verdicts_make(&o, arena, &v, &err));
    assert_int_equal(v.n, 0);
    assert_false(v.can_tell);
    assert_true(v.ratio == 1);
}

/* ---- from a store ---------------------------------------------------------------------------- */

struct asked {
    struct store_rig rig;
    struct arena *arena;
    struct query q;
};

static void asked_init(struct asked *a)
{
    store_rig_init(&a->rig);
    a->arena = arena_new(ARENA_BYTES);
    a->q = (struct query){.store = a->rig.store, .bytes_max = ARENA_BYTES, .arena = a->arena};
}

static void asked_done(struct asked *a)
{
    arena_free(a->arena);
    store_rig_done(&a->rig);
}
SCOPED_VALUE(asked, asked_done)

static struct changes_question question_of(const char *service)
{
    struct changes_question q = {.service = sv_from(service),
                                 .from_ms = RIG_T0 / NS_PER_MS,
                                 .until_ms = RIG_T0 / NS_PER_MS + 2 * 3600 * 1000};
    struct err err = ERR_INIT;
    assert_true(profile_type_parse(SV(CPU), &q.type, &err));
    return q;
}

static struct changes ask(struct asked *a, const struct changes_question *q)
{
    struct changes c;
    struct err err = ERR_INIT;
    bool ok = changes_find(&a->q, q, &c, &err);
    CHECK_STR(err.msg, "", "changes_find");
    assert_true(ok);
    return c;
}

TEST(slow_function_of_a_rollout)
{
    SCOPED(asked) a = {.arena = NULL};
    asked_init(&a);
    rollout_put(&a.rig, "cart", 40, 60);
    struct changes_question q = question_of("cart");
    struct changes c = ask(&a, &q);
    assert_int_equal(c.state, CHANGES_COMPARED);
    CHECK_STR(changes_word(&c), "changed", "state");
    assert_true(sv_eq_str(c.side[SIDE_BASE].version, "1.0"));
    assert_true(sv_eq_str(c.side[SIDE_NEW].version, "2.0"));
    assert_true(sv_eq_str(c.side[SIDE_NEW].label, "version"));
    assert_int_equal(c.side[SIDE_NEW].instances, 3);
    assert_int_equal(c.side[SIDE_NEW].profiles, 60);
    const struct function_change *first = &c.verdicts.at[0];
    assert_true(sv_eq_str(c.names[first->index], "main.slow"));
    const struct cost_change *self = &first->cost[COST_SELF];
    assert_true(self->changed);
    /* 20 samples more of 370: 5.4 % of the base. */
    assert_true(self->effect_low < 20.0 / 370 && 20.0 / 370 < self->effect_high);
    /* 10 ms a sample: 60 samples in 10 seconds are 0.06 cores. */
    assert_true(fabs(self->rate.now / 1e9 - 0.06) < 0.005);
    assert_true(self->rate.low < 0.02e9 && 0.02e9 < self->rate.high);
    for (size_t i = 0; i < c.verdicts.n; i++) {
        bool recursive = sv_eq_str(c.names[c.verdicts.at[i].index], "main.e");
        const struct cost_change *total = &c.verdicts.at[i].cost[COST_TOTAL];
        /* A stack counts once for main.e, though it is in it twice. */
        assert_true(!recursive || fabs(total->share.base - 150.0 / 370) < 0.02);
    }
}

TEST(rollout_without_a_change)
{
    SCOPED(asked) a = {.arena = NULL};
    asked_init(&a);
    rollout_put(&a.rig, "cart", 40, 40);
    struct changes_question q = question_of("cart");
    struct changes c = ask(&a, &q);
    CHECK_STR(changes_word(&c), "unchanged", "state");
    assert_int_equal(c.verdicts.n_changed, 0);
    assert_true(c.verdicts.n_tested > 5);
    assert_true(c.verdicts.ratio == 1);
    assert_non_null(strstr(changes_sentence(&c, a.arena), "No change"));
}

TEST(versions_and_ranges_that_are_asked_for)
{
    SCOPED(asked) a = {.arena = NULL};
    asked_init(&a);
    rollout_put(&a.rig, "cart", 40, 60);
    struct changes_question q = question_of("cart");
    q.version[SIDE_BASE] = SV("2.0");
    q.version[SIDE_NEW] = SV("1.0");
    struct changes c = ask(&a, &q);
    CHECK_STR(changes_word(&c), "changed", "reverse");
    assert_true(c.verdicts.at[0].cost[COST_SELF].effect < 0);
    q.version[SIDE_BASE] = SV("0.9");
    CHECK_STR(changes_word(&(struct changes){.state = ask(&a, &q).state}), "no_profiles", "0.9");
    q = question_of("cart");
    q.ranges = true;
    q.base_from_ms = q.from_ms;
    q.base_until_ms = q.from_ms + 25 * 60 * 1000;
    q.from_ms = q.base_until_ms;
    c = ask(&a, &q);
    CHECK_STR(changes_word(&c), "changed", "ranges");
    assert_true(sv_eq_str(c.names[c.verdicts.at[0].index], "main.slow"));
    assert_int_equal(c.side[SIDE_NEW].label.n, 0);
}

TEST(services_without_two_versions)
{
    SCOPED(asked) a = {.arena = NULL};
    struct rng rng;
    asked_init(&a);
    rng_seed(&rng, 1);
    rollout_put_cpu(&a.rig, "__name__=process_cpu,service_name=plain", RIG_T0, 10, &rng);
    rollout_put_cpu(&a.rig, "__name__=process_cpu,pod_template_hash=x,service_name=one", RIG_T0, 10,
                    &rng);
    struct changes_question q = question_of("plain");
    struct changes c = ask(&a, &q);
    CHECK_STR(changes_word(&c), "no_version", "plain");
    q = question_of("one");
    c = ask(&a, &q);
    CHECK_STR(changes_word(&c), "one_version", "one");
    /* A second version with a single pod each. */
    rollout_put_cpu(&a.rig, "__name__=process_cpu,pod_template_hash=y,service_name=one",
                    RIG_T0 + 60 * RIG_SECOND, 90, &rng);
    c = ask(&a, &q);
    CHECK_STR(changes_word(&c), "no_verdict", "one");
    assert_true(sv_eq_str(c.names[c.verdicts.at[0].index], "main.slow"));
    assert_non_null(strstr(changes_sentence(&c, a.arena), "No verdict"));
    assert_true(sv_eq_str(c.side[SIDE_NEW].label, "pod_template_hash"));
}

TEST(rollouts_newest_first)
{
    SCOPED(asked) a = {.arena = NULL};
    struct rng rng;
    struct changes_rollouts all;
    struct err err = ERR_INIT;
    asked_init(&a);
    rng_seed(&rng, 1);
    rollout_put(&a.rig, "cart", 40, 40);
    rollout_put_cpu(&a.rig, "__name__=process_cpu,service_name=one,version=1", RIG_T0, 10, &rng);
    rollout_put_cpu(&a.rig, "__name__=process_cpu,service_name=two,version=1", RIG_T0, 10, &rng);
    rollout_put_cpu(&a.rig, "__name__=process_cpu,service_name=two,version=2", RIG_T0 + RIG_HOUR,
                    10, &rng);
    assert_true(changes_rollouts(&a.q, RIG_T0 / NS_PER_MS, (RIG_T0 + 2 * RIG_HOUR) / NS_PER_MS,
                                 &all, &err));
    assert_int_equal(all.n, 2);
    assert_true(sv_eq_str(all.at[0].service, "two"));
    assert_true(sv_eq_str(all.at[1].service, "cart"));
    assert_true(sv_eq_str(all.at[1].version[SIDE_BASE], "1.0"));
    assert_true(sv_eq_str(all.at[1].version[SIDE_NEW], "2.0"));
}

TEST(memory_and_time_are_limited)
{
    SCOPED(asked) a = {.arena = NULL};
    asked_init(&a);
    rollout_put(&a.rig, "cart", 40, 60);
    struct changes_question q = question_of("cart");
    struct changes c;
    struct err err = ERR_INIT;
    a.q.bytes_max = 4096;
    assert_false(changes_find(&a.q, &q, &c, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
    a.q.bytes_max = ARENA_BYTES;
    a.q.deadline_ms = 1;
    err_clear(&err);
    assert_false(changes_find(&a.q, &q, &c, &err));
    assert_int_equal(err.kind, ERR_TIMEOUT);
}

/* Twenty pods of each version: sixteen are read, and the result says so. */
TEST(many_instances)
{
    SCOPED(asked) a = {.arena = NULL};
    struct rng rng;
    asked_init(&a);
    rng_seed(&rng, 3);
    for (int i = 0; i < 80; i++) {
        char labels[128];
        int version = 1 + i / 40;
        (void)snprintf(labels, sizeof(labels),
                       "__name__=process_cpu,pod=p%d,service_name=cart,version=%d", i % 20,
                       version);
        rollout_put_cpu(&a.rig, labels, RIG_T0 + i * 15 * RIG_SECOND, 40 * version, &rng);
    }
    struct changes_question q = question_of("cart");
    struct changes c = ask(&a, &q);
    assert_int_equal(c.side[SIDE_NEW].instances, INSTANCES_MAX);
    assert_int_equal(c.side[SIDE_NEW].instances_seen, 20);
    assert_int_equal(c.side[SIDE_NEW].profiles, 2 * INSTANCES_MAX);
    CHECK_STR(changes_word(&c), "changed", "state");
}

/* The levels of merged profiles are sums, and count as often as there were profiles. */
TEST(levels)
{
    SCOPED(asked) a = {.arena = NULL};
    asked_init(&a);
    for (int version = 1; version <= 2; version++) {
        for (int i = 0; i < 40; i++) {
            char labels[128];
            const struct pprof_row rows[] = {{"main.keep main.main", NULL, {1000 * version}},
                                             {"main.rest main.main", "k=v", {500}}};
            (void)snprintf(labels, sizeof(labels),
                           "__name__=memory,pod=%d%d,service_name=s,version=%d", version, i % 2,
                           version);
            rig_put(&a.rig, labels, RIG_T0 + (version * 1000 + i * 15) * RIG_SECOND,
                    "inuse_space/bytes", rows, 2, NULL);
        }
    }
    struct changes_question q = question_of("s");
    struct err err = ERR_INIT;
    assert_true(
        changes_type(&a.q, q.service, q.from_ms, q.until_ms, SV("inuse_space"), &q.type, &err));
    struct changes c = ask(&a, &q);
    assert_true(c.is_level);
    assert_true(fabs(c.verdicts.total.base - 1500) < 1);
    assert_true(fabs(c.verdicts.total.now - 2500) < 1);
    CHECK_STR(changes_unit(&c, &q.type).name, "bytes", "unit");
}

/* ---- the report ------------------------------------------------------------------------------ */

TEST(report)
{
    SCOPED(asked) a = {.arena = NULL};
    asked_init(&a);
    SCOPED(buf) out = testing_buf((size_t)1024 * 1024);
    rollout_put(&a.rig, "cart", 40, 60);
    struct changes_question q = question_of("cart");
    struct changes c = ask(&a, &q);
    changes_put_json(&q, &c, 2, &out);
    assert_non_null(strstr(out.data, "{\"state\":\"changed\",\"summary\":\""));
    assert_non_null(strstr(out.data, "\"unit\":\"cores\",\"base\":{\"version\":\"1.0\""));
    assert_non_null(strstr(out.data, "\"functions\":[{\"name\":\"main.slow\",\"changed\":true"));
    assert_non_null(strstr(out.data, "&labels=version%3D%222.0%22&from="));
    assert_non_null(strstr(out.data, "&base_labels=version%3D%221.0%22&base_from="));
    assert_non_null(strstr(out.data, "],\"leftOut\":5}\n"));
}

TEST(types_that_are_asked_for)
{
    SCOPED(asked) a = {.arena = NULL};
    struct rng rng;
    struct profile_type type;
    struct err err = ERR_INIT;
    asked_init(&a);
    rng_seed(&rng, 1);
    rollout_put_cpu(&a.rig, "__name__=process_cpu,service_name=one", RIG_T0, 10, &rng);
    struct changes_question q = question_of("one");
    assert_true(changes_type(&a.q, q.service, q.from_ms, q.until_ms, SV("cpu"), &type, &err));
    assert_true(sv_eq_str(type.id, CPU));
    assert_true(changes_type(&a.q, q.service, q.from_ms, q.until_ms, SV("samples"), &type, &err));
    assert_true(changes_type(&a.q, q.service, q.from_ms, q.until_ms, SV(CPU), &type, &err));
    assert_false(changes_type(&a.q, q.service, q.from_ms, q.until_ms, SV("heap"), &type, &err));
    assert_non_null(strstr(err.msg, "no profiles of \"heap\"; there are process_cpu:cpu"));
    err_clear(&err);
    assert_false(changes_type(&a.q, SV("none"), q.from_ms, q.until_ms, SV("cpu"), &type, &err));
    assert_non_null(strstr(err.msg, "no profiles in this time"));
}

/* ---- the metric ------------------------------------------------------------------------------ */

static void check_metric(struct asked *a, const char *wanted, const char *unwanted)
{
    SCOPED(buf) out = testing_buf((size_t)1024 * 1024);
    assert_true(metrics_render(a->rig.metrics, &out));
    CHECK_CONTAINS(out.data, wanted, wanted);
    assert_null(strstr(out.data, unwanted));
}

TEST(metric_of_the_last_rollout)
{
#define MINUTE_MS (INT64_C(60) * 1000)
    SCOPED(asked) a = {.arena = NULL};
    struct err err = ERR_INIT;
    int64_t start_ms = RIG_T0 / NS_PER_MS;
    asked_init(&a);
    rollout_put(&a.rig, "cart", 40, 60);
    rollout_put(&a.rig, "same", 40, 40);
    struct changes_watch *w =
        changes_watch_new(a.rig.store, testing_log(a.rig.log), a.rig.metrics, &err);
    assert_non_null(w);
    /* The new version began after 30 minutes, and is compared 5 minutes later. */
    changes_watch_round(w, start_ms + 34 * MINUTE_MS);
    check_metric(&a, "profpull_change_comparisons_total 0\n", "profpull_change_ratio{");
    changes_watch_round(w, start_ms + 50 * MINUTE_MS);
    check_metric(&a, "profpull_change_comparisons_total 2\n", "service=\"same\"");
    check_metric(&a, "profpull_change_ratio{service=\"cart\",type=\"cpu\"} 1.0", "alloc_space");
    /* The next comparison is due when its age has doubled. */
    changes_watch_round(w, start_ms + 69 * MINUTE_MS);
    check_metric(&a, "profpull_change_comparisons_total 2\n", "service=\"same\"");
    changes_watch_round(w, start_ms + 71 * MINUTE_MS);
    check_metric(&a, "profpull_change_comparisons_total 4\n", "service=\"same\"");
    /* A day later, the rollout is no news. */
    changes_watch_round(w, start_ms + 26 * 60 * MINUTE_MS);
    check_metric(&a, "profpull_change_services_left_out 0\n", "profpull_change_ratio{");
    metrics_free(a.rig.metrics);
    a.rig.metrics = NULL;
    changes_watch_free(w);
}

/* More services than are compared: those that changed last are. */
TEST(metric_is_limited)
{
    SCOPED(asked) a = {.arena = NULL};
    struct rng rng;
    struct err err = ERR_INIT;
    asked_init(&a);
    rng_seed(&rng, 1);
    for (int i = 0; i < 2 * (CHANGES_WATCH_MAX + 3); i++) {
        char labels[128];
        (void)snprintf(labels, sizeof(labels), "__name__=process_cpu,service_name=s%d,version=%d",
                       i / 2, i % 2);
        rollout_put_cpu(&a.rig, labels, RIG_T0 + i * RIG_SECOND, 40, &rng);
    }
    struct changes_watch *w =
        changes_watch_new(a.rig.store, testing_log(a.rig.log), a.rig.metrics, &err);
    assert_non_null(w);
    changes_watch_round(w, RIG_T0 / NS_PER_MS + 8 * MINUTE_MS);
    check_metric(&a, "profpull_change_services_left_out 3\n", "profpull_change_ratio{");
    metrics_free(a.rig.metrics);
    a.rig.metrics = NULL;
    changes_watch_free(w);
}
