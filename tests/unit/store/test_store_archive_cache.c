/* The cache of blocks of remote objects, and SQLite on top of it. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/archive/vfs.h"
#include "tests/unit/lib/store_rig.h"

#define BLOCK ((uint64_t)ARCHIVE_BLOCK_BYTES)

/* An object in memory, which counts what it is asked for. */
struct object {
    struct archive_source source;
    unsigned char *bytes;
    atomic_uint requests;
    _Atomic uint64_t last_n;
    enum archive_read result;
};

static enum archive_read on_fetch(void *arg, uint64_t offset, size_t n, void *into, struct err *err)
{
    struct object *o = arg;
    o->requests++;
    o->last_n = n;
    if (o->result != ARCHIVE_READ) {
        err_set(err, ERR_SYSTEM, "the bucket does not answer");
        return o->result;
    }
    assert_true(offset + n <= o->source.size);
    memcpy(into, o->bytes + offset, n);
    return ARCHIVE_READ;
}

static void object_init(struct object *o, uint64_t id, uint64_t size)
{
    *o = (struct object){.source = {.id = {id, 1}, .size = size, .fetch = on_fetch, .arg = o},
                         .bytes = malloc((size_t)size)};
    assert_non_null(o->bytes);
    for (uint64_t i = 0; i < size; i++) {
        o->bytes[i] = (unsigned char)(i * 31 + i / 251 + id);
    }
}

static void object_done(struct object *o)
{
    free(o->bytes);
}
SCOPED_VALUE(object, object_done)

static struct archive_cache *cache_of(const char *directory, uint64_t max_bytes)
{
    struct err err = ERR_INIT;
    struct archive_cache_options o = {.directory = directory, .max_bytes = max_bytes};
    struct archive_cache *c = archive_cache_new(&o, &err);
    CHECK_STR(err.msg, "", "archive_cache_new");
    assert_non_null(c);
    return c;
}

static void check_read(struct archive_cache *c, struct archive_reader *r, struct object *o,
                       uint64_t offset, size_t n)
{
    struct err err = ERR_INIT;
    SCOPED_MEMORY unsigned char *got = testing_memory(n + 1);
    assert_int_equal(archive_cache_read(c, r, offset, n, got, &err), ARCHIVE_READ);
    assert_memory_equal(got, o->bytes + offset, n);
}

TEST(blocks_are_fetched_once)
{
    SCOPED(object) o;
    object_init(&o, 1, 3 * BLOCK + 100);
    struct archive_cache *c = cache_of(NULL, 100 * BLOCK);
    struct archive_reader r = {.source = &o.source};
    check_read(c, &r, &o, 10, 100);
    check_read(c, &r, &o, 0, 1000);
    assert_int_equal(o.requests, 1);
    assert_int_equal(o.last_n, BLOCK);
    /* A read over a boundary needs the next block, too; the last one is short. */
    check_read(c, &r, &o, BLOCK - 50, 100);
    assert_int_equal(o.requests, 2);
    check_read(c, &r, &o, 3 * BLOCK, 100);
    check_read(c, &r, &o, 0, 3 * BLOCK + 100);
    struct archive_cache_stats stats;
    archive_cache_stats(c, &stats);
    assert_int_equal(stats.memory, 3 * BLOCK + 100);
    assert_int_equal(stats.misses, 4);
    assert_true(stats.hits > 0);
    archive_cache_free(c);
}

TEST(a_reader_that_goes_on_asks_for_more)
{
    SCOPED(object) o;
    object_init(&o, 1, 40 * BLOCK);
    struct archive_cache *c = cache_of(NULL, 100 * BLOCK);
    struct archive_reader r = {.source = &o.source};
    for (uint64_t i = 0; i < 40; i++) {
        check_read(c, &r, &o, i * BLOCK + 7, 1000);
    }
    /* 1 + 2 + 4 + 8 + 16 + 9 blocks */
    assert_int_equal(o.requests, 6);
    assert_int_equal(o.last_n, 9 * BLOCK);
    archive_cache_free(c);
}

