#include "tests/unit/lib/store_rig.h"

#include <sys/stat.h>
#include <unistd.h>

#define CPU "samples/count cpu/nanoseconds"

static const struct pprof_row two_stacks[] = {{"a main", "", {1, 10}}, {"b main", "", {2, 20}}};

SETUP_OF(store_rig)

TEST_ON(struct store_rig *r, test_series_have_the_computed_labels)
{
    rig_put(r, "__delta__=false,__name__=process_cpu,__type__=bogus,pod=a,service_name=cart",
            RIG_T0, CPU, two_stacks, 2, NULL);
    rig_check(r, RIG_SERIES, NULL, 0, 3600, NULL,
              "__name__=process_cpu,__profile_type__=process_cpu:samples:count::,"
              "__service_name__=cart,__type__=samples,__unit__=count,pod=a,service_name=cart\n"
              "__name__=process_cpu,__profile_type__=process_cpu:cpu:nanoseconds::,"
              "__service_name__=cart,__type__=cpu,__unit__=nanoseconds,pod=a,service_name=cart\n");
    rig_check(r, RIG_SERIES, "{__type__=\"cpu\"}", 0, 3600, "__type__", "cpu\n");
    rig_check(r, RIG_SERIES, "{service_name=\"other\"}", 0, 3600, NULL, "");
}

TEST_ON(struct store_rig *r, test_a_profile_without_service_is_of_an_unknown_one)
{
    rig_put(r, "__name__=process_cpu", RIG_T0, "cpu/nanoseconds", two_stacks, 1, NULL);
    rig_check(r, RIG_SERIES, "{service_name=\"unknown_service\"}", 0, 1, "__service_name__",
              "unknown_service\n");
}

TEST_ON(struct store_rig *r, test_both_ends_of_a_range_are_inclusive)
{
    for (int64_t i = 0; i < 4; i++) {
        rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + i * 15 * RIG_SECOND, "cpu/nanoseconds",
                two_stacks, 2, NULL);
    }
    rig_check(r, RIG_POINTS, NULL, 15, 30, "service_name", "s 15 3\ns 30 3\n");
    rig_check(r, RIG_POINTS, NULL, 16, 29, "service_name", "");
    rig_check(r, RIG_SERIES, NULL, 16, 29, "service_name", "");
    rig_check(r, RIG_BODIES, NULL, 15, 30, NULL, "15..30 1 whole bytes\n30..45 1 whole bytes\n");
}

/* Puts a profile with a time of its own into a window, both in seconds after RIG_T0. */
static void put_timed(struct store_rig *r, int64_t time_s, int64_t from_s, int64_t until_s,
                      char id[STORE_ID_LENGTH + 1])
{
    struct label l[RIG_LABELS_MAX];
    struct pprof_spec spec = {.types = "cpu/nanoseconds",
                              .time_nanos = time_s == 0 ? 0 : RIG_T0 + time_s * RIG_SECOND};
    SCOPED(buf) b = pprof_make(&spec, two_stacks, 2);
    struct store_put put = {.labels = l,
                            .n_labels = rig_labels("__name__=cpu,service_name=s", l),
                            .data = {b.data, b.len},
                            .from_ns = RIG_T0 + from_s * RIG_SECOND,
                            .until_ns = RIG_T0 + until_s * RIG_SECOND};
    assert_true(store_put(r->store, &put, 1));
    memcpy(id, put.id, STORE_ID_LENGTH + 1);
}

