/* Merging and retention: what they leave as it was, and what they remove. */
#include "tests/unit/lib/store_rig.h"

#include <signal.h>
#include <sys/resource.h>

#include "pprof/gzip.h"
#include "store/parts.h"

#define DAY (24 * RIG_HOUR)
#define LATER (RIG_T0 + 2 * RIG_HOUR)

/* Adds up the sums of all bodies, and how many there are. */
struct totals {
    int64_t sums[2];
    size_t bodies;
    uint64_t bytes;
};

static bool merging_on_body(void *arg, const struct store_body *b)
{
    struct totals *t = arg;
    struct scratch *s = scratch_new();
    struct parts parts;
    struct sv plain;
    struct err err = ERR_INIT;
    assert_true(gzip_plain(s, b->data, 1000000, 0, &plain, &err));
    assert_true(parts_read(s, plain, b->labels, b->n_labels, false, &parts, &err));
    for (size_t i = 0; i < parts.n; i++) {
        for (size_t c = 0; c < 2; c++) {
            t->sums[c] += parts.at[i].sums[c];
        }
    }
    t->bodies++;
    t->bytes += b->data.n;
    scratch_free(s);
    return true;
}

static struct totals total(struct store_rig *r, int64_t from, int64_t until)
{
    struct totals t = {.bodies = 0};
    struct err err = ERR_INIT;
    struct store_scan scan = {.range = {.from_ns = RIG_T0 + from * RIG_SECOND,
                                        .until_ns = RIG_T0 + until * RIG_SECOND,
                                        .selector = NULL},
                              .with_data = true};
    bool ok = store_each_body(r->store, &scan, merging_on_body, &t, &err);
    CHECK_STR(err.msg, "", "");
    assert_true(ok);
    return t;
}

static void rig_merging(struct store_rig *r)
{
    store_rig_init(r);
    r->options.merge_ms = 5 * 60 * MS_PER_S;
    r->options.merge_cpu = 100;
    store_rig_reopen(r);
}

/* An hour of a series at 15 s; every profile has other values. */
static void put_hour(struct store_rig *r, const char *labels, char first[STORE_ID_LENGTH + 1])
{
    char id[STORE_ID_LENGTH + 1];
    for (int64_t i = 0; i < 240; i++) {
        const struct pprof_row rows[] = {{"a main", "k=x", {1, i}}, {"b main", "", {2, 2 * i}}};
        rig_put(r, labels, RIG_T0 + i * 15 * RIG_SECOND, "samples/count cpu/nanoseconds", rows, 2,
                id);
        if (i == 0) {
            memcpy(first, id, sizeof(id));
        }
    }
}

