/* The archive of a store: uploads, queries of disk and bucket, removal, and faults at every step.
 */
#include <sys/stat.h>

#include "tests/unit/store/archive_fake.h"

#define HOUR 3600
#define DAY (24 * HOUR)
#define FIRST "20261122T000000Z-1h"

static const struct pprof_row rows[] = {{"a main", "", {1}}, {"b main", "thread=x", {2}}};

/* Puts three hours of two services. */
static void put_hours(struct archive_rig *r)
{
    for (int i = 0; i < 3 * 12; i++) {
        int64_t at = RIG_T0 + i * 300 * RIG_SECOND;
        rig_put(&r->store, "__name__=cpu,service_name=a", at, "cpu/ns", rows, 2, NULL);
        rig_put(&r->store, "__name__=cpu,service_name=a", at + 15 * RIG_SECOND, "cpu/ns", rows, 1,
                NULL);
        if (i < 12) {
            rig_put(&r->store, "__name__=mem,service_name=b", at, "space/bytes", rows, 1, NULL);
        }
    }
}

static void check_text(struct archive_rig *r, const char *want, const char *row)
{
    struct partial partial = {.parts = 0};
    SCOPED_MEMORY char *got = archive_rig_text(r, &partial);
    CHECK_STR(got, want, row);
    CHECK_STR(partial.why, "", row);
}

SETUP_OF(fake)

TEST_ON(struct fake *f, answers_are_the_same_from_disk_and_bucket)
{
    SCOPED(archive_rig) r;
    archive_rig_init(&r, f, "w1");
    put_hours(&r);
    f->now_ns = RIG_T0 + 10 * RIG_HOUR;
    store_maintain(r.store.store, f->now_ns);
    archive_rig_round(&r, f);
    assert_int_equal(fake_count(f, "w1/data/"), 3);
    assert_int_equal(fake_count(f, "w1/index/"), 3);
    assert_int_equal(f->n, 7);
    struct partial partial = {.parts = 0};
    SCOPED_MEMORY char *want = archive_rig_text(&r, &partial);
    CHECK_STR(partial.why, "", "partial");
    assert_true(strlen(want) > 1000);
    /* Nothing was read from the bucket while the files are on disk. */
    unsigned gets = f->gets;
    check_text(&r, want, "disk");
    assert_int_equal(f->gets, gets);
    /* A further round uploads nothing. */
    unsigned puts = f->puts;
    archive_rig_round(&r, f);
    assert_int_equal(f->puts, puts + 1); /* the heartbeat */
    archive_rig_wipe(&r);
    archive_rig_round(&r, f);
    check_text(&r, want, "bucket");
    gets = f->gets;
    check_text(&r, want, "cache");
    assert_int_equal(f->gets, gets);
    SCOPED(archive_rig) reader;
    archive_rig_reader(&reader, f);
    archive_rig_round(&reader, f);
    check_text(&reader, want, "reader");
    assert_false(store_put(reader.store.store, &(struct store_put){.n_labels = 0}, 1));
}

TEST_ON(struct fake *f, profiles_are_found_by_id_in_the_bucket)
{
    SCOPED(archive_rig) r;
    char id[STORE_ID_LENGTH + 1];
    archive_rig_init(&r, f, "w1");
    rig_put(&r.store, "__name__=cpu,service_name=a", RIG_T0 + RIG_SECOND, "cpu/ns", rows, 1, id);
    archive_rig_at(&r, f, 10 * HOUR);
    archive_rig_wipe(&r);
    archive_rig_round(&r, f);
    struct err err = ERR_INIT;
    bool found = false;
    struct rig_text t;
    rig_text_init(&t, NULL);
    assert_true(store_get(r.store.store, sv_from(id), &found, rig_on_body, &t, &err));
    assert_true(found);
    buf_done(&t.out);
}

