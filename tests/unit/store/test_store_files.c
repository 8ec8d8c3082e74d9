/* Files that cannot be written, links, copies, files of another time, and logs that are damaged or
 * removed: each costs itself alone, and what is lost is named. */
#include "tests/unit/lib/store_rig.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST "20261122T000000Z-1h.db"
#define SOMEBODY 65534
#define LABELS "__name__=cpu,service_name=s"

static const struct pprof_row rows[] = {{"a main", "", {1}}, {"b main", "k=v", {2}}};

static void put_some(struct store_rig *r, int64_t from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        rig_put(r, LABELS, RIG_T0 + (from + i) * RIG_SECOND, "x/count", rows, 1, NULL);
    }
}

static size_t count_points(struct store_rig *r)
{
    return rig_count(r, RIG_POINTS, NULL, 0, 48 * 3600, "service_name");
}

static void check_counts(struct store_rig *r, size_t want)
{
    assert_int_equal(count_points(r), want);
    assert_int_equal(rig_count(r, RIG_BODIES, NULL, 0, 48 * 3600, NULL), want);
}

/* ---- files that cannot be written ------------------------------------------------------------ */

/* Profiles of its stretch go to a further file; other stretches are not concerned, and it is read.
 */
TEST(test_a_file_that_can_only_be_read)
{
    static const char *const cases[] = {"", "-wal", "-data"};
    bool root = geteuid() == 0;
    for (size_t i = 0; i < 3; i++) {
        SCOPED(store_rig) r;
        char path[512];
        store_rig_init(&r);
        put_some(&r, 0, 3);
        r.store = store_close(r.store);
        store_rig_path(&r, FIRST, path);
        (void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "%s", cases[i]);
        int fd = open(path, O_RDWR | O_CREAT, 0644);
        assert_true(fd >= 0 && close(fd) == 0);
        if (root) {
            store_rig_shell(&r, "chown 65534 . * && chmod 0644 *");
            assert_int_equal(chown(path, 0, 0), 0);
            assert_int_equal(seteuid(SOMEBODY), 0);
        } else {
            assert_int_equal(chmod(path, 0444), 0);
        }
        /* SQLite gives an empty log that is our own its permissions again. */
        bool is_mended = !root && i == 1;
        if (!is_mended) {
            testing_log_expect(r.log, "cannot be written");
        }
        store_rig_reopen(&r);
        put_some(&r, 10, 2);
        put_some(&r, 3600, 2);
        check_counts(&r, 7);
        assert_int_equal(store_rig_faults(&r, "unwritable"), is_mended ? 0 : 1);
        CHECK_STR(r.store->files[1]->text,
                  is_mended ? "20261122T010000Z-1h.db" : "20261122T000000Z-1h.2.db", "");
        r.store = store_close(r.store);
        if (root) {
            assert_int_equal(seteuid(0), 0);
        }
    }
}

TEST(test_a_link_that_leads_nowhere)
{
    static const char *const cases[] = {"ln -s /nowhere/at/all " FIRST, "ln -s missing " FIRST,
                                        "mkdir " FIRST, "mkfifo " FIRST};
    for (size_t i = 0; i < 4; i++) {
        SCOPED(store_rig) r;
        char path[512];
        struct stat st;
        store_rig_init(&r);
        put_some(&r, 3600, 2);
        r.store = store_close(r.store);
        store_rig_shell(&r, cases[i]);
        testing_log_expect(r.log, "cannot be used");
        store_rig_reopen(&r);
        assert_int_equal(store_rig_faults(&r, i < 2 ? "unreadable" : "foreign"), 1);
        put_some(&r, 0, 2);
        put_some(&r, 3700, 2);
        check_counts(&r, 6);
        store_rig_path(&r, "missing", path);
        assert_int_not_equal(stat(path, &st), 0);
    }
}

SETUP_OF(store_rig)

/* A file that cannot be read now, for example because the disk is full, is read later. */
TEST_ON(struct store_rig *r, test_an_unreadable_file_is_tried_again)
{
    put_some(r, 0, 3);
    r->store = store_close(r->store);
    store_rig_shell(r, "mv " FIRST " there && ln -s here " FIRST);
    testing_log_expect(r->log, "cannot be used");
    store_rig_reopen(r);
    put_some(r, 10, 2);
    check_counts(r, 2);
    store_rig_shell(r, "mv there here");
    store_maintain(r->store, RIG_T0);
    check_counts(r, 5);
}

