/* Deltas of two profiles, and of a row of them. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "pprof/columns.h"
#include "pprof/delta.h"
#include "pprof/gzip.h"
#include "pprof/put.h"
#include "pprof/wire.h"
#include "tests/unit/lib/pprof_writer.h"

SCOPED_POINTER(delta_state, delta_state_unref)

#define HEAP "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes"
#define LOCKS "contentions/count delay/nanoseconds"
#define BYTES(s) s, sizeof(s) - 1
#define T0 INT64_C(1700000000000000000)
#define ROWS(...) ((const struct pprof_row[]){__VA_ARGS__}), COUNT_ROWS(__VA_ARGS__)
#define COUNT_ROWS(...) (sizeof((const struct pprof_row[]){__VA_ARGS__}) / sizeof(struct pprof_row))

/* A series of scrapes: each profile against the baseline of those before. */
struct series {
    struct delta_state *baseline;
    bool any_counter;
    bool keep_baseline; /* as if the delta had been lost */
    struct scratch *scratch;
    struct buf text; /* the last result */
    struct delta_output out;
    struct err err;
};

static void series_done(struct series *s)
{
    delta_state_unref(s->baseline);
    buf_done(&s->text);
}
SCOPED_VALUE(series, series_done)

static void put_values(struct buf *b, const struct wire_field *f)
{
    struct wire_numbers numbers = wire_numbers_of(f);
    uint64_t v;
    while (wire_numbers_next(&numbers, &v)) {
        buf_printf(b, " %lld", (long long)v);
    }
}

/* The name of the first function of a location. */
static void put_frame(const struct pprof_index *x, struct buf *b, uint64_t id)
{
    size_t place;
    struct wire_field f = {.number = 0};
    assert_true(pprof_ids_find(&x->entries[PROFILE_LOCATION].ids, id, &place));
    struct wire_reader r =
        wire_reader_of(pprof_span_of(x, x->entries[PROFILE_LOCATION].spans[place]));
    while (wire_next(&r, &f)) {
        if (f.number == LOCATION_LINE) {
            uint64_t v[LINE_FUNCTION_ID + 1] = {0};
            wire_read_numbers(f.bytes, v, LINE_FUNCTION_ID + 1);
            assert_true(
                pprof_ids_find(&x->entries[PROFILE_FUNCTION].ids, v[LINE_FUNCTION_ID], &place));
            struct sv name = pprof_string(x, x->functions[place].name);
            buf_printf(b, "%.*s;", SV_ARG(name));
        }
    }
}

static void put_sample(const struct pprof_index *x, struct buf *b, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        struct wire_numbers ids = wire_numbers_of(&f);
        uint64_t id;
        while (f.number == SAMPLE_LOCATION_ID && wire_numbers_next(&ids, &id)) {
            put_frame(x, b, id);
        }
    }
    r = wire_reader_of(message);
    while (wire_next(&r, &f)) {
        if (f.number == SAMPLE_VALUE) {
            put_values(b, &f);
        }
    }
    buf_putc(b, '\n');
}

/* "leaf;main; 1 2 3 4\n" for each sample, then the duration. */
static void print(struct sv zipped, struct buf *b)
{
    struct sv v;
    struct err err = ERR_INIT;
    struct pprof_summary summary;
    struct pprof_index x;
    struct wire_field f = {.number = 0};
    SCOPED(scratch) *scratch = scratch_new();
    assert_non_null(scratch);
    assert_true(gzip_inflate(scratch, zipped, 10000000, 0, &v, &err));
    assert_true(pprof_check(v, &summary, &err));
    assert_true(pprof_index(&x, scratch, v, &summary, 5, &err));
    struct wire_reader r = wire_reader_of(v);
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE) {
            put_sample(&x, b, f.bytes);
        }
    }
    buf_printf(b, "duration %lld\n", (long long)summary.duration_ns);
}

static enum delta_result step_bytes(struct series *s, struct sv body)
{
    struct scratch *own = s->scratch == NULL ? scratch_new() : NULL;
    struct delta_input in = {.body = body,
                             .baseline = s->baseline,
                             .any_counter = s->any_counter,
                             .seed = 77,
                             .scratch = own == NULL ? s->scratch : own};
    err_clear(&s->err);
    enum delta_result r = delta_make(&in, &s->out, &s->err);
    scratch_reset(in.scratch);
    scratch_free(own);
    CHECK_INT(s->err.msg[0] != '\0', r > DELTA_PASSED, s->err.msg);
    buf_init(&s->text, 1000000);
    buf_clear(&s->text);
    if (s->out.data != NULL) {
        print((struct sv){s->out.data, s->out.size}, &s->text);
    }
    if (s->out.next != NULL && !s->keep_baseline) {
        delta_state_unref(s->baseline);
        s->baseline = s->out.next;
        s->out.next = NULL;
    }
    return r;
}

/* Gives the next profile of the series, plain and compressed by turns, and compares. */
static void step_(struct series *s, const struct pprof_spec *spec, const struct pprof_row *rows,
                  size_t n, enum delta_result want, const char *text, int line)
{
    char row[32];
    snprintf(row, sizeof(row), "line %d", line);
    SCOPED(buf) plain = pprof_make(spec, rows, n);
    struct sv body = {plain.data, plain.len};
    SCOPED(scratch) *scratch = scratch_new();
    assert_non_null(scratch);
    if (line % 2 == 0) {
        assert_true(gzip_deflate(scratch, body, &body));
    }
    CHECK_STR(delta_result_name(step_bytes(s, body)), delta_result_name(want), row);
    CHECK_STR(s->text.len == 0 ? "" : s->text.data, text, row);
    delta_output_done(&s->out);
    buf_done(&s->text);
}
#define STEP(s, spec, want, text, ...)                                                             \
    step_((s), &(spec), ROWS(__VA_ARGS__), (want), (text), __LINE__)

/* ---- what comes out -------------------------------------------------------------------------- */

/* The first profile yields its gauges, the second the difference; gauges stay; the time is that of
 * the newer profile, the duration the difference. */
TEST(heap_counters_and_gauges)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = HEAP, .time_nanos = T0, .mapping_start = 4096};
    STEP(&s, spec, DELTA_FIRST, "a;m; 0 0 5 50\nduration 0\n", {"a@1 m@2", NULL, {10, 100, 5, 50}},
         {"b@3 m@2", NULL, {7, 70, 0, 0}});
    spec.time_nanos = T0 + 5960465000;
    STEP(&s, spec, DELTA_MADE,
         "a;m; 2 20 4 40\nb;m; 0 0 1 10\nc;m; 9 90 0 0\nduration 5960465000\n",
         {"a@1 m@2", NULL, {12, 120, 4, 40}}, {"b@3 m@2", NULL, {7, 70, 1, 10}},
         {"c@4 m@2", NULL, {9, 90, 0, 0}});
}

