/* The room that profiles and logs take on the disk, retention by what it leaves, and full disks.
 */
#include "tests/unit/lib/store_rig.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define ROUND_S 30

static const struct pprof_row rows[] = {{"a main", "", {1}}, {"b main", "", {2}}};

static uint64_t size_of(const struct store_rig *r, const char *suffix)
{
    uint64_t sum = 0;
    DIR *d = opendir(r->directory);
    const struct dirent *e;
    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        char path[1024];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/%s", r->directory, e->d_name);
        if (sv_ends_with(sv_from(e->d_name), sv_from(suffix)) && stat(path, &st) == 0) {
            sum += (uint64_t)st.st_size;
        }
    }
    closedir(d);
    return sum;
}

/* ---- retention ------------------------------------------------------------------------------- */

struct load {
    uint64_t max_bytes;
    int64_t per_minute;
    int64_t seconds;
    size_t bytes; /* 0: a small profile */
};

/* Puts a profile. If the disk is full, a round of the background makes room. */
static void put_one(struct store_rig *r, int64_t ns, struct sv data)
{
    struct store_put put;
    for (int tries = 0; tries < 2; tries++) {
        if (rig_put_bytes(r, "__name__=cpu,service_name=s", RIG_T0 + ns, data, PROFILE_PPROF,
                          &put) == STORE_TAKEN) {
            return;
        }
        CHECK_CONTAINS(put.problem, "the disk is full", "");
        store_maintain(r->store, RIG_T0 + ns);
    }
    fail_msg("%s", put.problem);
}

/* Puts profiles one by one, with a round of the background every half a minute of their time.
 * Returns how many. */
static uint64_t put_load(struct store_rig *r, const struct load *l)
{
    const struct pprof_spec spec = {.types = "x/count"};
    SCOPED(buf) body = l->bytes > 0 ? rig_large(l->bytes) : pprof_make(&spec, rows, 2);
    uint64_t n = 0;
    int64_t round = 0;
    for (int64_t ns = 0; ns < l->seconds * RIG_SECOND; ns += 60 * RIG_SECOND / l->per_minute) {
        if (ns / RIG_SECOND / ROUND_S > round) {
            round = ns / RIG_SECOND / ROUND_S;
            store_maintain(r->store, RIG_T0 + ns);
        }
        put_one(r, ns, (struct sv){body.data, body.len});
        n++;
    }
    store_maintain(r->store, RIG_T0 + l->seconds * RIG_SECOND);
    return n;
}

/* Logs do not count: profiles that fit into max_bytes without them are all left. */
TEST(test_retention_leaves_what_fits)
{
    static const struct load loads[] = {
        {160 * MIB, 3600, 130, 0},
        {512 * MIB, 3600, 250, 0},
        {100 * MIB, 400, 300, 9000},
        {16 * MIB, 600, 300, 0},
    };
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        SCOPED(store_rig) r;
        store_rig_init(&r);
        r.options.max_bytes = loads[i].max_bytes;
        store_rig_reopen(&r);
        uint64_t n = put_load(&r, &loads[i]);
        char text[64];
        (void)snprintf(text, sizeof(text), "load %zu", i);
        CHECK_INT(store_rig_profiles(&r), n, text);
        assert_true(size_of(&r, "") < loads[i].max_bytes);
    }
}

SETUP_OF(store_rig)

/* When more comes than fits, all but an eighth of max_bytes is left, and no more than it. */
TEST_ON(struct store_rig *r, test_retention_leaves_most_of_what_it_may)
{
    const struct load load = {8 * MIB, 600, 300, 10000};
    r->options.max_bytes = load.max_bytes;
    store_rig_reopen(r);
    uint64_t n = put_load(r, &load);
    uint64_t left = store_rig_profiles(r);
    assert_true(left < n);
    assert_in_range(size_of(r, ".db") + size_of(r, "-data"), load.max_bytes * 3 / 4,
                    load.max_bytes);
    assert_true(left > load.max_bytes * 2 / 3 / 11000);
}

/* ---- logs ------------------------------------------------------------------------------------ */

TEST_ON(struct store_rig *r, test_a_log_has_a_limit_and_is_emptied)
{
    uint64_t largest = 0;
    r->options.max_bytes = 64 * MIB;
    store_rig_reopen(r);
    for (int64_t i = 0; i < 200; i++) {
        rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + i * RIG_SECOND, "x/count", rows, 2,
                NULL);
        /* A query commits the transaction. */
        free(rig_scan(r, RIG_SERIES, NULL, 0, 1, NULL));
        if (i % 50 == 49) {
            store_maintain(r->store, RIG_T0);
            assert_int_equal(size_of(r, "-wal"), 0);
        }
        uint64_t now = size_of(r, "-wal");
        largest = now > largest ? now : largest;
    }
    /* The log of 50 commits. */
    assert_in_range(largest, MIB / 2, MIB + MIB / 4);
    assert_in_range(size_of(r, ".db"), 1, 200 * 6 * 1024);
}