/* A gauge and the first delta of a target have the same window, but times of their own. */
TEST_ON(struct store_rig *r, test_a_profile_counts_at_the_time_inside_it)
{
    char id[STORE_ID_LENGTH + 1];
    put_timed(r, 10001, 10000, 10001, id);
    put_timed(r, 10016, 10001, 10016, id); /* a delta counts at the end of its interval */
    put_timed(r, 0, 10030, 10031, id);     /* without a time: at the beginning of its window */
    rig_check(r, RIG_POINTS, NULL, 0, 20000, "service_name", "s 10001 3\ns 10016 3\ns 10030 3\n");
    rig_check(r, RIG_BODIES, NULL, 0, 20000, NULL,
              "10001..10001 1 whole bytes\n10016..10016 1 whole bytes\n"
              "10030..10031 1 whole bytes\n");
    store_rig_reopen(r);
    rig_check(r, RIG_POINTS, NULL, 10002, 10016, "service_name", "s 10016 3\n");
}

TEST_ON(struct store_rig *r, test_a_time_far_from_the_window_is_ignored)
{
    struct store_stats stats;
    char id[STORE_ID_LENGTH + 1];
    put_timed(r, 10000 - 3600, 10000, 10015, id);
    put_timed(r, 10015 + 600, 10000, 10015, id);
    put_timed(r, 10020 - 3601, 10020, 10035, id);
    put_timed(r, 10040 + 601, 10040, 10035, id);
    rig_check(r, RIG_POINTS, NULL, 0, 20000, "service_name",
              "s 6400 3\ns 10020 3\ns 10040 3\ns 10615 3\n");
    store_stats(r->store, &stats);
    assert_true(stats.oldest_ns == RIG_T0 + 6400 * RIG_SECOND);
    assert_true(stats.newest_ns == RIG_T0 + 10615 * RIG_SECOND);
}

/* The times of stored profiles stay. A put that is repeated finds its profile at the beginning of
 * the window too, where earlier versions stored it. */
TEST_ON(struct store_rig *r, test_a_profile_that_was_stored_at_its_beginning_is_not_kept_twice)
{
    char first[STORE_ID_LENGTH + 1];
    char second[STORE_ID_LENGTH + 1];
    put_timed(r, 1000, 0, 100, first); /* not believed, so it is stored as it used to be */
    put_timed(r, 1000, 0, 1000, second);
    CHECK_STR(second, first, "");
    rig_check(r, RIG_POINTS, NULL, 0, 2000, "service_name", "s 0 3\n");
}

TEST_ON(struct store_rig *r, test_string_labels_of_samples_make_series)
{
    static const struct pprof_row rows[] = {
        {"a", "k=x,span_id=s1", {1}},  {"b", "k=y,n=7bytes", {2}},
        {"c", "k=x,trace_id=t1", {4}}, {"d", "", {8}},
        {"e", "pod=other", {16}},      {"f", "profile_id=p", {32}},
    };
    rig_put(r, "__name__=cpu,pod=mine,service_name=s", RIG_T0, "cpu/nanoseconds", rows, 6, NULL);
    rig_check(r, RIG_POINTS, "{k=\"\"}", 0, 1, "pod", "mine 0 56\n");
    rig_check(r, RIG_POINTS, "{k=\"x\"}", 0, 1, "k", "x 0 5\n");
    rig_check(r, RIG_POINTS, "{k=\"y\"}", 0, 1, "k", "y 0 2\n");
    rig_check(r, RIG_BODIES, "{k=\"y\"}", 0, 1, NULL, "0..15 1 part bytes\n");
    rig_check(r, RIG_BODIES, "{service_name=\"s\"}", 0, 1, NULL, "0..15 3 whole bytes\n");
}

TEST_ON(struct store_rig *r, test_negative_samples_and_zero_sums_count_nowhere)
{
    static const struct pprof_row rows[] = {{"a", "", {5, 0}}, {"b", "", {7, -1}}};
    rig_put(r, "__name__=memory,service_name=s", RIG_T0, "x/count y/bytes", rows, 2, NULL);
    rig_check(r, RIG_POINTS, NULL, 0, 1, "__type__", "x 0 5\n");
    rig_check(r, RIG_SERIES, NULL, 0, 1, "__type__", "x\n");
}