/* Profiles with nothing but counters: nothing is written at first, nor when nothing happens. (`make
 * delta-diff` compares with google/pprof.) */
TEST(locks_have_only_counters)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    STEP(&s, spec, DELTA_FIRST, "", {"a m", NULL, {3, 300}}, {"b m", NULL, {1, 10}});
    spec.time_nanos += 1144928000;
    STEP(&s, spec, DELTA_MADE, "b;m; 1 5\nduration 1144928000\n", {"a m", NULL, {3, 300}},
         {"b m", NULL, {2, 15}});
    STEP(&s, spec, DELTA_MADE, "", {"b m", NULL, {2, 15}}, {"a m", NULL, {3, 300}});
}

/* The last delta without gzip, in memory of the scratch; a profile that is good as a whole. */
static struct sv checked_output(const struct series *s, struct scratch *scratch,
                                struct pprof_summary *ret_summary)
{
    struct sv out;
    struct err err = ERR_INIT;
    assert_non_null(scratch);
    assert_true(
        gzip_inflate(scratch, (struct sv){s->out.data, s->out.size}, 100000, 0, &out, &err));
    assert_true(pprof_check(out, ret_summary, &err));
    return out;
}

/* Entries that no sample needs are removed, so a profile that did not change shrinks. */
TEST(unused_entries_are_removed)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = HEAP, .time_nanos = T0, .mapping_start = 4096};
    const struct pprof_row rows[] = {{"rarely@1 seldom@2", "kind=rare", {10, 100, 0, 0}},
                                     {"a@3 m@4", "kind=often", {10, 100, 1, 1}}};
    SCOPED(buf) plain = pprof_make(&spec, rows, 2);
    struct sv body = {plain.data, plain.len};
    assert_int_equal(step_bytes(&s, body), DELTA_FIRST);
    delta_output_done(&s.out);
    buf_done(&s.text);
    assert_int_equal(step_bytes(&s, body), DELTA_MADE);
    CHECK_STR(s.text.data, "a;m; 0 0 1 1\nduration 0\n", "");
    struct pprof_summary summary;
    SCOPED(scratch) *scratch = scratch_new();
    struct sv out = checked_output(&s, scratch, &summary);
    CHECK_INT(summary.n[PROFILE_LOCATION], 2, "locations");
    CHECK_INT(summary.n[PROFILE_FUNCTION], 2, "functions");
    CHECK_INT(summary.n[PROFILE_MAPPING], 1, "mappings");
    assert_true(out.n < plain.len);
    assert_null(memmem(out.p, out.n, "rarely", 6));
    assert_null(memmem(out.p, out.n, "rare", 4));
    assert_non_null(memmem(out.p, out.n, "often", 5));
    assert_non_null(memmem(out.p, out.n, "inuse_space", 11));
    delta_output_done(&s.out);
}

/* The head of a profile stays, however large it is, with the strings that it needs. */
TEST(head_stays)
{
    for (size_t comments = 0; comments <= 100; comments += 5) {
        SCOPED(series) s = {.baseline = NULL};
        struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0, .duration_nanos = 5};
        const struct pprof_row rows[] = {{"a m", NULL, {1, 2}}, {"unused", "why=because", {1, 1}}};
        struct pprof_row later[] = {rows[0], rows[1]};
        later[0].values[0] = 3;
        SCOPED(buf) first = pprof_make(&spec, rows, 2);
        SCOPED(buf) second = pprof_make(&spec, later, 2);
        for (size_t i = 0; i < comments; i++) {
            put_num(&second, PROFILE_COMMENT, i % 2);
            put_msg(&second, 99, "unknown", 7);
        }
        assert_int_equal(step_bytes(&s, (struct sv){first.data, first.len}), DELTA_FIRST);
        delta_output_done(&s.out);
        buf_done(&s.text);
        assert_int_equal(step_bytes(&s, (struct sv){second.data, second.len}), DELTA_MADE);
        CHECK_STR(s.text.data, "a;m; 2 0\nduration 5\n", "");
        struct pprof_summary summary;
        SCOPED(scratch) *scratch = scratch_new();
        struct sv out = checked_output(&s, scratch, &summary);
        CHECK_INT(summary.n[PROFILE_SAMPLE_TYPE], 2, "");
        CHECK_INT(summary.n[PROFILE_COMMENT], comments, "");
        CHECK_INT(summary.n[PROFILE_DURATION_NANOS], 1, "");
        CHECK_INT(summary.time_ns == T0, true, "");
        CHECK_INT(memmem(out.p, out.n, "unknown", 7) != NULL, comments > 0, "");
        assert_null(memmem(out.p, out.n, "because", 7));
        assert_non_null(memmem(out.p, out.n, "contentions", 11));
        delta_output_done(&s.out);
    }
}

/* Names of any length come out as they went in, used or not. */
TEST(names_of_any_length)
{
    SCOPED(series) s = {.baseline = NULL};
    struct buf b[2];
    struct sv out;
    struct pprof_index x;
    enum { NAMES = 400 };
    SCOPED(buf) name = testing_buf(10000);
    for (size_t k = 0; k < 2; k++) {
        buf_init(&b[k], 1000000);
        buf_append(&b[k], BYTES("\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x0b"
                                "contentions\x32\x05"
                                "count"));
        for (size_t i = 1; i <= NAMES; i++) {
            SCOPED(buf) m = testing_buf(1000);
            SCOPED(buf) part = testing_buf(1000);
            put_num(&m, FUNCTION_ID, i);
            put_num(&m, FUNCTION_NAME, i + 2);
            put_sub(&b[k], PROFILE_FUNCTION, &m);
            put_num(&part, LINE_FUNCTION_ID, i);
            put_num(&m, LOCATION_ID, i);
            put_sub(&m, LOCATION_LINE, &part);
            put_sub(&b[k], PROFILE_LOCATION, &m);
            put_varint(&part, i);
            put_sub(&m, SAMPLE_LOCATION_ID, &part);
            put_varint(&part, 1 + k * (i % 3));
            put_sub(&m, SAMPLE_VALUE, &part);
            put_sub(&b[k], PROFILE_SAMPLE, &m);
            buf_putc(&name, (char)('a' + i % 26));
            put_msg(&b[k], PROFILE_STRING, name.data, name.len);
        }
        buf_clear(&name);
    }
    assert_int_equal(step_bytes(&s, (struct sv){b[0].data, b[0].len}), DELTA_FIRST);
    delta_output_done(&s.out);
    buf_done(&s.text);
    CHECK_STR(delta_result_name(step_bytes(&s, (struct sv){b[1].data, b[1].len})), "delta",
              s.err.msg);
    struct scratch *scratch = scratch_new();
    assert_true(
        gzip_inflate(scratch, (struct sv){s.out.data, s.out.size}, 1000000, 0, &out, &s.err));
    assert_true(pprof_index_frame(&x, scratch, out, "test", 1, &s.err));
    CHECK_INT(x.summary.n[PROFILE_SAMPLE], NAMES - NAMES / 3, "");
    for (size_t i = 1; i <= NAMES; i++) {
        struct sv text = pprof_string(&x, i + 2);
        buf_putc(&name, (char)('a' + i % 26));
        CHECK_INT(text.n, i % 3 == 0 ? 0 : i, "");
        assert_memory_equal(text.p, name.data, text.n);
    }
    scratch_free(scratch);
    delta_output_done(&s.out);
    buf_done(&b[0]);
    buf_done(&b[1]);
}

