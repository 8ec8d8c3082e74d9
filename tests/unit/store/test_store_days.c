/* The sums of days: flame graphs are the same with and without them, whatever happens to the files.
 */
#include "tests/unit/lib/store_rig.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/query/query.h"
#include "store/summing.h"
#include "store/sums.h"
#include "tests/unit/lib/tree_text.h"
#include "tests/unit/store/query_rig.h"

#define DAY (24 * RIG_HOUR)
#define SUM "20261122T000000Z-1d.sum"
#define TEXT_MAX 65536
#define TYPES "samples/count cpu/nanoseconds"

struct days {
    struct store_rig store;
    atomic_size_t damaged;
};

/* Puts a profile; the values differ with the time. */
static void days_put(struct days *d, const char *labels, int64_t time_ns)
{
    int64_t n = (time_ns - RIG_T0) / RIG_SECOND % 1000 + 1;
    const struct pprof_row rows[] = {
        {"a work main", "k=x", {1, n}}, {"b work main", "k=y", {2, 2 * n}}, {"c main", "", {3, n}}};
    rig_put(&d->store, labels, time_ns, TYPES, rows, 3, NULL);
}

/* Opens the store again. Its own thread makes no round: it would merge and sum whatever is there.
 */
static void days_reopen(struct days *d)
{
    store_rig_reopen(&d->store);
    store_background_stop(d->store.store);
    d->store.store->stopping = false;
}

/* Two days: some hours of the first one, an hour of the second. */
static void days_init(struct days *d)
{
    static const int hours[] = {0, 5, 23, 27};
    *d = (struct days){.damaged = 0};
    store_rig_init(&d->store);
    d->store.options.merge_ms = 5 * 60 * MS_PER_S;
    d->store.options.merge_cpu = 100;
    days_reopen(d);
    for (size_t i = 0; i < sizeof(hours) / sizeof(hours[0]); i++) {
        for (int k = 0; k < 8; k++) {
            int64_t at = RIG_T0 + hours[i] * RIG_HOUR + k * 100 * RIG_SECOND;
            days_put(d, "__name__=cpu,pod=a,service_name=s", at);
            days_put(d, "__name__=cpu,pod=b,service_name=s", at + RIG_SECOND);
            days_put(d, "__name__=cpu,pod=c,service_name=t", at + RIG_SECOND);
        }
    }
    /* A profile that cannot be merged. */
    static const struct pprof_row negative[] = {{"a work main", "", {-1, 5}}, {"d", "", {1, 7}}};
    rig_put(&d->store, "__name__=cpu,pod=a,service_name=s", RIG_T0 + RIG_HOUR, TYPES, negative, 2,
            NULL);
}

static void days_done(struct days *d)
{
    store_rig_done(&d->store);
}

SCOPED_VALUE(days, days_done)
SETUP_OF(days)

static uint64_t days_metric(struct days *d, const char *name)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "profpull_store_%s_total{endpoint=\"local\"}", name);
    return store_rig_metric(&d->store, text);
}

/* Merges and seals all files, and makes no sum. */
static void days_seal(struct days *d)
{
    store_writers_close(d->store.store, NULL);
    store_merge_files(d->store.store, RIG_T0 + 9 * DAY);
}

static void days_round_at(struct days *d, int64_t now_ns)
{
    store_writers_close(d->store.store, NULL);
    store_maintain(d->store.store, now_ns);
}

static void days_round(struct days *d)
{
    days_round_at(d, RIG_T0 + 9 * DAY);
}