/* Work in pieces, each too short for a pause of its own or not: the pauses are the same. */
TEST(test_merging_pauses_for_its_share_of_a_core)
{
    static const struct {
        unsigned percent;
        int64_t piece_us;
        int pieces;
        int64_t want_ms;
    } cases[] = {
        {25, 100, 1000, 300}, {25, 333, 300, 299},  {25, 100000, 1, 300}, {50, 170, 1000, 170},
        {1, 100, 10, 99},     {99, 1000, 1000, 10}, {100, 100, 1000, 0},  {100, 5000000, 9, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t used_ns = 12345; /* before it began */
        int64_t paid_ns = used_ns;
        int64_t paused_ms = 0;
        char row[16];
        for (int k = 0; k < cases[i].pieces; k++) {
            used_ns += cases[i].piece_us * 1000;
            paused_ms += store_merge_pause_ms(used_ns, cases[i].percent, &paid_ns);
        }
        (void)snprintf(row, sizeof(row), "row %zu", i);
        CHECK_INT(paused_ms, cases[i].want_ms, row);
    }
}

TEST(test_merging_keeps_points_totals_and_ids)
{
    SCOPED(store_rig) r;
    struct store_stats stats;
    char first[STORE_ID_LENGTH + 1];
    char second[STORE_ID_LENGTH + 1];
    rig_merging(&r);
    put_hour(&r, "__name__=cpu,pod=a,service_name=s", first);
    put_hour(&r, "__name__=cpu,pod=b,service_name=s", second);
    SCOPED_MEMORY char *points = rig_scan(&r, RIG_POINTS, NULL, 0, 3600, "pod");
    struct totals before = total(&r, 0, 3600);
    assert_int_equal(before.bodies, 480);

    store_maintain(r.store, RIG_T0 + RIG_HOUR);
    assert_int_equal(total(&r, 0, 3600).bodies, 480); /* profiles may still come */
    store_maintain(r.store, LATER);

    struct totals after = total(&r, 0, 3600);
    assert_int_equal(after.bodies, 24);
    assert_true(after.sums[0] == before.sums[0] && after.sums[1] == before.sums[1]);
    rig_check(&r, RIG_POINTS, NULL, 0, 3600, "pod", points);
    store_stats(r.store, &stats);
    assert_true(stats.singles == 0 && stats.profiles == 480);
    assert_int_equal(store_rig_metric(&r, "profpull_store_merged_total{endpoint=\"local\"}"), 480);

    bool found;
    struct totals got = {.bodies = 0};
    assert_true(store_get(r.store, sv_from(second), &found, merging_on_body, &got, NULL));
    assert_true(found && got.bodies == 1);
    assert_int_equal(got.sums[0], 20 * 3);
    store_rig_reopen(&r);
    rig_check(&r, RIG_POINTS, NULL, 0, 3600, "pod", points);
    rig_check(&r, RIG_BODIES, "{pod=\"a\",k=\"x\",__type__=\"cpu\"}", 0, 200, NULL,
              "0..300 1 part bytes\n");
}

TEST(test_a_file_gets_smaller_by_merging)
{
    SCOPED(store_rig) r;
    struct store_stats before;
    struct store_stats after;
    enum { N = 60, SIZE = 20000 };
    rig_merging(&r);
    for (int64_t i = 0; i < N; i++) {
        struct pprof_spec spec = {.types = "cpu/nanoseconds",
                                  .time_nanos = RIG_T0 + i * RIG_SECOND};
        const struct pprof_row rows[] = {{"a main", "", {1}}};
        SCOPED(buf) b = pprof_make(&spec, rows, 1);
        SCOPED_MEMORY char *text = calloc(SIZE, 1); /* a string that nothing refers to */
        put_msg(&b, 6, text, SIZE);
        assert_int_equal(rig_put_bytes(&r, "__name__=cpu,service_name=s", RIG_T0 + i * RIG_SECOND,
                                       (struct sv){b.data, b.len}, PROFILE_PPROF, NULL),
                         STORE_TAKEN);
    }
    store_rig_reopen(&r);
    store_stats(r.store, &before);
    store_maintain(r.store, LATER);
    store_rig_reopen(&r);
    store_stats(r.store, &after);
    assert_true(before.bytes > (uint64_t)N * SIZE);
    assert_true(after.bytes < (uint64_t)N * SIZE / 4);
    assert_int_equal(after.profiles, N);
}

TEST(test_late_profiles_are_merged_by_a_later_pass)
{
    SCOPED(store_rig) r;
    const struct pprof_row rows[] = {{"a main", "", {1, 1}}};
    rig_merging(&r);
    for (int64_t pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < 3; i++) {
            rig_put(&r, "__name__=cpu,service_name=s", RIG_T0 + (pass * 3 + i) * RIG_SECOND,
                    "x/count y/count", rows, 1, NULL);
        }
        store_maintain(r.store, LATER);
        assert_int_equal(total(&r, 0, 3600).bodies, pass + 1);
    }
    assert_int_equal(total(&r, 0, 3600).sums[0], 6);
}

TEST(test_negative_samples_and_other_types_are_not_merged)
{
    SCOPED(store_rig) r;
    const struct pprof_row good[] = {{"a", "", {1, 1}}};
    const struct pprof_row negative[] = {{"a", "", {-1, 5}}, {"b", "", {2, 2}}};
    rig_merging(&r);
    rig_put(&r, "__name__=cpu", RIG_T0, "x/count y/count", good, 1, NULL);
    rig_put(&r, "__name__=cpu", RIG_T0 + 1, "x/count y/count", negative, 2, NULL);
    rig_put(&r, "__name__=cpu", RIG_T0 + 2, "x/count y/count", good, 1, NULL);
    rig_put(&r, "__name__=cpu", RIG_T0 + 3, "x/count z/count", good, 1, NULL);
    store_maintain(r.store, LATER);
    struct totals t = total(&r, 0, 3600);
    assert_int_equal(t.bodies, 3);
    assert_int_equal(t.sums[0], 5);
}

static bool merging_on_scan(void *arg, const struct store_body *b)
{
    struct store_rig *r = arg;
    (void)b;
    assert_int_equal(r->store->n_files, 1);
    assert_int_equal(r->store->files[0]->scans, 1);
    return true;
}

TEST(test_a_scan_keeps_its_file_from_being_merged)
{
    SCOPED(store_rig) r;
    const struct pprof_row rows[] = {{"a main", "", {1}}};
    rig_merging(&r);
    rig_put(&r, "__name__=cpu", RIG_T0, "x/count", rows, 1, NULL);
    struct store_scan scan = {.range = {.from_ns = RIG_T0, .until_ns = RIG_T0, .selector = NULL}};
    assert_true(store_each_body(r.store, &scan, merging_on_scan, &r, NULL));
    assert_int_equal(r.store->files[0]->scans, 0);
}

/* Two of a series for a merge, and one alone: a pass over them ends with singles left. */
static void put_three(struct store_rig *r, int64_t at)
{
    const struct pprof_row one[] = {{"a main", "", {1, 1}}};
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + at * RIG_SECOND, "x/count y/count", one, 1,
            NULL);
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + (at + 1) * RIG_SECOND, "x/count y/count",
            one, 1, NULL);
    rig_put(r, "__name__=cpu,service_name=alone", RIG_T0 + at * RIG_SECOND, "x/count y/count", one,
            1, NULL);
}