TEST_ON(struct fake *f, retention_waits_for_the_archive)
{
    SCOPED(archive_rig) r;
    archive_rig_init(&r, f, "w1");
    testing_log_expect(r.store.log, "a request of the archive has failed");
    put_hours(&r);
    free(archive_rig_text(&r, NULL));
    f->now_ns = RIG_T0 + 10 * RIG_HOUR;
    store_maintain(r.store.store, f->now_ns);
    SCOPED_MEMORY char *want = archive_rig_text(&r, NULL);
    r.store.options.max_age_ms = 3600 * MS_PER_S;
    store_configure(r.store.store, &r.store.options);
    /* The bucket does not answer: everything stays. */
    f->fail_after = 1;
    store_maintain(r.store.store, f->now_ns);
    archive_rig_round(&r, f);
    store_maintain(r.store.store, f->now_ns);
    assert_int_equal(r.store.store->n_files, 3);
    struct archive_stats stats;
    assert_true(store_archive_stats(r.store.store, &stats));
    assert_false(stats.up);
    f->fail_after = 0;
    archive_rig_round(&r, f);
    assert_int_equal(r.store.store->n_files, 3);
    store_maintain(r.store.store, f->now_ns);
    assert_int_equal(r.store.store->n_files, 0);
    check_text(&r, want, "bucket");
    assert_int_equal(
        store_rig_metric(&r.store,
                         "profpull_store_files_removed_total{endpoint=\"local\",reason=\"age\"}"),
        3);
}

/* Files that wait for a bucket which takes nothing are counted, with the reason, then uploaded. */
TEST(files_that_wait_are_counted)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    struct archive_stats stats;
    fake_init(&f);
    archive_rig_init(&r, &f, "w1");
    put_hours(&r);
    archive_rig_at(&r, &f, 0);
    testing_log_expect(r.store.log, "a request of the archive has failed, and will be repeated");
    f.result = BUCKET_FULL;
    f.fail_key = "w1/data/";
    f.fail_after = 1;
    archive_rig_at(&r, &f, 10 * HOUR);
    assert_true(store_archive_stats(r.store.store, &stats));
    assert_int_equal(stats.waiting_files, 3);
    assert_true(stats.waiting_bytes > 0);
    CHECK_CONTAINS(stats.problem, "the bucket answers full", "");
    assert_int_equal(
        store_rig_metric(&r.store, "profpull_archive_waiting_files{endpoint=\"local\"}"), 3);
    assert_int_equal(
        store_rig_metric(&r.store,
                         "profpull_archive_failures_total{endpoint=\"local\",reason=\"full\"}"),
        1);
    f.fail_after = 0;
    archive_rig_round(&r, &f);
    assert_true(store_archive_stats(r.store.store, &stats));
    assert_int_equal(stats.waiting_files, 0);
    CHECK_STR(stats.problem, "", "");
    assert_int_equal(fake_count(&f, "w1/index/"), 3);
}

/* A file that an earlier version has written is answered, archived, and answered from the bucket.
 */
TEST(a_file_of_version_1_is_archived)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    char command[1024];
    fake_init(&f);
    archive_rig_init(&r, &f, "w1");
    r.store.store = store_close(r.store.store);
    (void)snprintf(command, sizeof(command),
                   "gzip -dc tests/unit/data/store/version-1.db.gz > %s/20261122T000000Z-1h.db",
                   r.store.directory);
    assert_int_equal(system(command), 0);
    store_rig_reopen(&r.store);
    f.now_ns = RIG_T0 + 10 * RIG_HOUR;
    store_maintain(r.store.store, f.now_ns);
    char *want = archive_rig_text(&r, NULL);
    assert_true(strlen(want) > 1000);
    archive_rig_round(&r, &f);
    assert_int_equal(fake_count(&f, "w1/index/"), 1);
    archive_rig_wipe(&r);
    archive_rig_round(&r, &f);
    check_text(&r, want, "from the bucket");
    free(want);
}

/* The process ends at each request of a round in turn, with and without its effect. */
TEST(a_crash_at_any_request_loses_and_doubles_nothing)
{
    for (unsigned k = 1; k < 40; k++) {
        for (int effective = 0; effective < 2; effective++) {
            SCOPED(fake) f;
            SCOPED(archive_rig) r;
            char row[64];
            (void)snprintf(row, sizeof(row), "request %u, %d", k, effective);
            fake_init(&f);
            archive_rig_init(&r, &f, "w1");
            r.store.options.log = NULL;
            store_rig_reopen(&r.store);
            put_hours(&r);
            f.now_ns = RIG_T0 + 10 * RIG_HOUR;
            store_maintain(r.store.store, f.now_ns);
            SCOPED_MEMORY char *want = archive_rig_text(&r, NULL);
            f.fail_after = k;
            f.effective = effective;
            archive_rig_round(&r, &f);
            bool done = f.requests < k;
            f.fail_after = 0;
            /* The process starts again. */
            store_rig_reopen(&r.store);
            archive_rig_at(&r, &f, 10 * HOUR);
            check_text(&r, want, row);
            assert_int_equal(fake_count(&f, "w1/data/"), 3);
            assert_int_equal(fake_count(&f, "w1/index/"), 3);
            archive_rig_wipe(&r);
            archive_rig_round(&r, &f);
            check_text(&r, want, row);
            if (done) {
                assert_true(k > 15);
                return;
            }
        }
    }
    fail();
}

