/* Each type of events becomes the samples of its profile. */
#include "tests/unit/lib/recording.h"

/* Method 1 is a.B.run(), called by method 2, a.Main.main(); stack 1 has both. */
static void start(struct recording *r, int64_t ticks_per_second)
{
    recording_init(r, ticks_per_second);
    recording_method(r, 1, "a/B", "run");
    recording_method(r, 2, "a/Main", "main");
    recording_stack(r, 1, false, (const uint64_t[]){1, 10, 2, 20}, 2);
    recording_stack(r, 2, false, (const uint64_t[]){2, 21}, 1);
}

static const struct jfr_options rate_100 = {.sample_rate = 100, .seed = 1};

static void expect(struct recording *r, const struct jfr_options *options, const char *want,
                   const char *row)
{
    recording_end_chunk(r);
    recording_expect(r, options, want, row);
    recording_done(r);
}

TEST(execution_samples)
{
    struct recording r;
    start(&r, 1000000000);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 2, 1, STATE_PARKED_ID, 0, 0, 0);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 3, 2, STATE_RUNNABLE_ID, 0, 0, 0);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 4, 1, STATE_SLEEPING_ID, 0, 0, 0);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 5, 1, 77, 0, 0, 0); /* no such state */
    expect(&r, &rate_100,
           "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
           "a/B.run:10;a/Main.main:20 20000000\n"
           "a/Main.main:21 10000000\n",
           "states");
}

/* Frames of native code have the library as their class, or none: those of the kernel, of programs
 * and of code that the profiler could not walk. The type of a frame is no part of its name, as in
 * Pyroscope's parser: a class that is empty keeps the dot. The methods are those that
 * async-profiler has written for a program with JNI on Linux. */
TEST(frames_of_native_code)
{
    static const struct {
        const char *type, *class, *method, *want;
    } cases[] = {
        {"Interpreted", "sun/misc/Unsafe", "park", "sun/misc/Unsafe.park"},
        {"Native", "java/lang/Thread", "sleep0", "java/lang/Thread.sleep0"},
        {"C++", "libjvm.so", "Unsafe_Park", "libjvm.so.Unsafe_Park"},
        {"C++", "libasyncProfiler.so", "LockTracer::UnsafeParkHook",
         "libasyncProfiler.so.LockTracer::UnsafeParkHook"},
        {"C++", "./tmp/libzstd-jni-1.5.1-16931311898282279136.so", "ZSTD_compress",
         "libzstd-jni-_.so.ZSTD_compress"},
        {"Native", "libpthread-2.17.so;649be141 (deleted)", "pthread_cond_timedwait",
         "libpthread-2.17.so;649be141 (deleted).pthread_cond_timedwait"},
        {"Native", "", "/usr/lib64/libpthread-2.17.so", "./usr/lib64/libpthread-2.17.so"},
        {"Native", "", "unknown", ".unknown"},
        {"Kernel", "", "do_futex", ".do_futex"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct recording r;
        char want[256];
        recording_init(&r, 1000000000);
        recording_frame_type(&r, 5, cases[i].type);
        r.frame_type = 5;
        recording_method(&r, 1, cases[i].class, cases[i].method);
        recording_method(&r, 2, "a/Main", "main");
        recording_stack(&r, 1, false, (const uint64_t[]){1, 0, 2, 20}, 2);
        EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
        (void)snprintf(want, sizeof(want),
                       "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
                       "%s:0;a/Main.main:20 10000000\n",
                       cases[i].want);
        expect(&r, &rate_100, want, cases[i].method);
    }
}

TEST(execution_samples_of_wall)
{
    struct recording r;
    start(&r, 1000000000);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    recording_setting(&r, 0, "event", "wall");
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 2, 1, STATE_SLEEPING_ID, 0, 0, 0);
    expect(&r, &rate_100,
           "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
           "a/B.run:10;a/Main.main:20 20000000\n"
           "wall wall:nanoseconds (wall:nanoseconds 10000000)\n"
           "a/B.run:10;a/Main.main:20 20000000\n",
           "from the setting on");
}