/* ---- logs ------------------------------------------------------------------------------------ */

/* A process that was killed has stored 30 profiles. The tables have 20 of them, of which 10 are in
 * the log alone; the last 10 are in the data file alone. */
static void make_killed(struct store_rig *r)
{
    SCOPED(store_rig) running;
    char command[2048];
    store_rig_init(&running);
    store_rig_init(r);
    r->store = store_close(r->store);
    put_some(&running, 0, 10);
    store_maintain(running.store, RIG_T0);
    put_some(&running, 10, 10);
    assert_int_equal(count_points(&running), 20);
    put_some(&running, 20, 10);
    (void)snprintf(command, sizeof(command), "cp %s/*.db* %s", running.directory, r->directory);
    assert_int_equal(system(command), 0);
}

TEST(test_what_a_log_has_lost_is_named)
{
    static const struct {
        const char *damage;
        uint64_t left_min, left_max, faults;
        const char *log;
    } cases[] = {
        {"true", 30, 30, 0, NULL},
        /* The data file has what the log has lost. */
        {"rm *-wal", 30, 30, 0, NULL},
        {"truncate -s 9000 *-wal", 30, 30, 0, NULL},
        {"printf x | dd of=" FIRST "-wal bs=1 seek=9000 conv=notrunc 2>/dev/null", 30, 30, 0, NULL},
        {"truncate -s 0 *-wal", 30, 30, 0, NULL},
        {"truncate -s 0 *.db", 0, 0, 1, "cannot be used"},
        {"rm *-wal && truncate -s 0 *.db", 30, 30, 0, NULL},
        {"rm *-wal *-shm *.db", 30, 30, 0, NULL},
        {"rm *-wal *-shm *.db *-count", 30, 30, 0, NULL},
        {"rm *-data", 0, 0, 0, "profiles of the store are lost"},
        {"truncate -s 0 *-data", 0, 0, 0, "profiles of the store are lost"},
        {"truncate -s 20 *-data", 0, 0, 0, "profiles of the store are lost"},
        {"truncate -s 1200 *-data", 1, 9, 0, "profiles of the store are lost"},
        {"rm *-wal && truncate -s 1200 *-data", 1, 9, 0, "profiles of the store are lost"},
        {"truncate -s -1 *-data", 29, 29, 0, "profiles of the store are lost"},
        {"rm *-wal *-shm *.db && truncate -s -700 *-data", 20, 29, 0,
         "profiles of the store are lost"},
        {"rm *-wal *-shm *.db *-data", 0, 0, 0, "profiles of the store are lost"},
        /* A damaged count says nothing. */
        {"truncate -s -1 *-data && printf 5 | dd of=" FIRST
         "-count bs=1 seek=5 conv=notrunc 2>/dev/null",
         29, 29, 0, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(store_rig) r;
        make_killed(&r);
        store_rig_shell(&r, cases[i].damage);
        if (cases[i].log != NULL) {
            testing_log_expect(r.log, cases[i].log);
        }
        store_rig_reopen(&r);
        uint64_t left = store_rig_profiles(&r);
        if (left < cases[i].left_min || left > cases[i].left_max) {
            fail_msg("%s: %llu left", cases[i].damage, (unsigned long long)left);
        }
        CHECK_INT(store_rig_faults(&r, "damaged"), cases[i].faults, cases[i].damage);
        bool named = cases[i].log != NULL && cases[i].faults == 0;
        if (named) {
            CHECK_INT(store_rig_lost(&r), 30 - left, cases[i].damage);
        } else if (cases[i].log == NULL) {
            CHECK_INT(store_rig_lost(&r), 0, cases[i].damage);
        }
        /* Once: the next process says nothing of them. */
        put_some(&r, 100, 3);
        if (cases[i].faults == 0) {
            store_rig_reopen(&r);
            CHECK_INT(store_rig_lost(&r), 0, cases[i].damage);
            CHECK_INT(store_rig_profiles(&r), left + 3, cases[i].damage);
        }
    }
}

TEST_ON(struct store_rig *r, test_files_that_retention_removes_are_not_lost)
{
    r->options.max_age_ms = RIG_HOUR / NS_PER_MS;
    store_rig_reopen(r);
    put_some(r, 0, 3);
    put_some(r, 6 * 3600, 3);
    store_maintain(r->store, RIG_T0 + 6 * RIG_HOUR);
    store_rig_shell(r, "test $(ls *-count | wc -l) = 1");
    store_rig_reopen(r);
    assert_int_equal(store_rig_lost(r), 0);
    assert_int_equal(store_rig_profiles(r), 3);
}

/* The log is open still, so that nothing is lost. */
TEST_ON(struct store_rig *r, test_a_log_that_is_removed_while_it_is_open)
{
    put_some(r, 0, 10);
    store_rig_shell(r, "rm *-wal");
    testing_log_expect(r->log, "was removed while it was open");
    put_some(r, 10, 10);
    check_counts(r, 20);
    store_rig_reopen(r);
    check_counts(r, 20);
    assert_int_equal(store_rig_lost(r), 0);
}

/* ---- the same profiles in two files ---------------------------------------------------------- */

TEST_ON(struct store_rig *r, test_a_repeated_import_counts_once)
{
    r->options.max_bytes = 1; /* a stretch has a further file for each half of a MiB */
    store_rig_reopen(r);
    for (int times = 0; times < 2; times++) {
        for (int64_t i = 0; i < 50; i++) {
            rig_put_large(r, LABELS, RIG_T0 + i * RIG_SECOND, 30000);
        }
    }
    assert_true(r->store->n_files > 2);
    check_counts(r, 50);
    assert_int_equal(store_rig_metric(r, "profpull_store_duplicates_total{endpoint=\"local\"}"),
                     50);
    /* The same in stretches of another length. */
    r->options.stretch_ms = 5 * 60 * MS_PER_S;
    r->options.max_bytes = 0;
    store_rig_reopen(r);
    for (int64_t i = 0; i < 50; i++) {
        rig_put_large(r, LABELS, RIG_T0 + i * RIG_SECOND, 30000);
    }
    check_counts(r, 50);
}

TEST(test_a_copied_file_counts_once)
{
    static const struct text_case cases[] = {
        {"cp " FIRST " 20261122T000000Z-1h.2.db", "copy"},
        {"cp " FIRST " 20261122T000000Z-2h.db", "copy"},
        {"cp " FIRST " 20261122T010000Z-1h.db", "misplaced"},
        {"mv old.db 20261122T000000Z-1h.7.db", "copy"},
        {"cp " FIRST " 20261122T000000Z-1h.2.db && cp " FIRST "-data 20261122T000000Z-1h.2.db-data",
         "copy"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(store_rig) r;
        store_rig_init(&r);
        put_some(&r, 0, 5);
        store_rig_reopen(&r);
        r.store = store_close(r.store);
        store_rig_shell(&r, "cp " FIRST " old.db");
        store_rig_reopen(&r);
        put_some(&r, 5, 5);
        r.store = store_close(r.store);
        store_rig_shell(&r, cases[i].text);
        testing_log_expect(r.log, "cannot be used");
        store_rig_reopen(&r);
        CHECK_INT(store_rig_faults(&r, cases[i].want), 1, cases[i].text);
        CHECK_INT(store_rig_lost(&r), 0, cases[i].text);
        check_counts(&r, 10);
        put_some(&r, 0, 10);
        put_some(&r, 10, 5);
        put_some(&r, 3600, 5);
        check_counts(&r, 20);
    }
}

/* Files of a stretch that have different profiles are no copies, even if they begin alike. */
TEST_ON(struct store_rig *r, test_files_of_one_time_are_no_copies)
{
    SCOPED(store_rig) other;
    char command[2048];
    store_rig_init(&other);
    put_some(r, 0, 3);
    put_some(&other, 0, 2);
    rig_put(&other, "__name__=cpu,service_name=t", RIG_T0 + 2 * RIG_SECOND, "x/count", rows, 1,
            NULL);
    other.store = store_close(other.store);
    r->store = store_close(r->store);
    (void)snprintf(command, sizeof(command),
                   "cp %s/" FIRST " 20261122T000000Z-1h.2.db && "
                   "cp %s/" FIRST "-data 20261122T000000Z-1h.2.db-data",
                   other.directory, other.directory);
    store_rig_shell(r, command);
    store_rig_reopen(r);
    assert_int_equal(store_rig_faults(r, "copy"), 0);
    assert_int_equal(store_rig_profiles(r), 6);
}