/* A process that was killed leaves a log, and the next one empties it though nothing is written. */
TEST_ON(struct store_rig *r, test_the_log_of_an_earlier_process_is_emptied)
{
    SCOPED(store_rig) copy;
    store_rig_init(&copy);
    for (int64_t i = 0; i < 20; i++) {
        rig_put(r, "__name__=cpu,service_name=s", RIG_T0 + i * RIG_SECOND, "x/count", rows, 2,
                NULL);
    }
    free(rig_scan(r, RIG_SERIES, NULL, 0, 1, NULL));
    assert_true(size_of(r, "-wal") > 4096);
    copy.store = store_close(copy.store);
    char command[1024];
    (void)snprintf(command, sizeof(command), "cp %s/*.db* %s", r->directory, copy.directory);
    assert_int_equal(system(command), 0);
    store_rig_reopen(&copy);
    assert_int_equal(store_rig_profiles(&copy), 20);
    store_maintain(copy.store, RIG_T0);
    assert_int_equal(size_of(&copy, "-wal"), 0);
}

/* ---- a full disk ----------------------------------------------------------------------------- */

/* A disk of its own for the store, which ends with the process; false if this may not be. */
static bool mount_disk(const struct store_rig *r, const char *size)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", r->directory, "tmpfs", 0, size) == 0;
}

static void init_on_disk(struct store_rig *r, const char *size)
{
    store_rig_init(r);
    r->store = store_close(r->store);
    if (!mount_disk(r, size)) {
        print_message("cannot mount a disk\n");
        r->options.metrics = NULL;
        metrics_free(r->metrics);
        testing_log_done(r->log);
        testing_directory_leave(&r->directory);
        skip();
    }
    store_rig_reopen(r);
}

static void done_on_disk(struct store_rig *r)
{
    r->store = store_close(r->store);
    assert_int_equal(umount(r->directory), 0);
    store_rig_done(r);
}

/* Puts profiles of 3 KB until the disk is full; returns how many were taken. */
static int64_t fill(struct store_rig *r, int64_t from)
{
    SCOPED(buf) b = rig_large(3000);
    struct store_put put;
    int64_t n = 0;
    while (rig_put_bytes(r, "__name__=cpu,service_name=s", RIG_T0 + (from + n) * RIG_SECOND,
                         (struct sv){b.data, b.len}, PROFILE_PPROF, &put) == STORE_TAKEN) {
        n++;
    }
    CHECK_CONTAINS(put.problem, "the disk is full", "");
    return n;
}

/* The data fill the disk, not the log; older files make room, and then profiles are taken again. */
TEST(test_a_store_fills_a_small_disk_and_recovers)
{
    struct store_rig r;
    init_on_disk(&r, "size=16m"); /* may skip the test, which ends no block */
    SCOPED(buf) b = rig_large(3000);
    int64_t first = fill(&r, 0);
    assert_true(first > 2000);
    assert_true(size_of(&r, ".db") + size_of(&r, "-data") > 12 * MIB);
    /* The next process finds all of them, and the disk as full. */
    store_rig_reopen(&r);
    assert_int_equal(store_rig_profiles(&r), first);
    assert_int_equal(fill(&r, first), 0);
    /* A limit makes room, for the next hour too. */
    r.options.max_bytes = 1024 * MIB;
    store_configure(r.store, &r.options);
    put_one(&r, RIG_HOUR, (struct sv){b.data, b.len});
    store_maintain(r.store, RIG_T0 + RIG_HOUR);
    assert_true(fill(&r, 2 * RIG_HOUR / RIG_SECOND) > 1000);
    done_on_disk(&r);
}

/* A disk that is smaller than max_bytes stands for it: the oldest files go, and all that comes is
 * taken. */
TEST(test_a_small_disk_stands_for_max_bytes)
{
    const struct load load = {1024 * MIB, 600, 600, 10000};
    struct store_rig r;
    init_on_disk(&r, "size=16m");
    r.options.max_bytes = load.max_bytes;
    store_rig_reopen(&r);
    uint64_t n = put_load(&r, &load);
    assert_true(store_rig_profiles(&r) < n);
    assert_in_range(size_of(&r, ".db") + size_of(&r, "-data"), 10 * MIB, 14 * MIB);
    done_on_disk(&r);
}