/* Ids and the order of labels do not matter; labels, the order of frames and the file do. */
TEST(what_a_stack_is)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0, .mapping_start = 4096};
    STEP(&s, spec, DELTA_FIRST, "", {"a@1 m@2", "k=v,n=7,n=8bytes", {3, 300}});
    spec.first_id = 1000;
    spec.labels_backwards = true;
    STEP(&s, spec, DELTA_MADE,
         "m;a; 4 4\na;m; 5 5\na;m; 1 1\na;m; 1 1\na;m; 1 1\na;m; 1 1\n"
         "a;m; 1 1\na;m; 0 1\nduration 0\n",
         {"m@2 a@1", "k=v,n=7,n=8bytes", {4, 4}}, {"a@1 m@2", NULL, {5, 5}},
         {"a@1 m@2", "k=v,n=7,n=8", {1, 1}}, {"a@1 m@2", "k=v,n=7", {1, 1}},
         {"a@1 m@2", "k=w,n=7,n=8bytes", {1, 1}}, {"a@1 m@2", "k=v,k=v,n=7,n=8bytes", {1, 1}},
         {"a@1 a@1 m@2", "k=v,n=7,n=8bytes", {0, 0}}, {"a@1 m@3", "k=v,n=7,n=8bytes", {1, 1}},
         {"a@1 m@2", "k=v,n=7,n=8bytes", {3, 301}});
}

/* The same program mapped elsewhere: its stacks are the same ones. */
TEST(mapped_elsewhere)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0, .mapping_start = 4096};
    STEP(&s, spec, DELTA_FIRST, "", {"a@1 m@2", NULL, {3, 300}});
    spec.mapping_start = 81920;
    STEP(&s, spec, DELTA_MADE, "a;m; 1 1\nduration 0\n", {"a@1 m@2", NULL, {4, 301}});
    spec.no_build_id = true; /* now it is known by its file name: another program */
    STEP(&s, spec, DELTA_REBASED, "", {"a@1 m@2", NULL, {4, 302}});
    spec.mapping_start = 4096;
    STEP(&s, spec, DELTA_MADE, "a;m; 0 1\nduration 0\n", {"a@1 m@2", NULL, {4, 303}});
}

/* A build id may be an index, which is not 0, to an empty string: the mapping has the name of its
 * file then. */
TEST(an_empty_build_id_is_none)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {
        .types = LOCKS, .time_nanos = T0, .mapping_start = 4096, .empty_build_id = true};
    STEP(&s, spec, DELTA_FIRST, "", {"a@1 m@2", NULL, {3, 300}});
    spec.mapping_start = 81920;
    STEP(&s, spec, DELTA_MADE, "a;m; 1 1\nduration 0\n", {"a@1 m@2", NULL, {4, 301}});
    spec.binary = "/bin/q";
    STEP(&s, spec, DELTA_REBASED, "", {"a@1 m@2", NULL, {5, 302}});
    spec.binary = "";
    STEP(&s, spec, DELTA_REBASED, "", {"a@1 m@2", NULL, {6, 303}});
    spec.empty_build_id = false;
    spec.no_build_id = true;
    STEP(&s, spec, DELTA_MADE, "a;m; 1 1\nduration 0\n", {"a@1 m@2", NULL, {7, 304}});
}

/* Frames without address are distinguished by their functions. */
TEST(no_addresses)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    STEP(&s, spec, DELTA_FIRST, "", {"a m", NULL, {3, 300}}, {"b m", NULL, {30, 3000}});
    STEP(&s, spec, DELTA_MADE, "b;m; 1 2\na;m; 3 4\nduration 0\n", {"b m", NULL, {31, 3002}},
         {"a m", NULL, {6, 304}});
}

/* Columns, system names and first lines of functions are part of a frame without address. */
TEST(no_addresses_but_columns)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    STEP(&s, spec, DELTA_FIRST, "", {"a:1 m:9", NULL, {3, 300}}, {"a:2 m:9", NULL, {1, 1}});
    STEP(&s, spec, DELTA_MADE, "a;m; 1 1\na;m; 2 2\na;m; 5 5\nduration 0\n",
         {"a:1 m:9", NULL, {4, 301}}, {"a:2 m:9", NULL, {3, 3}}, {"a:1 m:8", NULL, {5, 5}});
    spec.system_name = "_Z1av";
    STEP(&s, spec, DELTA_REBASED, "", {"a:1 m:9", NULL, {4, 301}});
    spec.start_line = 5;
    STEP(&s, spec, DELTA_REBASED, "", {"a:1 m:9", NULL, {4, 301}});
}

/* A profile of locks of two functions, with a sample or a location of these bytes in it. */
static void put_locks(struct buf *b, const char *field, size_t n)
{
    static const char *const strings[] = {"",      "contentions", "count", "delay", "nanoseconds",
                                          "f1",    "f2",          "k",     "v",     "/bin/1",
                                          "/bin/2"};
    buf_init(b, 10000);
    buf_append(b, BYTES("\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04"));
    buf_append(b, field, n);
    buf_append(b, BYTES("\x1a\x04\x08\x01\x28\x09\x1a\x04\x08\x02\x28\x0a"));
    buf_append(b, BYTES("\x2a\x04\x08\x01\x10\x05\x2a\x04\x08\x02\x10\x06"));
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        put_msg(b, PROFILE_STRING, strings[i], strlen(strings[i]));
    }
}

#define LOCATIONS_12                                                                               \
    "\x22\x08\x08\x01\x22\x04\x08\x01\x10\x07\x22\x08\x08\x02\x22\x04\x08\x02\x10\x07"