static bool store_test_on_body(void *arg, const struct store_body *b)
{
    buf_printf(arg, "%s %zu %.*s", b->id, b->n_series, SV_ARG(b->labels[0].value));
    return true;
}

TEST_ON(struct store_rig *r, test_a_profile_is_found_by_its_id)
{
    char id[STORE_ID_LENGTH + 1];
    char want[STORE_ID_LENGTH + 32];
    bool found;
    SCOPED(buf) out = testing_buf(1000);
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + 123456789, "cpu/nanoseconds", two_stacks, 2,
            id);
    store_rig_reopen(r);
    assert_true(store_get(r->store, sv_from(id), &found, store_test_on_body, &out, NULL));
    assert_true(found);
    snprintf(want, sizeof(want), "%s 1 cpu", id);
    CHECK_STR(out.data, want, "");
    id[30] = id[30] == '0' ? '1' : '0';
    assert_true(store_get(r->store, sv_from(id), &found, store_test_on_body, &out, NULL));
    assert_false(found);
    assert_true(store_get(r->store, SV("no id"), &found, store_test_on_body, &out, NULL));
    assert_false(found);
}

TEST_ON(struct store_rig *r, test_a_stretch_is_a_file)
{
    struct store_stats stats;
    struct stat st;
    char path[4096];
    for (int64_t i = 0; i < 6; i++) { /* more than are written at the same time */
        rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + i * RIG_HOUR, "cpu/nanoseconds",
                two_stacks, 2, NULL);
    }
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + RIG_SECOND, "cpu/nanoseconds", two_stacks, 2,
            NULL);
    store_rig_reopen(r);
    store_stats(r->store, &stats);
    assert_int_equal(stats.files, 6);
    assert_int_equal(stats.profiles, 7);
    assert_true(stats.oldest_ns == RIG_T0 && stats.newest_ns == RIG_T0 + 5 * RIG_HOUR);
    assert_true(stats.bytes > 0);
    snprintf(path, sizeof(path), "%s/20261122T030000Z-1h.db", r->directory);
    assert_int_equal(stat(path, &st), 0);
    rig_check(r, RIG_POINTS, NULL, 0, 6 * 3600, "service_name",
              "s 0 3\ns 1 3\ns 3600 3\ns 7200 3\ns 10800 3\ns 14400 3\ns 18000 3\n");
}

TEST(test_a_batch_of_many_stretches_is_taken)
{
    enum { N = 20 };
    SCOPED(store_rig) r;
    struct label l[RIG_LABELS_MAX];
    struct store_put puts[N];
    struct pprof_spec spec = {.types = "cpu/nanoseconds", .time_nanos = 1};
    SCOPED(buf) b = pprof_make(&spec, two_stacks, 2);
    size_t n = rig_labels("__name__=cpu,service_name=s", l);
    store_rig_init(&r);
    for (int64_t i = 0; i < N; i++) {
        puts[i] = (struct store_put){.labels = l,
                                     .n_labels = n,
                                     .data = {b.data, b.len},
                                     .from_ns = RIG_T0 + i % 10 * RIG_HOUR + i,
                                     .until_ns = RIG_T0 + i % 10 * RIG_HOUR + i};
    }
    puts[7].data.n--;
    assert_false(store_put(r.store, puts, N));
    for (size_t i = 0; i < N; i++) {
        CHECK_INT(puts[i].taken, i == 7 ? STORE_REFUSED : STORE_TAKEN, puts[i].problem);
    }
    assert_int_equal(store_rig_metric(&r, "profpull_store_puts_total{endpoint=\"local\","
                                          "result=\"taken\"}"),
                     N - 1);
}

TEST_ON(struct store_rig *r, test_the_same_profile_is_kept_once)
{
    struct store_stats stats;
    char first[STORE_ID_LENGTH + 1];
    char second[STORE_ID_LENGTH + 1];
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0, "cpu/nanoseconds", two_stacks, 2, first);
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0, "cpu/nanoseconds", two_stacks, 2, second);
    CHECK_STR(second, first, "");
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0, "cpu/nanoseconds", two_stacks, 1, second);
    assert_string_not_equal(second, first);
    store_stats(r->store, &stats);
    assert_int_equal(stats.profiles, 2);
}

