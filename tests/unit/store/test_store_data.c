/* The data file: profiles that only it has, damage at any byte, files without one or the other, and
 * sealing, which ends with one database. */
#include "tests/unit/lib/store_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/data.h"

#define FIRST "20261122T000000Z-1h.db"
#define LABELS "__name__=cpu,service_name=s"
#define LATER (RIG_T0 + 2 * RIG_HOUR)

static const struct pprof_row rows[] = {{"a main", "", {1}}, {"b main", "k=v", {2}}};

static void put_some(struct store_rig *r, int64_t from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        rig_put(r, LABELS, RIG_T0 + (from + i) * RIG_SECOND, "x/count", rows, 2, NULL);
    }
}

static char *scan_all(struct store_rig *r, enum rig_scan kind)
{
    return rig_scan(r, kind, NULL, 0, 48 * 3600, "k");
}

static size_t count_bodies(struct store_rig *r)
{
    return rig_count(r, RIG_BODIES, NULL, 0, 48 * 3600, "k");
}

/* Copies the files of a running store to another directory, as a process that was killed leaves
 * them. */
static void copy_running(const struct store_rig *running, struct store_rig *r)
{
    char command[2048];
    store_rig_init(r);
    r->store = store_close(r->store);
    (void)snprintf(command, sizeof(command), "cp %s/*.db* %s", running->directory, r->directory);
    assert_int_equal(system(command), 0);
}

static void check_same(struct store_rig *r, char *const want[3], const char *what)
{
    for (int kind = RIG_SERIES; kind <= RIG_BODIES; kind++) {
        SCOPED_MEMORY char *got = scan_all(r, (enum rig_scan)kind);
        CHECK_STR(got, want[kind], what);
    }
}

static void take_all(struct store_rig *r, char *ret[3])
{
    for (int kind = RIG_SERIES; kind <= RIG_BODIES; kind++) {
        ret[kind] = scan_all(r, (enum rig_scan)kind);
    }
}

static void free_all(char *texts[3])
{
    for (int i = 0; i < 3; i++) {
        free(texts[i]);
    }
}

/* ---- the tail -------------------------------------------------------------------------------- */

/* The process is killed at some point between appending and committing: all profiles that count as
 * stored are found, with their ids, and are recognised if they are sent again. */
TEST(test_what_only_the_data_file_has_is_found)
{
    static const char *const damages[] = {"true", "rm *-wal", "rm *.db *-wal *-shm",
                                          "rm *.db *-wal *-shm *-count",
                                          "printf 'rec\\nunfinished' >> " FIRST "-data"};
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        SCOPED(store_rig) running;
        SCOPED(store_rig) r;
        char ids[30][STORE_ID_LENGTH + 1];
        char *want[3];
        store_rig_init(&running);
        for (int64_t k = 0; k < 30; k++) {
            rig_put(&running, LABELS, RIG_T0 + k * RIG_SECOND, "x/count", rows, 2, ids[k]);
            if (k == 10) {
                assert_int_equal(count_bodies(&running), 11);
            }
        }
        copy_running(&running, &r);
        take_all(&running, want);
        store_rig_shell(&r, damages[i]);
        store_rig_reopen(&r);
        check_same(&r, want, damages[i]);
        CHECK_INT(store_rig_lost(&r), 0, damages[i]);
        for (int64_t k = 0; k < 30; k++) {
            char id[STORE_ID_LENGTH + 1];
            rig_put(&r, LABELS, RIG_T0 + k * RIG_SECOND, "x/count", rows, 2, id);
            CHECK_STR(id, ids[k], damages[i]);
        }
        store_rig_reopen(&r);
        check_same(&r, want, damages[i]);
        free_all(want);
    }
}

SETUP_OF(store_rig)

/* A store that was killed twice, the second time before it committed anything again. */
TEST_ON(struct store_rig *first, test_killed_twice)
{
    SCOPED(store_rig) second;
    SCOPED(store_rig) r;
    put_some(first, 0, 10);
    copy_running(first, &second);
    store_rig_reopen(&second);
    put_some(&second, 5, 10);
    copy_running(&second, &r);
    store_rig_reopen(&r);
    assert_int_equal(count_bodies(&r), 15);
    assert_int_equal(store_rig_lost(&r), 0);
}

/* The profiles of a failed batch are not found later. */
TEST_ON(struct store_rig *running, test_a_refused_profile_leaves_the_batch_as_it_is)
{
    SCOPED(store_rig) r;
    struct store_put put;
    put_some(running, 0, 3);
    assert_int_equal(rig_put_bytes(running, LABELS, RIG_T0, SV("no profile"), PROFILE_PPROF, &put),
                     STORE_REFUSED);
    put_some(running, 3, 3);
    copy_running(running, &r);
    store_rig_reopen(&r);
    assert_int_equal(count_bodies(&r), 6);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static char *read_file(const char *path, size_t *ret_n)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    char *data = malloc((size_t)st.st_size + 1);
    assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
    close(fd);
    *ret_n = (size_t)st.st_size;
    return data;
}