TEST(memory_is_bounded)
{
    SCOPED(object) o;
    object_init(&o, 1, 40 * BLOCK);
    struct archive_cache *c = cache_of(NULL, 4 * BLOCK);
    struct archive_reader r = {.source = &o.source};
    for (uint64_t i = 40; i-- > 0;) {
        check_read(c, &r, &o, i * BLOCK, 10);
        struct archive_cache_stats stats;
        archive_cache_stats(c, &stats);
        assert_true(stats.memory <= 4 * BLOCK);
    }
    /* The blocks that were used last are still there. */
    unsigned before = o.requests;
    check_read(c, &r, &o, 0, 10);
    check_read(c, &r, &o, 3 * BLOCK, 10);
    assert_int_equal(o.requests, before);
    check_read(c, &r, &o, 30 * BLOCK, 10);
    assert_int_equal(o.requests, before + 1);
    archive_cache_free(c);
}

/* A catalogue or an index brings many blocks that no query reads. */
TEST(seeded_blocks_do_not_replace_those_in_use)
{
    SCOPED(object) o;
    SCOPED(object) other;
    struct archive_cache_stats stats;
    object_init(&o, 1, 4 * BLOCK);
    object_init(&other, 2, 20 * BLOCK);
    struct archive_cache *c = cache_of(NULL, 8 * BLOCK);
    struct archive_reader r = {.source = &o.source};
    struct archive_reader others = {.source = &other.source};
    check_read(c, &r, &o, 0, 4 * BLOCK);
    unsigned before = o.requests;
    archive_cache_seed(c, &other.source, 0, (struct sv){(const char *)other.bytes, 20 * BLOCK},
                       ARCHIVE_SEED_PART);
    archive_cache_stats(c, &stats);
    assert_int_equal(stats.memory, 8 * BLOCK);
    check_read(c, &r, &o, 0, 4 * BLOCK);
    assert_int_equal(o.requests, before);
    /* The newest of them are there, and count as used once they were read. */
    check_read(c, &others, &other, 16 * BLOCK, 4 * BLOCK);
    assert_int_equal(other.requests, 0);
    archive_cache_seed(c, &other.source, 0, (struct sv){(const char *)other.bytes, 8 * BLOCK},
                       ARCHIVE_SEED_PART);
    check_read(c, &others, &other, 17 * BLOCK, 3 * BLOCK);
    assert_int_equal(other.requests, 0);
    archive_cache_free(c);
}

/* A catalogue brings all indexes at once; then the parts of one day after the other come. */
TEST(seeded_parts_do_not_replace_indexes)
{
    SCOPED(object) index;
    SCOPED(object) parts;
    object_init(&index, 1, 8 * BLOCK);
    object_init(&parts, 2, 40 * BLOCK);
    struct archive_cache *c = cache_of(NULL, 24 * BLOCK);
    struct archive_reader r = {.source = &index.source};
    archive_cache_seed(c, &index.source, 0, (struct sv){(const char *)index.bytes, 8 * BLOCK},
                       ARCHIVE_SEED_INDEX);
    archive_cache_seed(c, &parts.source, 0, (struct sv){(const char *)parts.bytes, 40 * BLOCK},
                       ARCHIVE_SEED_PART);
    check_read(c, &r, &index, 0, 8 * BLOCK);
    assert_int_equal(index.requests, 0);
    /* Blocks that are dropped are fetched again. */
    archive_cache_drop(c, &index.source);
    struct archive_cache_stats stats;
    archive_cache_stats(c, &stats);
    assert_int_equal(stats.memory, 16 * BLOCK);
    check_read(c, &r, &index, 0, 1);
    assert_int_equal(index.requests, 1);
    archive_cache_free(c);
}

