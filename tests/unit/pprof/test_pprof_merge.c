/* Merged profiles: what they add up to, what cannot be merged, and bytes written by google/pprof.
 *
 * tests/unit/data/merge has three profiles and two merges of them, made and written by
 * google/pprof. Other expectations are given as a profile, which is merged alone: that puts it in
 * the same order.
 */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "pprof/gzip.h"
#include "pprof/merge.h"
#include "pprof/wire.h"
#include "tests/unit/lib/pprof_writer.h"

SCOPED_POINTER(merge, merge_free)

#define MIB ((size_t)1024 * 1024)
#define HEAP "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes"
#define LOCKS "contentions/count delay/nanoseconds"
#define T0 INT64_C(1700000000000000000)

static const struct merge_options sums = {.bytes_max = MIB};
static const struct merge_options window = {.bytes_max = MIB, .mode = MERGE_WINDOW};

static struct merge *open_merge(const struct merge_options *o)
{
    struct err err = ERR_INIT;
    struct merge *m = merge_new(o, &err);
    assert_non_null(m);
    return m;
}

static void add(struct merge *m, struct buf body)
{
    struct err err = ERR_INIT;
    if (!merge_add(m, (struct sv){body.data, body.len}, &err)) {
        fail_msg("%s", err.msg);
    }
    buf_done(&body);
}

/* The result, plain; the caller frees it. */
static struct buf result(struct merge *m)
{
    struct err err = ERR_INIT;
    SCOPED(scratch) *s = scratch_new();
    struct sv inflated;
    SCOPED(buf) zipped = testing_buf(16 * MIB);
    struct buf plain = testing_buf(16 * MIB);
    assert_true(merge_write(m, &zipped, &err));
    assert_true(
        gzip_inflate(s, (struct sv){zipped.data, zipped.len}, 16 * MIB, 0, &inflated, &err));
    buf_append(&plain, inflated.p, inflated.n);
    return plain;
}

/* Expects an error and that nothing has changed. */
static void refuse(struct merge *m, struct sv body, enum err_kind kind, const char *text)
{
    struct err err = ERR_INIT;
    SCOPED(buf) before = result(m);
    assert_false(merge_add(m, body, &err));
    CHECK_STR(err.msg, text, "");
    CHECK_INT(err.kind, kind, text);
    SCOPED(buf) after = result(m);
    CHECK_INT(after.len, before.len, text);
    assert_memory_equal(after.data, before.data, before.len);
}

static void refuse_profile(struct merge *m, const struct pprof_spec *spec, const char *text)
{
    const struct pprof_row row = {"a", NULL, {1, 2, 3, 4}};
    SCOPED(buf) body = pprof_make(spec, &row, 1);
    refuse(m, (struct sv){body.data, body.len}, ERR_INPUT, text);
}

/* Ends the merge, whose result must be what this profile becomes alone. */
static void expect(struct merge *m, struct buf want, const char *what)
{
    struct merge *alone = open_merge(&sums);
    add(alone, want);
    SCOPED(buf) wanted = result(alone);
    SCOPED(buf) got = result(m);
    CHECK_INT(got.len, wanted.len, what);
    assert_memory_equal(got.data, wanted.data, wanted.len);
    merge_free(alone);
    merge_free(m);
}

#define PROFILE(spec, ...)                                                                         \
    pprof_make(&(spec), (const struct pprof_row[]){__VA_ARGS__},                                   \
               sizeof((const struct pprof_row[]){__VA_ARGS__}) / sizeof(struct pprof_row))

/* ---- against google/pprof -------------------------------------------------------------------- */

static struct buf file_of(const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "tests/unit/data/merge/%s.pb", name);
    return testing_read_file(path);
}

