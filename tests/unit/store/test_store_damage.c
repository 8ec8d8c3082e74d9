/* Files that are damaged, cut, foreign, of a newer version, or gone: each costs itself alone. */
#include "tests/unit/lib/store_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct pprof_row rows[] = {{"a main", "", {1}}, {"b main", "k=v", {2}}};

/* Profiles in two stretches; the files are closed. */
static void put_two(struct store_rig *r)
{
    for (int64_t i = 0; i < 20; i++) {
        rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + i * RIG_SECOND, "x/count", rows, 2,
                NULL);
    }
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + RIG_HOUR, "x/count", rows, 1, NULL);
    const struct pprof_row other[] = {{"c", "", {2}}};
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + RIG_HOUR, "x/count", other, 1, NULL);
    r->store = store_close(r->store);
}

static void write_at(const char *path, off_t at, const void *data, size_t n)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, n, at), n);
    close(fd);
}

/* The other stretch is as it was, and new profiles of the damaged one go to a further file. */
static void check_rest(struct store_rig *r)
{
    struct store_stats stats;
    rig_check(r, RIG_POINTS, NULL, 3600, 7200, "service_name", "s 3600 1\ns 3600 2\n");
    rig_put(r, "__name__=cpu,service_name=new", RIG_T0, "x/count", rows, 1, NULL);
    rig_check(r, RIG_POINTS, "{service_name=\"new\"}", 0, 7200, "service_name", "new 0 1\n");
    store_stats(r->store, &stats);
    assert_int_equal(stats.files, 3);
    CHECK_STR(r->store->files[1]->text, "20261122T000000Z-1h.2.db", "");
}

SETUP_OF(store_rig)

