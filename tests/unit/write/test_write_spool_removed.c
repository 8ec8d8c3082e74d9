/* Somebody removes files of a spool, or all of it, while it is in use: it is made again, and what
 * can still be had is written again. */
#include "tests/unit/write/spool_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define N 40
#define SIZE ((size_t)10 * 1024)

enum what { DIRECTORY, RENAMED, REPLACED, LOCK, ACTIVE, SEALED, ACKS };

static void path_of(const char *dir, const char *name, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/main%s%s", dir, name[0] != '\0' ? "/" : "", name);
}

/* Calls remove() for the first or the last file with the suffix. */
static void remove_file(const char *dir, const char *suffix, bool last)
{
    char path[4096];
    char found[256] = "";
    path_of(dir, "", path, sizeof(path));
    DIR *d = opendir(path);
    assert_non_null(d);
    const struct dirent *e;
    while ((e = readdir(d)) != NULL) {
        size_t len = strlen(e->d_name);
        bool fits = len > 4 && strcmp(e->d_name + len - 4, suffix) == 0;
        int order = found[0] == '\0' ? 0 : strcmp(e->d_name, found);
        if (fits && (found[0] == '\0' || (last ? order > 0 : order < 0))) {
            (void)snprintf(found, sizeof(found), "%s", e->d_name);
        }
    }
    closedir(d);
    assert_true(found[0] != '\0');
    path_of(dir, found, path, sizeof(path));
    assert_int_equal(unlink(path), 0);
}

static void disturb(const char *dir, enum what what)
{
    char path[4096];
    char other[4096];
    path_of(dir, "", path, sizeof(path));
    (void)snprintf(other, sizeof(other), "%s/away", dir);
    switch (what) {
    case DIRECTORY:
        testing_rmdir(path);
        break;
    case RENAMED:
    case REPLACED:
        assert_int_equal(rename(path, other), 0);
        assert_int_equal(what == REPLACED ? mkdir(path, 0700) : 0, 0);
        break;
    case LOCK:
        path_of(dir, "lock", path, sizeof(path));
        assert_int_equal(unlink(path), 0);
        break;
    case ACKS:
        remove_file(dir, ".ack", false);
        break;
    case ACTIVE:
    case SEALED:
    default:
        remove_file(dir, ".seg", what == ACTIVE);
        break;
    }
}

/* Fills a spool, of which so many bytes are in memory as well; the first two profiles are sent. */
static void fill(struct rig *r, const char *dir, uint64_t max_bytes, unsigned *seen)
{
    rig_init(r, dir);
    r->max_bytes = max_bytes;
    r->spool_bytes = 2 << 20; /* segments of 128 KiB */
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    for (unsigned i = 0; i < N; i++) {
        rig_put(r, i, SIZE);
        if (i % 4 == 3) {
            rig_pass(r, 500);
        }
    }
    CHECK_INT(rig_send(r, 2, seen, N), 2, "");
    rig_pass(r, 500);
    CHECK_INT(spool_status(r->s).counts.profiles, N - 2, "all on disk");
    CHECK_INT(spool_status(r->s).up, true, "");
}

static unsigned count_seen(const unsigned *seen, unsigned times)
{
    unsigned n = 0;
    for (size_t i = 0; i < N; i++) {
        n += seen[i] == times;
    }
    return n;
}

/* Another process starts right after the lock file was removed, before the first one notices that.
 */
TEST(second_process)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    SCOPED(rig) r;
    struct rig second;
    unsigned seen[N] = {0};
    struct err err = ERR_INIT;
    fill(&r, dir, 1 << 20, seen);
    disturb(dir, LOCK);
    rig_init(&second, dir);
    CHECK_INT(rig_open_all(&second, &err), false, "");
    CHECK_CONTAINS(err.msg, "another process uses this directory", "");
    rig_done(&second);
    rig_faults = &r.faults;
    testing_log_expect(r.log, "spool fails, profiles are kept in memory only");
    rig_pass(&r, SPOOL_CHECK_MS);
    CHECK_INT(spool_status(r.s).up, true, "");
    CHECK_INT(spool_status(r.s).counts.profiles, N - 2, "nothing was written again");
}