TEST(bytes_are_those_of_google_pprof)
{
    static const struct {
        const char *names[4], *merged;
    } rows[] = {
        {{"p1", "p2", "p3"}, "merged123"},
        {{"p2", "p1"}, "merged21"},
        {{"merged123"}, "merged123"},
        {{"columns1", "columns2"}, "columns12"}, /* locations that differ in one column */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(merge) *m = open_merge(&sums);
        for (size_t k = 0; rows[i].names[k] != NULL; k++) {
            add(m, file_of(rows[i].names[k]));
        }
        SCOPED(buf) got = result(m);
        SCOPED(buf) want = file_of(rows[i].merged);
        CHECK_INT(got.len, want.len, rows[i].merged);
        assert_memory_equal(got.data, want.data, want.len);
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

TEST(equal_stacks_add_up)
{
    struct merge *m = open_merge(&sums);
    struct pprof_spec spec = {
        .types = LOCKS, .time_nanos = T0, .duration_nanos = 5, .mapping_start = 0x400000};
    add(m, PROFILE(spec, {"a@5 main@9", "k=v,n=7bytes", {1, 10}}, {"b@6", NULL, {2, 20}},
                   {"a@5 main@9", NULL, {100, 0}}));
    /* Other ids, another place in memory, another order of labels. */
    spec = (struct pprof_spec){.types = LOCKS,
                               .time_nanos = T0 - 1,
                               .duration_nanos = 7,
                               .first_id = 5000,
                               .mapping_start = 0x7f0000000000,
                               .labels_backwards = true};
    add(m, PROFILE(spec, {"c@3", NULL, {7, 0}}, {"a@5 main@9", "k=v,n=7bytes", {4, 40}},
                   {"b@6", "n=7bytes", {1, 1}}));
    spec = (struct pprof_spec){
        .types = LOCKS, .time_nanos = T0 - 1, .duration_nanos = 12, .mapping_start = 0x400000};
    expect(m,
           PROFILE(spec, {"a@5 main@9", "k=v,n=7bytes", {5, 50}}, {"b@6", NULL, {2, 20}},
                   {"a@5 main@9", NULL, {100, 0}}, {"c@3", NULL, {7, 0}},
                   {"b@6", "n=7bytes", {1, 1}}),
           "");
}

/* Moves the first field of each sample, location and function to the end of its message. */
static struct buf unusual(struct buf plain)
{
    struct buf out = testing_buf(MIB);
    struct wire_reader r = wire_reader_of((struct sv){plain.data, plain.len});
    struct wire_field f;
    while (wire_next(&r, &f)) {
        struct wire_reader inner = wire_reader_of(f.bytes);
        struct wire_field first;
        bool moved = f.number == PROFILE_SAMPLE || f.number == PROFILE_LOCATION ||
                     f.number == PROFILE_FUNCTION;
        if (moved && wire_next(&inner, &first)) {
            SCOPED(buf) message = testing_buf(MIB);
            buf_append(&message, f.bytes.p + inner.at, f.bytes.n - inner.at);
            buf_append(&message, f.bytes.p, inner.at);
            put_sub(&out, (unsigned)f.number, &message);
        } else {
            buf_append(&out, plain.data + r.field_start, r.at - r.field_start);
        }
    }
    buf_done(&plain);
    return out;
}

TEST(the_order_of_fields_changes_nothing)
{
    const struct pprof_spec spec = {
        .types = LOCKS, .time_nanos = T0, .mapping_start = 4096, .start_line = 3, .packed = true};
    for (unsigned which = 0; which < 4; which++) {
        struct merge *m = open_merge(&sums);
        for (unsigned i = 0; i < 2; i++) {
            struct buf body =
                PROFILE(spec, {"a@5 b main@9", "k=v,n=7bytes", {1, 10}},
                        {"never", "other=label", {0, 0}}, {"c:3 main@9", NULL, {1 << 20, 300}});
            add(m, (which >> i & 1) != 0 ? unusual(body) : body);
        }
        expect(m,
               PROFILE(spec, {"a@5 b main@9", "k=v,n=7bytes", {2, 20}},
                       {"c:3 main@9", NULL, {2 << 20, 600}}),
               "");
    }
}

TEST(zero_samples_and_all_of_theirs_go)
{
    struct merge *m = open_merge(&sums);
    const struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    add(m, PROFILE(spec, {"never", "unused=label", {0, 0}}, {"a", NULL, {1, -5}},
                   {"b", NULL, {2, 2}}));
    add(m, PROFILE(spec, {"a", NULL, {-1, 5}}));
    expect(m, PROFILE(spec, {"b", NULL, {2, 2}}), "");
    m = open_merge(&sums);
    add(m, PROFILE(spec, {"a", NULL, {-1, 5}}));
    add(m, PROFILE(spec, {"a", NULL, {1, -5}}));
    expect(m, pprof_make(&spec, NULL, 0), "nothing is left but the head");
}

TEST(sums_stay_at_the_limits_of_64_bits)
{
    const struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0, .duration_nanos = INT64_MAX};
    struct merge *m = open_merge(&sums);
    for (int i = 0; i < 3; i++) {
        add(m, PROFILE(spec, {"a", NULL, {INT64_MAX - 1, INT64_MIN + 1}}));
    }
    expect(m, PROFILE(spec, {"a", NULL, {INT64_MAX, INT64_MIN}}), "");
}

TEST(profiles_without_a_time_do_not_count_for_it)
{
    static const struct {
        const char *what;
        int64_t times[3], want;
    } rows[] = {
        {"the earliest", {T0 + 2, T0 + 1, T0 + 3}, T0 + 1},
        {"none first", {0, T0 + 1, T0 + 2}, T0 + 1},
        {"none between", {T0 + 1, 0, T0 + 2}, T0 + 1},
        {"none last", {T0 + 2, T0 + 1, 0}, T0 + 1},
        {"none", {0, 0, 0}, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pprof_spec spec = {.types = LOCKS};
        struct merge *m = open_merge(&sums);
        for (size_t k = 0; k < 3; k++) {
            spec.time_nanos = rows[i].times[k];
            add(m, PROFILE(spec, {"a", NULL, {1, 1}}));
        }
        spec.time_nanos = rows[i].want;
        expect(m, PROFILE(spec, {"a", NULL, {3, 3}}), rows[i].what);
    }
}

/* ---- gauges ---------------------------------------------------------------------------------- */

TEST(gauges_are_those_of_the_last_profile)
{
    struct merge *m = open_merge(&window);
    const struct pprof_spec spec = {.types = HEAP, .time_nanos = T0};
    add(m, PROFILE(spec, {"a", NULL, {1, 10, 5, 50}}, {"b", NULL, {2, 20, 6, 60}},
                   {"gone", NULL, {0, 0, 7, 70}}));
    add(m, PROFILE(spec, {"a", NULL, {3, 30, 1, 10}}, {"a", NULL, {0, 0, 2, 20}},
                   {"new", NULL, {0, 0, 8, 80}}));
    expect(m,
           PROFILE(spec, {"a", NULL, {4, 40, 3, 30}}, {"b", NULL, {2, 20, 0, 0}},
                   {"new", NULL, {0, 0, 8, 80}}),
           "");
}

TEST(without_counters_the_last_profile_stays)
{
    const struct pprof_spec spec = {.types = "goroutine/count", .time_nanos = T0};
    struct merge *m = open_merge(&window);
    add(m, PROFILE(spec, {"a", NULL, {5}}, {"b", NULL, {6}}));
    add(m, PROFILE(spec, {"b", NULL, {7}}));
    expect(m, PROFILE(spec, {"b", NULL, {7}}), "goroutine");
    const struct merge_options any = {.bytes_max = MIB, .mode = MERGE_WINDOW, .any_counter = true};
    const struct pprof_spec own = {.types = "widgets/count inuse_widgets/count", .time_nanos = T0};
    m = open_merge(&any);
    add(m, PROFILE(own, {"a", NULL, {5, 5}}, {"b", NULL, {6, 6}}));
    add(m, PROFILE(own, {"b", NULL, {7, 7}}));
    expect(m, PROFILE(own, {"a", NULL, {5, 0}}, {"b", NULL, {13, 7}}), "counters of any name");
}

TEST(a_window_has_the_last_time)
{
    static const struct {
        int64_t times[3], want;
    } rows[] = {
        {{T0, T0 + 1, T0 + 2}, T0 + 2},
        {{T0, T0 + 1, 0}, T0 + 1},
        {{T0 + 5, T0 + 1, 0}, T0 + 1}, /* a clock that was set back */
        {{0, 0, T0}, T0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pprof_spec spec = {.types = LOCKS, .duration_nanos = 15};
        struct merge *m = open_merge(&window);
        for (size_t k = 0; k < 3; k++) {
            spec.time_nanos = rows[i].times[k];
            add(m, PROFILE(spec, {"a", NULL, {1, 1}}));
        }
        spec.time_nanos = rows[i].want;
        spec.duration_nanos = 45;
        expect(m, PROFILE(spec, {"a", NULL, {3, 3}}), "");
    }
}

TEST(a_window_of_nothing_is_empty)
{
    struct merge *m = open_merge(&window);
    struct err err = ERR_INIT;
    SCOPED(buf) out = testing_buf(MIB);
    const struct pprof_spec spec = {.types = HEAP, .time_nanos = T0};
    add(m, PROFILE(spec, {"a", NULL, {0, 0, 5, 50}}));
    add(m, PROFILE(spec, {"a", NULL, {0, 0, 0, 0}}));
    assert_true(merge_write(m, &out, &err));
    CHECK_INT(out.len, 0, "");
    add(m, PROFILE(spec, {"a", NULL, {1, 2, 0, 0}}));
    expect(m, PROFILE(spec, {"a", NULL, {1, 2, 0, 0}}), "and goes on");
}

/* ---- refusals -------------------------------------------------------------------------------- */

TEST(other_types_are_refused)
{
    struct merge *m = open_merge(&sums);
    const struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    add(m, PROFILE(spec, {"a", "k=v", {1, 2}}));
    refuse_profile(m, &(struct pprof_spec){.types = HEAP}, "4 sample types, expected 2");
    refuse_profile(m, &(struct pprof_spec){.types = "contentions/count delay/ms"},
                   "sample type delay/ms, expected delay/nanoseconds");
    refuse_profile(m, &(struct pprof_spec){.types = "delay/nanoseconds contentions/count"},
                   "sample type delay/nanoseconds, expected contentions/count");
    SCOPED(buf) body = PROFILE(spec, {"a", NULL, {1, 2}});
    put_msg(&body, 11, "\x08\x01\x10\x02", 4);
    refuse(m, (struct sv){body.data, body.len}, ERR_INPUT,
           "period type contentions/count, expected /");
    expect(m, PROFILE(spec, {"a", "k=v", {1, 2}}), "it is as it was");
}

TEST(damaged_profiles_are_refused)
{
    struct merge *m = open_merge(&sums);
    const struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    add(m, PROFILE(spec, {"a", "k=v", {1, 2}}));
    refuse(m, SV("\x1f\x8b\x08"), ERR_INPUT, "damaged or cut gzip");
    refuse(m, SV(""), ERR_INPUT, "no sample type");
    refuse(m, SV("\x0a\x7f"), ERR_INPUT, "profile at byte 0: a field that runs past the end");
    /* New frames, strings and stacks come before the sample that is wrong. */
    SCOPED(buf) body = PROFILE(spec, {"x y z", "new=label", {1, 2}}, {"a", "k=v", {8, 8}});
    size_t at = body.len;
    put_msg(&body, 2, "\x08\x63\x10\x01\x10\x01", 6);
    char text[100];
    snprintf(text, sizeof(text), "sample at byte %zu: location 99 is not there", at + 2);
    refuse(m, (struct sv){body.data, body.len}, ERR_INPUT, text);
    add(m, PROFILE(spec, {"y", NULL, {1, 1}}));
    expect(m, PROFILE(spec, {"a", "k=v", {1, 2}}, {"y", NULL, {1, 1}}), "it goes on");
}

TEST(nothing_to_write)
{
    struct merge *m = open_merge(&sums);
    struct err err = ERR_INIT;
    SCOPED(buf) out = testing_buf(1000);
    assert_false(merge_write(m, &out, &err));
    CHECK_STR(err.msg, "no profile to merge", "");
    CHECK_INT(out.len, 0, "");
    const struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    add(m, PROFILE(spec, {"a", NULL, {1, 2}}));
    SCOPED(buf) small = testing_buf(10);
    assert_false(merge_write(m, &small, &err));
    CHECK_STR(err.msg, "larger than 10 bytes", "");
    CHECK_INT(err.kind, ERR_LIMIT, "");
    assert_true(merge_write(m, &out, &err));
    merge_free(m);
    merge_free(NULL);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A profile of n stacks of which no other one has any. */
static struct buf unique(int from, int n)
{
    const struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    char frames[64][32];
    struct pprof_row rows[64] = {{NULL, NULL, {0}}};
    for (int i = 0; i < n; i++) {
        snprintf(frames[i], sizeof(frames[i]), "f%d main", from + i);
        rows[i] = (struct pprof_row){frames[i], NULL, {1, 1}};
    }
    return pprof_make(&spec, rows, (size_t)n);
}

TEST(many_profiles_take_the_memory_of_their_stacks)
{
    SCOPED(merge) *m = open_merge(&sums);
    size_t bytes = 0;
    for (int i = 0; i < 3000; i++) {
        add(m, unique(0, 32));
        bytes = i == 0 ? merge_bytes(m) : bytes;
        CHECK_INT(merge_bytes(m), bytes, "");
    }
}

/* Samples and strings that repeat an earlier one take no memory of the merge, however many a
 * profile has: others need what the budget has. */
TEST(repeated_entries_take_no_memory)
{
    enum { SAMPLES = 43000, STRINGS = 43000 };
    SCOPED(merge) *m = open_merge(&sums);
    struct buf body = testing_buf(MIB);
    struct buf first = unique(0, 32);
    buf_append(&body, first.data, first.len);
    buf_done(&first);
    for (int i = 0; i < SAMPLES; i++) {
        buf_append(&body, "\x12\x08\x0a\x02\x01\x02\x12\x02\x01\x01", 10);
    }
    for (int i = 0; i < STRINGS; i++) {
        buf_append(&body, "\x32\x00", 2);
    }
    add(m, body);
    assert_true(merge_bytes(m) < (size_t)64 * 1024);
    for (int i = 1; i < 30; i++) {
        add(m, unique(1000 * i, 64));
    }
    assert_true(merge_bytes(m) < MIB);
}

TEST(a_profile_beyond_the_limit_is_refused)
{
    const struct merge_options o = {.bytes_max = 20000};
    SCOPED(merge) *m = open_merge(&o);
    struct err err = ERR_INIT;
    int n = 0;
    for (bool ok = true; ok && n < 100; n++) {
        SCOPED(buf) body = unique(1000 * n, 32);
        ok = merge_add(m, (struct sv){body.data, body.len}, &err);
        if (!ok) {
            refuse(m, (struct sv){body.data, body.len}, ERR_LIMIT,
                   "needs more than 20000 bytes of working memory");
        }
    }
    CHECK_STR(err.msg, "needs more than 20000 bytes of working memory", "");
    assert_in_range(n, 2, 20);
    assert_true(merge_bytes(m) < o.bytes_max + 2000);
    /* A profile with the same stacks still fits. */
    add(m, unique(0, 32));
    SCOPED(buf) large = testing_buf(MIB);
    for (int i = 0; i < 20001; i++) {
        buf_putc(&large, 0);
    }
    refuse(m, (struct sv){large.data, large.len}, ERR_LIMIT, "larger than 20000 bytes");
}

/* So is one that takes more than the scratch may have; the merge stays as it was. */
TEST(the_scratch_has_a_limit)
{
    SCOPED(scratch) *scratch = scratch_new();
    const struct merge_options o = {.bytes_max = MIB, .scratch = scratch};
    SCOPED(merge) *m = open_merge(&o);
    add(m, unique(0, 2));
    size_t bytes = merge_bytes(m);
    scratch_limit(scratch, 2000);
    struct buf body = unique(100, 64);
    struct err err = ERR_INIT;
    assert_false(merge_add(m, (struct sv){body.data, body.len}, &err));
    CHECK_INT(err.kind, ERR_LIMIT, err.msg);
    CHECK_STR(err.msg, "needs more than 2000 bytes of working memory", "");
    CHECK_INT(merge_bytes(m), bytes, "as it was");
    SCOPED(buf) out = testing_buf(MIB);
    scratch_limit(scratch, 100);
    assert_false(merge_write(m, &out, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "");
    scratch_limit(scratch, SIZE_MAX);
    add(m, body);
    err_clear(&err);
    assert_true(merge_write(m, &out, &err));
}

TEST(many_entries_are_refused)
{
    const struct merge_options o = {.bytes_max = 64 * MIB};
    SCOPED(merge) *m = open_merge(&o);
    struct err err = ERR_INIT;
    SCOPED(buf) b = testing_buf(64 * MIB);
    put_msg(&b, 1, "", 0);
    put_msg(&b, 6, "", 0);
    for (int i = 0; i <= 500000; i++) {
        put_msg(&b, 2, "\x10\x01", 2);
    }
    assert_false(merge_add(m, (struct sv){b.data, b.len}, &err));
    CHECK_STR(err.msg, "500001 samples: more than a merge may have (500000)", "");
}

/* Ids in any order, thousands of labels in one sample, lines without end: time in proportion. */
TEST(large_messages_are_taken)
{
    SCOPED(merge) *m = open_merge(&(struct merge_options){.bytes_max = 64 * MIB});
    struct err err = ERR_INIT;
    SCOPED(buf) b = testing_buf(16 * MIB);
    SCOPED(buf) sample = testing_buf(16 * MIB);
    SCOPED(buf) location = testing_buf(16 * MIB);
    put_msg(&b, 1, "", 0);
    put_msg(&b, 6, "", 0);
    put_msg(&b, 5, "\x08\x01", 2);
    put_num(&location, 1, 1);
    for (int i = 0; i < 200000; i++) {
        put_msg(&sample, 3, "\x10\x01", 2); /* no key, text 1 */
        put_num(&sample, 1, 1);
        put_msg(&location, 4, "\x08\x01", 2);
    }
    put_msg(&b, 6, "text", 4);
    put_num(&sample, 2, 1);
    put_sub(&b, 4, &location);
    put_sub(&b, 2, &sample);
    if (!merge_add(m, (struct sv){b.data, b.len}, &err) ||
        !merge_add(m, (struct sv){b.data, b.len}, &err)) {
        fail_msg("%s", err.msg);
    }
    buf_clear(&b);
    assert_true(merge_write(m, &b, &err));
}