TEST(failures_are_not_kept)
{
    SCOPED(object) o;
    object_init(&o, 1, BLOCK);
    struct archive_cache *c = cache_of(NULL, 4 * BLOCK);
    struct archive_reader r = {.source = &o.source};
    static const enum archive_read results[] = {ARCHIVE_GONE, ARCHIVE_CHANGED, ARCHIVE_FAILED};
    for (size_t i = 0; i < 3; i++) {
        struct err err = ERR_INIT;
        char byte;
        o.result = results[i];
        assert_int_equal(archive_cache_read(c, &r, 0, 1, &byte, &err), results[i]);
        CHECK_STR(err.msg, "the bucket does not answer", "err");
    }
    o.result = ARCHIVE_READ;
    check_read(c, &r, &o, 0, 100);
    assert_int_equal(o.requests, 4);
    archive_cache_free(c);
}

static size_t files_in(const char *directory)
{
    size_t n = 0;
    DIR *d = opendir(directory);
    assert_non_null(d);
    const struct dirent *e;
    while ((e = readdir(d)) != NULL) {
        n += e->d_name[0] != '.';
    }
    closedir(d);
    return n;
}

TEST(blocks_on_disk_outlive_the_process)
{
    SCOPED(object) o;
    char *directory = testing_mkdtemp();
    object_init(&o, 1, 10 * BLOCK);
    struct archive_cache *c = cache_of(directory, 100 * BLOCK);
    struct archive_reader r = {.source = &o.source};
    check_read(c, &r, &o, 0, 10 * BLOCK);
    archive_cache_free(c);
    assert_int_equal(files_in(directory), 10);
    unsigned before = o.requests;
    /* Another version of the object shares none of them. */
    c = cache_of(directory, 100 * BLOCK);
    r = (struct archive_reader){.source = &o.source};
    check_read(c, &r, &o, 0, 10 * BLOCK);
    assert_int_equal(o.requests, before);
    o.source.id[1]++;
    check_read(c, &r, &o, 0, 10);
    assert_int_equal(o.requests, before + 1);
    archive_cache_free(c);
    testing_directory_leave(&directory);
}

/* A part in the middle: blocks that it has no beginning or no end of are left out. */
TEST(parts_from_elsewhere_are_kept_on_disk)
{
    SCOPED(object) o;
    char *directory = testing_mkdtemp();
    object_init(&o, 1, 5 * BLOCK + 100);
    struct archive_cache *c = cache_of(directory, 100 * BLOCK);
    archive_cache_seed(c, &o.source, BLOCK / 2,
                       (struct sv){(const char *)o.bytes + BLOCK / 2, (size_t)(2 * BLOCK)},
                       ARCHIVE_SEED_PART);
    archive_cache_seed(c, &o.source, 4 * BLOCK,
                       (struct sv){(const char *)o.bytes + 4 * BLOCK, (size_t)BLOCK + 100},
                       ARCHIVE_SEED_PART);
    archive_cache_seed(c, &o.source, UINT64_MAX, SV("after the end"), ARCHIVE_SEED_PART);
    archive_cache_free(c);
    assert_int_equal(files_in(directory), 3);
    c = cache_of(directory, 100 * BLOCK);
    struct archive_reader r = {.source = &o.source};
    check_read(c, &r, &o, BLOCK, BLOCK);
    check_read(c, &r, &o, 4 * BLOCK, BLOCK + 100);
    assert_int_equal(o.requests, 0);
    check_read(c, &r, &o, 2 * BLOCK, 1);
    assert_int_equal(o.requests, 1);
    archive_cache_free(c);
    testing_directory_leave(&directory);
}

TEST(the_disk_is_bounded_and_foreign_files_stay)
{
    SCOPED(object) o;
    char *directory = testing_mkdtemp();
    char path[4096];
    object_init(&o, 1, 20 * BLOCK);
    (void)snprintf(path, sizeof(path), "%s/notes.txt", directory);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("not a block", f);
    fclose(f);
    (void)snprintf(path, sizeof(path), "%s/writing-12-3", directory);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    struct archive_cache *c = cache_of(directory, 5 * BLOCK);
    struct archive_reader r = {.source = &o.source};
    check_read(c, &r, &o, 0, 20 * BLOCK);
    struct archive_cache_stats stats;
    archive_cache_stats(c, &stats);
    assert_true(stats.disk <= 5 * BLOCK);
    assert_true(stats.disk > 3 * BLOCK);
    assert_int_equal(files_in(directory), 4 + 1);
    archive_cache_free(c);
    testing_directory_leave(&directory);
}