TEST(wall_clock_samples)
{
    struct recording r;
    start(&r, 1000000000);
    EVENT(&r, CLASS_WALL_CLOCK_SAMPLE, 1, STATE_RUNNABLE_ID, 3, 1, 0, 0, 0);
    expect(&r, &rate_100,
           "wall wall:nanoseconds (wall:nanoseconds 10000000)\n"
           "a/B.run:10;a/Main.main:20 30000000\n",
           "of another event");
    start(&r, 1000000000);
    recording_setting(&r, 0, "event", "wall");
    EVENT(&r, CLASS_WALL_CLOCK_SAMPLE, 1, STATE_RUNNABLE_ID, 3, 1, 0, 0, 0);
    EVENT(&r, CLASS_WALL_CLOCK_SAMPLE, 1, STATE_PARKED_ID, 4, 1, 0, 0, 0);
    expect(&r, &rate_100,
           "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
           "a/B.run:10;a/Main.main:20 30000000\n"
           "wall wall:nanoseconds (wall:nanoseconds 10000000)\n"
           "a/B.run:10;a/Main.main:20 70000000\n",
           "running ones use the processor");
}

TEST(cpu_time_samples)
{
    SCOPED(recording) r;
    struct jfr_facts facts;
    struct err err = ERR_INIT;
    SCOPED_MEMORY char *text;
    start(&r, 2000000000);
    EVENT(&r, CLASS_CPU_TIME_SAMPLE, 1, 1, 5, 0, 40000000);
    EVENT(&r, CLASS_CPU_TIME_SAMPLE, 1, 1, 5, 0, 20000001);
    EVENT(&r, CLASS_CPU_TIME_SAMPLE, 1, 1, 5, 1, 20000000); /* failed */
    recording_end_chunk(&r);
    assert_true(recording_read(recording_bytes(&r), &rate_100, &facts, &text, &err));
    CHECK_STR(text,
              "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
              "a/B.run:10;a/Main.main:20 30000000\n",
              "ticks of 0.5 ns, whatever the rate");
    CHECK_INT(facts.failed, 1, "");
    CHECK_INT(facts.samples, 2, "");
}

TEST(allocations)
{
    struct recording r;
    start(&r, 2000000000);
    EVENT(&r, CLASS_IN_NEW_TLAB, 1, 1, 24, 1000);
    EVENT(&r, CLASS_IN_NEW_TLAB, 1, 1, 24, 500);
    EVENT(&r, CLASS_OUTSIDE_TLAB, 1, 1, 4096);
    EVENT(&r, CLASS_ALLOCATION_SAMPLE, 1, 2, 7);
    EVENT(&r, CLASS_LIVE_OBJECT, 1, 2, 64);
    EVENT(&r, CLASS_MALLOC, 1, 2, 0xfff, 128);
    expect(&r, &rate_100,
           "memory alloc_in_new_tlab_objects:count alloc_in_new_tlab_bytes:bytes (space:bytes 0)\n"
           "a/B.run:10;a/Main.main:20 2 1500\n"
           "memory alloc_outside_tlab_objects:count alloc_outside_tlab_bytes:bytes "
           "(space:bytes 0)\n"
           "a/B.run:10;a/Main.main:20 1 4096\n"
           "memory alloc_sample_objects:count alloc_sample_bytes:bytes (space:bytes 0)\n"
           "a/Main.main:21 1 7\n"
           "memory live:count (objects:count 0)\n"
           "a/Main.main:21 1\n"
           "memory malloc_objects:count malloc_bytes:bytes (: 0)\n"
           "a/Main.main:21 1 128\n",
           "");
}

TEST(delays_are_nanoseconds)
{
    struct recording r;
    start(&r, 2800000000);
    EVENT(&r, CLASS_MONITOR_ENTER, 1, 1, 2800000000, 0, 0, 0);
    EVENT(&r, CLASS_MONITOR_ENTER, 1, 1, 2799, 0, 0, 0);
    EVENT(&r, CLASS_THREAD_PARK, 1, 1, 5600, 0);
    EVENT(&r, CLASS_THREAD_PARK, 1, 2, UINT64_C(0x7fffffffffffffff), 0);
    expect(&r, &rate_100,
           "mutex contentions:count delay:nanoseconds (mutex:count 0)\n"
           "a/B.run:10;a/Main.main:20 2 1000000999\n"
           "block contentions:count delay:nanoseconds (block:count 0)\n"
           "a/B.run:10;a/Main.main:20 1 2000\n"
           "a/Main.main:21 1 3294061441733848502\n",
           "");
}

