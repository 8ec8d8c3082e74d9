/* Days of an archive: the objects of a day are merged into one, and nothing is lost or counted
 * twice, whatever fails in between.
 */
#include "tests/unit/store/archive_fake.h"

#define HOUR 3600
#define DAY_NAME "20261122T000000Z-1d"
#define FIVE_MINUTES (5 * 60 * MS_PER_S)

static const struct pprof_row rows[] = {{"a main", "", {1}}, {"b main", "thread=x", {2}}};
static const struct pprof_row zero[] = {{"a main", "", {0}}};
static const struct pprof_row negative[] = {{"a main", "", {-1}}, {"b main", "", {5}}};

/* Puts three hours of two services, with profiles that are never merged among them. */
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
        if (i % 7 == 0) {
            rig_put(&r->store, "__name__=cpu,service_name=idle", at, "cpu/ns", zero, 1, NULL);
            rig_put(&r->store, "__name__=cpu,service_name=odd", at, "cpu/ns", negative, 2, NULL);
        }
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All that a store answers, its lines sorted, for free(): a day has them in another order. */
static char *text_of(struct archive_rig *r, struct partial *partial)
{
    char *lines[4096];
    size_t n = 0;
    char *rest;
    SCOPED_MEMORY char *text = archive_rig_text(r, partial);
    char *out = malloc(strlen(text) + 2);
    size_t at = 0;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        assert_true(n < sizeof(lines) / sizeof(lines[0]));
        lines[n++] = line;
    }
    qsort(lines, n, sizeof(lines[0]), by_text);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        at += (size_t)snprintf(out + at, strlen(lines[i]) + 2, "%s\n", lines[i]);
    }
    return out;
}

/* Opens a writer with three archived hours. */
static char *archive_hours(struct archive_rig *r, struct fake *f, int64_t merge_ms)
{
    fake_init(f);
    archive_rig_init(r, f, "w1");
    r->options.merge_ms = merge_ms;
    store_rig_reopen(&r->store);
    put_hours(r);
    archive_rig_at(r, f, 10 * HOUR);
    assert_int_equal(fake_count(f, "w1/index/"), 3);
    return text_of(r, NULL);
}

static void check_text(struct archive_rig *r, const char *want, const char *row)
{
    struct partial partial = {.parts = 0};
    SCOPED_MEMORY char *got = text_of(r, &partial);
    CHECK_STR(got, want, row);
    CHECK_STR(partial.why, "", row);
}

/* Checks the answer of a reader that starts now. */
static void check_reader(struct fake *f, const char *want, const char *row)
{
    SCOPED(archive_rig) reader;
    archive_rig_reader(&reader, f);
    archive_rig_round(&reader, f);
    check_text(&reader, want, row);
}

/* The lines of an answer that have series and points, for free(). */
static char *sums_of(struct archive_rig *r)
{
    char *text = text_of(r, NULL);
    char *sums = strstr(text, "__name__");
    assert_non_null(sums);
    memmove(text, sums, strlen(sums) + 1);
    return text;
}

TEST(a_day_becomes_one_object)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    SCOPED_MEMORY char *want = archive_hours(&r, &f, FIVE_MINUTES);
    /* The day has not ended for long enough. */
    archive_rig_at(&r, &f, 29 * HOUR);
    assert_int_equal(fake_count(&f, DAY_NAME), 0);
    archive_rig_at(&r, &f, 31 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/" DAY_NAME), 1);
    assert_int_equal(fake_count(&f, "w1/index/" DAY_NAME), 1);
    assert_int_equal(fake_count(&f, "w1/data/"), 4);
    check_reader(&f, want, "beside its parts");
    unsigned gets = f.gets;
    check_text(&r, want, "disk");
    assert_int_equal(f.gets, gets);
    /* Its parts are removed later, and are not uploaded again, although they are on the disk. */
    archive_rig_at(&r, &f, 34 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 1);
    assert_int_equal(fake_count(&f, "w1/index/"), 1);
    assert_int_equal(
        store_rig_metric(&r.store,
                         "profpull_archive_removed_total{endpoint=\"local\",reason=\"replaced\"}"),
        3);
    check_text(&r, want, "disk, without the parts");
    check_reader(&f, want, "without the parts");
    store_rig_reopen(&r.store);
    archive_rig_at(&r, &f, 35 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 1);
    check_text(&r, want, "disk, started again");
    /* A part of the files is left on the disk. */
    struct err err = ERR_INIT;
    assert_true(store_file_remove(r.store.store, r.store.store->files[0], &err));
    check_text(&r, want, "a part of the disk");
    archive_rig_wipe(&r);
    archive_rig_round(&r, &f);
    check_text(&r, want, "bucket");
    assert_int_equal(fake_count(&f, "w1/data/"), 1);
}