static void write_file(const char *path, const char *data, size_t n)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0644);
    assert_int_equal(write(fd, data, n), n);
    close(fd);
}

/* A byte of the data file changes, at many places one after the other; the tables have all, some or
 * none of its profiles. At most the profile at this place is gone; the others are found, and new
 * ones are taken. */
TEST_ON(struct store_rig *running, test_a_changed_byte_of_the_data_file)
{
    static const char *const states[] = {"true", "rm *-wal", "rm *.db *-wal *-shm"};
    put_some(running, 0, 3);
    store_maintain(running->store, RIG_T0);
    put_some(running, 3, 3);
    assert_int_equal(count_bodies(running), 6);
    put_some(running, 6, 6);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        size_t size = 1;
        for (size_t at = 0; at < size; at += 37) {
            SCOPED(store_rig) r;
            char path[512];
            char what[128];
            copy_running(running, &r);
            store_rig_shell(&r, states[i]);
            (void)snprintf(path, sizeof(path), "%s/" FIRST "-data", r.directory);
            (void)snprintf(what, sizeof(what), "%s, byte %zu", states[i], at);
            SCOPED_MEMORY char *data = read_file(path, &size);
            data[at] = (char)(data[at] ^ 16);
            write_file(path, data, size);
            /* Not every byte is missed, so a file that is none makes the log sure. */
            testing_write_file(r.directory, "20261121T000000Z-1h.db", "a text that is no database");
            testing_log_expect(r.log, "of the store");
            store_rig_reopen(&r);
            /* Without the tables, a changed header is the end of all. */
            bool headless = i == 2 && at < DATA_HEADER_BYTES;
            size_t left = count_bodies(&r);
            if (headless ? left != 0 : left < 11 || left > 12) {
                fail_msg("%s: %zu left", what, left);
            }
            put_some(&r, 100, 1);
            CHECK_INT(count_bodies(&r), left + 1, what);
            if (headless) {
                CHECK_INT(store_rig_faults(&r, "damaged"), 1, what);
                CHECK_STR(r.store->files[2]->text, "20261122T000000Z-1h.2.db", what);
            }
        }
    }
}

/* A data file of another database, and what is none. */
TEST(test_a_foreign_data_file)
{
    static const char *const cases[] = {
        "cp 20261122T010000Z-1h.db-data " FIRST "-data",
        "seq 1000 > " FIRST "-data",
        "rm " FIRST " && seq 1000 > " FIRST "-data",
        "rm " FIRST "-data && mkdir " FIRST "-data",
        "rm " FIRST "-data && ln -s 20261122T010000Z-1h.db-data " FIRST "-data",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(store_rig) r;
        store_rig_init(&r);
        put_some(&r, 0, 3);
        put_some(&r, 3600, 4);
        r.store = store_close(r.store);
        store_rig_shell(&r, cases[i]);
        testing_log_expect(r.log, "of the store");
        store_rig_reopen(&r);
        put_some(&r, 3700, 1);
        CHECK_INT(rig_count(&r, RIG_BODIES, NULL, 3600, 7199, NULL), 5, cases[i]);
        store_rig_shell(&r, "test -e " FIRST "-data");
    }
}

/* ---- sealing --------------------------------------------------------------------------------- */

static void rig_sealing(struct store_rig *r)
{
    store_rig_init(r);
    r->options.merge_ms = 60 * MS_PER_S;
    r->options.merge_cpu = 100;
    store_rig_reopen(r);
}

static bool exists(const struct store_rig *r, const char *suffix)
{
    char path[512];
    struct stat st;
    (void)snprintf(path, sizeof(path), "%s/" FIRST "%s", r->directory, suffix);
    return stat(path, &st) == 0 && st.st_size > 0;
}

/* Some that are merged, one alone, one with negative values, and a recording. */
static void put_mixed(struct store_rig *r)
{
    const struct pprof_row negative[] = {{"a", "", {-1}}, {"b", "", {5}}};
    put_some(r, 0, 10);
    put_some(r, 600, 1);
    rig_put(r, LABELS, RIG_T0 + 700 * RIG_SECOND, "x/count", negative, 2, NULL);
    rig_put_bytes(r, "__name__=jfr", RIG_T0, SV("FLR\0recording"), PROFILE_JFR, NULL);
}