/* Sets the flame graph of hours after RIG_T0. False with err. */
static bool days_ask(struct days *d, const char *selector, int from, int until, char *text,
                     struct err *err)
{
    static const struct query_stacks all;
    struct flamegraph fg;
    struct profile_type type;
    struct query q = {.store = d->store.store,
                      .bytes_max = TREE_TEST_MAX,
                      .arena = arena_new(TREE_TEST_MAX),
                      .damaged = &d->damaged};
    struct query_range r = {RIG_T0 / NS_PER_MS + from * 3600 * MS_PER_S,
                            RIG_T0 / NS_PER_MS + until * 3600 * MS_PER_S - 1, NULL};
    struct selector *s = selector != NULL ? selector_parse(sv_from(selector), err) : NULL;
    r.selector = s;
    assert_true(profile_type_parse(SV("cpu:cpu:nanoseconds::"), &type, err));
    struct tree *t = query_tree(&q, &r, &type, &all, err);
    bool ok = t != NULL && tree_flamegraph(t, TREE_NODES_DEFAULT, q.arena, &fg, err);
    if (ok) {
        flamegraph_text(&fg, 4, text, TEXT_MAX);
    }
    tree_free(t);
    selector_free(s);
    arena_free(q.arena);
    return ok;
}

/* Checks a flame graph, and how many sums it has read. */
static void days_check(struct days *d, const char *selector, int from, int until, const char *want,
                       uint64_t sums)
{
    struct err err = ERR_INIT;
    SCOPED_MEMORY char *text = testing_memory(TEXT_MAX);
    uint64_t reads = days_metric(d, "sum_reads");
    bool ok = days_ask(d, selector, from, until, text, &err);
    CHECK_STR(err.msg, "", "query");
    assert_true(ok);
    CHECK_STR(text, want, selector != NULL ? selector : "all");
    CHECK_INT(days_metric(d, "sum_reads") - reads, sums, "sums that were read");
}

/* Returns a flame graph, for free(). */
static char *days_text(struct days *d, const char *selector, int from, int until)
{
    struct err err = ERR_INIT;
    char *text = testing_memory(TEXT_MAX);
    bool ok = days_ask(d, selector, from, until, text, &err);
    CHECK_STR(err.msg, "", "query");
    assert_true(ok);
    return text;
}

static bool days_has_sum(const struct days *d)
{
    char path[512];
    store_rig_path(&d->store, SUM, path);
    return access(path, F_OK) == 0;
}

TEST_ON(struct days *d, flame_graphs_are_the_same_with_sums)
{
    static const struct {
        const char *selector;
        int from;
        int until;
        uint64_t sums;
    } cases[] = {
        {NULL, 0, 48, 2},
        {NULL, 0, 24, 1},
        {"{service_name=\"s\"}", 0, 48, 2},
        {"{pod=\"b\"}", 0, 40, 2},
        {"{k=\"x\"}", 0, 48, 2},
        {"{k!=\"x\",service_name=\"t\"}", 0, 48, 2},
        {"{service_name=\"none\"}", 0, 48, 2},
        {NULL, 1, 48, 1},    /* a part of the first day is read from its files */
        {NULL, 0, 23, 0},    /* its last hour is missing */
        {NULL, -48, 100, 2}, /* empty days have no sum */
    };
    enum { N = sizeof(cases) / sizeof(cases[0]) };
    char *want[N];
    days_seal(d);
    for (size_t i = 0; i < N; i++) {
        want[i] = days_text(d, cases[i].selector, cases[i].from, cases[i].until);
    }
    assert_int_equal(days_metric(d, "sum_reads"), 0);
    assert_true(strstr(want[0], "total ") != NULL && strlen(want[0]) > 100);
    for (int i = 0; i < 3; i++) {
        days_round(d); /* one sum for each round */
    }
    assert_int_equal(days_metric(d, "sums"), 2);
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < N; i++) {
            days_check(d, cases[i].selector, cases[i].from, cases[i].until, want[i], cases[i].sums);
        }
        days_reopen(d); /* sums are found again */
        d->damaged = 0;
    }
    days_round(d);
    assert_int_equal(days_metric(d, "sums"), 0);
    for (size_t i = 0; i < N; i++) {
        free(want[i]);
    }
}