TEST(a_day_has_coarser_profiles_and_the_same_sums)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    free(archive_hours(&r, &f, 3600 * MS_PER_S));
    SCOPED_MEMORY char *want = sums_of(&r);
    archive_rig_at(&r, &f, 31 * HOUR);
    archive_rig_at(&r, &f, 34 * HOUR);
    archive_rig_wipe(&r);
    archive_rig_round(&r, &f);
    SCOPED_MEMORY char *got = sums_of(&r);
    CHECK_STR(got, want, "sums");
    struct store_stats stats;
    store_stats(r.store.store, &stats);
    free(got);
    /* Three hours of one service are three profiles. */
    got = rig_scan(&r.store, RIG_BODIES, "{service_name=\"a\"}", 0, 24 * HOUR, NULL);
    CHECK_STR(got, "0..3330 2 whole bytes\n3600..6930 2 whole bytes\n7200..10530 2 whole bytes\n",
              "bodies");
}

TEST(a_profile_is_found_by_its_id_in_a_day)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    char ids[3][STORE_ID_LENGTH + 1];
    fake_init(&f);
    archive_rig_init(&r, &f, "w1");
    r.options.merge_ms = 3600 * MS_PER_S;
    store_rig_reopen(&r.store);
    for (int i = 0; i < 3; i++) {
        rig_put(&r.store, "__name__=cpu,service_name=a", RIG_T0 + i * RIG_HOUR + 7 * RIG_SECOND,
                "cpu/ns", rows, 2, ids[i]);
    }
    archive_rig_at(&r, &f, 10 * HOUR);
    archive_rig_at(&r, &f, 31 * HOUR);
    archive_rig_at(&r, &f, 34 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 1);
    archive_rig_wipe(&r);
    archive_rig_round(&r, &f);
    for (int i = 0; i < 3; i++) {
        struct err err = ERR_INIT;
        bool found = false;
        struct rig_text t;
        rig_text_init(&t, NULL);
        assert_true(store_get(r.store.store, sv_from(ids[i]), &found, rig_on_body, &t, &err));
        assert_true(found);
        char want[64];
        (void)snprintf(want, sizeof(want), "%d..%d 2 whole bytes\n", i * HOUR + 7, i * HOUR + 22);
        CHECK_STR(t.out.data, want, ids[i]);
        buf_done(&t.out);
    }
}

TEST(late_profiles_join_their_day)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    free(archive_hours(&r, &f, FIVE_MINUTES));
    archive_rig_at(&r, &f, 31 * HOUR);
    archive_rig_at(&r, &f, 34 * HOUR);
    rig_put(&r.store, "__name__=cpu,service_name=late", RIG_T0 + 77 * RIG_SECOND, "cpu/ns", rows, 2,
            NULL);
    archive_rig_at(&r, &f, 35 * HOUR);
    SCOPED_MEMORY char *want = text_of(&r, NULL);
    assert_non_null(strstr(want, "service_name=late"));
    assert_int_equal(fake_count(&f, "w1/data/"), 2);
    check_reader(&f, want, "late");
    /* The day is merged again, when it has not changed for some hours. */
    archive_rig_at(&r, &f, 40 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 2);
    archive_rig_at(&r, &f, 42 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 3);
    check_text(&r, want, "again, disk");
    check_reader(&f, want, "again");
    archive_rig_at(&r, &f, 45 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 1);
    check_text(&r, want, "again, disk, without the parts");
    check_reader(&f, want, "again, without the parts");
}

/* Profiles with too many sets of labels are merged with each other, and with no others: neither in
 * an hour nor when a late file joins the day. */