/* Sums stay at the largest number. */
TEST(sums_do_not_overflow)
{
    struct recording r;
    start(&r, 1);
    for (size_t i = 0; i < 3; i++) {
        EVENT(&r, CLASS_MONITOR_ENTER, 1, 1, UINT64_C(0x7000000000000000), 0, 0, 0);
    }
    EVENT(&r, CLASS_WALL_CLOCK_SAMPLE, 1, 0, UINT64_MAX, 1, 0, 0, 0);
    EVENT(&r, CLASS_WALL_CLOCK_SAMPLE, 1, 0, UINT64_MAX, 1, 0, 0, 0);
    expect(&r, &rate_100,
           "wall wall:nanoseconds (wall:nanoseconds 10000000)\n"
           "a/B.run:10;a/Main.main:20 9223372036854775807\n"
           "mutex contentions:count delay:nanoseconds (mutex:count 0)\n"
           "a/B.run:10;a/Main.main:20 3 9223372036854775807\n",
           "");
}

TEST(stacks_and_methods_that_are_not_there)
{
    SCOPED(recording) r;
    struct jfr_facts facts;
    struct err err = ERR_INIT;
    SCOPED_MEMORY char *text;
    start(&r, 1000000000);
    recording_stack(&r, 3, true, (const uint64_t[]){99, 1, 2, 4294967295}, 2);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 3, STATE_RUNNABLE_ID, 0, 0, 0);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 0, STATE_RUNNABLE_ID, 0, 0, 0);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 50, STATE_SLEEPING_ID, 0, 0, 0);
    EVENT(&r, CLASS_OTHER, 1, 2, recording_text(&r, "no profile"));
    recording_end_chunk(&r);
    assert_true(recording_read(recording_bytes(&r), &rate_100, &facts, &text, &err));
    CHECK_STR(text,
              "process_cpu cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
              "a/Main.main:4294967295 10000000\n",
              "a line of -1 is as Pyroscope has it");
    CHECK_INT(facts.no_method, 1, "");
    CHECK_INT(facts.no_stack, 1, "");
    CHECK_INT(facts.truncated, 1, "");
    CHECK_INT(facts.events, 4, "");
}

TEST(periods_of_settings)
{
    static const struct {
        const char *name, *value;
        uint64_t id;
        const char *want;
    } cases[] = {
        {"period", "20 ms", CLASS_EXECUTION_SAMPLE, "20000000"},
        {"period", "1 s", CLASS_EXECUTION_SAMPLE, "1000000000"},
        {"interval", "5000000", CLASS_EXECUTION_SAMPLE, "5000000"},
        {"interval", "0", CLASS_EXECUTION_SAMPLE, "10000000"},
        {"period", "everyChunk", CLASS_EXECUTION_SAMPLE, "10000000"},
        {"period", "99999999999999999999 s", CLASS_EXECUTION_SAMPLE, "10000000"},
        {"period", "20 ms", CLASS_MALLOC, "10000000"},
        {"period", NULL, CLASS_EXECUTION_SAMPLE, "10000000"},
        {"enabled", "7", CLASS_EXECUTION_SAMPLE, "10000000"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct recording r;
        char want[200];
        const struct jfr_options settings = {.seed = 1};
        start(&r, 1000000000);
        EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 2, STATE_RUNNABLE_ID, 0, 0, 0);
        recording_setting(&r, cases[i].id, cases[i].name, cases[i].value);
        snprintf(want, sizeof(want),
                 "process_cpu cpu:nanoseconds (cpu:nanoseconds %s)\na/Main.main:21 %s\n",
                 cases[i].want, cases[i].want);
        expect(&r, &settings, want, cases[i].value != NULL ? cases[i].value : "null");
    }
}

/* The samples of the wall clock have a period of their own, or that of the others. */
TEST(periods_of_the_wall_clock)
{
    static const struct {
        const char *name;
        uint64_t id;
        const char *want;
    } cases[] = {{"interval", CLASS_WALL_CLOCK_SAMPLE, "7000000"},
                 {"wall", CLASS_EXECUTION_SAMPLE, "7000000"},
                 {"interval", CLASS_EXECUTION_SAMPLE, "7000000"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct recording r;
        char want[200];
        const struct jfr_options settings = {.seed = 1};
        start(&r, 1000000000);
        EVENT(&r, CLASS_WALL_CLOCK_SAMPLE, 1, 0, 1, 2, 0, 0, 0);
        recording_setting(&r, cases[i].id, cases[i].name, "7000000");
        snprintf(want, sizeof(want),
                 "wall wall:nanoseconds (wall:nanoseconds %s)\na/Main.main:21 %s\n", cases[i].want,
                 cases[i].want);
        expect(&r, &settings, want, cases[i].name);
    }
}