TEST_ON(struct fake *f, late_profiles_get_a_further_object)
{
    SCOPED(archive_rig) r;
    archive_rig_init(&r, f, "w1");
    put_hours(&r);
    archive_rig_at(&r, f, 10 * HOUR);
    rig_put(&r.store, "__name__=cpu,service_name=late", RIG_T0 + RIG_SECOND, "cpu/ns", rows, 1,
            NULL);
    SCOPED_MEMORY char *want = archive_rig_text(&r, NULL);
    assert_non_null(strstr(want, "late"));
    /* Also after the process has started again. */
    store_rig_reopen(&r.store);
    rig_put(&r.store, "__name__=cpu,service_name=later", RIG_T0 + HOUR * RIG_SECOND, "cpu/ns", rows,
            1, NULL);
    archive_rig_at(&r, f, 11 * HOUR);
    free(want);
    want = archive_rig_text(&r, NULL);
    assert_non_null(strstr(want, "later"));
    assert_int_equal(fake_count(f, "w1/index/"), 5);
    assert_int_equal(fake_count(f, "w1/index/" FIRST), 2);
    assert_int_equal(fake_count(f, "w1/index/" FIRST ".2_"), 1);
    archive_rig_wipe(&r);
    archive_rig_round(&r, f);
    check_text(&r, want, "bucket");
}

/* ---- what cannot be read --------------------------------------------------------------------- */

/* Checks that an answer without the first hour is declared partial, once for all its scans.
 * `series` is true if only the database of the hour cannot be read: its index has the series. */
static void check_partial(struct archive_rig *r, bool series, const char *why, const char *row)
{
    struct partial partial = {.parts = 0};
    SCOPED_MEMORY char *got = archive_rig_text(r, &partial);
    CHECK_CONTAINS(partial.why, why, row);
    assert_int_equal(partial.parts, 1);
    assert_true((strstr(got, "service_name=b") != NULL) == series);
    assert_null(strstr(got, "service_name=b 0 "));
    assert_non_null(strstr(got, "service_name=a"));
}

static void archive_three(struct fake *f, struct archive_rig *r)
{
    fake_init(f);
    archive_rig_init(r, f, "w1");
    put_hours(r);
    archive_rig_at(r, f, 10 * HOUR);
    archive_rig_wipe(r);
    archive_rig_round(r, f);
}

TEST(a_bucket_that_fails_makes_the_answer_partial)
{
    static const struct {
        const char *key;
        enum bucket_result result;
    } cases[] = {{"w1/index/" FIRST, BUCKET_TIMEOUT},
                 {"w1/index/" FIRST, BUCKET_SLOW_DOWN},
                 {"w1/data/" FIRST, BUCKET_NETWORK},
                 {"w1/data/" FIRST, BUCKET_DENIED}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fake) f;
        SCOPED(archive_rig) r;
        archive_three(&f, &r);
        SCOPED_MEMORY char *want = archive_rig_text(&r, NULL);
        f.fail_key = cases[i].key;
        f.result = cases[i].result;
        archive_rig_wipe(&r);
        archive_rig_round(&r, &f);
        f.fail_after = 1;
        struct partial partial = {.parts = 0};
        free(archive_rig_text(&r, &partial));
        assert_true(partial.parts > 0);
        CHECK_CONTAINS(partial.why, "the bucket answers", cases[i].key);
        /* The answer is complete again when the bucket answers. */
        f.fail_after = 0;
        r.store.store->archive->down_until_ms = 0;
        check_text(&r, want, cases[i].key);
    }
}