TEST(profiles_that_are_not_split_stay_apart_in_a_day)
{
    enum { A = 40, B = 30 };
    static char labels[A * B][32];
    static struct pprof_row many[A * B];
    static const char *const series = "__name__=cpu,service_name=many";
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    for (int i = 0; i < A * B; i++) {
        (void)snprintf(labels[i], sizeof(labels[i]), "a=x%d,b=y%d", i / B, i % B);
        many[i] = (struct pprof_row){"a main", labels[i], {1}};
    }
    free(archive_hours(&r, &f, FIVE_MINUTES));
    int64_t at = RIG_T0 + 4 * RIG_HOUR + 10 * RIG_SECOND;
    rig_put(&r.store, series, at, "cpu/ns", many, A * B, NULL);
    rig_put(&r.store, series, at + RIG_SECOND, "cpu/ns", rows, 2, NULL);
    rig_put(&r.store, series, at + 2 * RIG_SECOND, "cpu/ns", rows, 1, NULL);
    rig_put(&r.store, series, at + 3 * RIG_SECOND, "cpu/ns", many, A * B, NULL);
    const char *all = "14410..14428 1 whole bytes\n14411..14427 2 whole bytes\n";
    static const int hours[] = {10, 31, 34};
    for (size_t i = 0; i < sizeof(hours) / sizeof(hours[0]); i++) {
        archive_rig_at(&r, &f, hours[i] * HOUR);
        rig_check(&r.store, RIG_BODIES, "{service_name=\"many\"}", 0, 24 * HOUR, NULL, all);
    }
    assert_int_equal(fake_count(&f, "w1/data/"), 1);
    archive_rig_wipe(&r);
    archive_rig_round(&r, &f);
    rig_check(&r.store, RIG_BODIES, "{service_name=\"many\"}", 0, 24 * HOUR, NULL, all);
    /* The late ones are first and last in the order of time. */
    rig_put(&r.store, series, at - RIG_SECOND, "cpu/ns", rows, 2, NULL);
    rig_put(&r.store, series, at + 4 * RIG_SECOND, "cpu/ns", many, A * B, NULL);
    archive_rig_at(&r, &f, 35 * HOUR);
    archive_rig_at(&r, &f, 42 * HOUR);
    archive_rig_at(&r, &f, 45 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 1);
    archive_rig_wipe(&r);
    archive_rig_round(&r, &f);
    rig_check(&r.store, RIG_BODIES, "{service_name=\"many\"}", 0, 24 * HOUR, NULL,
              "14409..14427 2 whole bytes\n14410..14429 1 whole bytes\n");
}

/* The process ends at each request of merging and removing in turn, with and without its effect. */
TEST(a_crash_at_any_request_of_merging_loses_and_doubles_nothing)
{
    for (int64_t at = 31; at <= 34; at += 3) {
        unsigned k = 1;
        for (bool done = false; !done; k++) {
            for (int effective = 0; effective < 2; effective++) {
                SCOPED(fake) f;
                SCOPED(archive_rig) r;
                char row[64];
                (void)snprintf(row, sizeof(row), "hour %d, request %u, %d", (int)at, k, effective);
                SCOPED_MEMORY char *want = archive_hours(&r, &f, FIVE_MINUTES);
                if (at > 31) {
                    archive_rig_at(&r, &f, 31 * HOUR);
                }
                r.store.options.log = NULL;
                store_rig_reopen(&r.store);
                f.requests = 0;
                f.fail_after = k;
                f.effective = effective;
                archive_rig_at(&r, &f, at * HOUR);
                done = f.requests < k;
                f.fail_after = 0;
                check_reader(&f, want, row);
                struct partial partial = {.parts = 0};
                SCOPED_MEMORY char *got = text_of(&r, &partial);
                CHECK_STR(got, want, row);
                /* The process starts again. */
                store_rig_reopen(&r.store);
                archive_rig_at(&r, &f, 31 * HOUR);
                check_reader(&f, want, row);
                archive_rig_at(&r, &f, 34 * HOUR);
                archive_rig_at(&r, &f, 37 * HOUR);
                check_text(&r, want, row);
                assert_int_equal(fake_count(&f, "w1/index/"), 1);
                archive_rig_wipe(&r);
                archive_rig_round(&r, &f);
                check_text(&r, want, row);
            }
        }
        assert_true(k > 6);
    }
}