/* Profiles that come after a pass are merged, also if they are as many as the pass has left. */
TEST(test_what_comes_after_a_pass_is_merged_though_it_left_some)
{
    SCOPED(store_rig) r;
    rig_merging(&r);
    put_three(&r, 0);
    store_maintain(r.store, LATER);
    assert_int_equal(total(&r, 0, 3600).bodies, 2);
    assert_int_equal(r.store->files[0]->singles, 1);
    put_three(&r, 400);
    store_maintain(r.store, LATER);
    assert_int_equal(total(&r, 0, 3600).bodies, 4);
}

/* The file may not grow while it is merged: nothing is merged, nothing is lost, and the next round
 * merges. */
TEST(test_a_pass_that_fails_is_tried_again)
{
    SCOPED(store_rig) r;
    struct rlimit old;
    struct rlimit low;
    rig_merging(&r);
    put_three(&r, 0);
    store_rig_reopen(&r);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    low = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    testing_log_expect(r.log, "profiles of the store cannot be merged");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    store_maintain(r.store, LATER);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(
        store_rig_metric(&r, "profpull_store_merge_failures_total{endpoint=\"local\"}"), 1);
    assert_int_equal(total(&r, 0, 3600).bodies, 3);
    store_maintain(r.store, LATER);
    assert_int_equal(total(&r, 0, 3600).bodies, 2);
    assert_int_equal(total(&r, 0, 3600).sums[0], 3);
}

/* ---- retention ------------------------------------------------------------------------------- */

static void put_days(struct store_rig *r, int64_t n)
{
    const struct pprof_row rows[] = {{"a main", "", {1}}};
    for (int64_t i = 0; i < n; i++) {
        rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + i * DAY, "x/count", rows, 1, NULL);
    }
}

SETUP_OF(store_rig)

TEST_ON(struct store_rig *r, test_files_are_removed_by_age)
{
    struct store_stats stats;
    r->options.max_age_ms = 2 * DAY / NS_PER_MS;
    store_rig_reopen(r);
    put_days(r, 5);
    store_maintain(r->store, RIG_T0 + 4 * DAY + RIG_HOUR / 2);
    store_stats(r->store, &stats);
    assert_int_equal(stats.files, 3);
    assert_int_equal(store_rig_metric(r, "profpull_store_files_removed_total{endpoint=\"local\","
                                         "reason=\"age\"}"),
                     2);
    rig_check(r, RIG_POINTS, NULL, 0, 10 * 86400, "service_name",
              "s 172800 1\ns 259200 1\ns 345600 1\n");
    store_rig_reopen(r);
    store_stats(r->store, &stats);
    assert_int_equal(stats.files, 3);
}

/* Limits of an open store change. */
TEST_ON(struct store_rig *r, test_limits_change)
{
    struct store_stats stats;
    put_days(r, 5);
    store_maintain(r->store, RIG_T0 + 4 * DAY + RIG_HOUR / 2);
    r->options.max_age_ms = 2 * DAY / NS_PER_MS;
    store_configure(r->store, &r->options);
    store_maintain(r->store, RIG_T0 + 4 * DAY + RIG_HOUR / 2);
    store_stats(r->store, &stats);
    assert_int_equal(stats.files, 3);
}

TEST_ON(struct store_rig *r, test_files_are_removed_by_bytes)
{
    struct store_stats stats;
    put_days(r, 4);
    store_rig_reopen(r);
    store_stats(r->store, &stats);
    r->options.max_bytes = stats.bytes - 1;
    store_rig_reopen(r);
    store_maintain(r->store, RIG_T0 + 5 * DAY);
    store_stats(r->store, &stats);
    assert_int_equal(stats.files, 3);
    assert_true(stats.oldest_ns == RIG_T0 + DAY);
    /* The last file stays, however large. */
    r->options.max_bytes = 1;
    store_rig_reopen(r);
    store_maintain(r->store, RIG_T0 + 5 * DAY);
    store_stats(r->store, &stats);
    assert_int_equal(stats.files, 1);
}

TEST_ON(struct store_rig *r, test_a_large_stretch_gets_further_files)
{
    struct store_stats stats;
    r->options.max_bytes = 8; /* each file is large that has half a MiB */
    store_rig_reopen(r);
    for (int64_t i = 0; i < 3; i++) {
        rig_put_large(r, "__name__=cpu,service_name=s", RIG_T0 + i * RIG_SECOND, 600000);
    }
    store_stats(r->store, &stats);
    assert_int_equal(stats.files, 3);
    CHECK_STR(r->store->files[2]->text, "20261122T000000Z-1h.3.db", "");
    rig_check(r, RIG_POINTS, NULL, 0, 3600, "service_name", "s 0 1\ns 1 1\ns 2 1\n");
}