TEST(a_removed_object_is_left_out)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    archive_three(&f, &r);
    testing_log_expect(r.store.log, "an object of the archive is not there any more");
    fake_drop(&f, fake_like(&f, "w1/data/" FIRST)->key);
    check_partial(&r, true, "no such object", "data");
    /* The next listing of all objects finds that the index is gone, too. */
    fake_drop(&f, fake_like(&f, "w1/index/" FIRST)->key);
    archive_rig_round(&r, &f);
    struct partial partial = {.parts = 0};
    free(archive_rig_text(&r, &partial));
    CHECK_STR(partial.why, "", "listed");
}

/* A bucket that answers 404 for an object which it has makes an answer partial, until it is listed
 * again. */
TEST(an_object_that_was_only_hidden_comes_back)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    archive_three(&f, &r);
    testing_log_expect(r.store.log, "is not there any more");
    SCOPED_MEMORY char *want = archive_rig_text(&r, NULL);
    /* The index is not in the cache of a reader that starts. */
    archive_rig_wipe(&r);
    archive_rig_round(&r, &f);
    f.result = BUCKET_NOT_FOUND;
    f.fail_key = "w1/index/" FIRST;
    f.fail_after = 1;
    check_partial(&r, false, "the bucket answers not_found", "hidden");
    f.fail_after = 0;
    archive_rig_round(&r, &f);
    check_text(&r, want, "listed again");
}

TEST(damaged_and_newer_objects_are_left_alone)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    archive_three(&f, &r);
    testing_log_expect(r.store.log, "an object of the archive cannot be used");
    SCOPED_MEMORY char *want = archive_rig_text(&r, NULL);
    struct fake_object *o = fake_like(&f, "w1/index/" FIRST);
    SCOPED_MEMORY char *before = malloc(o->n);
    size_t n = o->n;
    memcpy(before, o->data, n);
    static const char newer[] = "profpull archive index 3\nsomething new";
    static const char other[] = "not ours";
    const struct {
        const char *data;
        size_t n;
        const char *why;
    } cases[] = {{newer, sizeof(newer) - 1, "written by a newer version (format 3, expected 2)"},
                 {other, sizeof(other) - 1, "not an index of an archive"},
                 {before, n - 1, "damaged"},
                 {before, n / 2, "damaged"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake_set(&f, fake_like(&f, "w1/index/" FIRST)->key, cases[i].data, cases[i].n);
        archive_rig_round(&r, &f);
        check_partial(&r, false, cases[i].why, cases[i].why);
        archive_rig_round(&r, &f);
        assert_int_equal(fake_count(&f, "w1/index/" FIRST), 1);
    }
    fake_set(&f, fake_like(&f, "w1/index/" FIRST)->key, before, n);
    archive_rig_round(&r, &f);
    check_text(&r, want, "mended");
}

/* Not even their age removes them, also after a restart, when nobody has read them yet. */
TEST(damaged_and_newer_objects_are_not_removed_by_age)
{
    static const char newer[] = "profpull archive index 3\nsomething new";
    static const char *const owners[] = {"w1", "w2"};
    for (size_t i = 0; i < 2; i++) {
        SCOPED(fake) f;
        SCOPED(archive_rig) r;
        fake_init(&f);
        archive_rig_init(&r, &f, "w1");
        put_hours(&r);
        archive_rig_at(&r, &f, 10 * HOUR);
        assert_int_equal(fake_count(&f, "w1/index/"), 3);
        struct fake_object *o = fake_like(&f, "w1/index/20261122T010000Z");
        fake_set(&f, o->key, o->data, o->n / 2);
        fake_set(&f, fake_like(&f, "w1/index/" FIRST)->key, newer, sizeof(newer) - 1);
        /* The owner starts again without its disk, or is gone, and another writer removes. */
        archive_rig_wipe(&r);
        testing_log_expect(r.store.log, "an object of the archive cannot be used");
        r.options.writer = owners[i];
        r.options.max_age_ms = DAY * MS_PER_S;
        store_rig_reopen(&r.store);
        archive_rig_at(&r, &f, 100 * DAY);
        archive_rig_at(&r, &f, 100 * DAY + HOUR);
        CHECK_INT(fake_count(&f, "w1/index/"), 2, owners[i]);
        CHECK_INT(fake_count(&f, "w1/data/"), 2, owners[i]);
    }
}