TEST(a_day_that_cannot_be_read_leaves_its_parts)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    SCOPED_MEMORY char *want = archive_hours(&r, &f, FIVE_MINUTES);
    archive_rig_at(&r, &f, 31 * HOUR);
    struct fake_object *o = fake_like(&f, "w1/index/" DAY_NAME);
    size_t half = o->n / 2;
    SCOPED_MEMORY char *copy = testing_memory(half);
    memcpy(copy, o->data, half);
    fake_set(&f, o->key, copy, half);
    SCOPED(archive_rig) reader;
    archive_rig_reader(&reader, &f);
    testing_log_expect(reader.store.log, "an object of the archive cannot be used");
    archive_rig_round(&reader, &f);
    struct partial partial = {.parts = 0};
    SCOPED_MEMORY char *got = text_of(&reader, &partial);
    CHECK_STR(got, want, "parts");
    CHECK_CONTAINS(partial.why, "damaged: the checksum", "partial");
}

TEST(an_object_that_cannot_be_merged_stays)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    free(archive_hours(&r, &f, FIVE_MINUTES));
    archive_rig_wipe(&r);
    testing_log_expect(r.store.log, "is not merged with those of its day");
    testing_log_expect(r.store.log, "will be repeated");
    /* The second hour is no database: the rest of the day is merged. */
    struct fake_object *o = fake_like(&f, "w1/data/20261122T010000Z-1h");
    memset(o->data + 4096, 0x7f, o->n - 4096);
    archive_rig_at(&r, &f, 31 * HOUR);
    r.store.store->archive->days_due_ms = 0;
    archive_rig_at(&r, &f, 31 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/" DAY_NAME), 1);
    archive_rig_at(&r, &f, 34 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 2);
    assert_int_equal(fake_count(&f, "w1/data/20261122T010000Z-1h"), 1);
}

TEST(nothing_is_merged_without_the_setting)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    free(archive_hours(&r, &f, 0));
    archive_rig_at(&r, &f, 60 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 3);
}

/* Requests of a reader with an empty cache for labels; its answer must be the wanted one. */
static unsigned gets_of_reader(struct fake *f, const char *want, const char *row)
{
    unsigned before = f->gets;
    check_reader(f, want, row);
    return f->gets - before;
}

/* Does the same with a damaged catalogue, which is counted, and named in the log with the reason.
 */
static unsigned gets_with_bad(struct fake *f, const char *want, const char *why)
{
    static const char metric[] =
        "profpull_archive_faults_total{endpoint=\"local\",reason=\"catalogue\"}";
    unsigned before = f->gets;
    SCOPED(archive_rig) reader;
    archive_rig_reader(&reader, f);
    testing_log_expect(reader.store.log, "a catalogue of the archive cannot be used");
    archive_rig_round(&reader, f);
    check_text(&reader, want, why);
    check_text(&reader, want, "again");
    CHECK_CONTAINS(testing_log_text(reader.store.log), "object=w1/catalogue", why);
    CHECK_CONTAINS(testing_log_text(reader.store.log), why, why);
    assert_int_equal(store_rig_metric(&reader.store, metric), 1);
    return f->gets - before;
}

TEST(a_catalogue_saves_the_requests_for_indexes)
{
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    fake_init(&f);
    archive_rig_init(&r, &f, "w1");
    r.options.merge_ms = FIVE_MINUTES;
    store_rig_reopen(&r.store);
    for (int day = 0; day < 4; day++) {
        for (int hour = 0; hour < 2; hour++) {
            rig_put(&r.store, "__name__=cpu,service_name=a",
                    RIG_T0 + (day * 24 + hour) * RIG_HOUR + RIG_SECOND, "cpu/ns", rows, 2, NULL);
        }
    }
    archive_rig_at(&r, &f, 96 * HOUR);
    for (int i = 0; i < 6; i++) {
        archive_rig_at(&r, &f, (104 + 3 * i) * HOUR);
    }
    assert_int_equal(fake_count(&f, "w1/index/"), 4);
    assert_int_equal(fake_count(&f, "w1/catalogue"), 1);
    assert_int_equal(fake_count(&f, "w1/data/"), 4);
    SCOPED_MEMORY char *want = text_of(&r, NULL);
    /* The beginning of a database is in its index, and these are no longer than that. */
    unsigned with = gets_of_reader(&f, want, "with");
    assert_int_equal(with, 1);
    /* A catalogue that is damaged or foreign changes no answer, and is reported. */
    struct fake_object *o = fake_find(&f, "w1/catalogue");
    char *last = o->data + o->n - 20;
    *last ^= 1;
    assert_int_equal(gets_with_bad(&f, want, "the checksum of the index differs"), with + 1);
    o->n = o->n * 2 / 3;
    assert_true(gets_with_bad(&f, want, "the last entry is cut off") > with);
    memset(o->data + 40, 'x', o->n - 40);
    assert_int_equal(gets_with_bad(&f, want, "expected the key of an index"), 5);
    fake_set(&f, "w1/catalogue", "something else", 14);
    assert_int_equal(gets_with_bad(&f, want, "expected the first line"), 5);
    /* One entry, whose key is shorter than the name of the writer. */
    static const char short_key[] = "profpull archive catalogue 1\n\1k\1e\1b";
    fake_set(&f, "w1/catalogue", short_key, sizeof(short_key) - 1);
    assert_int_equal(gets_with_bad(&f, want, "expected the key of an index"), 5);
    fake_drop(&f, "w1/catalogue");
    assert_int_equal(gets_of_reader(&f, want, "missing"), 5);
    struct archive_stats stats;
    assert_true(store_archive_stats(r.store.store, &stats));
    assert_int_equal(stats.foreign, 0);
}