/* The directory is removed and may not be made again, as in the sandbox: the log says so each
 * minute, with what to do. If it may be used after all, it is. */
TEST(forbidden)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    SCOPED(rig) r;
    unsigned seen[N] = {0};
    fill(&r, dir, 1 << 20, seen);
    testing_log_expect(r.log, "spool fails, profiles are kept in memory only");
    testing_log_expect(r.log, "spool directory cannot be used");
    disturb(dir, DIRECTORY);
    r.faults.error = EACCES;
    r.faults.writes_only = r.faults.for_ever = true;
    r.faults.fail_at = 1;
    rig_pass(&r, SPOOL_CHECK_MS);
    CHECK_INT(spool_status(r.s).up, false, "");
    CHECK_INT(spool_status(r.s).forbidden, true, "");
    CHECK_CONTAINS(testing_log_text(r.log), "restart profpull", "");
    const char *line = strstr(testing_log_text(r.log), "spool directory cannot be used");
    assert_null(strstr(line + 1, "spool directory cannot be used"));
    for (int i = 0; i < 3; i++) {
        rig_pass(&r, SPOOL_RETRY_MAX_MS);
    }
    line = strstr(testing_log_text(r.log), "spool directory cannot be used");
    assert_non_null(strstr(line + 1, "spool directory cannot be used"));
    r.faults.fail_at = 0;
    rig_pass(&r, SPOOL_RETRY_MAX_MS);
    CHECK_INT(spool_status(r.s).up, true, "");
    CHECK_INT(spool_status(r.s).forbidden, false, "");
    CHECK_INT(spool_status(r.s).counts.profiles, N - 2, "all on disk again");
}

/* All that is in memory is on disk again soon, without anything new to write: the process may end.
 */
TEST(in_memory)
{
    static const struct {
        const char *name;
        enum what what;
        unsigned twice; /* come again, because their acknowledgement is gone */
        bool said;
    } cases[] = {
        {"directory", DIRECTORY, 0, true},    {"renamed", RENAMED, 0, true},
        {"replaced", REPLACED, 0, true},      {"lock", LOCK, 0, true},
        {"newest file", ACTIVE, 0, true},     {"oldest file", SEALED, 0, true},
        {"acknowledgements", ACKS, 2, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED_DIRECTORY char *dir = testing_mkdtemp();
        SCOPED(rig) r;
        unsigned seen[N] = {0};
        fill(&r, dir, 1 << 20, seen);
        if (cases[i].said) {
            testing_log_expect(r.log, "spool fails, profiles are kept in memory only");
        }
        disturb(dir, cases[i].what);
        rig_pass(&r, SPOOL_CHECK_MS);
        CHECK_INT(spool_status(r.s).up, true, cases[i].name);
        CHECK_INT(spool_status(r.s).counts.profiles, N - 2, cases[i].name);
        if (cases[i].said) {
            CHECK_CONTAINS(testing_log_text(r.log), "removed", cases[i].name);
            CHECK_CONTAINS(testing_log_text(r.log), "spool works again", cases[i].name);
        }
        /* Nobody else may take it meanwhile. */
        struct rig second;
        struct err err = ERR_INIT;
        rig_init(&second, dir);
        CHECK_INT(rig_open_all(&second, &err), false, cases[i].name);
        CHECK_CONTAINS(err.msg, "another process uses this directory", cases[i].name);
        rig_done(&second);
        rig_faults = &r.faults;
        rig_close_all(&r);
        assert_true(rig_open_all(&r, NULL));
        while (rig_send(&r, N, seen, N) > 0) {
        }
        CHECK_INT(count_seen(seen, 1), N - cases[i].twice, cases[i].name);
        CHECK_INT(count_seen(seen, 2), cases[i].twice, cases[i].name);
    }
}

/* Profiles that were only on disk: the file that is being written to is still open, and read from
 * there; the rest is lost, and counted. */
TEST(on_disk_only)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    SCOPED(rig) r;
    unsigned seen[N + 1] = {0};
    fill(&r, dir, 200 * 1024, seen);
    testing_log_expect(r.log, "spool fails, profiles are kept in memory only");
    /* The profile takes the memory of the newest ones. */
    rig_put(&r, N, 170 * (size_t)1024);
    assert_true(send_queue_status(r.e).on_disk_only >= N - 6);
    disturb(dir, DIRECTORY);
    rig_pass(&r, SPOOL_CHECK_MS);
    CHECK_BALANCE(&r);
    struct write_ledger l = send_queue_status(r.e).ledger;
    uint64_t lost = l.dropped[DROP_DAMAGED];
    CHECK_INT(l.queued, N - 1 - lost, "");
    /* A segment holds twelve of them. */
    assert_true(lost > 0 && lost <= 36 && l.queued >= 2);
    assert_true(send_queue_status(r.e).on_disk_only > 0);
    CHECK_INT(spool_status(r.s).counts.profiles, l.queued, "they are on disk again");
    rig_close_all(&r);
    assert_true(rig_open_all(&r, NULL));
    unsigned sent = 0;
    unsigned more;
    while ((more = rig_send(&r, N, seen, N + 1)) > 0) {
        sent += more;
    }
    CHECK_INT(sent, l.queued, "");
}

