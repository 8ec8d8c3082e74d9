/* Chunks, checkpoints, and the encodings of integers and strings. */
#include "tests/unit/lib/recording.h"

#include "jfr/cursor.h"
#include "pprof/scratch.h"

SCOPED_POINTER(scratch, scratch_free)

static const struct jfr_options options = {.sample_rate = 100, .seed = 1};

#define ONE_SAMPLE                                                                                 \
    "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"                                     \
    "a/B.run:10;a/Main.main:20 10000000\n"

/* A chunk with one sample; ids: where its numbers begin. */
static void put_chunk(struct recording *r, uint64_t ids)
{
    recording_method(r, ids + 1, "a/B", "run");
    recording_method(r, ids + 2, "a/Main", "main");
    recording_stack(r, ids + 1, false, (const uint64_t[]){ids + 1, 10, ids + 2, 20}, 2);
    EVENT(r, CLASS_EXECUTION_SAMPLE, 1, ids + 1, STATE_RUNNABLE_ID, 0, 0, 0);
    recording_end_chunk(r);
}

TEST(integers_and_strings)
{
    for (unsigned encoding = 3; encoding <= 5; encoding++) {
        for (int fixed = 0; fixed <= 1; fixed++) {
            SCOPED(recording) r;
            char row[40];
            recording_init_as(&r, fixed != 0, encoding);
            put_chunk(&r, 0);
            snprintf(row, sizeof(row), "strings %u, fixed %d", encoding, fixed);
            recording_expect(&r, &options, ONE_SAMPLE, row);
        }
    }
}

/* The same stack in two chunks is one sample, though its numbers differ. */
TEST(chunks_add_up)
{
    SCOPED(recording) r;
    struct jfr_facts facts;
    struct err err = ERR_INIT;
    SCOPED_MEMORY char *text;
    recording_init(&r, 1000000000);
    r.major = 1;
    put_chunk(&r, 0);
    r.start_ns += r.duration_ns;
    r.major = 2;
    recording_begin_chunk(&r);
    put_chunk(&r, UINT64_C(0xfffffffffffffff0));
    assert_true(recording_read(recording_bytes(&r), &options, &facts, &text, &err));
    CHECK_STR(text,
              "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
              "a/B.run:10;a/Main.main:20 20000000\n",
              "");
    CHECK_INT(facts.chunks, 2, "");
    CHECK_INT(facts.start_ns, r.start_ns - r.duration_ns, "");
    CHECK_INT(facts.end_ns, r.start_ns + r.duration_ns, "");
}

/* Each chunk has a tick rate and a period of its own. */
TEST(chunks_with_other_rates)
{
    SCOPED(recording) r;
    const struct jfr_options settings = {.seed = 1};
    recording_init(&r, 2000000000);
    recording_setting(&r, CLASS_EXECUTION_SAMPLE, "period", "20 ms");
    put_chunk(&r, 0);
    recording_begin_chunk(&r);
    r.ticks_per_second = 500000000;
    recording_method(&r, 1, "a/B", "run");
    recording_stack(&r, 1, false, (const uint64_t[]){1, 10}, 1);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    EVENT(&r, CLASS_THREAD_PARK, 1, 1, 100, 0);
    recording_setting(&r, CLASS_EXECUTION_SAMPLE, "period", "10 ms");
    recording_end_chunk(&r);
    recording_expect(&r, &settings,
                     "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
                     "a/B.run:10;a/Main.main:20 20000000\n"
                     "a/B.run:10 10000000\n"
                     "block contentions:count delay:nanoseconds (block:count 0)\n"
                     "a/B.run:10 1 200\n",
                     "");
}

TEST(several_checkpoints)
{
    SCOPED(recording) r;
    recording_init(&r, 1000000000);
    recording_method(&r, 1, "a/B", "run");
    recording_method(&r, 9, "older", "loses");
    recording_checkpoint(&r);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    recording_method(&r, 2, "a/Main", "main");
    recording_checkpoint(&r);
    recording_method(&r, 9, "newer", "wins");
    recording_stack(&r, 1, false, (const uint64_t[]){1, 10, 2, 20, 9, 30}, 3);
    recording_end_chunk(&r);
    recording_expect(&r, &options,
                     "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
                     "a/B.run:10;a/Main.main:20;newer.wins:30 10000000\n",
                     "");
}

