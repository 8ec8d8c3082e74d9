/* Tools for archives: listing and checking objects, downloading, and pushing a directory. */
#include <fcntl.h>
#include <sys/stat.h>

#include "store/archive/push.h"
#include "store/archive/survey.h"
#include "tests/unit/store/archive_fake.h"

#define HOUR 3600
#define FIRST "20261122T000000Z-1h"

static const struct pprof_row rows[] = {{"a main", "", {1}}, {"b main", "thread=x", {2}}};
static const struct survey_limits everything = {.from_ns = INT64_MIN, .until_ns = INT64_MAX};

/* Puts three hours of two services. */
static void put_hours(struct archive_rig *r)
{
    for (int i = 0; i < 3 * 12; i++) {
        int64_t at = RIG_T0 + i * 300 * RIG_SECOND;
        rig_put(&r->store, "__name__=cpu,service_name=a", at, "cpu/ns", rows, 2, NULL);
        if (i < 12) {
            rig_put(&r->store, "__name__=mem,service_name=b", at, "space/bytes", rows, 1, NULL);
        }
    }
}

/* Archives three hours. */
static void archive_three(struct fake *f, struct archive_rig *r)
{
    fake_init(f);
    archive_rig_init(r, f, "w1");
    put_hours(r);
    archive_rig_at(r, f, 10 * HOUR);
    assert_int_equal(fake_count(f, "w1/index/"), 3);
}

/* Writes "STRETCH WRITER STATE PROFILES;" for each file. */
static void print_survey(struct fake *f, const struct survey_limits *limits, struct buf *out)
{
    struct survey s;
    struct err err = ERR_INIT;
    const struct archive_backend b = fake_backend(f);
    assert_int_equal(survey_list(&b, limits, &s, &err), BUCKET_OK);
    buf_clear(out);
    for (size_t i = 0; i < s.n; i++) {
        char text[STORE_NAME_SIZE] = "-";
        if (s.at[i].state != SURVEY_FOREIGN) {
            store_name_format(&s.at[i].name.stretch, text);
        }
        buf_printf(out, "%s%s %s %s %llu", i > 0 ? "; " : "", text, s.at[i].writer,
                   survey_state_name(s.at[i].state), (unsigned long long)s.at[i].name.profiles);
    }
    survey_done(&s);
}

static void rename_object(struct fake *f, const char *like, const char *key)
{
    struct fake_object *o = fake_like(f, like);
    fake_set(f, key, o->data, o->n);
    fake_drop(f, fake_like(f, like)->key);
}

TEST(every_object_of_a_bucket_is_listed)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    archive_three(&f, &r);
    SCOPED(buf) got = testing_buf(8192);
    print_survey(&f, &everything, &got);
    CHECK_STR(got.data,
              "20261122T000000Z-1h.db w1 fine 24; 20261122T010000Z-1h.db w1 fine 12; "
              "20261122T020000Z-1h.db w1 fine 12",
              "all");
    struct survey_limits limits = {
        .from_ns = RIG_T0 + RIG_HOUR, .until_ns = RIG_T0 + 2 * RIG_HOUR - 1, .writer = "w1"};
    print_survey(&f, &limits, &got);
    CHECK_STR(got.data, "20261122T010000Z-1h.db w1 fine 12", "an hour");
    limits.writer = "w";
    print_survey(&f, &limits, &got);
    CHECK_STR(got.len > 0 ? got.data : "", "", "another writer");
    /* Objects of others, a database without an index, and an index without a database. */
    fake_set(&f, "w1/index/notes.txt", "x", 1);
    fake_set(&f, "strange", "x", 1);
    fake_drop(&f, fake_like(&f, "w1/data/20261122T010000Z")->key);
    fake_drop(&f, fake_like(&f, "w1/index/20261122T020000Z")->key);
    print_survey(&f, &everything, &got);
    CHECK_STR(got.data,
              "20261122T000000Z-1h.db w1 fine 24; 20261122T010000Z-1h.db w1 missing 12; "
              "20261122T020000Z-1h.db w1 unfinished 0; -  foreign 0; -  foreign 0",
              "odd ones");
}