/* The label of the one sample is still there. */
static void check_label(const struct series *s, const char *row)
{
    struct err err = ERR_INIT;
    SCOPED(scratch) *scratch = scratch_new();
    struct sv plain;
    assert_non_null(scratch);
    assert_true(
        gzip_inflate(scratch, (struct sv){s->out.data, s->out.size}, 10000, 0, &plain, &err));
    CHECK_INT(memmem(plain.p, plain.n, "\x08\x07\x10\x08", 4) != NULL, true, row);
    CHECK_INT(memmem(plain.p, plain.n, "\x32\x01k\x32\x01v", 6) != NULL, true, row);
}

/* The order of a sample's fields does not matter, nor whether its numbers are packed. */
TEST(samples_written_in_any_way)
{
    static const struct {
        const char *name, *bytes;
        size_t n;
    } ways[] = {
        {"as usual", BYTES("\x12\x0e\x0a\x02\x01\x02\x12\x02\x05\x32\x1a\x04\x08\x07\x10\x08")},
        {"in parts", BYTES("\x12\x12\x0a\x01\x01\x12\x01\x05\x0a\x01\x02\x1a\x04\x08\x07\x10\x08"
                           "\x12\x01\x32")},
        {"values in parts",
         BYTES("\x12\x0f\x0a\x02\x01\x02\x12\x01\x05\x10\x32\x1a\x04\x08\x07\x10\x08")},
        {"one by one", BYTES("\x12\x0e\x08\x01\x08\x02\x10\x05\x10\x32\x1a\x04\x08\x07\x10\x08")},
        {"the other way round",
         BYTES("\x12\x0e\x1a\x04\x08\x07\x10\x08\x12\x02\x05\x32\x0a\x02\x01\x02")},
        {"values first", BYTES("\x12\x0e\x12\x02\x05\x32\x0a\x02\x01\x02\x1a\x04\x08\x07\x10\x08")},
        {"long lengths",
         BYTES("\x12\x0f\x0a\x82\x00\x01\x02\x12\x02\x05\x32\x1a\x04\x08\x07\x10\x08")},
        {"long numbers",
         BYTES("\x12\x12\x0a\x03\x81\x00\x02\x12\x05\x85\x80\x00\xb2\x00\x1a\x04\x08"
               "\x07\x10\x08")},
        {"an unknown field",
         BYTES("\x12\x11\x0a\x02\x01\x02\x12\x02\x05\x32\x22\x01z\x1a\x04\x08\x07\x10\x08")},
        {"a label with more",
         BYTES("\x12\x11\x0a\x02\x01\x02\x12\x02\x05\x32\x1a\x07\x08\x07\x10\x08\x2a\x01z")},
        {"nothing before the values",
         BYTES("\x12\x10\x0a\x00\x12\x02\x05\x32\x0a\x02\x01\x02\x1a\x04\x08\x07"
               "\x10\x08")},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        SCOPED(series) s = {.baseline = NULL};
        struct pprof_spec spec = {.types = LOCKS, .packed = true, .file = ""};
        STEP(&s, spec, DELTA_FIRST, "", {"f1 f2", "k=v", {2, 20}});
        SCOPED(buf) b;
        SCOPED_MEMORY char *field = testing_memory(ways[i].n + sizeof(LOCATIONS_12) - 1);
        memcpy(mempcpy(field, ways[i].bytes, ways[i].n), LOCATIONS_12, sizeof(LOCATIONS_12) - 1);
        put_locks(&b, field, ways[i].n + sizeof(LOCATIONS_12) - 1);
        CHECK_STR(delta_result_name(step_bytes(&s, (struct sv){b.data, b.len})), "delta",
                  ways[i].name);
        CHECK_STR(s.text.data, "f1;f2; 3 30\nduration 0\n", ways[i].name);
        check_label(&s, ways[i].name);
        delta_output_done(&s.out);
    }
}

/* A number that occurs twice counts as it stands last: the row of the first one is not needed. */
TEST(last_number_counts)
{
    SCOPED(series) s = {.baseline = NULL};
    SCOPED(buf) b;
    put_locks(&b, BYTES("\x12\x07\x0a\x01\x01\x12\x02\x05\x32"
                        "\x22\x0c\x08\x01\x10\x01\x10\x02\x22\x04\x08\x01\x08\x02"));
    assert_int_equal(step_bytes(&s, (struct sv){b.data, b.len}), DELTA_FIRST);
    delta_output_done(&s.out);
    buf_done(&s.text);
    b.data[19] = 0x08;
    assert_int_equal(step_bytes(&s, (struct sv){b.data, b.len}), DELTA_MADE);
    CHECK_STR(s.text.data, "f2; 3 0\nduration 0\n", "");
    SCOPED(scratch) *scratch = scratch_new();
    struct pprof_index x;
    struct sv plain;
    assert_true(
        gzip_inflate(scratch, (struct sv){s.out.data, s.out.size}, 10000, 0, &plain, &s.err));
    assert_true(pprof_index_frame(&x, scratch, plain, "test", 1, &s.err));
    CHECK_INT(x.summary.n[PROFILE_FUNCTION], 1, "");
    CHECK_INT(x.summary.n[PROFILE_MAPPING], 1, "");
    for (size_t i = 5; i <= 10; i++) {
        CHECK_INT(pprof_string(&x, i).n > 0, i == 6 || i == 10, "");
    }
    delta_output_done(&s.out);
}

/* Samples of one stack with the same labels are added up. */
TEST(samples_of_one_stack_become_one)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = HEAP, .time_nanos = T0};
    STEP(&s, spec, DELTA_FIRST, "a; 0 0 3 30\nduration 0\n", {"a", NULL, {1, 10, 1, 10}},
         {"b", NULL, {1, 1, 0, 0}}, {"a", NULL, {2, 20, 2, 20}});
    STEP(&s, spec, DELTA_MADE, "a; 1 10 6 60\nduration 0\n", {"a", NULL, {4, 40, 6, 60}},
         {"b", NULL, {1, 1, 0, 0}});
}

/* The same where nothing follows the label of the last sample. */
TEST(a_sample_at_the_end)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = HEAP, .time_nanos = T0};
    const struct pprof_row rows[] = {{"a m", "bytes=64", {1, 10, 2, 20}}};
    SCOPED(buf) plain = pprof_make(&spec, rows, 1);
    struct wire_reader r = wire_reader_of((struct sv){plain.data, plain.len});
    struct wire_field f = {.number = 0};
    while (f.number != PROFILE_SAMPLE) {
        assert_true(wire_next(&r, &f));
    }
    char sample[64];
    size_t n = f.bytes.n;
    assert_true(n < sizeof(sample));
    memcpy(sample, f.bytes.p, n);
    put_msg(&plain, PROFILE_SAMPLE, sample, n);
    /* A copy of its size, so that a sanitizer sees a read past the end. */
    SCOPED_MEMORY char *body = testing_memory(plain.len);
    memcpy(body, plain.data, plain.len);
    assert_int_equal(step_bytes(&s, (struct sv){body, plain.len}), DELTA_FIRST);
    CHECK_STR(s.text.data, "a;m; 0 0 4 40\nduration 0\n", "");
    delta_output_done(&s.out);
}