TEST(test_a_sealed_stretch_is_one_database)
{
    SCOPED(store_rig) r;
    char *want[3];
    char *points;
    rig_sealing(&r);
    put_mixed(&r);
    points = scan_all(&r, RIG_POINTS);
    store_maintain(r.store, LATER);
    assert_true(exists(&r, "-data")); /* it is open for writing */
    store_writers_close(r.store, NULL);
    store_maintain(r.store, LATER);
    assert_false(exists(&r, "-data"));
    assert_false(exists(&r, "-wal"));
    assert_true(r.store->files[0]->sealed);
    rig_check(&r, RIG_POINTS, NULL, 0, 48 * 3600, "k", points);
    assert_int_equal(count_bodies(&r), 3);
    take_all(&r, want);
    /* The database alone is enough. */
    r.store = store_close(r.store);
    store_rig_shell(&r, "rm -f *-count *-shm");
    store_rig_reopen(&r);
    assert_true(r.store->files[0]->sealed);
    check_same(&r, want, "sealed");
    free_all(want);
    free(points);
}

/* A late profile opens the file again, and it is sealed once more. */
TEST(test_late_profiles_of_a_sealed_stretch)
{
    SCOPED(store_rig) r;
    rig_sealing(&r);
    put_mixed(&r);
    store_writers_close(r.store, NULL);
    store_maintain(r.store, LATER);
    size_t sealed = count_bodies(&r);
    put_some(&r, 0, 10);
    assert_int_equal(count_bodies(&r), sealed);
    put_some(&r, 10, 5);
    assert_true(exists(&r, "-data"));
    assert_int_equal(count_bodies(&r), sealed + 5);
    store_rig_reopen(&r);
    assert_int_equal(count_bodies(&r), sealed + 5);
    store_maintain(r.store, LATER);
    assert_false(exists(&r, "-data"));
    assert_int_equal(count_bodies(&r), sealed + 1);
    assert_int_equal(r.store->n_files, 1);
    assert_int_equal(store_rig_lost(&r), 0);
    /* A file that is frozen does not change. */
    r.store->files[0]->frozen = true;
    put_some(&r, 20, 1);
    assert_false(exists(&r, "-data"));
    CHECK_STR(r.store->files[1]->text, "20261122T000000Z-1h.2.db", "");
    assert_int_equal(count_bodies(&r), sealed + 2);
}

/* The process is killed after the seal was committed, before the data file was removed; or a data
 * file comes back. */
TEST(test_a_data_file_that_is_left_of_a_sealed_stretch)
{
    SCOPED(store_rig) r;
    char *want[3];
    rig_sealing(&r);
    put_mixed(&r);
    r.store = store_close(r.store);
    store_rig_shell(&r, "cp " FIRST "-data left");
    store_rig_reopen(&r);
    store_maintain(r.store, LATER);
    take_all(&r, want);
    for (int i = 0; i < 2; i++) {
        r.store = store_close(r.store);
        store_rig_shell(&r, "cp left " FIRST "-data");
        store_rig_reopen(&r);
        check_same(&r, want, "left");
        assert_int_equal(store_rig_lost(&r), 0);
        if (i == 0) {
            put_some(&r, 1000, 1);
            free_all(want);
            take_all(&r, want);
        }
        store_writers_close(r.store, NULL);
        store_maintain(r.store, LATER);
        check_same(&r, want, "sealed");
        assert_false(exists(&r, "-data"));
    }
    free_all(want);
}

/* A process that was killed while it removed a file: the next one removes the rest. */
TEST(test_a_removal_that_was_interrupted)
{
    static const char *const cases[] = {
        "mv " FIRST "-data " FIRST "-removed",
        "mv " FIRST "-data " FIRST "-removed && rm -f " FIRST "-wal " FIRST "-count",
        "mv " FIRST "-data " FIRST "-removed && rm -f " FIRST "-wal " FIRST "-count " FIRST,
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(store_rig) r;
        store_rig_init(&r);
        put_some(&r, 0, 3);
        put_some(&r, 3600, 2);
        r.store = store_close(r.store);
        store_rig_shell(&r, cases[i]);
        store_rig_reopen(&r);
        CHECK_INT(count_bodies(&r), 2, cases[i]);
        CHECK_INT(store_rig_lost(&r), 0, cases[i]);
        store_rig_shell(&r, "test -z \"$(ls | grep ^20261122T000000Z)\"");
    }
}

TEST_ON(struct store_rig *r, test_a_removed_stretch_leaves_nothing)
{
    r->options.max_age_ms = RIG_HOUR / NS_PER_MS;
    store_rig_reopen(r);
    put_some(r, 0, 3);
    put_some(r, 6 * 3600, 3);
    store_maintain(r->store, RIG_T0 + 6 * RIG_HOUR);
    store_rig_shell(r, "test -z \"$(ls | grep ^20261122T000000Z)\"");
    store_rig_reopen(r);
    assert_int_equal(count_bodies(r), 3);
}