/* The merged profile of a service, as text. */
static void days_profile(struct days *d, char out[QUERY_TEXT_MAX])
{
    static const struct query_profile_options all;
    struct err err = ERR_INIT;
    struct profile_type type;
    struct query q = {.store = d->store.store, .bytes_max = TREE_TEST_MAX};
    struct query_range r = {RIG_T0 / NS_PER_MS, RIG_T0 / NS_PER_MS + 48 * 3600 * MS_PER_S - 1,
                            NULL};
    SCOPED(buf) b = testing_buf(TREE_TEST_MAX);
    assert_true(profile_type_parse(SV("cpu:cpu:nanoseconds::"), &type, &err));
    bool ok = query_profile(&q, &r, &type, &all, &b, &err);
    CHECK_STR(err.msg, "", "query_profile");
    assert_true(ok);
    query_text_profile((struct sv){b.data, b.len}, out);
}

TEST_ON(struct days *d, merged_profiles_are_the_same_with_sums)
{
    SCOPED_MEMORY char *before = testing_memory(QUERY_TEXT_MAX);
    SCOPED_MEMORY char *after = testing_memory(QUERY_TEXT_MAX);
    days_seal(d);
    days_profile(d, before);
    days_round(d);
    days_round(d);
    days_profile(d, after);
    assert_int_equal(days_metric(d, "sum_reads"), 2);
    CHECK_STR(after, before, "profile");
}

#define LARGE ((size_t)20 * 1024 * 1024)

/* Puts a profile with a long string. */
static void days_put_large(struct days *d, int64_t time_ns)
{
    static const struct pprof_row row = {"a main", "", {1, 2}};
    struct pprof_spec spec = {.types = TYPES, .time_nanos = time_ns};
    SCOPED(buf) b = pprof_make(&spec, &row, 1);
    SCOPED_MEMORY char *text = testing_memory(LARGE);
    struct store_put put;
    b.max = 2 * LARGE;
    memset(text, 'x', LARGE);
    put_msg(&b, PROFILE_STRING, text, LARGE);
    (void)rig_put_bytes(&d->store, "__name__=cpu,service_name=large", time_ns,
                        (struct sv){b.data, b.len}, PROFILE_PPROF, &put);
    CHECK_STR(put.problem, "", "put");
}

/* A profile that is too large to be merged with others is part of the sum as it is. */
TEST_ON(struct days *d, large_profiles_stay_alone)
{
    days_put_large(d, RIG_T0 + RIG_HOUR);
    days_put_large(d, RIG_T0 + 2 * RIG_HOUR);
    days_seal(d);
    SCOPED_MEMORY char *want = days_text(d, NULL, 0, 24);
    days_round(d);
    days_round(d);
    assert_int_equal(days_metric(d, "sums"), 2);
    days_check(d, NULL, 0, 24, want, 1);
}

TEST_ON(struct days *d, timelines_and_ids_do_not_use_sums)
{
    days_round(d);
    SCOPED_MEMORY char *points = rig_scan(&d->store, RIG_POINTS, NULL, 0, 2 * 86400, "pod");
    size_t bodies = rig_count(&d->store, RIG_BODIES, NULL, 0, 2 * 86400, NULL);
    days_round(d);
    days_round(d);
    assert_int_equal(days_metric(d, "sums"), 2);
    rig_check(&d->store, RIG_POINTS, NULL, 0, 2 * 86400, "pod", points);
    assert_int_equal(rig_count(&d->store, RIG_BODIES, NULL, 0, 2 * 86400, NULL), bodies);
    assert_int_equal(days_metric(d, "sum_reads"), 0);
}

TEST_ON(struct days *d, a_late_profile_counts_at_once)
{
    days_round(d);
    days_round(d);
    SCOPED_MEMORY char *before = days_text(d, NULL, 0, 24);
    /* In a file that was sealed, and in a new one. */
    days_put(d, "__name__=cpu,pod=a,service_name=s", RIG_T0 + 5 * RIG_HOUR + 50 * RIG_SECOND);
    days_put(d, "__name__=cpu,pod=a,service_name=s", RIG_T0 + 7 * RIG_HOUR);
    SCOPED_MEMORY char *after = days_text(d, NULL, 0, 24);
    assert_string_not_equal(before, after);
    uint64_t sums = days_metric(d, "sums");
    days_check(d, NULL, 0, 24, after, 0);
    days_round(d);
    assert_int_equal(days_metric(d, "sums"), sums + 1);
    days_check(d, NULL, 0, 24, after, 1);
}