/* A salt keeps equal profiles apart; each is found by its hash, for a second of its start. */
TEST(test_a_salt_keeps_equal_profiles_apart)
{
    SCOPED(store_rig) r;
    struct err err = ERR_INIT;
    struct store_stats stats;
    SCOPED(buf)
    b = pprof_make(&(struct pprof_spec){.types = "cpu/nanoseconds", .time_nanos = RIG_T0},
                   two_stacks, 2);
    struct label l[RIG_LABELS_MAX];
    size_t n = rig_labels("__name__=cpu,service_name=s", l);
    struct store_put puts[4];
    const uint16_t salts[] = {0, 1, UINT16_MAX, 1};
    char id[STORE_ID_LENGTH + 1];
    bool found;
    store_rig_init(&r);
    for (size_t i = 0; i < 4; i++) {
        puts[i] = (struct store_put){.labels = l,
                                     .n_labels = n,
                                     .data = {b.data, b.len},
                                     .salt = salts[i],
                                     .from_ns = RIG_T0,
                                     .until_ns = RIG_T0};
    }
    assert_true(store_put(r.store, puts, 4));
    store_stats(r.store, &stats);
    assert_int_equal(stats.profiles, 3);
    CHECK_STR(puts[3].id, puts[1].id, "the same salt");
    for (size_t i = 0; i < 4; i++) {
        uint64_t hash = store_hash(puts[i].data, salts[i]);
        uint32_t second = (uint32_t)(RIG_T0 / RIG_SECOND);
        assert_true(store_find(r.store, second, hash, &found, id, &err) && found);
        CHECK_STR(id, puts[i].id, "");
        assert_true(store_find(r.store, second + 1, hash, &found, id, &err) && !found);
        assert_true(store_find(r.store, 0, hash, &found, id, &err) && !found);
        assert_true(store_find(r.store, second, hash + 1, &found, id, &err) && !found);
    }
}

TEST_ON(struct store_rig *r, test_what_is_no_profile_is_refused)
{
    struct store_put put;
    assert_int_equal(rig_put_bytes(r, "__name__=cpu", RIG_T0, SV("garbage"), PROFILE_PPROF, &put),
                     STORE_REFUSED);
    CHECK_CONTAINS(put.problem, "at byte", "");
    assert_int_equal(rig_put_bytes(r, "__name__=cpu", -1, SV("garbage"), PROFILE_PPROF, &put),
                     STORE_REFUSED);
    CHECK_STR(put.problem, "its time is not between 1970 and 2262", "");
}

TEST_ON(struct store_rig *r, test_a_recording_is_kept_but_has_no_series)
{
    struct store_put put;
    bool found;
    SCOPED(buf) out = testing_buf(1000);
    assert_int_equal(
        rig_put_bytes(r, "__name__=jfr", RIG_T0, SV("FLR\0recording"), PROFILE_JFR, &put),
        STORE_TAKEN);
    assert_true(store_get(r->store, sv_from(put.id), &found, store_test_on_body, &out, NULL));
    assert_true(found);
    rig_check(r, RIG_SERIES, NULL, 0, 1, NULL, "");
}

TEST_ON(struct store_rig *r, test_a_second_process_learns_who_has_the_lock)
{
    struct err err = ERR_INIT;
    char pid[64];
    assert_null(store_open(&r->options, &err));
    snprintf(pid, sizeof(pid), "another process (%ld) writes to the directory", (long)getpid());
    CHECK_CONTAINS(err.msg, pid, "");
    CHECK_CONTAINS(err.msg, "/lock", "");
}

/* The directory itself is locked, too: a lock that somebody removes is made again with the next
 * profile, and until then no other process starts. */