TEST(a_changed_database_is_not_mixed_with_its_index)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    archive_three(&f, &r);
    struct fake_object *o = fake_like(&f, "w1/data/" FIRST);
    SCOPED_MEMORY char *copy = malloc(o->n);
    memcpy(copy, o->data, o->n);
    fake_set(&f, o->key, copy, o->n);
    check_partial(&r, true, "it has changed", "etag");
}

TEST_ON(struct fake *f, an_archive_that_was_not_listed_makes_answers_partial)
{
    SCOPED(archive_rig) r;
    archive_rig_init(&r, f, "w1");
    struct partial partial = {.parts = 0};
    free(archive_rig_text(&r, &partial));
    CHECK_CONTAINS(partial.why, "the objects of s3://fake/profiles have not been listed yet",
                   "why");
    archive_rig_round(&r, f);
    partial = (struct partial){.parts = 0};
    free(archive_rig_text(&r, &partial));
    CHECK_STR(partial.why, "", "why");
}

TEST_ON(struct fake *f, foreign_objects_are_counted_and_stay)
{
    SCOPED(archive_rig) r;
    fake_set(f, "README.txt", "hello", 5);
    fake_set(f, "other/things/x", "x", 1);
    fake_set(f, "w1/index/20261122T000000Z-1h_zz_1_1.idx", "x", 1);
    fake_set(f, "w1/index/v2/new", "x", 1);
    archive_rig_init(&r, f, "w1");
    testing_log_expect(r.store.log, "objects under the prefix of the archive do not belong to it");
    r.options.max_age_ms = DAY * MS_PER_S;
    store_rig_reopen(&r.store);
    put_hours(&r);
    archive_rig_at(&r, f, 10 * HOUR);
    struct archive_stats stats;
    assert_true(store_archive_stats(r.store.store, &stats));
    assert_int_equal(stats.foreign, 4);
    assert_int_equal(stats.files, 3);
    archive_rig_at(&r, f, 100 * DAY);
    assert_int_equal(fake_count(f, "w1/data/"), 0);
    assert_int_equal(f->n, 4 + 1);
}

/* ---- removal --------------------------------------------------------------------------------- */

TEST_ON(struct fake *f, the_owner_removes_old_objects)
{
    SCOPED(archive_rig) r;
    archive_rig_init(&r, f, "w1");
    r.options.max_age_ms = DAY * MS_PER_S;
    store_rig_reopen(&r.store);
    put_hours(&r);
    archive_rig_at(&r, f, 10 * HOUR);
    assert_int_equal(fake_count(f, "w1/index/"), 3);
    /* The first hour is a day old, and is neither uploaded again nor kept by retention. */
    archive_rig_at(&r, f, DAY + HOUR + 60);
    assert_int_equal(fake_count(f, "w1/index/"), 2);
    assert_int_equal(fake_count(f, "w1/data/"), 2);
    archive_rig_round(&r, f);
    assert_int_equal(fake_count(f, "w1/data/"), 2);
    assert_int_equal(r.store.store->n_files, 3);
    r.store.options.max_age_ms = DAY * MS_PER_S;
    store_configure(r.store.store, &r.store.options);
    store_maintain(r.store.store, f->now_ns);
    assert_int_equal(r.store.store->n_files, 2);
}

TEST_ON(struct fake *f, the_clock_of_the_bucket_counts)
{
    SCOPED(archive_rig) r;
    archive_rig_init(&r, f, "w1");
    r.options.max_age_ms = DAY * MS_PER_S;
    store_rig_reopen(&r.store);
    put_hours(&r);
    archive_rig_at(&r, f, 10 * HOUR);
    /* The clock of this machine is a year ahead. */
    struct archive *a = r.store.store->archive;
    a->list_due_ms = a->beat_due_ms = a->list_all_due_ms = a->expire_due_ms = 0;
    archive_round(a, f->now_ns + 365 * DAY * RIG_SECOND);
    assert_int_equal(fake_count(f, "w1/index/"), 3);
}

