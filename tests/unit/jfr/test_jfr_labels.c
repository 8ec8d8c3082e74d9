/* Labels of samples: contexts, span ids and span names. */
#include "tests/unit/lib/recording.h"

#include "pprof/put.h"
#include "pprof/scratch.h"

SCOPED_POINTER(scratch, scratch_free)

/* Appends an entry of map 1 (contexts; bytes are labels) or 2 (strings). */
static void entry(struct buf *out, unsigned map, uint64_t key, const void *bytes, size_t n)
{
    SCOPED(buf) b = testing_buf(4096);
    wire_put_number(&b, 1, key);
    wire_put_bytes(&b, 2, bytes, n);
    wire_put_bytes(out, map, b.data, b.len);
}

static void string(struct buf *out, uint64_t key, const char *text)
{
    entry(out, 2, key, text, strlen(text));
}

/* pairs: numbers of name and value. */
static void context(struct buf *out, uint64_t key, const uint64_t *pairs, size_t n)
{
    SCOPED(buf) b = testing_buf(4096);
    for (size_t i = 0; i < n; i++) {
        SCOPED(buf) pair = testing_buf(64);
        wire_put_number(&pair, 1, pairs[2 * i]);
        wire_put_number(&pair, 2, pairs[2 * i + 1]);
        wire_put_bytes(&b, 1, pair.data, pair.len);
    }
    entry(out, 1, key, b.data, b.len);
}

static void make_snapshot(struct buf *out)
{
    buf_init(out, 65536);
    string(out, 1, "thread");
    string(out, 2, "main");
    string(out, 3, "old");
    string(out, 3, "GET /");
    string(out, 4, "");
    context(out, 10, (const uint64_t[]){1, 2}, 1);
    context(out, 11, (const uint64_t[]){1, 99, 98, 2, 4, 2, 1, 3}, 4);
}

static void make_recording(struct recording *r)
{
    recording_init(r, 1000000000);
    recording_method(r, 1, "A", "f");
    recording_stack(r, 1, false, (const uint64_t[]){1, 5}, 1);
    EVENT(r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 10, 0, 0);
    EVENT(r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 10, 0, 0);
    EVENT(r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 11, 0, 0);
    EVENT(r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 10, 0xabc, 3);
    EVENT(r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 77, 0, 4);
    EVENT(r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, UINT64_MAX, 50);
    EVENT(r, CLASS_MONITOR_ENTER, 1, 1, 7, 10, 0, 0);
    recording_end_chunk(r);
}

TEST(with_labels)
{
    SCOPED(recording) r;
    SCOPED(buf) snapshot;
    struct sv packed;
    SCOPED(scratch) *s = scratch_new();
    static const char want[] = "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
                               "A.f:5 20000000 thread=main\n"
                               "A.f:5 10000000 thread=GET /\n"
                               "A.f:5 10000000 thread=main profile_id=0000000000000abc "
                               "span_name=GET /\n"
                               "A.f:5 10000000\n"
                               "A.f:5 10000000 profile_id=ffffffffffffffff\n"
                               "mutex contentions:count delay:nanoseconds (mutex:count 0)\n"
                               "A.f:5 1 7 thread=main\n";
    make_recording(&r);
    make_snapshot(&snapshot);
    struct jfr_options options = {
        .sample_rate = 100, .labels = {snapshot.data, snapshot.len}, .seed = 1};
    recording_expect(&r, &options, want, "plain");
    assert_true(gzip_deflate(s, options.labels, &packed));
    options.labels = packed;
    recording_expect(&r, &options, want, "gzip");
}

/* Without the part, contexts and names of spans mean nothing; ids of spans do. */
TEST(without_labels)
{
    SCOPED(recording) r;
    const struct jfr_options options = {.sample_rate = 100, .seed = 1};
    make_recording(&r);
    recording_expect(&r, &options,
                     "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
                     "A.f:5 40000000\n"
                     "A.f:5 10000000 profile_id=0000000000000abc\n"
                     "A.f:5 10000000 profile_id=ffffffffffffffff\n"
                     "mutex contentions:count delay:nanoseconds (mutex:count 0)\n"
                     "A.f:5 1 7\n",
                     "");
}

TEST(damaged_labels)
{
    SCOPED(buf) snapshot;
    make_snapshot(&snapshot);
    size_t failed = 0;
    for (size_t n = 1; n < snapshot.len; n++) {
        struct err err = ERR_INIT;
        SCOPED_MEMORY char *copy = testing_memory(n);
        memcpy(copy, snapshot.data, n);
        const struct jfr_options options = {.labels = {copy, n}};
        struct jfr_reader *r = jfr_reader_new(&options, &err);
        assert_true((r == NULL) == (err.kind == ERR_INPUT));
        failed += r == NULL;
        jfr_reader_free(r);
    }
    assert_true(failed > snapshot.len / 2);
    struct err err = ERR_INIT;
    const struct jfr_options options = {.labels = SV("\x1f\x8b\x08 nothing")};
    assert_null(jfr_reader_new(&options, &err));
    CHECK_CONTAINS(err.msg, "labels: ", "");
}
