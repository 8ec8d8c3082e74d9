/* Type, time and format by the content of a profile, and changing its time. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "cli/import/summary.h"
#include "pprof/gzip.h"
#include "pprof/restamp.h"
#include "tests/unit/lib/pprof_writer.h"

#define T0 INT64_C(1795230000000000000)

/* Makes a profile from sample types and period as "type/unit ..."; functions are only strings. */
static void make(struct buf *out, const char *types, const char *period, const char *functions)
{
    char text[512];
    const char *strings[64] = {""};
    uint64_t n = 1;
    buf_init(out, 65536);
    SCOPED(buf) inner = testing_buf(1024);
    int size =
        snprintf(text, sizeof(text), "%s%s%s %s", types, period[0] ? " " : "", period, functions);
    assert_true(size > 0 && (size_t)size < sizeof(text));
    size_t type_words = 0;
    for (const char *p = types; *p; p++) {
        type_words += *p == '/';
    }
    size_t value = 0;
    char *save = NULL;
    for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char *slash = value < type_words + (period[0] != '\0') ? strchr(word, '/') : NULL;
        assert_true(n < 60);
        strings[n++] = word;
        if (slash == NULL) {
            continue;
        }
        *slash = '\0';
        strings[n++] = slash + 1;
        put_num(&inner, 1, n - 2);
        put_num(&inner, 2, n - 1);
        put_sub(out, value < type_words ? 1 : 11, &inner);
        value++;
    }
    for (uint64_t i = 0; i < n; i++) {
        put_msg(out, 6, strings[i], strlen(strings[i]));
    }
}

TEST(type_by_sample_types)
{
    static const struct {
        const char *types, *period, *functions;
        const char *want; /* "" for none */
    } cases[] = {
        {"samples/count cpu/nanoseconds", "cpu/nanoseconds", "main", "process_cpu"},
        {"samples/count cpu/microseconds", "", "main", "process_cpu"},
        {"samples/count", "cpu/nanoseconds", "main", "process_cpu"},
        {"samples/count", "", "main", ""},
        {"alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes",
         "space/bytes", "main", "memory"},
        {"inuse_objects/count inuse_space/bytes", "", "main", "memory"},
        {"objects/count space/bytes", "space/bytes", "main", "memory"},
        {"space/bytes", "space/bytes", "main", ""},
        {"goroutine/count", "goroutine/count", "main", "goroutine"},
        {"threadcreate/count", "threadcreate/count", "main", "threadcreate"},
        {"samples/count time/nanoseconds", "wallclock/nanoseconds", "main", "fgprof"},
        {"sample/count wall/nanoseconds", "wall/nanoseconds", "main", "wall"},
        /* Mutex and block have the same types and the same period. */
        {"contentions/count delay/nanoseconds", "contentions/count", "main", ""},
        {"contentions/count delay/nanoseconds", "contentions/count", "main sync.(*Mutex).Unlock",
         "mutex"},
        {"contentions/count delay/nanoseconds", "contentions/count", "main runtime.unlock",
         "mutex"},
        {"contentions/count delay/nanoseconds", "contentions/count", "main sync.(*Mutex).Lock",
         "block"},
        {"contentions/count delay/nanoseconds", "contentions/count", "main runtime.chanrecv1",
         "block"},
        /* A lock of the runtime is released during a wait. */
        {"contentions/count delay/nanoseconds", "contentions/count",
         "runtime.selectgo runtime.unlock", "mutex"},
        {"contentions/count", "contentions/count", "sync.(*Mutex).Unlock", ""},
        {"bananas/bunches", "", "main", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) b;
        struct import_summary summary;
        struct err err = ERR_INIT;
        make(&b, cases[i].types, cases[i].period, cases[i].functions);
        enum import_verdict r =
            import_summary_read((struct sv){.p = b.data, .n = b.len}, &summary, &err);
        CHECK_INT(r, IMPORT_PROFILE, cases[i].types);
        CHECK_STR(err.msg, "", cases[i].types);
        CHECK_STR(summary.type ? summary.type : "", cases[i].want, cases[i].functions);
        CHECK_STR(summary.types, cases[i].types, "types");
    }
}

