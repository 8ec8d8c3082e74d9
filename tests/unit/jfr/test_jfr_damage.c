/* Damaged and hostile recordings: an error that names the place, and what was good is kept. */
#include "tests/unit/lib/recording.h"

#include "tests/unit/lib/failing_malloc.h"

SCOPED_POINTER(scratch, scratch_free)

static const struct jfr_options options = {.sample_rate = 100, .seed = 1, .count_types = true};

#define GOOD                                                                                       \
    "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"                                     \
    "a/B.run:10 10000000\n"

static void put_chunk(struct recording *r)
{
    recording_method(r, 1, "a/B", "run");
    recording_stack(r, 1, false, (const uint64_t[]){1, 10}, 1);
    recording_checkpoint(r);
    recording_setting(r, 0, "event", "cpu");
    EVENT(r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    recording_end_chunk(r);
}

/* Reads a copy of its own size, so that a sanitizer sees a read past its end. */
static bool read_copy(struct sv v, char **ret_text, struct err *err)
{
    SCOPED_MEMORY char *copy = testing_memory(v.n == 0 ? 1 : v.n);
    memcpy(copy, v.p, v.n);
    bool ok = recording_read((struct sv){copy, v.n}, &options, NULL, ret_text, err);
    return ok;
}

TEST(every_prefix)
{
    SCOPED(recording) r;
    recording_init(&r, 1000000000);
    put_chunk(&r);
    size_t first = r.out.len;
    recording_begin_chunk(&r);
    put_chunk(&r);
    for (size_t n = 0; n < r.out.len; n++) {
        struct err err = ERR_INIT;
        SCOPED_MEMORY char *text;
        char row[40];
        snprintf(row, sizeof(row), "%zu bytes", n);
        bool ok = read_copy((struct sv){r.out.data, n}, &text, &err);
        CHECK_INT(ok, n == first, row);
        CHECK_INT(err.kind, ok ? ERR_NONE : ERR_INPUT, row);
        CHECK_STR(text, n < first ? "" : GOOD, row);
        if (!ok) {
            CHECK_CONTAINS(err.msg, n < first ? "chunk 1 at byte 0: " : "chunk 2 at byte ", row);
        }
    }
}

/* A byte of each chunk at a time gets other values: nothing is read past its end. */
TEST(every_byte)
{
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    SCOPED(recording) r;
    recording_init(&r, 1000000000);
    put_chunk(&r);
    for (size_t i = 0; i < r.out.len; i++) {
        char before = r.out.data[i];
        for (size_t k = 0; k < sizeof(values); k++) {
            struct err err = ERR_INIT;
            SCOPED_MEMORY char *text;
            r.out.data[i] = (char)values[k];
            bool ok = read_copy(recording_bytes(&r), &text, &err);
            assert_true(ok == (err.kind == ERR_NONE));
        }
        r.out.data[i] = before;
    }
}

TEST(bad_heads)
{
    static const struct {
        size_t offset;
        uint64_t value;
        size_t bytes;
        const char *error;
    } cases[] = {
        {0, 'X', 1, "chunk 1 at byte 0: expected a chunk, which begins with FLR and a 0"},
        {4, 0x00000009, 4, "a chunk of version 0.9, the format before JDK 9: expected 1.x or 2.x"},
        {4, 3, 2, "a chunk of version 3.0: expected 1.x or 2.x"},
        {8, 0, 8, "a chunk that is still being written"},
        {64, 255, 1, "a chunk that is still being written"},
        {8, 67, 8, "a chunk of 67 bytes: expected at least 68"},
        {8, JFR_CHUNK_MAX + 1, 8, "expected at most 1073741824"},
        {8, 1000000, 8, "a chunk of 1000000 bytes: got only"},
        {16, 67, 8, "offset 67 of the last checkpoint: expected one within the chunk's"},
        {16, UINT64_MAX, 8, "offset -1 of the last checkpoint: expected one within the chunk's"},
        {16, 68, 8, "at offset 68: expected a checkpoint, an event of type 1"},
        {24, 1000000, 8, "offset 1000000 of the metadata: expected one within the chunk's"},
        {24, 68, 8, "at offset 68: expected the metadata, an event of type 0"},
        {56, 0, 8, "a chunk with 0 ticks per second: expected at least 1"},
        {56, UINT64_MAX, 8, "a chunk with -1 ticks per second: expected at least 1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(recording) r;
        struct err err = ERR_INIT;
        SCOPED_MEMORY char *text;
        recording_init(&r, 1000000000);
        EVENT(&r, CLASS_OTHER, 1, 2, recording_text(&r, "first"));
        put_chunk(&r);
        recording_put_at(&r, cases[i].offset, cases[i].value, cases[i].bytes);
        assert_false(read_copy(recording_bytes(&r), &text, &err));
        CHECK_CONTAINS(err.msg, cases[i].error, cases[i].error);
        CHECK_STR(text, "", cases[i].error);
    }
}

/* Puts an event of a type with these bytes into a good chunk. */
static void expect_damage(unsigned type, const char *bytes, size_t n, const char *error)
{
    SCOPED(recording) r;
    struct err err = ERR_INIT;
    SCOPED_MEMORY char *text;
    recording_init(&r, 1000000000);
    recording_method(&r, 1, "a/B", "run");
    recording_stack(&r, 1, false, (const uint64_t[]){1, 10}, 1);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    SCOPED(buf) content = testing_buf(4096);
    buf_append(&content, bytes, n);
    recording_put_event(&r, type, &content);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    recording_end_chunk(&r);
    assert_false(read_copy(recording_bytes(&r), &text, &err));
    CHECK_CONTAINS(err.msg, error, error);
    CHECK_STR(text, GOOD, "the sample before is kept");
}

TEST(bad_events)
{
    expect_damage(CLASS_EXECUTION_SAMPLE, "\x01\x01", 2, "a number without end");
    expect_damage(CLASS_ACTIVE_SETTING, "\x01\x01\x03\x7f", 4, "a value that runs past the end");
    expect_damage(CLASS_ACTIVE_SETTING, "\x01\x01\x09\x00", 4,
                  "a string of an encoding that does not exist");
}

TEST(bad_sizes)
{
    static const struct text_case cases[] = {
        {"\x80\x80\x80", "at offset 68: an event of size 0"},
        {"\xff\xff\xff", "at offset 68: an event that runs past the chunk"},
        {"\x81\x80\x80", "at offset 68: an event that is smaller than its size"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(recording) r;
        struct err err = ERR_INIT;
        SCOPED_MEMORY char *text;
        recording_init(&r, 1000000000);
        put_chunk(&r);
        memcpy(r.out.data + JFR_HEAD_SIZE, cases[i].text, 3);
        /* The size was read in full: the checkpoint that begins there is no longer the last one. */
        assert_false(read_copy(recording_bytes(&r), &text, &err));
        assert_true(strstr(err.msg, cases[i].want) != NULL ||
                    strstr(err.msg, "expected a checkpoint") != NULL);
    }
}

/* Reads a chunk whose metadata have one more class. */
static void expect_of_class(const struct recording_class *class, const char *error)
{
    struct recording_class classes[RECORDING_CLASSES + 1];
    SCOPED(recording) r;
    struct err err = ERR_INIT;
    SCOPED_MEMORY char *text;
    memcpy(classes, recording_classes, sizeof(recording_classes));
    classes[RECORDING_CLASSES] = *class;
    recording_init(&r, 1000000000);
    recording_method(&r, 1, "a/B", "run");
    recording_stack(&r, 1, false, (const uint64_t[]){1, 10}, 1);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    /* An array of 2^40 elements. */
    recording_number(&r, recording_pool(&r, class->id, 1), UINT64_C(1) << 40, 4);
    recording_end_chunk_with(&r, classes, RECORDING_CLASSES + 1);
    bool ok = read_copy(recording_bytes(&r), &text, &err);
    CHECK_CONTAINS(err.msg, error, error);
    CHECK_INT(ok, error[0] == '\0', error);
}

TEST(hostile_classes)
{
    static const struct {
        struct recording_class class;
        const char *error;
    } cases[] = {
        {{60, "test.Huge", {{"x", CLASS_LONG, false, true}}}, "more elements than bytes"},
        {{60, "test.Strings", {{"x", CLASS_STRING, false, true}}}, "more elements than bytes"},
        {{60, "test.Indexes", {{"x", CLASS_SYMBOL, true, true}}}, "more values than bytes"},
        {{60, "test.Bytes", {{"x", CLASS_BYTE, false, true}}}, "a value that runs past the end"},
        {{60, "test.Itself", {{"x", 60, false, false}}},
         "a value of a class that is not defined, or contains itself"},
        {{60, "test.Unknown", {{"x", 61, false, false}}},
         "a value of a class that is not defined, or contains itself"},
        {{60, "test.Twice", {{"x", 60, false, true}, {"y", 60, false, true}}},
         "more elements than bytes"},
        {{60, "test.Nothing", {{"x", 62, false, true}}},
         "a value of a class that is not defined, or contains itself"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect_of_class(&cases[i].class, cases[i].error);
    }
}

/* Ten classes, each of ten times the one before: it takes no time that grows like 10^10. */
TEST(classes_that_multiply)
{
    struct recording_class classes[RECORDING_CLASSES + 10];
    static const char *const names[] = {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9"};
    SCOPED(recording) r;
    struct err err = ERR_INIT;
    SCOPED_MEMORY char *text;
    memcpy(classes, recording_classes, sizeof(recording_classes));
    for (unsigned i = 0; i < 10; i++) {
        struct recording_class *c = &classes[RECORDING_CLASSES + i];
        *c = (struct recording_class){.id = 60 + i, .name = names[i]};
        for (size_t k = 0; k < RECORDING_FIELDS_MAX && i > 0; k++) {
            c->fields[k] = (struct recording_field){names[k], 59 + i, false, false};
        }
    }
    recording_init(&r, 1000000000);
    recording_pool(&r, 69, 1);
    recording_end_chunk_with(&r, classes, RECORDING_CLASSES + 10);
    assert_false(read_copy(recording_bytes(&r), &text, &err));
    CHECK_CONTAINS(err.msg, "a class that is not defined, or contains itself", "");
}

/* Writes two checkpoints; the first one says that the one before it is `before` (0: none). Returns
 * where the second one is. */
static size_t put_checkpoints(struct recording *r, size_t before)
{
    recording_init(r, 1000000000);
    r->checkpoint = before;
    recording_checkpoint(r);
    r->checkpoint = JFR_HEAD_SIZE;
    recording_end_chunk(r);
    return r->checkpoint;
}

TEST(circles_of_checkpoints)
{
    struct recording r;
    struct err err = ERR_INIT;
    char *text;
    size_t second = 0;
    for (size_t i = 0; i < 2; i++) {
        /* The length of the distance is part of it: right after the second time. */
        size_t next = put_checkpoints(&r, second == 0 ? 1000 : second);
        assert_true(i == 0 || next == second);
        second = next;
        if (i == 0) {
            recording_done(&r);
        }
    }
    assert_false(read_copy(recording_bytes(&r), &text, &err));
    CHECK_CONTAINS(err.msg, "a checkpoint that follows itself", "");
    free(text);
    recording_done(&r);
    put_checkpoints(&r, 5);
    assert_false(read_copy(recording_bytes(&r), &text, &err));
    CHECK_CONTAINS(err.msg, "a checkpoint that follows one outside of the chunk", "");
    free(text);
    recording_done(&r);
}

TEST(limits)
{
    SCOPED(recording) r;
    struct err err = ERR_INIT;
    SCOPED_MEMORY char *text;
    struct jfr_options small = options;
    small.memory_max = 4096;
    recording_init(&r, 1000000000);
    put_chunk(&r);
    assert_false(recording_read(recording_bytes(&r), &small, NULL, &text, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "");
    CHECK_CONTAINS(err.msg, "chunk 1 at byte 0: needs more than 4096 bytes of working memory", "");
}

TEST(damaged_conversions)
{
    SCOPED(recording) r;
    struct err err = ERR_INIT;
    struct jfr_result result;
    SCOPED(scratch) *s = scratch_new();
    recording_init(&r, 1000000000);
    put_chunk(&r);
    size_t first = r.out.len;
    recording_begin_chunk(&r);
    put_chunk(&r);
    struct jfr_input in = {.body = {r.out.data, r.out.len - 1}, .options = options, .scratch = s};
    assert_true(jfr_convert(&in, &result, &err));
    CHECK_INT(result.damaged, true, "");
    CHECK_INT(result.n, 1, "");
    CHECK_CONTAINS(err.msg, "chunk 2 at byte ", "");
    jfr_result_done(&result);
    in.body.n = first - 1;
    err_clear(&err);
    assert_false(jfr_convert(&in, &result, &err));
    CHECK_INT(result.n, 0, "");
    CHECK_CONTAINS(err.msg, "chunk 1 at byte 0: ", "");
    jfr_result_done(&result);
    in.body = (struct sv){"", 0};
    err_clear(&err);
    assert_false(jfr_convert(&in, &result, &err));
    jfr_result_done(&result);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct recording scenario_recording;

static void convert(bool *ret_complete)
{
    struct err err = ERR_INIT;
    struct jfr_result result;
    SCOPED(scratch) *s = scratch_new();
    const struct jfr_input in = {
        .body = recording_bytes(&scenario_recording), .options = options, .scratch = s};
    bool ok = jfr_convert(&in, &result, &err);
    assert_true(ok || err.kind == ERR_MEMORY);
    *ret_complete = ok && !result.damaged && result.n == 1;
    jfr_result_done(&result);
}

TEST(failing_allocations)
{
    recording_init(&scenario_recording, 1000000000);
    put_chunk(&scenario_recording);
    assert_true(failing_malloc_each(FAIL_OURS, convert) > 20);
    recording_done(&scenario_recording);
}