/* Downloads and checks the first file; returns its state and the reason. */
static enum survey_state check_first(struct fake *f, struct err *err)
{
    struct survey s;
    char *directory = testing_mkdtemp();
    char path[4096];
    const struct archive_backend b = fake_backend(f);
    char name[STORE_NAME_SIZE];
    err_clear(err);
    assert_int_equal(survey_list(&b, &everything, &s, err), BUCKET_OK);
    store_name_format(&s.at[0].name.stretch, name);
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    enum survey_state state = s.at[0].state;
    if (state == SURVEY_FINE) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        state = survey_download(&b, &s.at[0], fd, NULL, NULL, err);
        close(fd);
        if (state == SURVEY_FINE) {
            state = survey_check(&b, &s.at[0], path, err);
        }
    }
    survey_done(&s);
    testing_directory_leave(&directory);
    return state;
}

TEST(every_kind_of_damage_is_found)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    struct err err = ERR_INIT;
    archive_three(&f, &r);
    assert_int_equal(check_first(&f, &err), SURVEY_FINE);
    CHECK_STR(err.msg, "", "fine");
    /* One bit of the database. */
    struct fake_object *o = fake_like(&f, "w1/data/" FIRST);
    o->data[o->n / 2] ^= 1;
    assert_int_equal(check_first(&f, &err), SURVEY_DAMAGED);
    CHECK_CONTAINS(err.msg, "damaged: the hash of its bytes is", "one bit");
    o->data[o->n / 2] ^= 1;
    /* A database that was written again has another ETag than the index says. */
    SCOPED_MEMORY char *copy = malloc(o->n);
    memcpy(copy, o->data, o->n);
    fake_set(&f, o->key, copy, o->n);
    assert_int_equal(check_first(&f, &err), SURVEY_DAMAGED);
    CHECK_CONTAINS(err.msg, "the ETag of the index is not that of the database", "written again");
    /* The index. */
    struct fake_object *index = fake_like(&f, "w1/index/" FIRST);
    index->data[index->n / 2] ^= 1;
    assert_int_equal(check_first(&f, &err), SURVEY_DAMAGED);
    CHECK_CONTAINS(err.msg, "damaged", "index");
    static const char newer[] = "profpull archive index 9\nsomething new";
    fake_set(&f, index->key, newer, sizeof(newer) - 1);
    assert_int_equal(check_first(&f, &err), SURVEY_NEWER);
    CHECK_CONTAINS(err.msg, "written by a newer version", "newer");
    /* A database that is shorter than its name says. */
    struct fake_object *data = fake_like(&f, "w1/data/" FIRST);
    data->n -= 1;
    assert_int_equal(check_first(&f, &err), SURVEY_DAMAGED);
}

/* An index that another database has: its numbers differ, although it is intact. */
TEST(an_index_of_another_database_is_found)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    struct err err = ERR_INIT;
    archive_three(&f, &r);
    char key[ARCHIVE_KEY_SIZE];
    (void)snprintf(key, sizeof(key), "%s", fake_like(&f, "w1/index/" FIRST)->key);
    rename_object(&f, "w1/index/20261122T010000Z", key);
    assert_int_equal(check_first(&f, &err), SURVEY_DAMAGED);
    CHECK_CONTAINS(err.msg, "of the index is not that of the database", "another");
}

TEST(a_bucket_that_fails_is_no_damage)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    struct err err = ERR_INIT;
    archive_three(&f, &r);
    f.fail_key = "w1/data/";
    f.fail_after = 1;
    assert_int_equal(check_first(&f, &err), SURVEY_FAILED);
    CHECK_CONTAINS(err.msg, "the bucket answers timeout", "failed");
    struct survey s;
    const struct archive_backend b = fake_backend(&f);
    f.fail_key = NULL;
    assert_int_equal(survey_list(&b, &everything, &s, &err), BUCKET_TIMEOUT);
    survey_done(&s);
}

