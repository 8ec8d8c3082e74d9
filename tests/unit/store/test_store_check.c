/* Checking the files of a store without a store: numbers, and every kind of damage. */
#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "store/archive/survey.h"
#include "store/check.h"
#include "store/data.h"
#include "tests/unit/lib/store_rig.h"

#define NAME "20261122T000000Z-1h.db"
#define OPTIONS "__name__=cpu,service_name=a"

static const struct pprof_row rows[] = {{"a main", "", {1}}, {"b main", "thread=x", {2}}};

static void put(struct store_rig *r, int n)
{
    for (int i = 0; i < n; i++) {
        rig_put(r, OPTIONS, RIG_T0 + i * 15 * RIG_SECOND, "cpu/ns", rows, 2, NULL);
    }
}

static struct check_report check(const struct store_rig *r, bool thorough)
{
    char path[4096];
    struct check_report report;
    (void)snprintf(path, sizeof(path), "%s/" NAME, r->directory);
    check_file(path, thorough, &report);
    return report;
}

static void check_fault(const struct store_rig *r, enum db_fault fault, const char *why,
                        const char *row)
{
    struct check_report report = check(r, true);
    CHECK_INT(report.fault, fault, row);
    CHECK_CONTAINS(report.why, why, row);
}

/* Changes one byte of a file of the store. */
static void flip(const struct store_rig *r, const char *suffix, off_t at)
{
    char path[4096];
    char byte;
    (void)snprintf(path, sizeof(path), "%s/" NAME "%s", r->directory, suffix);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void change(const struct store_rig *r, const char *sql)
{
    char path[4096];
    sqlite3 *db = NULL;
    (void)snprintf(path, sizeof(path), "%s/" NAME, r->directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Seals the only file, without an archive's uploads. */
static void seal(struct store_rig *r)
{
    r->options.merge_ms = 5 * 60 * MS_PER_S;
    r->options.merge_cpu = 100;
    store_rig_reopen(r);
    store_maintain(r->store, RIG_T0 + 10 * RIG_HOUR);
    r->store = store_close(r->store);
}

SETUP_OF(store_rig)

TEST_ON(struct store_rig *r, profiles_are_counted_while_the_file_is_in_use)
{
    put(r, 10);
    struct check_report report = check(r, true);
    CHECK_STR(report.why, "", "in use");
    assert_int_equal(report.fault, DB_FINE);
    assert_int_equal(report.profiles, 10);
    assert_false(report.sealed);
    assert_int_equal(report.oldest_ns, RIG_T0);
    assert_int_equal(report.newest_ns, RIG_T0 + 9 * 15 * RIG_SECOND);
    assert_true(report.bytes > 10 * 100);
    report = check(r, false);
    assert_int_equal(report.profiles, 10);
    r->store = store_close(r->store);
    assert_int_equal(check(r, false).profiles, 10);
    seal(r);
    report = check(r, true);
    CHECK_STR(report.why, "", "sealed");
    assert_true(report.sealed);
    assert_int_equal(report.profiles, 10);
}

TEST_ON(struct store_rig *r, files_that_are_none)
{
    check_fault(r, DB_UNREADABLE, "No such file", "missing");
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/" NAME, r->directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(check(r, true).fault, DB_FINE);
    assert_int_equal(check(r, true).version, 0);
    assert_int_equal(write(fd, "hello, this is no database at all", 33), 33);
    close(fd);
    check_fault(r, DB_FOREIGN, "not a database", "text");
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    check_fault(r, DB_FOREIGN, "not a regular file", "link");
    unlink(path);
    change(r, "CREATE TABLE t(a)");
    check_fault(r, DB_FOREIGN, "another program", "another database");
    unlink(path);
}

TEST(damage_in_the_data_file)
{
    static const struct {
        off_t at;
        const char *why;
    } cases[] = {{0, "the head of the data file"},
                 {DATA_HEADER_BYTES + 30, "profiles of the data file"},
                 {DATA_HEADER_BYTES + 300, "profile"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(store_rig) r;
        store_rig_init(&r);
        put(&r, 10);
        r.store = store_close(r.store);
        flip(&r, DATA_SUFFIX, cases[i].at);
        check_fault(&r, DB_DAMAGED, cases[i].why, cases[i].why);
    }
}

TEST(damage_in_the_tables)
{
    static const struct text_case cases[] = {
        {"UPDATE state SET profiles = profiles + 1", "another number of profiles"},
        {"DELETE FROM state", "no state"},
        {"UPDATE sets SET data = x'0102' WHERE id = 1", "the labels of a series"},
        {"UPDATE series SET labels = x'0102' WHERE id = 1", "the labels of samples"},
        {"UPDATE merges SET data = data || x'00'", "the bytes of a merged profile"},
        {"PRAGMA user_version = 99", "newer version"},
        {"CREATE TRIGGER t AFTER INSERT ON sets BEGIN DELETE FROM series; END", "the schema"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(store_rig) r;
        store_rig_init(&r);
        put(&r, 10);
        seal(&r);
        change(&r, cases[i].text);
        check_fault(&r, i == 5 ? DB_NEWER : DB_DAMAGED, cases[i].want, cases[i].text);
    }
}

TEST_ON(struct store_rig *r, profiles_of_another_time)
{
    char from[4096];
    char to[4096];
    struct check_report report;
    put(r, 10);
    seal(r);
    (void)snprintf(from, sizeof(from), "%s/" NAME, r->directory);
    (void)snprintf(to, sizeof(to), "%s/20261122T070000Z-1h.db", r->directory);
    assert_int_equal(rename(from, to), 0);
    check_file(to, false, &report);
    assert_int_equal(report.fault, DB_MISPLACED);
}

/* Writes the names and hashes of all files of a directory. */
static void print_tree(const char *directory, struct buf *out)
{
    struct dirent **entries = NULL;
    int n = scandir(directory, &entries, NULL, alphasort);
    assert_true(n > 2);
    for (int i = 0; i < n; i++) {
        char path[4096];
        char hash[ARCHIVE_HASH_DIGITS + 1] = "";
        (void)snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
        (void)survey_hash(path, hash, NULL);
        buf_printf(out, "%s %s\n", entries[i]->d_name, hash);
        free(entries[i]);
    }
    free((void *)entries);
}

/* A check changes neither the files nor the directory, which a log and its index would do. */
TEST_ON(struct store_rig *r, nothing_is_changed)
{
    SCOPED(buf) before = testing_buf(8192);
    SCOPED(buf) after = testing_buf(8192);
    put(r, 10);
    r->store = store_close(r->store);
    print_tree(r->directory, &before);
    assert_int_equal(check(r, true).fault, DB_FINE);
    print_tree(r->directory, &after);
    CHECK_STR(after.data, before.data, "after");
}