TEST(type_by_file_name)
{
    static const struct {
        const char *types, *path, *want;
    } cases[] = {
        {"contentions/count delay/nanoseconds", "/x/pprof.mutex.001.pb.gz", "mutex"},
        {"contentions/count delay/nanoseconds", "block", "block"},
        {"contentions/count delay/nanoseconds", "/mutex/p.pb.gz", ""},
        {"contentions/count delay/nanoseconds", "block-mutex.pb", ""},
        {"samples/count", "mutex.pb", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct import_summary summary = {.format = PROFILE_PPROF};
        (void)snprintf(summary.types, sizeof(summary.types), "%s", cases[i].types);
        const char *type = import_type_of_name(&summary, cases[i].path);
        CHECK_STR(type ? type : "", cases[i].want, cases[i].path);
    }
}

TEST(files_that_are_not_profiles)
{
    SCOPED(scratch) *scratch = scratch_new();
    SCOPED(buf) b;
    struct sv packed;
    make(&b, "samples/count cpu/nanoseconds", "", "main");
    assert_true(gzip_deflate(scratch, (struct sv){.p = b.data, .n = b.len}, &packed));
    const struct {
        const char *row;
        struct sv body;
        enum import_verdict want;
        const char *says;
    } cases[] = {
        {"html", SV("<html><body></body></html>"), IMPORT_OTHER, "HTML"},
        {"json", SV("{\"a\": 1}"), IMPORT_OTHER, "JSON"},
        {"text", SV("just a text, no more and no less"), IMPORT_OTHER, "text"},
        {"empty", SV(""), IMPORT_OTHER, "empty"},
        {"png", SV("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), IMPORT_OTHER, "not a pprof"},
        {"cut gzip", {.p = packed.p, .n = packed.n - 9}, IMPORT_DAMAGED, "damaged gzip"},
        {"checksum", {.p = packed.p, .n = packed.n - 1}, IMPORT_DAMAGED, "damaged"},
        {"no strings", SV("\x0a\x04\x08\x01\x10\x02"), IMPORT_DAMAGED, "damaged profile"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct import_summary summary;
        struct err err = ERR_INIT;
        CHECK_INT(import_summary_read(cases[i].body, &summary, &err), cases[i].want, cases[i].row);
        CHECK_CONTAINS(err.msg, cases[i].says, cases[i].row);
    }
    struct import_summary summary;
    CHECK_INT(import_summary_read(packed, &summary, NULL), IMPORT_PROFILE, "whole");
    struct sv old = SV("heap profile: 1: 2 [3: 4] @ heapprofile\n1: 2 [3: 4] @ 0x10\n");
    CHECK_INT(import_summary_read(old, &summary, NULL), IMPORT_OLD, "to be converted");
}

static void put_be64(char *at, uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8) {
        at[i] = (char)(unsigned char)v;
    }
}

static void put_chunk(char *at, uint64_t size, int64_t start, int64_t duration)
{
    static const char magic[8] = {'F', 'L', 'R', 0, 0, 2, 0, 1};
    memset(at, 0, 68);
    memcpy(at, magic, sizeof(magic));
    put_be64(at + 8, size);
    put_be64(at + 32, (uint64_t)start);
    put_be64(at + 40, (uint64_t)duration);
}

TEST(times_of_recordings)
{
    char two[200];
    static const struct {
        const char *row;
        uint64_t first_size;
        int64_t start, duration, want_start, want_duration;
    } cases[] = {
        {"two chunks", 100, T0, 5000, T0, 9000},
        {"the size ends the walk", 1000, T0, 5000, T0, 5000},
        {"a size of nothing", 0, T0, 5000, T0, 5000},
        {"negative times", 1000, INT64_MIN, INT64_MIN, 0, 0},
        {"times that overflow", 1000, INT64_MAX - 5, 100, INT64_MAX - 5, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct import_summary summary;
        memset(two, 0, sizeof(two));
        put_chunk(two, cases[i].first_size, cases[i].start, cases[i].duration);
        put_chunk(two + 100, 100, T0 + 6000, 3000);
        struct sv body = {.p = two, .n = sizeof(two)};
        CHECK_INT(import_summary_read(body, &summary, NULL), IMPORT_PROFILE, cases[i].row);
        CHECK_INT(summary.format, PROFILE_JFR, cases[i].row);
        CHECK_INT(summary.time_ns, cases[i].want_start, cases[i].row);
        CHECK_INT(summary.duration_ns, cases[i].want_duration, cases[i].row);
    }
}

/* The old time is gone, and gzip stays gzip. */
TEST(changing_the_time)
{
    SCOPED(scratch) *scratch = scratch_new();
    SCOPED(buf) b;
    make(&b, "samples/count cpu/nanoseconds", "cpu/nanoseconds", "main");
    put_num(&b, 9, (uint64_t)T0);
    put_num(&b, 10, 7000);
    struct sv plain = {.p = b.data, .n = b.len};
    struct sv packed;
    assert_true(gzip_deflate(scratch, plain, &packed));
    for (int gzip = 0; gzip < 2; gzip++) {
        for (int64_t duration = -1; duration < 1; duration++) {
            SCOPED_MEMORY char *data = NULL;
            size_t size = 0;
            struct import_summary summary;
            struct err err = ERR_INIT;
            bool ok = pprof_restamp(gzip ? packed : plain, T0 - 5, duration, &data, &size, &err);
            CHECK_STR(err.msg, "", "restamp");
            assert_true(ok);
            struct sv out = {.p = data, .n = size};
            CHECK_INT(gzip_is(out), gzip, "gzip");
            CHECK_INT(import_summary_read(out, &summary, &err), IMPORT_PROFILE, err.msg);
            CHECK_INT(summary.time_ns, T0 - 5, "time");
            CHECK_INT(summary.duration_ns, duration < 0 ? 7000 : 0, "duration");
            CHECK_STR(summary.types, "samples/count cpu/nanoseconds", "types");
        }
    }
    struct err err = ERR_INIT;
    char *data = NULL;
    size_t size = 0;
    assert_false(pprof_restamp(SV("nothing of the kind"), T0, -1, &data, &size, &err));
    assert_null(data);
}