TEST_ON(struct days *d, a_removed_file_takes_its_sum_along)
{
    struct store_stats with;
    struct store_stats without;
    struct err err = ERR_INIT;
    days_round(d);
    days_round(d);
    assert_true(days_has_sum(d));
    store_stats(d->store.store, &with);
    struct store_file *first = store_file_ref(d->store.store->files[0]);
    uint64_t of_file = first->data_bytes;
    assert_true(store_file_remove(d->store.store, first, &err));
    store_file_unref(first);
    assert_false(days_has_sum(d));
    store_stats(d->store.store, &without);
    assert_true(without.bytes < with.bytes - of_file); /* its bytes counted */
    SCOPED_MEMORY char *rest = days_text(d, NULL, 1, 24);
    days_check(d, NULL, 0, 24, rest, 0);
    days_round(d); /* the other files of the day are removed soon */
    days_check(d, NULL, 0, 24, rest, 0);
}

TEST_ON(struct days *d, retention_removes_sums)
{
    days_round(d);
    days_round(d);
    days_round(d);
    d->store.options.max_age_ms = 24 * 3600 * MS_PER_S;
    store_configure(d->store.store, &d->store.options);
    store_maintain(d->store.store, RIG_T0 + 2 * DAY + RIG_HOUR);
    assert_false(days_has_sum(d));
    store_maintain(d->store.store, RIG_T0 + 9 * DAY);
    assert_int_equal(store_rig_profiles(&d->store), 0);
    store_rig_shell(&d->store, "! ls *.sum");
}

/* Harm to a sum while the store runs costs only the time to make it again. */
TEST_ON(struct days *d, a_sum_that_cannot_be_read_is_made_again)
{
    static const char *const harms[] = {"rm " SUM, ": > " SUM, "head -c 5000 /dev/zero > " SUM,
                                        "truncate -s 4096 " SUM};
    testing_log_expect(d->store.log, "the sum of a day cannot be read");
    days_round(d);
    days_round(d);
    SCOPED_MEMORY char *want = days_text(d, NULL, 0, 24);
    for (size_t i = 0; i < sizeof(harms) / sizeof(harms[0]); i++) {
        days_reopen(d); /* no connection is open */
        store_rig_shell(&d->store, harms[i]);
        days_check(d, NULL, 0, 24, want, 1);
        CHECK_INT(days_metric(d, "sum_failures"), 1, harms[i]);
        assert_false(days_has_sum(d));
        days_check(d, NULL, 0, 24, want, 0);
        days_round(d);
        assert_true(days_has_sum(d));
        days_check(d, NULL, 0, 24, want, 1);
    }
    assert_int_equal(store_rig_faults(&d->store, "damaged"), 0);
}

/* The bytes of a profile are read after others were: the query says so, and the next one is whole.
 */