TEST_ON(struct store_rig *r, test_a_removed_lock_still_keeps_others_out)
{
    struct err err = ERR_INIT;
    struct stat st;
    char path[4096];
    snprintf(path, sizeof(path), "%s/lock", r->directory);
    assert_int_equal(unlink(path), 0);
    assert_null(store_open(&r->options, &err));
    CHECK_CONTAINS(err.msg, "another process writes to the directory", "");
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0, "cpu/nanoseconds", two_stacks, 2, NULL);
    assert_int_equal(stat(path, &st), 0);
    err_clear(&err);
    assert_null(store_open(&r->options, &err));
    CHECK_CONTAINS(err.msg, "/lock", "");
}

TEST(test_names_of_files)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"20261122T130000Z-1h.db", true},        {"20261122T130000Z-1h.2.db", true},
        {"19700101T000000Z-5m.db", true},        {"20261122T130000Z-1h.1.db", false},
        {"20261122T130000Z-60m.db", false},      {"20261122T130000Z-1h.db-wal", false},
        {"20261322T130000Z-1h.db", false},       {"20261122T130000Z-1h.02.db", false},
        {"20261122T130000Z-0s.db", false},       {"lock", false},
        {"20261122X130000Z-1h.db", false},       {"", false},
        {"20261122T130000Z-1h.99999.db", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct store_name name;
        char again[STORE_NAME_SIZE] = "";
        CHECK_INT(store_name_parse(sv_from(rows[i].text), &name), rows[i].good, rows[i].text);
        if (rows[i].good) {
            store_name_format(&name, again);
            CHECK_STR(again, rows[i].text, "");
        }
    }
}

TEST_ON(struct store_rig *r, test_lists_are_limited_from_the_newest_on)
{
    struct rig_text t;
    for (int64_t i = 0; i < 5; i++) {
        rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + i * RIG_HOUR / 2, "cpu/nanoseconds",
                two_stacks, 2, NULL);
    }
    struct store_scan scan = {
        .range = {.from_ns = RIG_T0, .until_ns = RIG_T0 + 9 * RIG_HOUR, .selector = NULL},
        .newest_first = true,
        .limit = 3};
    rig_text_init(&t, NULL);
    assert_true(store_each_body(r->store, &scan, rig_on_body, &t, NULL));
    CHECK_STR(t.out.data, "7200..7215 1 whole -\n5400..5415 1 whole -\n3600..3615 1 whole -\n", "");
    buf_done(&t.out);
}

/* A profile is visited once, even if it belongs to several series. */
TEST_ON(struct store_rig *r, test_profiles_come_by_series_on_request)
{
    static const struct pprof_row split[] = {{"a main", "k=x", {1, 1}}, {"b main", "k=y", {2, 2}}};
    static const struct {
        bool by_series;
        const char *want;
    } cases[] = {
        {false, "0..15 2 whole -\n100..115 2 whole -\n200..215 2 whole -\n300..315 2 whole -\n"},
        {true, "0..15 2 whole -\n200..215 2 whole -\n100..115 2 whole -\n300..315 2 whole -\n"},
    };
    for (int64_t i = 0; i < 4; i++) {
        rig_put(r, i % 2 == 0 ? "__name__=cpu,pod=a" : "__name__=cpu,pod=b",
                RIG_T0 + i * 100 * RIG_SECOND, "cpu/nanoseconds", split, 2, NULL);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig_text t;
        struct store_scan scan = {
            .range = {.from_ns = RIG_T0, .until_ns = RIG_T0 + RIG_HOUR, .selector = NULL},
            .by_series = cases[i].by_series};
        rig_text_init(&t, NULL);
        assert_true(store_each_body(r->store, &scan, rig_on_body, &t, NULL));
        CHECK_STR(t.out.data, cases[i].want, "");
        buf_done(&t.out);
    }
}