TEST(raw_heads_in_a_pool)
{
    SCOPED(recording) r;
    recording_init(&r, 1000000000);
    r.raw_head = true;
    put_chunk(&r, 0);
    recording_expect(&r, &options, ONE_SAMPLE, "");
}

/* The name of a class may be a text, and a text may be a constant. */
TEST(texts_of_other_kinds)
{
    struct recording_class classes[RECORDING_CLASSES];
    SCOPED(recording) r;
    memcpy(classes, recording_classes, sizeof(classes));
    recording_init(&r, 1000000000);
    recording_method(&r, 1, "unused", "run");
    struct buf *b = recording_pool(&r, CLASS_CLASS, 2);
    recording_number(&r, b, 0, 4);
    recording_string(&r, b, "a/Text");
    b = recording_pool(&r, CLASS_METHOD, 2);
    recording_number(&r, b, 2, 8);
    recording_number(&r, b, 500, 8);
    recording_number(&r, b, 0, 8);
    recording_number(&r, b, 0, 4);
    buf_putc(b, 0);
    b = recording_pool(&r, CLASS_SYMBOL, 500);
    buf_putc(b, JFR_STRING_POOL);
    recording_number(&r, b, 600, 8);
    recording_string(&r, recording_pool(&r, CLASS_STRING, 600), "pooled");
    recording_stack(&r, 1, false, (const uint64_t[]){2, 7}, 1);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    for (size_t i = 0; i < RECORDING_CLASSES; i++) {
        if (classes[i].id == CLASS_CLASS) {
            classes[i].fields[1] = (struct recording_field){"name", CLASS_STRING, false, false};
        }
    }
    /* Class 1 is not needed, and would not fit what its class is now. */
    buf_clear(&r.pools[CLASS_CLASS - CLASS_LONG]);
    r.counts[CLASS_CLASS - CLASS_LONG] = 1;
    b = &r.pools[CLASS_CLASS - CLASS_LONG];
    recording_number(&r, b, 2, 8);
    recording_number(&r, b, 0, 4);
    recording_string(&r, b, "a/Text");
    recording_end_chunk_with(&r, classes, RECORDING_CLASSES);
    recording_expect(&r, &options,
                     "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
                     "a/Text.pooled:7 10000000\n",
                     "");
}

TEST(types_are_counted)
{
    SCOPED(recording) r;
    struct err err = ERR_INIT;
    struct jfr_type type;
    const struct jfr_options counting = {.sample_rate = 100, .seed = 1, .count_types = true};
    recording_init(&r, 1000000000);
    EVENT(&r, CLASS_OTHER, 1, 2, recording_text(&r, "x"));
    put_chunk(&r, 0);
    recording_begin_chunk(&r);
    put_chunk(&r, 0);
    struct jfr_reader *reader = jfr_reader_new(&counting, &err);
    assert_true(jfr_reader_all(reader, recording_bytes(&r), &err));
    assert_true(jfr_reader_type(reader, 0, &type));
    assert_true(sv_eq(type.name, SV("jdk.ExecutionSample")));
    CHECK_INT(type.events, 2, "");
    assert_true(type.bytes > 0);
    assert_true(jfr_reader_type(reader, 1, &type));
    assert_true(sv_eq(type.name, SV("test.Other")));
    CHECK_INT(type.events, 1, "");
    assert_false(jfr_reader_type(reader, 2, &type));
    jfr_reader_free(reader);
}

TEST(whole_conversion)
{
    SCOPED(recording) r;
    struct err err = ERR_INIT;
    struct jfr_result result;
    SCOPED(scratch) *s = scratch_new();
    struct sv packed;
    recording_init(&r, 1000000000);
    recording_setting(&r, 0, "event", "itimer");
    put_chunk(&r, 0);
    assert_true(gzip_deflate(s, recording_bytes(&r), &packed));
    const struct jfr_input in = {.body = packed, .options = options, .scratch = s};
    assert_true(jfr_convert(&in, &result, &err));
    CHECK_INT(result.n, 1, "");
    CHECK_STR(result.made[0].name, "process_cpu", "");
    CHECK_STR(result.made[0].first_type, "cpu", "");
    CHECK_STR(result.event, "itimer", "");
    CHECK_INT(result.damaged, false, "");
    assert_true(gzip_is((struct sv){result.made[0].data, result.made[0].size}));
    jfr_result_done(&result);
}