TEST(a_damaged_block_is_fetched_again)
{
    SCOPED(object) o;
    char *directory = testing_mkdtemp();
    char path[4096];
    object_init(&o, 1, BLOCK);
    struct archive_cache *c = cache_of(directory, 5 * BLOCK);
    struct archive_reader r = {.source = &o.source};
    check_read(c, &r, &o, 0, 10);
    archive_cache_free(c);
    (void)snprintf(path, sizeof(path), "%s/00000000000000010000000000000001.0", directory);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "?", 1, 1234), 1);
    close(fd);
    c = cache_of(directory, 5 * BLOCK);
    check_read(c, &r, &o, 0, BLOCK);
    assert_int_equal(o.requests, 2);
    struct archive_cache_stats stats;
    archive_cache_stats(c, &stats);
    assert_int_equal(stats.disk_fails, 1);
    archive_cache_free(c);
    /* The fetched block has replaced the damaged file. */
    c = cache_of(directory, 5 * BLOCK);
    check_read(c, &r, &o, 0, BLOCK);
    assert_int_equal(o.requests, 2);
    archive_cache_free(c);
    testing_directory_leave(&directory);
}

struct shared {
    struct archive_cache *cache;
    struct object *object;
};

static void *read_all(void *arg)
{
    struct shared *s = arg;
    struct archive_reader r = {.source = &s->object->source};
    for (uint64_t i = 0; i < 20; i++) {
        check_read(s->cache, &r, s->object, i * BLOCK, 5000);
    }
    return NULL;
}

TEST(threads_share_requests)
{
    SCOPED(object) o;
    pthread_t threads[4];
    object_init(&o, 1, 20 * BLOCK);
    struct shared s = {cache_of(NULL, 100 * BLOCK), &o};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &s), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    struct archive_cache_stats stats;
    archive_cache_stats(s.cache, &stats);
    assert_int_equal(stats.misses, 20);
    archive_cache_free(s.cache);
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

#define LAST 86 /* the row of the last profile that load_file() puts */

/* A database that is read from a bucket. */
struct remote {
    struct object object;
    enum archive_read why;
    unsigned failures;
    struct archive_cache *cache;
    struct archive_vfs *vfs;
    struct db db;
    struct err err;
};

static const struct archive_source *on_find(void *arg, const char *name)
{
    struct remote *r = arg;
    return strcmp(name, "w/x%1?.db") == 0 ? &r->object.source : NULL;
}

static void on_failed(void *arg, const char *name, enum archive_read why, const struct err *err)
{
    struct remote *r = arg;
    CHECK_STR(name, "w/x%1?.db", "name");
    CHECK_STR(err->msg, "the bucket does not answer", "err");
    r->why = why;
    r->failures++;
}

/* Makes a merged file of the store, and reads it into memory. */
static void load_file(struct remote *r)
{
    static const struct pprof_row row = {"a main", "", {1}};
    SCOPED(store_rig) rig;
    char path[4096];
    struct stat st;
    store_rig_init(&rig);
    rig.options.merge_ms = 5 * 60 * MS_PER_S;
    rig.options.merge_cpu = 100;
    store_rig_reopen(&rig);
    for (int i = 0; i < 50; i++) {
        rig_put(&rig, "__name__=cpu,service_name=a", RIG_T0 + i * RIG_SECOND, "cpu/ns", &row, 1,
                NULL);
    }
    /* Each is alone in its five minutes, so it is not merged. */
    static const char *const labels[] = {"__name__=cpu,service_name=b",
                                         "__name__=cpu,service_name=c",
                                         "__name__=cpu,service_name=d"};
    for (int i = 0; i < 36; i++) {
        rig_put_large(&rig, labels[i % 3], RIG_T0 + i / 3 * 300 * RIG_SECOND, 30000);
    }
    /* A file is sealed when no connection writes to it any more. */
    store_rig_reopen(&rig);
    for (int i = 0; i < 10 && !rig.store->files[0]->sealed; i++) {
        store_maintain(rig.store, RIG_T0 + 10 * RIG_HOUR);
    }
    assert_true(rig.store->files[0]->sealed);
    rig.store = store_close(rig.store);
    (void)snprintf(path, sizeof(path), "%s/20261122T000000Z-1h.db", rig.directory);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    object_init(&r->object, 1, (uint64_t)st.st_size);
    assert_int_equal(read(fd, r->object.bytes, (size_t)st.st_size), st.st_size);
    close(fd);
}