TEST_ON(struct store_rig *r, test_a_text_file_is_foreign)
{
    put_two(r);
    testing_write_file(r->directory, "20261122T000000Z-1h.db",
                       "not a database, but a text that "
                       "somebody has put there\n");
    testing_log_expect(r->log, "cannot be used");
    store_rig_reopen(r);
    assert_int_equal(store_rig_faults(r, "foreign"), 1);
    check_rest(r);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Changes a byte of the bytes of a profile, wherever they are. */
static void change_body(const struct store_rig *r, int64_t profile)
{
    char path[512];
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    store_rig_path(r, "20261122T000000Z-1h.db", path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT place FROM profiles WHERE id = ?1", -1, &st, NULL),
        SQLITE_OK);
    sqlite3_bind_int64(st, 1, profile);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t place = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    if (place >= 0) {
        store_rig_path(r, "20261122T000000Z-1h.db-data", path);
        write_at(path, place + 5, "~", 1);
    } else {
        char sql[128];
        (void)snprintf(sql, sizeof(sql), "UPDATE bodies SET data = zeroblob(100) WHERE id = %d",
                       (int)profile);
        run_sql(path, sql);
    }
}

TEST(test_other_databases_and_versions)
{
    static const struct {
        const char *sql, *reason;
        bool empty;
    } cases[] = {
        {"CREATE TABLE t(x)", "foreign", true},
        {"PRAGMA application_id = 1", "foreign", false},
        {"PRAGMA user_version = 3", "newer", false},
        {"PRAGMA user_version = 1", "damaged", false},
        {"PRAGMA user_version = 0", "damaged", false},
        {"CREATE TABLE more(x)", "damaged", false},
        {"CREATE TRIGGER t AFTER INSERT ON bodies BEGIN DELETE FROM bodies; END", "damaged", false},
        {"DROP TABLE points", "damaged", false},
        {"DELETE FROM state", "damaged", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(store_rig) r;
        char path[512];
        store_rig_init(&r);
        put_two(&r);
        store_rig_path(&r, "20261122T000000Z-1h.db", path);
        if (cases[i].empty) {
            char data[512];
            store_rig_path(&r, "20261122T000000Z-1h.db-data", data);
            assert_int_equal(unlink(path), 0);
            assert_int_equal(unlink(data), 0);
        }
        run_sql(path, cases[i].sql);
        testing_log_expect(r.log, "cannot be used");
        store_rig_reopen(&r);
        CHECK_INT(store_rig_faults(&r, cases[i].reason), 1, cases[i].sql);
        check_rest(&r);
    }
}

TEST_ON(struct store_rig *r, test_a_cut_file)
{
    char path[512];
    struct stat st;
    put_two(r);
    store_rig_path(r, "20261122T000000Z-1h.db", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
    testing_log_expect(r->log, "cannot be used");
    store_rig_reopen(r);
    free(rig_scan(r, RIG_BODIES, NULL, 0, 3600, NULL));
    assert_int_equal(store_rig_faults(r, "damaged"), 1);
    check_rest(r);
}

static bool damage_on_body(void *arg, const struct store_body *b)
{
    (void)b;
    ++*(size_t *)arg;
    return true;
}

/* A byte at many places, one after the other: no scan crashes or fails, what is in the other file
 * stays readable, and no point has a wrong value. */
TEST_ON(struct store_rig *r, test_flipped_bits)
{
    char path[512];
    struct stat st;
    size_t noticed = 0;
    put_two(r);
    store_rig_reopen(r);
    SCOPED_MEMORY char *want = rig_scan(r, RIG_POINTS, NULL, 0, 7200, "service_name");
    r->store = store_close(r->store);
    store_rig_path(r, "20261122T000000Z-1h.db", path);
    assert_int_equal(stat(path, &st), 0);
    SCOPED_MEMORY char *good = malloc((size_t)st.st_size);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, good, (size_t)st.st_size), st.st_size);
    close(fd);
    testing_log_expect(r->log, "of the store");
    for (off_t at = 0; at < st.st_size; at += 331) {
        struct err err = ERR_INIT;
        struct rig_text t;
        size_t bodies = 0;
        char flipped = (char)(good[at] ^ (1 << at % 8));
        write_at(path, at, &flipped, 1);
        store_rig_reopen(r);
        struct store_scan scan = {
            .range = {.from_ns = RIG_T0, .until_ns = RIG_T0 + 2 * RIG_HOUR, .selector = NULL},
            .with_data = true};
        rig_text_init(&t, "service_name");
        bool ok = store_each_point(r->store, &scan.range, rig_on_point, &t, &err) &&
                  store_each_body(r->store, &scan, damage_on_body, &bodies, &err);
        CHECK_STR(err.msg, "", "");
        assert_true(ok && bodies >= 2 && bodies <= 22);
        noticed += bodies < 22 || strcmp(t.out.data, want) != 0;
        struct sv rest = {t.out.data, t.out.len};
        for (struct sv line; sv_cut(rest, '\n', &line, &rest);) {
            char text[64];
            (void)snprintf(text, sizeof(text), "%.*s\n", SV_ARG(line));
            assert_non_null(strstr(want, text));
        }
        buf_done(&t.out);
        r->store = store_close(r->store);
        write_at(path, at, &good[at], 1);
    }
    assert_true(noticed > 0);
}

static size_t lines_of(struct store_rig *r, enum rig_scan kind)
{
    return rig_count(r, kind, "{k=\"\"}", 0, 3599, "service_name");
}

/* Timelines leave a profile out as well, once a query or a merge has found its bytes changed, also
 * in the next process. A profile that is sent again then takes its place. */
TEST(test_a_changed_profile_counts_nowhere)
{
    for (int merged = 0; merged < 2; merged++) {
        SCOPED(store_rig) r;
        char path[512];
        store_rig_init(&r);
        put_two(&r);
        r.options.merge_ms = merged ? 60 * MS_PER_S : 0;
        r.options.merge_cpu = 100;
        store_rig_reopen(&r);
        store_maintain(r.store, RIG_T0 + 2 * RIG_HOUR);
        r.store = store_close(r.store);
        store_rig_path(&r, "20261122T000000Z-1h.db", path);
        if (merged) {
            run_sql(path, "UPDATE merges SET data = zeroblob(100)");
        } else {
            change_body(&r, 3);
            change_body(&r, 7);
        }
        testing_log_expect(r.log, "has changed on the disk");
        store_rig_reopen(&r);
        size_t bodies = merged ? 0 : 18;
        assert_int_equal(lines_of(&r, RIG_BODIES), bodies);
        assert_int_equal(lines_of(&r, RIG_POINTS), bodies);
        store_maintain(r.store, RIG_T0);
        assert_int_equal(r.store->n_bad, 0);
        store_rig_reopen(&r);
        assert_int_equal(lines_of(&r, RIG_POINTS), bodies);
        assert_int_equal(lines_of(&r, RIG_BODIES), bodies);
        if (!merged) {
            rig_put(&r, "__name__=cpu,service_name=s", RIG_T0 + 2 * RIG_SECOND, "x/count", rows, 2,
                    NULL);
            assert_int_equal(lines_of(&r, RIG_POINTS), bodies + 1);
            assert_int_equal(lines_of(&r, RIG_BODIES), bodies + 1);
        }
    }
}

/* A merge finds it, too, without any query for stacks. */
TEST_ON(struct store_rig *r, test_a_merge_finds_a_changed_profile)
{
    put_two(r);
    change_body(r, 3);
    r->options.merge_ms = 60 * MS_PER_S;
    r->options.merge_cpu = 100;
    testing_log_expect(r->log, "has changed on the disk");
    store_rig_reopen(r);
    assert_int_equal(lines_of(r, RIG_POINTS), 20);
    store_maintain(r->store, RIG_T0 + 2 * RIG_HOUR);
    assert_int_equal(lines_of(r, RIG_POINTS), 19);
}

TEST_ON(struct store_rig *r, test_a_removed_file_is_missed)
{
    char path[512];
    rig_put(r, "__name__=cpu,service_name=s", RIG_T0, "x/count", rows, 1, NULL);
    store_rig_path(r, "20261122T000000Z-1h.db", path);
    assert_int_equal(unlink(path), 0);
    store_rig_path(r, "20261122T000000Z-1h.db-data", path);
    assert_int_equal(unlink(path), 0);
    testing_log_expect(r->log, "is not there any more");
    rig_check(r, RIG_POINTS, NULL, 0, 7200, "service_name", "");
    rig_put(r, "__name__=cpu,service_name=t", RIG_T0, "x/count", rows, 1, NULL);
    rig_check(r, RIG_POINTS, NULL, 0, 7200, "service_name", "t 0 1\n");
    assert_int_equal(store_rig_faults(r, "missing"), 1);
    assert_int_equal(store_rig_metric(r, "profpull_store_lost_profiles_total{endpoint=\"local\"}"),
                     1);
    store_rig_reopen(r);
    assert_int_equal(store_rig_metric(r, "profpull_store_lost_profiles_total{endpoint=\"local\"}"),
                     0);
}

/* A file that may not grow stands for a full disk. */
TEST(test_a_full_disk_takes_nothing_and_then_all)
{
    SCOPED(store_rig) r;
    struct rlimit old;
    struct label l[RIG_LABELS_MAX];
    struct pprof_spec spec = {.types = "x/count", .time_nanos = 1};
    SCOPED(buf) b = pprof_make(&spec, rows, 2);
    SCOPED_MEMORY char *text = calloc(200000, 1);
    put_msg(&b, 6, text, 200000);
    store_rig_init(&r);
    rig_put(&r, "__name__=cpu,service_name=s", RIG_T0, "x/count", rows, 1, NULL);
    struct store_put puts[3];
    for (int64_t i = 0; i < 3; i++) {
        puts[i] = (struct store_put){.labels = l,
                                     .n_labels = rig_labels("__name__=cpu,service_name=s", l),
                                     .data = {b.data, b.len},
                                     .from_ns = RIG_T0 + (i + 1) * RIG_SECOND,
                                     .until_ns = RIG_T0 + (i + 1) * RIG_SECOND};
    }
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    struct rlimit low = {.rlim_cur = 300000, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_false(store_put(r.store, puts, 3));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(puts[i].taken, STORE_FAILED, puts[i].problem);
        CHECK_CONTAINS(puts[i].problem, "20261122T000000Z-1h.db: ", "");
    }
    rig_check(&r, RIG_POINTS, "{k=\"\"}", 0, 7200, "service_name", "s 0 1\n");
    assert_true(store_put(r.store, puts, 3));
    rig_check(&r, RIG_POINTS, "{k=\"\"}", 0, 7200, "service_name", "s 0 1\ns 1 1\ns 2 1\ns 3 1\n");
}

/* A file that may not grow by a byte stands for a disk that has become read-only: nothing is
 * written and the system does not say that it is full. The file is used again when it may be. */
TEST(test_a_disk_that_refuses_to_write_is_not_the_fault_of_the_file)
{
    SCOPED(store_rig) r;
    struct rlimit old;
    struct stat st;
    struct label l[RIG_LABELS_MAX];
    char path[512];
    struct pprof_spec spec = {.types = "x/count", .time_nanos = 1};
    SCOPED(buf) b = pprof_make(&spec, rows, 2);
    store_rig_init(&r);
    rig_put(&r, "__name__=cpu,service_name=s", RIG_T0, "x/count", rows, 1, NULL);
    struct store_put put = {.labels = l,
                            .n_labels = rig_labels("__name__=cpu,service_name=s", l),
                            .data = {b.data, b.len},
                            .from_ns = RIG_T0 + RIG_SECOND,
                            .until_ns = RIG_T0 + RIG_SECOND};
    store_rig_path(&r, "20261122T000000Z-1h.db-data", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    struct rlimit low = {.rlim_cur = (rlim_t)st.st_size, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_false(store_put(r.store, &put, 1));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_INT(put.taken, STORE_FAILED, put.problem);
    CHECK_CONTAINS(put.problem, "cannot append to", "");
    rig_check(&r, RIG_POINTS, "{k=\"\"}", 0, 7200, "service_name", "s 0 1\n");
    assert_true(store_put(r.store, &put, 1));
    rig_check(&r, RIG_POINTS, "{k=\"\"}", 0, 7200, "service_name", "s 0 1\ns 1 1\n");
    assert_int_equal(r.store->n_files, 1);
    assert_int_equal(store_rig_faults(&r, "unreadable"), 0);
}

/* ---- a file that is being made ----------------------------------------------------------------
 */

struct opening {
    char path[512];
    atomic_bool made;
    unsigned misjudged;
};

static void *open_until_made(void *arg)
{
    struct opening *o = arg;
    bool made;
    do {
        struct db db;
        bool empty;
        struct err err = ERR_INIT;
        made = atomic_load(&o->made);
        if (db_open(&db, o->path, false, &empty, &err)) {
            o->misjudged += made && empty;
            db_close(&db);
        } else {
            o->misjudged += db.fault == DB_FOREIGN || db.fault == DB_DAMAGED;
        }
    } while (!made);
    return NULL;
}

/* A query may open a file at the moment when its first profile comes. */
TEST_ON(struct store_rig *r, test_a_file_that_is_being_made_is_ours)
{
    for (int i = 0; i < 100; i++) {
        struct opening o = {.misjudged = 0};
        char name[32];
        pthread_t thread;
        struct db db;
        bool empty;
        struct err err = ERR_INIT;
        (void)snprintf(name, sizeof(name), "made-%d.db", i);
        store_rig_path(r, name, o.path);
        atomic_init(&o.made, false);
        assert_int_equal(pthread_create(&thread, NULL, open_until_made, &o), 0);
        assert_true(db_open(&db, o.path, true, &empty, &err));
        atomic_store(&o.made, true);
        pthread_join(thread, NULL);
        assert_int_equal(o.misjudged, 0);
        db_close(&db);
    }
}