/* Labels that are texts are noticed, whichever sample has them. */
TEST(texts_are_noticed)
{
    static const struct {
        const char *labels[2];
        bool has_texts;
    } cases[] = {{{NULL, NULL}, false},
                 {{"bytes=64", "n=8bytes"}, false},
                 {{"bytes=64", "k=v"}, true},
                 {{"bytes=64,k=v", NULL}, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(series) s = {.baseline = NULL};
        struct pprof_spec spec = {.types = HEAP, .time_nanos = T0};
        const struct pprof_row rows[] = {{"a m", cases[i].labels[0], {1, 10, 1, 10}},
                                         {"b m", cases[i].labels[1], {2, 20, 0, 0}}};
        SCOPED(buf) plain = pprof_make(&spec, rows, 2);
        assert_int_equal(step_bytes(&s, (struct sv){plain.data, plain.len}), DELTA_FIRST);
        CHECK_INT(s.out.has_texts, cases[i].has_texts, "");
        delta_output_done(&s.out);
        buf_done(&s.text);
    }
}

/* Plain, compressed, in two members: the result is the same, and always gzip. Nor does the earlier
 * use of a scratch matter. */
TEST(raw_or_gzip)
{
    struct pprof_spec spec = {.types = HEAP, .time_nanos = T0};
    const struct pprof_row before[] = {{"a m", NULL, {1, 10, 0, 0}}, {"b m", NULL, {2, 20, 1, 10}}};
    const struct pprof_row after[] = {{"a m", NULL, {9, 90, 1, 10}}, {"b m", NULL, {2, 20, 0, 0}}};
    struct buf plain[2] = {pprof_make(&spec, before, 2), pprof_make(&spec, after, 2)};
    struct scratch *zip = scratch_new();
    struct scratch *work = scratch_new();
    assert_true(zip != NULL && work != NULL);
    for (int how = 0; how < 12; how++) {
        SCOPED(series) s = {.baseline = NULL, .scratch = how % 2 == 0 ? work : NULL};
        for (size_t i = 0; i < 2; i++) {
            struct sv body = {plain[i].data, plain[i].len};
            SCOPED(buf) both = testing_buf(100000);
            size_t cut = how % 3 == 2 ? body.n / 3 : body.n;
            for (size_t at = 0; at < body.n; at += cut, cut = body.n - cut) {
                struct sv part = {body.p + at, cut};
                assert_true(how % 3 == 0 || gzip_deflate(zip, part, &part));
                buf_append(&both, part.p, part.n);
            }
            assert_int_equal(step_bytes(&s, (struct sv){both.data, both.len}),
                             i == 0 ? DELTA_FIRST : DELTA_MADE);
            CHECK_STR(s.text.data,
                      i == 0 ? "b;m; 0 0 1 10\nduration 0\n" : "a;m; 8 80 1 10\nduration 0\n", "");
            assert_true(gzip_is((struct sv){s.out.data, s.out.size}));
            delta_output_done(&s.out);
            buf_done(&s.text);
            scratch_reset(zip);
        }
    }
    scratch_free(zip);
    scratch_free(work);
    buf_done(&plain[0]);
    buf_done(&plain[1]);
}

/* A delta at each level of compression: the same profile, each way smaller than the one before. */
TEST(compression)
{
    static const enum gzip_level levels[] = {GZIP_NONE, GZIP_FAST, GZIP_BEST};
    struct pprof_spec spec = {.types = HEAP, .time_nanos = T0};
    struct pprof_row rows[60];
    char frames[60][16];
    for (size_t i = 0; i < 60; i++) {
        snprintf(frames[i], sizeof(frames[i]), "f%zu g%zu main", i, i * 7 % 60);
        rows[i] = (struct pprof_row){frames[i], NULL, {0, 0, 1, (int64_t)i}};
    }
    SCOPED(buf) body = pprof_make(&spec, rows, 60);
    SCOPED(buf) plain = testing_buf(100000);
    SCOPED(scratch) *scratch = scratch_new();
    SCOPED(scratch) *zip = scratch_new();
    assert_true(scratch != NULL && zip != NULL);
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < 3; i++) {
        struct delta_input in = {
            .body = {body.data, body.len}, .level = levels[i], .scratch = scratch};
        struct delta_output out;
        struct err err = ERR_INIT;
        struct sv inflated;
        assert_int_equal(delta_make(&in, &out, &err), DELTA_FIRST);
        struct sv data = {out.data, out.size};
        assert_int_equal(gzip_is(data), levels[i] != GZIP_NONE);
        assert_true(data.n < last);
        last = data.n;
        assert_true(gzip_plain(zip, data, 100000, 0, &inflated, &err));
        if (i == 0) {
            buf_append(&plain, inflated.p, inflated.n);
        }
        assert_true(sv_eq(inflated, (struct sv){plain.data, plain.len}));
        delta_output_done(&out);
        scratch_reset(scratch);
    }
}

/* Returns true if a gzip has the codes of GZIP_QUICK, which follow its header. */
static bool has_quick_codes(struct sv data)
{
    enum { HEADER = 10, CODES = 16 };
    SCOPED(scratch) *s = scratch_new();
    SCOPED_MEMORY char *quick = NULL;
    char text[4096];
    size_t n = 0;
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)(i * i / 7);
    }
    assert_true(gzip_pack_at(s, (struct sv){text, sizeof(text)}, GZIP_QUICK, &quick, &n));
    assert_true(n > HEADER + CODES && data.n > HEADER + CODES);
    return memcmp(quick + HEADER, data.p + HEADER, CODES) == 0;
}

/* Deltas up to 256 KiB have fixed codes, larger ones codes of their own. A field of the profile
 * itself that is not known is copied, and so sets the size. */
TEST(codes)
{
    enum { UNKNOWN_FIELD = 99, LARGE = 256 * 1024 };
    struct pprof_spec spec = {.types = HEAP, .time_nanos = T0};
    const struct pprof_row row = {"main", NULL, {0, 0, 1, 1}};
    SCOPED_MEMORY char *unknown = calloc(LARGE, 1);
    static const size_t sizes[] = {1024, LARGE - 1024, LARGE};
    assert_non_null(unknown);
    for (size_t i = 0; i < 3; i++) {
        SCOPED(buf) body = pprof_make(&spec, &row, 1);
        SCOPED(scratch) *scratch = scratch_new();
        body.max = 2 * LARGE;
        wire_put_bytes(&body, UNKNOWN_FIELD, unknown, sizes[i]);
        assert_true(buf_ok(&body));
        struct delta_input in = {.body = {body.data, body.len}, .scratch = scratch};
        struct delta_output out;
        struct err err = ERR_INIT;
        assert_int_equal(delta_make(&in, &out, &err), DELTA_FIRST);
        CHECK_INT(has_quick_codes((struct sv){out.data, out.size}), i < 2, "");
        delta_output_done(&out);
    }
}