/* The directory cannot be made again at first: profiles in memory stay there, and are written when
 * it can be. */
TEST(disk_fails_as_well)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    SCOPED(rig) r;
    unsigned seen[N] = {0};
    fill(&r, dir, 1 << 20, seen);
    testing_log_expect(r.log, "spool fails, profiles are kept in memory only");
    disturb(dir, DIRECTORY);
    r.faults.writes_only = true;
    r.faults.for_ever = true;
    r.faults.fail_at = r.faults.calls + 1;
    for (int i = 0; i < 5; i++) {
        rig_pass(&r, SPOOL_RETRY_MAX_MS);
        CHECK_INT(spool_status(r.s).up, false, "");
    }
    CHECK_INT(send_queue_status(r.e).ledger.queued, N - 2, "all there");
    r.faults.fail_at = 0;
    rig_pass(&r, SPOOL_RETRY_MAX_MS);
    CHECK_INT(spool_status(r.s).up, true, "");
    CHECK_INT(spool_status(r.s).counts.profiles, N - 2, "");
    while (rig_send(&r, N, seen, N) > 0) {
    }
    CHECK_INT(count_seen(seen, 1), N, "");
}

/* Each call of the disk fails once while the spool is made again: nothing is lost. */
TEST(every_call_fails_once)
{
    uint64_t failed = 1;
    uint64_t runs = 0;
    for (uint64_t n = 1; failed > 0; n++, runs++) {
        SCOPED_DIRECTORY char *dir = testing_mkdtemp();
        SCOPED(rig) r;
        unsigned seen[N] = {0};
        fill(&r, dir, 1 << 20, seen);
        testing_log_expect(r.log, "spool");
        disturb(dir, DIRECTORY);
        r.faults.calls = 0;
        r.faults.fail_at = n;
        rig_pass(&r, SPOOL_CHECK_MS);
        failed = r.faults.failed;
        r.faults.fail_at = 0;
        for (int i = 0; i < 3; i++) {
            rig_pass(&r, SPOOL_RETRY_MAX_MS);
        }
        CHECK_INT(spool_status(r.s).up, true, "");
        rig_close_all(&r);
        assert_true(rig_open_all(&r, NULL));
        while (rig_send(&r, N, seen, N) > 0) {
        }
        CHECK_INT(count_seen(seen, 0), 0, "none is lost");
    }
    assert_true(runs > 20);
}