/* A day and the objects that it replaces are in the bucket at the same time. */
TEST(parts_of_a_day_are_replaced)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    struct err err = ERR_INIT;
    struct survey s;
    fake_init(&f);
    archive_rig_init(&r, &f, "w1");
    r.options.merge_ms = HOUR * MS_PER_S;
    store_rig_reopen(&r.store);
    put_hours(&r);
    archive_rig_at(&r, &f, 10 * HOUR);
    archive_rig_at(&r, &f, 31 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 4);
    const struct archive_backend b = fake_backend(&f);
    assert_int_equal(survey_list(&b, &everything, &s, &err), BUCKET_OK);
    survey_find_replaced(&b, &s);
    assert_int_equal(s.n, 4);
    for (size_t i = 0; i < s.n; i++) {
        bool day = s.at[i].name.stretch.length_ms == MS_PER_DAY;
        assert_int_equal(s.at[i].state, day ? SURVEY_FINE : SURVEY_REPLACED);
    }
    survey_done(&s);
    /* A day is checked as any other file. */
    while (fake_like(&f, "-1h_") != NULL) {
        fake_drop(&f, fake_like(&f, "-1h_")->key);
    }
    CHECK_INT(check_first(&f, &err), SURVEY_FINE, err.msg);
}

/* ---- pushing --------------------------------------------------------------------------------- */

static bool push(struct archive_rig *r, struct fake *f, const char *writer,
                 struct archive_pushed *ret, struct err *err)
{
    const struct archive_push p = {
        .directory = r->store.directory, .writer = writer, .backend = fake_backend(f)};
    err_clear(err);
    return archive_push(&p, ret, err);
}

/* Makes a directory with profiles that no process uses. */
static char *make_directory(struct archive_rig *r, struct fake *f)
{
    fake_init(f);
    archive_rig_init(r, f, "unused");
    r->store.options.archive = NULL;
    r->store.options.log = NULL;
    store_rig_reopen(&r->store);
    put_hours(r);
    char *want = archive_rig_text(r, NULL);
    r->store.store = store_close(r->store.store);
    return want;
}

/* Opens a reader of the bucket; compares its answers. */
static void check_reader(struct fake *f, const char *want, const char *row)
{
    SCOPED(archive_rig) reader;
    archive_rig_reader(&reader, f);
    archive_rig_round(&reader, f);
    struct partial partial = {.parts = 0};
    SCOPED_MEMORY char *got = archive_rig_text(&reader, &partial);
    CHECK_STR(got, want, row);
    CHECK_STR(partial.why, "", row);
}

TEST(a_directory_is_pushed_whole)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    struct err err = ERR_INIT;
    struct archive_pushed pushed;
    SCOPED_MEMORY char *want = make_directory(&r, &f);
    f.now_ns = clock_wall_ns();
    assert_true(push(&r, &f, "laptop", &pushed, &err));
    CHECK_STR(err.msg, "", "push");
    assert_int_equal(pushed.files, 3);
    assert_int_equal(pushed.uploaded, 3);
    assert_int_equal(pushed.profiles, 48);
    assert_int_equal(pushed.left, 0);
    check_reader(&f, want, "pushed");
    assert_int_equal(check_first(&f, &err), SURVEY_FINE);
    /* A repetition uploads nothing, and removes nothing. */
    unsigned puts = f.puts;
    assert_true(push(&r, &f, "laptop", &pushed, &err));
    assert_int_equal(f.puts, puts + 1); /* the heartbeat */
    assert_int_equal(pushed.uploaded, 0);
    assert_int_equal(pushed.files, 3);
    assert_int_equal(f.removals + f.aborts, 0);
    check_reader(&f, want, "again");
    /* The directory still opens as a store. */
    store_rig_reopen(&r.store);
    SCOPED_MEMORY char *got = archive_rig_text(&r, NULL);
    CHECK_STR(got, want, "directory");
}