/* A name that is not UTF-8 is repaired in the delta: servers refuse the whole profile for one. */
TEST(not_utf8)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    STEP(&s, spec, DELTA_FIRST, "", {"caf\xe9 m", NULL, {1, 1}});
    STEP(&s, spec, DELTA_MADE, "caf\xef\xbf\xbd;m; 2 2\nduration 0\n", {"caf\xe9 m", NULL, {3, 3}});
}

/* ---- failures -------------------------------------------------------------------------------- */

/* A bad profile in between loses nothing: the next delta covers both intervals. */
TEST(bad_in_between)
{
    const struct {
        struct sv body;
        enum delta_result result;
    } bad[] = {
        {{"\x1f\x8b\x08", 3}, DELTA_BAD_GZIP},
        {{"\x0a\x04\x08\x01\x10\x02\x12", 7}, DELTA_BAD_PPROF},
        {{"", 0}, DELTA_BAD_PPROF},
        /* a field 0 in a sample */
        {SV("\x0a\x04\x08\x01\x10\x02\x12\x09\x02\x01\x01\x0a\x01\x01\x12\x01\x03\x22\x02\x08\x01"
            "2\0"
            "2\x0b"
            "contentions"
            "2\x05"
            "count"),
         DELTA_BAD_PPROF},
    };
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    STEP(&s, spec, DELTA_FIRST, "", {"a", NULL, {3, 300}});
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(step_bytes(&s, bad[i].body), bad[i].result);
        assert_null(s.out.data);
        assert_null(s.out.next);
        buf_done(&s.text);
    }
    spec.time_nanos += 30;
    STEP(&s, spec, DELTA_MADE, "a; 2 20\nduration 30\n", {"a", NULL, {5, 320}});
}

/* A delta that could not be passed on is part of the next one. */
TEST(lost_on_the_way)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    STEP(&s, spec, DELTA_FIRST, "", {"a", NULL, {3, 300}});
    s.keep_baseline = true;
    spec.time_nanos += 10;
    STEP(&s, spec, DELTA_MADE, "a; 1 1\nduration 10\n", {"a", NULL, {4, 301}});
    s.keep_baseline = false;
    spec.time_nanos += 10;
    STEP(&s, spec, DELTA_MADE, "a; 2 2\nduration 20\n", {"a", NULL, {5, 302}});
}

TEST(bad_values)
{
    static const struct {
        struct pprof_row rows[2];
        const char *message;
    } cases[] = {
        {{{"a", NULL, {-1, 0, 0, 0}}, {"b", NULL, {1, 1, 1, 1}}},
         ": expected a counter of 0 or more, got -1"},
        {{{"a", NULL, {INT64_MAX, 0, 0, 0}}, {"a", NULL, {1, 1, 1, 1}}},
         ": the values of its stack are too large"},
        {{{"a", NULL, {1, 1, INT64_MAX, 0}}, {"a", NULL, {1, 1, 1, 1}}},
         ": the values of its stack are too large"},
        {{{"a", NULL, {1, 1, INT64_MIN, 0}}, {"a", NULL, {1, 1, -1, 1}}},
         ": the values of its stack are too large"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(series) s = {.baseline = NULL};
        struct pprof_spec spec = {.types = HEAP};
        SCOPED(buf) plain = pprof_make(&spec, cases[i].rows, 2);
        assert_int_equal(step_bytes(&s, (struct sv){plain.data, plain.len}), DELTA_BAD_PPROF);
        CHECK_CONTAINS(s.err.msg, cases[i].message, "");
    }
}

/* Totals beyond 64 bits are handled. */
TEST(large_values)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS};
    STEP(&s, spec, DELTA_FIRST, "", {"a", NULL, {INT64_MAX - 1, 5}},
         {"b", NULL, {INT64_MAX - 1, 5}}, {"c", NULL, {INT64_MAX - 1, 5}});
    STEP(&s, spec, DELTA_MADE, "a; 1 0\nduration 0\n", {"a", NULL, {INT64_MAX, 5}},
         {"b", NULL, {INT64_MAX - 1, 5}}, {"c", NULL, {INT64_MAX - 1, 5}});
    STEP(&s, spec, DELTA_REBASED, "", {"a", NULL, {INT64_MAX, 5}}, {"b", NULL, {0, 5}},
         {"c", NULL, {INT64_MAX - 1, 5}});
}

TEST(too_many_entries_are_refused)
{
    SCOPED(series) s = {.baseline = NULL};
    SCOPED(buf) b = testing_buf(100000000);
    for (int i = 0; i < 65; i++) {
        put_msg(&b, 1, "", 0);
    }
    put_msg(&b, 6, "", 0);
    assert_int_equal(step_bytes(&s, (struct sv){b.data, b.len}), DELTA_TOO_LARGE);
    CHECK_STR(s.err.msg, "65 sample types: more than a delta may have (64)", "");
    buf_clear(&b);
    put_msg(&b, 1, "", 0);
    put_msg(&b, 6, "", 0);
    for (int i = 0; i <= PPROF_ENTRIES_MAX; i++) {
        put_msg(&b, 2, "\x10\x01", 2);
    }
    assert_int_equal(step_bytes(&s, (struct sv){b.data, b.len}), DELTA_TOO_LARGE);
    CHECK_STR(s.err.msg, "500001 samples: more than a delta may have (500000)", "");
}

/* ---- restarts -------------------------------------------------------------------------------- */

/* If anything fell, it is another process: gauges only, nothing negative. */
TEST(restarted_process)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = HEAP, .time_nanos = T0, .mapping_start = 4096};
    STEP(&s, spec, DELTA_FIRST, "", {"a@1", NULL, {10, 100, 0, 0}}, {"b@2", NULL, {9, 9, 0, 0}});
    /* One stack fell, though the total rose. */
    spec.time_nanos += 10;
    spec.duration_nanos = 3;
    STEP(&s, spec, DELTA_REBASED, "a; 0 0 1 1\nduration 3\n", {"a@1", NULL, {9, 900, 1, 1}},
         {"b@2", NULL, {90, 90, 0, 0}});
    STEP(&s, spec, DELTA_MADE, "a; 1 1 1 1\nduration 3\n", {"a@1", NULL, {10, 901, 1, 1}},
         {"b@2", NULL, {90, 90, 0, 0}});
    /* The total fell: a stack is gone, and the others did not make up for it. */
    STEP(&s, spec, DELTA_REBASED, "", {"a@1", NULL, {20, 910, 0, 0}});
    /* Another program: other stacks, with higher counts. */
    STEP(&s, spec, DELTA_REBASED, "c; 0 0 1 1\nduration 3\n", {"c@7", NULL, {5000, 5000, 1, 1}});
    STEP(&s, spec, DELTA_MADE, "c; 1 0 0 0\nduration 3\n", {"c@7", NULL, {5001, 5000, 0, 0}});
    /* Nothing at all any more. */
    STEP(&s, spec, DELTA_REBASED, "", {"c@7", NULL, {0, 0, 0, 0}});
    STEP(&s, spec, DELTA_MADE, "c; 3 3 0 0\nduration 3\n", {"c@7", NULL, {3, 3, 0, 0}});
}