TEST_ON(struct fake *f, others_remove_only_what_the_dead_have_left)
{
    SCOPED(archive_rig) dead;
    SCOPED(archive_rig) r;
    archive_rig_init(&dead, f, "gone-0");
    put_hours(&dead);
    archive_rig_at(&dead, f, 10 * HOUR);
    dead.store.store = store_close(dead.store.store);
    archive_rig_init(&r, f, "w1");
    r.options.max_age_ms = DAY * MS_PER_S;
    store_rig_reopen(&r.store);
    archive_rig_at(&r, f, 6 * DAY);
    assert_int_equal(fake_count(f, "gone-0/index/"), 3);
    /* A writer without a heartbeat is left alone. */
    struct fake_object *beat = fake_find(f, "gone-0/heartbeat");
    SCOPED_MEMORY char *text = strndup(beat->data, beat->n);
    int64_t modified_ns = beat->modified_ns;
    fake_drop(f, "gone-0/heartbeat");
    archive_rig_at(&r, f, 8 * DAY);
    assert_int_equal(fake_count(f, "gone-0/index/"), 3);
    /* So is one whose heartbeat is from a later version. */
    fake_set(f, "gone-0/heartbeat", "profpull archive heartbeat 2\nx\n", 31);
    fake_find(f, "gone-0/heartbeat")->modified_ns = modified_ns;
    archive_rig_at(&r, f, 8 * DAY + HOUR);
    assert_int_equal(fake_count(f, "gone-0/index/"), 3);
    fake_set(f, "gone-0/heartbeat", text, strlen(text));
    fake_find(f, "gone-0/heartbeat")->modified_ns = modified_ns;
    archive_rig_at(&r, f, 8 * DAY + 2 * HOUR);
    assert_int_equal(fake_count(f, "gone-0/index/"), 0);
    assert_int_equal(fake_count(f, "gone-0/data/"), 0);
    assert_int_equal(
        store_rig_metric(&r.store,
                         "profpull_archive_removed_total{endpoint=\"local\",reason=\"abandoned\"}"),
        3);
}

TEST_ON(struct fake *f, left_overs_are_removed_at_the_next_start)
{
    SCOPED(archive_rig) r;
    archive_rig_init(&r, f, "w1");
    put_hours(&r);
    archive_rig_at(&r, f, 10 * HOUR);
    fake_set(f, "w1/data/20261121T000000Z-1h_0123456789abcdef0123456789abcdef.db", "x", 1);
    fake_set(f, "w2/data/20261121T000000Z-1h_0123456789abcdef0123456789abcdef.db", "x", 1);
    store_rig_reopen(&r.store);
    archive_rig_round(&r, f);
    /* The young object may belong to an upload of another process. */
    assert_int_equal(fake_count(f, "w1/data/"), 4);
    store_rig_reopen(&r.store);
    archive_rig_at(&r, f, 12 * HOUR);
    assert_int_equal(fake_count(f, "w1/data/"), 3);
    assert_int_equal(fake_count(f, "w2/data/"), 1);
    assert_true(f->aborts > 0);
}

TEST_ON(struct fake *f, two_writers_with_one_name_remove_nothing)
{
    SCOPED(archive_rig) one;
    SCOPED(archive_rig) two;
    archive_rig_init(&one, f, "w1");
    testing_log_expect(one.store.log, "the archive removes nothing until this is solved");
    one.options.max_age_ms = DAY * MS_PER_S;
    store_rig_reopen(&one.store);
    put_hours(&one);
    archive_rig_at(&one, f, 10 * HOUR);
    archive_rig_init(&two, f, "w1");
    testing_log_expect(two.store.log, "the archive removes nothing until this is solved");
    rig_put(&two.store, "__name__=cpu,service_name=c", RIG_T0, "cpu/ns", rows, 1, NULL);
    /* The second one may be the successor of the first one, until the first one writes again. */
    archive_rig_at(&two, f, 10 * HOUR + 60);
    struct archive_stats stats;
    assert_true(store_archive_stats(two.store.store, &stats));
    assert_false(stats.conflict);
    archive_rig_at(&one, f, 10 * DAY);
    assert_true(store_archive_stats(one.store.store, &stats));
    assert_true(stats.conflict);
    archive_rig_at(&two, f, 10 * DAY + 60);
    assert_true(store_archive_stats(two.store.store, &stats));
    assert_true(stats.conflict);
    /* Both have uploaded, and nothing was removed. */
    assert_int_equal(fake_count(f, "w1/index/" FIRST), 2);
    assert_int_equal(fake_count(f, "w1/index/"), 4);
    two.store.store = store_close(two.store.store);
    archive_rig_at(&one, f, 10 * DAY + 600);
    archive_rig_at(&one, f, 10 * DAY + 900);
    assert_true(store_archive_stats(one.store.store, &stats));
    assert_false(stats.conflict);
    assert_int_equal(fake_count(f, "w1/index/"), 0);
}