static void remote_init(struct remote *r)
{
    load_file(r);
    r->why = ARCHIVE_READ;
    r->cache = cache_of(NULL, 100 * BLOCK);
    struct archive_vfs_options o = {
        .cache = r->cache, .find = on_find, .failed = on_failed, .arg = r};
    r->vfs = archive_vfs_new(&o, &r->err);
    assert_non_null(r->vfs);
}

static void remote_leave(struct remote *r)
{
    archive_vfs_free(r->vfs);
    archive_cache_free(r->cache);
    object_done(&r->object);
}

SETUP_OF(remote)

/* Opens the database of this name; it has profiles. */
static bool open_remote(struct remote *r, const char *name)
{
    bool empty = false;
    bool ok = db_open_remote(&r->db, archive_vfs_name(r->vfs), name, &empty, &r->err);
    assert_false(empty);
    return ok;
}

TEST_ON(struct remote *r, sqlite_reads_an_object)
{
    assert_false(open_remote(r, "w/y.db"));
    err_clear(&r->err);
    assert_true(open_remote(r, "w/x%1?.db"));
    sqlite3_stmt *st = db_statement(&r->db, SQL_STATE, &r->err);
    assert_int_equal(db_step(&r->db, st, &r->err), 1);
    assert_int_equal(sqlite3_column_int64(st, 0), LAST);
    sqlite3_reset(st);
    /* Opening and the state need the first blocks only. */
    assert_true(r->object.requests <= 2);
    assert_true(db_is_read_only(&r->db));
    st = db_row_of(&r->db, SQL_BODY, LAST, "", &r->err);
    assert_non_null(st);
    assert_true(db_blob(st, 0).n > 20000);
    db_close(&r->db);
}

TEST_ON(struct remote *r, sqlite_reports_a_bucket_that_fails)
{
    r->object.result = ARCHIVE_GONE;
    assert_false(open_remote(r, "w/x%1?.db"));
    assert_int_equal(r->why, ARCHIVE_GONE);
    assert_int_equal(r->db.fault, DB_UNREADABLE);
    r->object.result = ARCHIVE_READ;
    assert_true(open_remote(r, "w/x%1?.db"));
    r->object.result = ARCHIVE_FAILED;
    r->failures = 0;
    assert_null(db_row_of(&r->db, SQL_BODY, LAST, "", &r->err));
    assert_int_equal(r->failures, 1);
    assert_int_equal(r->why, ARCHIVE_FAILED);
    assert_int_equal(r->db.fault, DB_UNREADABLE);
    /* The connection goes on when the bucket answers again. */
    r->db.fault = DB_FINE;
    r->object.result = ARCHIVE_READ;
    assert_non_null(db_row_of(&r->db, SQL_BODY, LAST, "", &r->err));
    db_close(&r->db);
}

TEST_ON(struct remote *r, a_truncated_object_is_damaged)
{
    r->object.source.size = 100000;
    if (open_remote(r, "w/x%1?.db")) {
        assert_null(db_row_of(&r->db, SQL_BODY, LAST, "missing", &r->err));
        db_close(&r->db);
    }
    assert_int_equal(r->db.fault, DB_DAMAGED);
    assert_int_equal(r->failures, 0);
}