/* A stack that is missing for a while is remembered, but not for ever. */
TEST(missing_stacks_are_remembered)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS, .time_nanos = T0};
    int64_t n = 1000;
    STEP(&s, spec, DELTA_FIRST, "", {"a", NULL, {n, n}}, {"rare", NULL, {1, 1}});
    for (int i = 0; i < DELTA_AGE_MAX - 1; i++) {
        n += 100;
        STEP(&s, spec, DELTA_MADE, "a; 100 100\nduration 0\n", {"a", NULL, {n, n}});
        CHECK_INT(s.baseline->n, 2, "remembered");
    }
    n += 100;
    STEP(&s, spec, DELTA_MADE, "a; 100 100\nrare; 1 0\nduration 0\n", {"a", NULL, {n, n}},
         {"rare", NULL, {2, 1}});
    for (int i = 0; i < DELTA_AGE_MAX; i++) {
        CHECK_INT(s.baseline->n, 2, "remembered");
        n += 100;
        STEP(&s, spec, DELTA_MADE, "a; 100 100\nduration 0\n", {"a", NULL, {n, n}});
    }
    CHECK_INT(s.baseline->n, 1, "forgotten");
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Any number of counters and gauges in any order. */
TEST(many_columns)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {
        .types = "inuse_space/bytes delay/nanoseconds alloc_space/bytes x/count "
                 "contentions/count alloc_objects/count inuse_objects/count alloc_space/count"};
    STEP(&s, spec, DELTA_FIRST, "a; 1 0 0 4 0 0 7 8\nduration 0\n",
         {"a", NULL, {1, 2, 3, 4, 5, 6, 7, 8}});
    STEP(&s, spec, DELTA_MADE, "a; 10 18 27 40 45 54 70 80\nduration 0\n",
         {"a", NULL, {10, 20, 30, 40, 50, 60, 70, 80}});
    CHECK_INT(s.baseline->columns, 4, "");
}

/* Other counters than before, or the same in another order: a new start. */
TEST(other_columns)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS};
    STEP(&s, spec, DELTA_FIRST, "", {"a", NULL, {1, 2}});
    spec.types = "delay/nanoseconds contentions/count";
    STEP(&s, spec, DELTA_REBASED, "", {"a", NULL, {3, 4}});
    STEP(&s, spec, DELTA_MADE, "a; 1 1\nduration 0\n", {"a", NULL, {4, 5}});
    spec.types = "delay/nanoseconds";
    STEP(&s, spec, DELTA_REBASED, "", {"a", NULL, {5}});
}

TEST(unknown_columns)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = "objects/count space/bytes"};
    STEP(&s, spec, DELTA_PASSED, "", {"a", NULL, {1, 2}});
    assert_null(s.baseline);
    s.any_counter = true;
    spec.types = "threadcreate/count inuse_threads/count";
    STEP(&s, spec, DELTA_FIRST, "a; 0 2\nduration 0\n", {"a", NULL, {1, 2}});
    STEP(&s, spec, DELTA_MADE, "a; 4 6\nduration 0\n", {"a", NULL, {5, 6}});
    spec.types = "inuse_space/bytes";
    STEP(&s, spec, DELTA_PASSED, "", {"a", NULL, {5}});
    /* If there are known counters, only they count. */
    spec.types = "delay/nanoseconds x/count";
    STEP(&s, spec, DELTA_REBASED, "a; 0 2\nduration 0\n", {"a", NULL, {1, 2}});
}

/* The clock of the target went back, or there is none: the duration stays as it came. */
TEST(odd_clocks)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = LOCKS, .time_nanos = 100, .duration_nanos = 7};
    STEP(&s, spec, DELTA_FIRST, "", {"a", NULL, {1, 1}});
    spec.time_nanos = 90;
    STEP(&s, spec, DELTA_MADE, "a; 1 1\nduration 7\n", {"a", NULL, {2, 2}});
    STEP(&s, spec, DELTA_MADE, "a; 1 1\nduration 7\n", {"a", NULL, {3, 3}});
    spec.time_nanos = 0;
    STEP(&s, spec, DELTA_MADE, "a; 1 1\nduration 7\n", {"a", NULL, {4, 4}});
    spec.time_nanos = 95;
    STEP(&s, spec, DELTA_MADE, "a; 1 1\nduration 7\n", {"a", NULL, {5, 5}});
    spec.time_nanos = 98;
    STEP(&s, spec, DELTA_MADE, "a; 1 1\nduration 3\n", {"a", NULL, {6, 6}});
}

/* ---- the baseline ---------------------------------------------------------------------------- */

static uint64_t key_of(uint64_t i)
{
    return pprof_key_of(3, &i, 1).half[0];
}

static struct delta_state *baseline_of(uint64_t n)
{
    const uint64_t bits[] = {n, 2 * n};
    struct scratch *scratch = scratch_new();
    struct delta_state *s = delta_state_new(scratch, n, bits, 2);
    scratch_free(scratch);
    assert_non_null(s);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t values[] = {i, i * 2};
        delta_state_add(s, key_of(i), values, 0);
    }
    CHECK_INT(s->n, n, "");
    return s;
}

/* A stack takes 9 bytes and those that the largest value of each counter needs. */
TEST(size_of_baseline)
{
    const size_t widths[] = {1 + 1, 2 + 2, 2 + 2, 3 + 3};
    for (size_t i = 0, n = 100; n <= 100000; n *= 10, i++) {
        SCOPED(delta_state) *s = baseline_of(n);
        size_t columns = 2 * sizeof(struct delta_column);
        CHECK_INT(s->bytes, sizeof(*s) + columns + (9 + widths[i]) * n + 8, "");
    }
}