TEST_ON(struct fake *f, an_archive_that_was_emptied_is_filled_again)
{
    SCOPED(archive_rig) r;
    archive_rig_init(&r, f, "w1");
    put_hours(&r);
    archive_rig_at(&r, f, 10 * HOUR);
    while (fake_like(f, FIRST) != NULL) {
        fake_drop(f, fake_like(f, FIRST)->key);
    }
    archive_rig_round(&r, f);
    assert_int_equal(fake_count(f, "w1/index/"), 3);
    assert_int_equal(fake_count(f, "w1/data/"), 3);
}

TEST_ON(struct fake *f, a_full_disk_gives_up_what_is_not_archived)
{
    SCOPED(archive_rig) r;
    archive_rig_init(&r, f, "w1");
    testing_log_expect(r.store.log, "profiles of the store are lost");
    testing_log_expect(r.store.log, "a request of the archive has failed");
    put_hours(&r);
    f->fail_after = 1;
    f->now_ns = RIG_T0 + 10 * RIG_HOUR;
    r.store.options.max_bytes = 1;
    store_configure(r.store.store, &r.store.options);
    store_maintain(r.store.store, f->now_ns);
    archive_rig_round(&r, f);
    store_maintain(r.store.store, f->now_ns);
    assert_int_equal(r.store.store->n_files, 3);
    /* A put has failed because the disk was full. */
    r.store.store->hurry = true;
    store_maintain(r.store.store, f->now_ns);
    assert_int_equal(r.store.store->n_files, 0);
    assert_int_equal(
        store_rig_metric(
            &r.store,
            "profpull_store_files_removed_total{endpoint=\"local\",reason=\"unarchived\"}"),
        3);
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(a_writer_keeps_its_random_name)
{
    struct err err = ERR_INIT;
    char *directory = testing_mkdtemp();
    char one[64];
    char two[64];
    assert_true(archive_writer(NULL, directory, one, &err));
    assert_true(archive_writer(NULL, directory, two, &err));
    CHECK_STR(two, one, "name");
    assert_true(archive_writer("given", directory, two, &err));
    CHECK_STR(two, "given", "name");
    assert_false(archive_writer("a/b", directory, two, &err));
    testing_directory_leave(&directory);
}

TEST(names_are_read_back)
{
    struct archive_name name = {.stretch = {RIG_T0 / NS_PER_MS, 3600 * MS_PER_S, 2},
                                .hash = "0123456789abcdef0123456789abcdef",
                                .bytes = 12345,
                                .profiles = 7};
    struct archive_name got;
    char key[ARCHIVE_KEY_SIZE];
    archive_index_key("w", &name, key);
    CHECK_STR(key, "w/index/" FIRST ".2_0123456789abcdef0123456789abcdef_12345_7.idx", "index");
    assert_true(archive_index_parse(sv_from(key + 8), &got));
    assert_memory_equal(got.hash, name.hash, sizeof(got.hash));
    assert_int_equal(got.bytes, 12345);
    assert_int_equal(got.profiles, 7);
    assert_int_equal(store_name_compare(&got.stretch, &name.stretch), 0);
    archive_data_key("w", &name, key);
    CHECK_STR(key, "w/data/" FIRST ".2_0123456789abcdef0123456789abcdef.db", "data");
    assert_true(archive_data_parse(sv_from(key + 7), &got));
    static const char *const bad[] = {
        "",
        "x",
        FIRST,
        FIRST "_0123456789abcdef0123456789abcdef_12345_7",
        FIRST "_0123456789abcdef0123456789abcde_12345_7.idx",
        FIRST "_0123456789abcdef0123456789abcdef_012345_7.idx",
        FIRST "_0123456789abcdef0123456789abcdef_12345_.idx",
        FIRST "_0123456789ABCDEF0123456789abcdef_12345_7.idx",
        FIRST ".1_0123456789abcdef0123456789abcdef_12345_7.idx",
        "20261122T000000Z_0123456789abcdef0123456789abcdef_12345_7.idx"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_INT(archive_index_parse(sv_from(bad[i]), &got), false, bad[i]);
    }
}