/* The database is removed while the store is open: its data file makes a new one. */
TEST_ON(struct store_rig *r, test_a_database_that_is_removed_is_made_again)
{
    char *want[3];
    put_some(r, 0, 5);
    take_all(r, want);
    store_rig_shell(r, "rm " FIRST);
    testing_log_expect(r->log, "is not there any more");
    free(scan_all(r, RIG_POINTS)); /* finds that it is missing */
    check_same(r, want, "made again");
    assert_int_equal(store_rig_faults(r, "missing"), 1);
    assert_int_equal(store_rig_lost(r), 0);
    free_all(want);
}

/* ---- version 1 ------------------------------------------------------------------------------- */

/* A file that version 1 has written: 200 profiles of 100 series. It is read, takes no new profiles,
 * is merged, and its profiles are recognised. */
TEST(test_a_file_of_version_1)
{
    SCOPED(store_rig) r;
    char command[1024];
    rig_sealing(&r);
    r.store = store_close(r.store);
    (void)snprintf(command, sizeof(command),
                   "gzip -dc tests/unit/data/store/version-1.db.gz > %s/" FIRST, r.directory);
    assert_int_equal(system(command), 0);
    store_rig_reopen(&r);
    assert_int_equal(count_bodies(&r), 200);
    SCOPED_MEMORY char *points =
        rig_scan(&r, RIG_POINTS, "{__name__=\"type0\"}", 0, 3600, "service_name");
    put_some(&r, 100, 2);
    CHECK_STR(r.store->files[1]->text, "20261122T000000Z-1h.2.db", "");
    assert_int_equal(count_bodies(&r), 202);
    store_writers_close(r.store, NULL);
    store_maintain(r.store, LATER);
    assert_int_equal(count_bodies(&r), 101);
    assert_true(r.store->files[0]->sealed && r.store->files[1]->sealed);
    rig_check(&r, RIG_POINTS, "{__name__=\"type0\"}", 0, 3600, "service_name", points);
    store_rig_reopen(&r);
    rig_check(&r, RIG_POINTS, "{__name__=\"type0\"}", 0, 3600, "service_name", points);
    assert_int_equal(store_rig_lost(&r), 0);
}

/* ---- the format ------------------------------------------------------------------------------ */

TEST(test_a_record_belongs_to_its_place)
{
    char head[DATA_HEAD_BYTES];
    char header[DATA_HEADER_BYTES];
    uint64_t salt;
    const int64_t sums[] = {1, -2};
    const struct data_facts f = {.profile = 7,
                                 .time_ns = 1,
                                 .until_ns = 2,
                                 .hash = 3,
                                 .format = 1,
                                 .mergeable = true,
                                 .n_columns = 2,
                                 .n_parts = 1,
                                 .set = SV("set")};
    struct data_facts got;
    struct data_part part;
    SCOPED(buf) facts = testing_buf(1000);
    assert_true(data_put_facts(&f, &facts) && data_put_part(SV("labels"), sums, 2, &facts));
    data_set_row(&facts, 9);
    struct sv text = {facts.data, facts.len};
    data_put_head(text, 100, 42, 1000, head);
    assert_true(data_head_fits(head, text, 42, 1000));
    assert_false(data_head_fits(head, text, 43, 1000));
    assert_false(data_head_fits(head, text, 42, 1001));
    assert_true(data_read_facts(text, &got));
    assert_true(got.profile == 9 && got.time_ns == 1 && got.until_ns == 2 && got.hash == 3);
    assert_true(got.format == 1 && got.mergeable && sv_eq_str(got.set, "set"));
    struct sv rest = got.parts;
    assert_true(data_next_part(&got, &rest, &part));
    assert_true(sv_eq_str(part.labels, "labels") && part.sums[0] == 1 && part.sums[1] == -2);
    assert_false(data_next_part(&got, &rest, &part));
    data_put_header(42, header);
    assert_true(data_read_header(header, &salt) && salt == 42);
    header[9]++;
    assert_false(data_read_header(header, &salt));
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS_PROFILES 300

static void *query_all(void *arg)
{
    struct store_rig *r = arg;
    size_t before = 0;
    while (before < THREADS_PROFILES) {
        size_t n = count_bodies(r);
        assert_true(n >= before);
        before = n;
    }
    return NULL;
}

/* Each query sees all profiles that were stored before it began, while others are put and the
 * background copies logs. */
TEST_ON(struct store_rig *r, test_queries_beside_puts)
{
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, query_all, r), 0);
    }
    for (int64_t i = 0; i < THREADS_PROFILES; i++) {
        put_some(r, i, 1);
        if (i % 100 == 50) {
            store_maintain(r->store, RIG_T0);
            size_t n = count_bodies(r);
            assert_int_equal(n, i + 1);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(count_bodies(r), THREADS_PROFILES);
}