TEST(a_push_that_ends_at_any_request_can_be_repeated)
{
    for (unsigned k = 1; k < 60; k++) {
        for (int effective = 0; effective < 2; effective++) {
            SCOPED(fake) f;
            SCOPED(archive_rig) r;
            struct err err = ERR_INIT;
            struct archive_pushed pushed;
            char row[64];
            (void)snprintf(row, sizeof(row), "request %u, %d", k, effective);
            SCOPED_MEMORY char *want = make_directory(&r, &f);
            f.now_ns = clock_wall_ns();
            f.fail_after = k;
            f.effective = effective;
            bool done = push(&r, &f, "laptop", &pushed, &err);
            if (!done) {
                CHECK_CONTAINS(err.msg, "the bucket answers timeout", row);
            }
            f.fail_after = 0;
            assert_true(push(&r, &f, "laptop", &pushed, &err));
            CHECK_STR(err.msg, "", row);
            assert_int_equal(pushed.files, 3);
            assert_int_equal(fake_count(&f, "laptop/data/"), 3);
            assert_int_equal(fake_count(&f, "laptop/index/"), 3);
            check_reader(&f, want, row);
            if (done) {
                assert_true(k > 12);
                return;
            }
        }
    }
    fail();
}

TEST(a_name_that_is_in_use_is_refused)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    struct err err = ERR_INIT;
    struct archive_pushed pushed;
    free(make_directory(&r, &f));
    f.now_ns = clock_wall_ns();
    static const struct text_case beats[] = {
        {"profpull archive heartbeat 1\n0123\n", "a process that runs writes under this name"},
        {"profpull archive heartbeat 9\n0123\n", "from a newer version, or from another program"},
        {"hello", "from a newer version, or from another program"}};
    for (size_t i = 0; i < sizeof(beats) / sizeof(beats[0]); i++) {
        fake_set(&f, "laptop/heartbeat", beats[i].text, strlen(beats[i].text));
        assert_false(push(&r, &f, "laptop", &pushed, &err));
        CHECK_CONTAINS(err.msg, beats[i].want, beats[i].text);
        assert_int_equal(f.n, 1);
    }
    /* The process has ended long ago. */
    f.now_ns -= RIG_HOUR;
    fake_set(&f, "laptop/heartbeat", beats[0].text, strlen(beats[0].text));
    assert_true(push(&r, &f, "laptop", &pushed, &err));
    assert_int_equal(pushed.files, 3);
}

TEST(a_directory_that_is_in_use_or_missing_is_refused)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    struct err err = ERR_INIT;
    struct archive_pushed pushed;
    free(make_directory(&r, &f));
    store_rig_reopen(&r.store);
    assert_false(push(&r, &f, "laptop", &pushed, &err));
    CHECK_CONTAINS(err.msg, "another process", "in use");
    CHECK_CONTAINS(err.msg, "set store.archive there", "in use");
    r.store.store = store_close(r.store.store);
    char missing[4096];
    (void)snprintf(missing, sizeof(missing), "%s/nothing", r.store.directory);
    const struct archive_push p = {
        .directory = missing, .writer = "laptop", .backend = fake_backend(&f)};
    err_clear(&err);
    assert_false(archive_push(&p, &pushed, &err));
    CHECK_CONTAINS(err.msg, "No such file or directory", "missing");
    struct stat st;
    assert_int_equal(stat(missing, &st), -1);
    assert_false(push(&r, &f, "../x", &pushed, &err));
    CHECK_CONTAINS(err.msg, "expected a name of letters", "name");
    assert_int_equal(f.n, 0);
}

/* A damaged file is left out and named; the others are pushed. */
TEST(a_damaged_file_is_left_out)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    struct err err = ERR_INIT;
    struct archive_pushed pushed;
    char path[4096];
    free(make_directory(&r, &f));
    f.now_ns = clock_wall_ns();
    (void)snprintf(path, sizeof(path), "%s/" FIRST ".db", r.store.directory);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "nonsense", 8, 0), 8);
    close(fd);
    assert_true(push(&r, &f, "laptop", &pushed, &err));
    assert_int_equal(pushed.files, 2);
    assert_int_equal(pushed.left, 1);
    CHECK_CONTAINS(pushed.why, FIRST ".db: ", "left out");
    assert_int_equal(fake_count(&f, FIRST), 0);
}