TEST_ON(struct days *d, changed_bytes_of_a_sum_end_one_query)
{
    struct err err = ERR_INIT;
    char path[512];
    SCOPED_MEMORY char *text = testing_memory(TEXT_MAX);
    testing_log_expect(d->store.log, "the sum of a day cannot be read");
    days_round(d);
    days_round(d);
    SCOPED_MEMORY char *want = days_text(d, NULL, 0, 24);
    days_reopen(d);
    store_rig_path(&d->store, SUM, path);
    struct db db;
    bool empty;
    assert_true(db_open(&db, path, false, &empty, &err));
    assert_int_equal(sqlite3_exec(db.handle, "UPDATE bodies SET data = x'1f8b08' WHERE id = 2",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    db_close(&db);
    assert_false(days_ask(d, NULL, 0, 24, text, &err));
    assert_non_null(strstr(err.msg, SUM ": damaged: the bytes of a profile: the file was removed: "
                                        "ask again"));
    assert_false(days_has_sum(d));
    days_check(d, NULL, 0, 24, want, 0);
    assert_int_equal(days_metric(d, "damaged_profiles"), 0);
}

TEST_ON(struct days *d, what_is_no_sum_is_removed_at_the_start)
{
    days_round(d);
    days_round(d);
    SCOPED_MEMORY char *want = days_text(d, NULL, 0, 24);
    d->store.store = store_close(d->store.store);
    metrics_free(d->store.metrics);
    d->store.metrics = d->store.options.metrics = NULL;
    store_rig_shell(&d->store, "cp " SUM " 20261123T000000Z-1d.sum && echo x > " SUM ".new && "
                               "echo x > 20261124T000000Z-1d.sum && echo x > 20261124T000000Z-1d."
                               "sums && echo x > other.sum");
    days_reopen(d);
    store_rig_shell(&d->store, "test ! -e " SUM ".new && test ! -e 20261124T000000Z-1d.sum && "
                               "test -e 20261124T000000Z-1d.sums && test -e other.sum");
    days_check(d, NULL, 0, 24, want, 1);
    /* The copy is not the sum of the second day. */
    SCOPED_MEMORY char *second = days_text(d, NULL, 24, 48);
    days_check(d, NULL, 24, 48, second, 0);
    days_round(d);
    days_check(d, NULL, 24, 48, second, 1);
}

TEST_ON(struct days *d, damaged_profiles_are_in_no_sum)
{
    struct err err = ERR_INIT;
    testing_log_expect(d->store.log, "a profile of the store has changed on the disk");
    testing_log_expect(d->store.log, "the sum of a day cannot be made");
    days_seal(d);
    struct store_file *f = d->store.store->files[0];
    struct db db;
    bool empty;
    store_readers_close(d->store.store, NULL);
    assert_true(db_open(&db, f->path, false, &empty, &err));
    assert_int_equal(sqlite3_exec(db.handle, "UPDATE merges SET data = x'1f8b08' WHERE id = 1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_true(db_copy_log(&db, DB_COPY_AND_CUT, &err));
    db_close(&db);
    store_sums_make(d->store.store, RIG_T0 + 9 * DAY); /* the second day */
    store_sums_make(d->store.store, RIG_T0 + 9 * DAY);
    assert_int_equal(days_metric(d, "sum_failures"), 1);
    assert_int_equal(days_metric(d, "damaged_profiles"), 1);
    assert_false(days_has_sum(d));
    SCOPED_MEMORY char *want = days_text(d, NULL, 0, 24);
    store_bad_drop(d->store.store);
    days_check(d, NULL, 0, 24, want, 0);
}

TEST_ON(struct days *d, a_sum_waits_for_the_end_of_its_day)
{
    days_round_at(d, RIG_T0 + DAY + RIG_HOUR / 12);
    assert_int_equal(days_metric(d, "sums"), 0);
    days_round_at(d, RIG_T0 + DAY + RIG_HOUR / 2);
    assert_int_equal(days_metric(d, "sums"), 1);
    days_round_at(d, RIG_T0 + DAY + RIG_HOUR / 2);
    assert_int_equal(days_metric(d, "sums"), 1);
}

TEST(test_days_without_merging_have_no_sums)
{
    SCOPED(days) d;
    days_init(&d);
    d.store.options.merge_ms = 0;
    store_configure(d.store.store, &d.store.options);
    days_round(&d);
    days_round(&d);
    assert_int_equal(days_metric(&d, "sums"), 0);
}

TEST(test_days_with_a_file_of_two_days_have_no_sum)
{
    SCOPED(days) d;
    days_init(&d);
    d.store.options.stretch_ms = 7 * 3600 * MS_PER_S;
    store_configure(d.store.store, &d.store.options);
    days_put(&d, "__name__=cpu,pod=a,service_name=s", RIG_T0 + 25 * RIG_HOUR);
    for (int i = 0; i < 3; i++) {
        days_round(&d);
    }
    assert_int_equal(days_metric(&d, "sums"), 0);
}

/* The disk is full while a sum is written. */
TEST_ON(struct days *d, a_sum_that_cannot_be_written_is_left)
{
    struct rlimit before;
    testing_log_expect(d->store.log, "the sum of a day cannot be made");
    days_seal(d);
    SCOPED_MEMORY char *want = days_text(d, NULL, 0, 24);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    const struct rlimit small = {8192, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    store_sums_make(d->store.store, RIG_T0 + 9 * DAY);
    store_sums_make(d->store.store, RIG_T0 + 9 * DAY);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(days_metric(d, "sum_failures"), 2);
    store_rig_shell(&d->store, "! ls *.sum*");
    store_sums_make(d->store.store, RIG_T0 + 9 * DAY); /* it is not tried again for a while */
    assert_int_equal(days_metric(d, "sums"), 0);
    days_check(d, NULL, 0, 24, want, 0);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

TEST_ON(struct days *d, a_sum_is_given_up_when_the_store_closes)
{
    struct err err = ERR_INIT;
    char path[512];
    days_seal(d);
    store_rig_path(&d->store, "x" SUM_SUFFIX, path);
    const struct summing_options o = {
        .files = d->store.store->files, .n_files = 1, .path = path, .go_on = never};
    assert_false(summing_build(d->store.store, &o, &err));
    CHECK_STR(err.msg, "", "no error");
}

/* Damaged profiles of one day are no part of the sums of other days. */
TEST_ON(struct days *d, damaged_profiles_do_not_disturb_sums_of_other_days)
{
    days_round(d);
    days_round(d);
    days_reopen(d);
    struct store_file *f = d->store.store->files[3]; /* the last one of the first day */
    struct err err = ERR_INIT;
    bool skip;
    struct reader_conn *r = store_reader_take(d->store.store, f, &skip, &err);
    assert_non_null(r);
    store_bad_note(d->store.store, f, &r->db, 1, 0);
    store_reader_give(d->store.store, r, &err);
    uint64_t reads = days_metric(d, "sum_reads");
    SCOPED_MEMORY char *both = days_text(d, NULL, 0, 48);
    assert_true(strlen(both) > 0);
    assert_int_equal(days_metric(d, "sum_reads") - reads, 1); /* the second day */
}

/* profefe's API stores a profile again that the store has; one with negative values is not merged.
 */
TEST_ON(struct days *d, equal_profiles_that_cannot_be_merged_are_all_counted)
{
    static const struct pprof_row negative[] = {{"a work main", "", {-1, 5}}, {"d", "", {1, 7}}};
    struct pprof_spec spec = {.types = TYPES, .time_nanos = RIG_T0 + RIG_HOUR + RIG_SECOND};
    struct label l[RIG_LABELS_MAX];
    SCOPED(buf) b = pprof_make(&spec, negative, 2);
    for (uint16_t salt = 0; salt < 3; salt++) {
        struct store_put put = {.labels = l,
                                .n_labels = rig_labels("__name__=cpu,service_name=again", l),
                                .data = {b.data, b.len},
                                .format = PROFILE_PPROF,
                                .salt = salt,
                                .from_ns = spec.time_nanos,
                                .until_ns = spec.time_nanos + RIG_SECOND};
        assert_true(store_put(d->store.store, &put, 1));
    }
    days_seal(d);
    SCOPED_MEMORY char *want = days_text(d, "{service_name=\"again\"}", 0, 24);
    assert_non_null(strstr(want, "total 21"));
    days_round(d);
    days_round(d);
    assert_int_equal(days_metric(d, "sums"), 2);
    days_check(d, "{service_name=\"again\"}", 0, 24, want, 1);
}

TEST_ON(struct days *d, a_sum_without_a_state_has_no_key)
{
    struct err err = ERR_INIT;
    char path[512];
    int64_t key;
    struct db db;
    bool empty;
    days_round(d);
    days_round(d);
    store_rig_path(&d->store, SUM, path);
    assert_true(summing_key(path, &key, &err));
    store_readers_close(d->store.store, NULL);
    assert_true(db_open(&db, path, false, &empty, &err));
    assert_int_equal(sqlite3_exec(db.handle, "DELETE FROM state", NULL, NULL, NULL), SQLITE_OK);
    assert_true(db_copy_log(&db, DB_COPY_AND_CUT, &err));
    db_close(&db);
    assert_false(summing_key(path, &key, &err));
}

/* A put that found its profile in an earlier file leaves an empty one on the list. */
TEST_ON(struct days *d, empty_files_do_not_prevent_sums)
{
    days_round(d);
    days_round(d);
    SCOPED_MEMORY char *want = days_text(d, NULL, 0, 24);
    size_t n = d->store.store->n_files;
    pthread_mutex_lock(&d->store.store->lock);
    for (size_t i = 0; i < n; i++) {
        d->store.store->files[i]->frozen = true;
    }
    pthread_mutex_unlock(&d->store.store->lock);
    days_put(d, "__name__=cpu,pod=a,service_name=s", RIG_T0);
    assert_int_equal(d->store.store->n_files, n + 1);
    days_check(d, NULL, 0, 24, want, 1);
    days_reopen(d);
    days_check(d, NULL, 0, 24, want, 1);
    store_rig_shell(&d->store, "rm *.sum");
    days_reopen(d);
    days_round(d);
    days_round(d);
    days_check(d, NULL, 0, 24, want, 1);
}

/* A query has found a sum, and the sum is replaced before the query opens it. */
TEST_ON(struct days *d, a_sum_that_was_replaced_is_not_read)
{
    struct store *s = d->store.store;
    const struct store_range range = {.from_ns = 0, .until_ns = INT64_MAX};
    struct err err = ERR_INIT;
    struct store_file *sum = NULL;
    bool skip;
    days_round(d);
    days_round(d);
    assert_int_equal(store_sums_cover(s, s->files, s->n_files, 0, &range, &sum), 4);
    days_put(d, "__name__=cpu,pod=a,service_name=s", RIG_T0 + 5 * RIG_HOUR + 50 * RIG_SECOND);
    days_round(d);
    assert_int_equal(days_metric(d, "sums"), 3);
    assert_null(store_reader_take(s, sum, &skip, &err));
    CHECK_STR(err.msg, "it was replaced", "sum");
    store_sums_failed(s, sum, err.msg);
    store_file_unref(sum);
    assert_int_equal(days_metric(d, "sum_failures"), 0);
    SCOPED_MEMORY char *want = days_text(d, NULL, 0, 24);
    days_check(d, NULL, 0, 24, want, 1);
}

/* Puts a profile with n sets of string labels, from `first` on. */
static void days_put_sets(struct days *d, int64_t time_ns, int first, int n)
{
    enum { SETS_MAX = 100 };
    static char labels[SETS_MAX][32];
    static struct pprof_row rows[SETS_MAX];
    for (int i = 0; i < n; i++) {
        (void)snprintf(labels[i], sizeof(labels[i]), "k=v%d", first + i);
        rows[i] = (struct pprof_row){"a main", labels[i], {1, 1}};
    }
    rig_put(&d->store, "__name__=cpu,service_name=sets", time_ns, TYPES, rows, (size_t)n, NULL);
}

/* Files that exceed a limit are not read again for a sum before they change. */
TEST_ON(struct days *d, a_sum_beyond_a_limit_waits_for_other_files)
{
    struct store *s = d->store.store;
    testing_log_expect(d->store.log, "the sum of a day cannot be made");
    for (int i = 0; i < 11; i++) {
        days_put_sets(d, RIG_T0 + (i % 2 * 5) * RIG_HOUR + i * RIG_SECOND, i * 100, 100);
    }
    days_round(d);
    for (int i = 0; i < 3; i++) {
        days_round(d);
        for (size_t k = 0; k < s->n_sums; k++) {
            s->sums[k].failed_ms -= s->sums[k].failed_ms != 0 ? 2 * 3600 * MS_PER_S : 0;
        }
    }
    assert_int_equal(days_metric(d, "sum_failures"), 1);
    days_put(d, "__name__=cpu,pod=a,service_name=s", RIG_T0 + 7 * RIG_HOUR);
    days_round(d);
    assert_int_equal(days_metric(d, "sum_failures"), 2);
}

TEST_ON(struct days *d, sums_of_days_without_files_are_removed)
{
    days_round(d);
    days_round(d);
    store_rig_shell(&d->store, "rm 20261122*.db*");
    days_reopen(d);
    days_round(d);
    assert_false(days_has_sum(d));
    store_rig_shell(&d->store, "test -e 20261123T000000Z-1d.sum");
}

static void days_hurry(struct days *d, bool hurry)
{
    pthread_mutex_lock(&d->store.store->lock);
    d->store.store->hurry = hurry;
    pthread_mutex_unlock(&d->store.store->lock);
}

/* A full disk asks for retention while a sum is made. */
TEST_ON(struct days *d, retention_comes_before_sums)
{
    days_seal(d);
    days_hurry(d, true);
    store_sums_make(d->store.store, RIG_T0 + 9 * DAY);
    assert_int_equal(days_metric(d, "sums"), 0);
    assert_int_equal(days_metric(d, "sum_failures"), 0);
    store_rig_shell(&d->store, "! ls *.sum*");
    days_hurry(d, false);
    store_sums_make(d->store.store, RIG_T0 + 9 * DAY);
    assert_int_equal(days_metric(d, "sums"), 1);
}

/* A profile with too many sets of string labels is not split into series by them, and stays so. */
TEST_ON(struct days *d, profiles_that_are_not_split_stay_whole)
{
    enum { A = 40, B = 30 };
    static char labels[A * B][32];
    static struct pprof_row rows[A * B];
    const char *series = "__name__=cpu,service_name=many";
    for (int i = 0; i < A * B; i++) {
        (void)snprintf(labels[i], sizeof(labels[i]), "a=x%d,b=y%d", i / B, i % B);
        rows[i] = (struct pprof_row){"a main", labels[i], {1, 1}};
    }
    rig_put(&d->store, series, RIG_T0 + 2 * RIG_HOUR, TYPES, rows, A * B, NULL);
    rig_put(&d->store, series, RIG_T0 + 3 * RIG_HOUR, TYPES, rows, 2, NULL);
    rig_put(&d->store, series, RIG_T0 + 3 * RIG_HOUR + RIG_SECOND, TYPES, rows, A * B, NULL);
    assert_int_equal(days_metric(d, "unsplit"), 2);
    SCOPED_MEMORY char *all = days_text(d, "{service_name=\"many\"}", 0, 24);
    SCOPED_MEMORY char *one = days_text(d, "{a=\"x0\",b=\"y1\"}", 0, 24);
    SCOPED_MEMORY char *none = days_text(d, "{service_name=\"many\",a=\"\"}", 0, 24);
    days_seal(d);
    days_check(d, "{service_name=\"many\"}", 0, 24, all, 0);
    days_check(d, "{a=\"x0\",b=\"y1\"}", 0, 24, one, 0);
    days_check(d, "{service_name=\"many\",a=\"\"}", 0, 24, none, 0);
    days_round(d);
    days_round(d);
    days_check(d, "{service_name=\"many\"}", 0, 24, all, 1);
    days_check(d, "{a=\"x0\",b=\"y1\"}", 0, 24, one, 1);
    days_check(d, "{service_name=\"many\",a=\"\"}", 0, 24, none, 1);
}