/* Columns of every width, beside each other: each value comes back as it was. */
TEST(values_of_any_width)
{
    enum { COLUMNS = 10, STACKS = 3 };
    uint64_t bits[COLUMNS] = {0, 1, 0xff, 0x100};
    for (unsigned j = 4; j < COLUMNS; j++) {
        bits[j] = INT64_MAX >> (8 * (COLUMNS - 1 - j));
    }
    SCOPED(scratch) *scratch = scratch_new();
    SCOPED(delta_state) *s = delta_state_new(scratch, STACKS, bits, COLUMNS);
    assert_non_null(s);
    CHECK_INT(s->row, 0 + 1 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8, "");
    const uint64_t none[COLUMNS] = {0};
    delta_state_add(s, 5, bits, 0);
    delta_state_add(s, 6, none, 7);
    delta_state_add(s, 7, bits, 0);
    for (size_t i = 0; i < STACKS; i++) {
        CHECK_INT(s->keys[i], 5 + i, "");
        CHECK_INT(s->ages[i], i == 1 ? 7 : 0, "");
        for (size_t j = 0; j < COLUMNS; j++) {
            CHECK_INT(delta_state_value(s, i, j), i == 1 ? 0 : bits[j], "");
        }
    }
}

/* A stack that is missing for a while keeps its counts, which may be large. */
TEST(large_counts_of_a_missing_stack)
{
    SCOPED(series) s = {.baseline = NULL};
    struct pprof_spec spec = {.types = HEAP, .time_nanos = T0};
    const int64_t half = INT64_C(1) << 61;
    STEP(&s, spec, DELTA_FIRST, "", {"a", NULL, {3, 300, 0, 0}}, {"b", NULL, {1, half, 0, 0}},
         {"c", NULL, {1, half + 9, 0, 0}});
    STEP(&s, spec, DELTA_MADE, "c; 1 2305843009213693952 0 0\nduration 0\n",
         {"a", NULL, {3, 300, 0, 0}}, {"c", NULL, {2, 2 * half + 9, 0, 0}});
    STEP(&s, spec, DELTA_MADE, "b; 1 5 0 0\nduration 0\n", {"b", NULL, {2, half + 5, 0, 0}},
         {"a", NULL, {3, 300, 0, 0}}, {"c", NULL, {2, 2 * half + 9, 0, 0}});
}

/* Rows of stacks in some order: the counters of stack i are at + i and ten times that, in one
 * sample or in two. */
struct order {
    const char *what;
    size_t numbers[24];
    size_t n;
    bool split; /* into a sample of 1 and one of the rest, which comes last */
};

static size_t rows_of(const struct order *o, int64_t at, char (*names)[8], struct pprof_row *rows)
{
    for (size_t i = 0; i < o->n; i++) {
        int64_t count = at + (int64_t)o->numbers[i];
        snprintf(names[i], sizeof(names[i]), "f%zu m", o->numbers[i]);
        rows[i] = (struct pprof_row){names[i], "bytes=48", {count, 10 * count}};
        if (o->split) {
            rows[o->n + i] = rows[i];
            rows[o->n + i].values[0] -= 1;
            rows[o->n + i].values[1] -= 10;
            rows[i].values[0] = 1;
            rows[i].values[1] = 10;
        }
    }
    return o->split ? 2 * o->n : o->n;
}

/* Writes the expected result: stacks that were in the profile before have grown by 1, others are
 * new. */
static void expect(const struct order *o, const struct order *before, int64_t at, struct buf *text)
{
    for (size_t i = 0; i < o->n; i++) {
        bool known = false;
        for (size_t k = 0; k < before->n; k++) {
            known = known || before->numbers[k] == o->numbers[i];
        }
        int64_t grown = known ? 1 : at + (int64_t)o->numbers[i];
        buf_printf(text, "f%zu;m; %lld %lld\n", o->numbers[i], (long long)grown,
                   (long long)(10 * grown));
    }
    buf_puts(text, "duration 0\n");
}

/* Stacks are found wherever they were, and are new if they were nowhere. */
TEST(stacks_in_any_order)
{
    static const struct order orders[] = {
        {"first", {1, 2, 3, 4, 5, 6, 7, 8}, 8, false},
        {"the same", {1, 2, 3, 4, 5, 6, 7, 8}, 8, false},
        {"one at the end", {1, 2, 3, 4, 5, 6, 7, 8, 9}, 9, false},
        {"one in front", {10, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 10, false},
        {"backwards", {9, 8, 7, 6, 5, 4, 3, 2, 1, 10}, 10, false},
        {"in between", {9, 11, 8, 12, 7, 6, 5, 4, 13, 3, 2, 1, 10}, 13, false},
        {"halves", {5, 4, 13, 3, 2, 1, 10, 9, 11, 8, 12, 7, 6}, 13, false},
        {"in two samples", {5, 4, 13, 3, 2, 1, 10, 9, 11, 8, 12, 7, 6}, 13, true},
        {"in two, others", {14, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15}, 15, true},
        {"in one again", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 15, false},
    };
    for (size_t variant = 0; variant < 4; variant++) {
        SCOPED(series) s = {.baseline = NULL};
        struct pprof_spec spec = {
            .types = LOCKS, .packed = variant % 2 != 0, .first_id = variant / 2 * 1000};
        for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
            char names[24][8];
            struct pprof_row rows[48];
            size_t n = rows_of(&orders[i], (int64_t)i + 2, names, rows);
            SCOPED(buf) text = testing_buf(10000);
            buf_clear(&text);
            if (i > 0) {
                expect(&orders[i], &orders[i - 1], (int64_t)i + 2, &text);
            }
            step_(&s, &spec, rows, n, i > 0 ? DELTA_MADE : DELTA_FIRST,
                  text.len > 0 ? text.data : "", (int)i);
            CHECK_INT(s.baseline->n, orders[i].n, orders[i].what);
        }
    }
}

/* Packed numbers of any length: each value comes back, and each frame counts. */
TEST(packed_numbers)
{
    const int64_t large = INT64_MAX / 4;
    for (size_t first_id = 1; first_id < UINT64_C(1) << 60; first_id *= 100) {
        SCOPED(series) s = {.baseline = NULL};
        struct pprof_spec spec = {.types = HEAP, .packed = true, .first_id = first_id};
        STEP(&s, spec, DELTA_FIRST,
             "a;b;a; 0 0 -1 300\na;a;b; 0 0 70000 9223372036854775807\n"
             "duration 0\n",
             {"a b a", NULL, {1, 1000, -1, 300}}, {"a a b", NULL, {128, 1 << 21, 70000, INT64_MAX}},
             {"a a a", NULL, {0, large, 0, 0}});
        STEP(&s, spec, DELTA_MADE,
             "a;b;a; 127 9999000 0 0\na;a;a; 5 4611686018427387902 0 0\n"
             "duration 0\n",
             {"a b a", NULL, {128, 10000000, 0, 0}}, {"a a b", NULL, {128, 1 << 21, 0, 0}},
             {"a a a", NULL, {5, 3 * large, 0, 0}});
    }
}