static bool count_body(void *arg, const struct store_body *body)
{
    size_t *n = arg;
    *n += body->data.n > 0;
    return true;
}

/* Asks a reader with an empty cache for the profiles of a service. Returns the requests for the
 * database of the day. */
static unsigned gets_for_service(struct fake *f, int service, size_t want)
{
    SCOPED(archive_rig) r;
    struct partial partial = {.parts = 0};
    struct err err = ERR_INIT;
    char text[64];
    size_t n = 0;
    (void)snprintf(text, sizeof(text), "{service_name=\"s%d\"}", service);
    struct selector *selector = selector_parse(sv_from(text), &err);
    assert_non_null(selector);
    archive_rig_reader(&r, f);
    archive_rig_round(&r, f);
    unsigned before = f->gets;
    const struct store_scan scan = {.range = {.from_ns = RIG_T0,
                                              .until_ns = RIG_T0 + 1000 * RIG_HOUR,
                                              .selector = selector,
                                              .partial = &partial},
                                    .with_data = true};
    assert_true(store_each_body(r.store.store, &scan, count_body, &n, &err));
    CHECK_STR(partial.why, "", text);
    assert_int_equal(n, want);
    selector_free(selector);
    return f->gets - before - 1; /* the index */
}

/* Stores a profile an hour for each of so many pods of services, for a day, and merges the day. Its
 * tables have several pages each, and its file is larger than what its index has. */
static void check_requests_of_services(int services, int pods)
{
    enum { HOURS = 24, NAME = 1500 };
    SCOPED(fake) f;
    SCOPED(archive_rig) r;
    int series = services * pods;
    char name[NAME + 1];
    char labels[64];
    uint32_t seed = 1;
    fake_init(&f);
    archive_rig_init(&r, &f, "w1");
    r.options.merge_ms = 60 * 60 * MS_PER_S;
    store_rig_reopen(&r.store);
    for (int i = 0; i < HOURS * series; i++) {
        for (size_t k = 0; k < NAME; k++) {
            seed = seed * 1664525 + 1013904223;
            name[k] = k % 60 == 59 ? ' ' : (char)('a' + (seed >> 24) % 26);
        }
        name[NAME] = '\0';
        const struct pprof_row row = {name, "", {1}};
        (void)snprintf(labels, sizeof(labels), "__name__=cpu,pod=p%d,service_name=s%d",
                       i % series / services, i % services);
        rig_put(&r.store, labels, RIG_T0 + i / series * RIG_HOUR + (1 + i % series) * RIG_SECOND,
                "cpu/ns", &row, 1, NULL);
    }
    archive_rig_at(&r, &f, 25 * HOUR);
    archive_rig_at(&r, &f, 32 * HOUR);
    archive_rig_at(&r, &f, 35 * HOUR);
    assert_int_equal(fake_count(&f, "w1/data/"), 1);
    assert_true(fake_like(&f, "w1/data/" DAY_NAME)->n > 2 * ARCHIVE_HEAD_BYTES);
    for (int service = 0; service < services; service += 1 + services / 9) {
        CHECK_INT(gets_for_service(&f, service, (size_t)(HOURS * pods)) <= 1, true, "requests");
    }
}

TEST(one_request_has_the_profiles_of_a_service)
{
    check_requests_of_services(60, 1);
    check_requests_of_services(12, 5);
}
