/* Conversion of old profiles, and their errors, rule by rule. (`make delta-diff` compares with
 * google/pprof.) */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "pprof/check.h"
#include "pprof/gzip.h"
#include "pprof/legacy/legacy.h"
#include "pprof/sniff.h"
#include "pprof/wire.h"

SCOPED_POINTER(scratch, scratch_free)

#define WORDS_MAX 64
#define LOCATIONS_MAX 64
#define MAPS                                                                                       \
    "00400000-00500000 r-xp 00000000 fd:00 12   /bin/server\n"                                     \
    "00600000-00601000 rw-p 00100000 fd:00 12   /bin/server\n"                                     \
    "70000000-70010000 r-xp 00000000 fd:00 13   /lib/libc.so.6\n"
#define MAPS_DUMP "map 400000-500000+0 /bin/server\nmap 70000000-70010000+0 /lib/libc.so.6\n"

/* ---- what came out, as text ------------------------------------------------------------------ */

struct dump {
    struct buf text;
    struct sv strings[32];
    size_t n_strings;
    uint64_t addresses[LOCATIONS_MAX]; /* by id */
    uint64_t mappings[LOCATIONS_MAX];
};

static uint64_t number(struct sv message, uint64_t field)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f;
    while (wire_next(&r, &f)) {
        if (f.number == field) {
            return f.value;
        }
    }
    return 0;
}

static void collect(struct dump *d, struct sv plain)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f;
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_STRING) {
            assert_true(d->n_strings < 32);
            d->strings[d->n_strings++] = f.bytes;
        } else if (f.number == PROFILE_LOCATION) {
            uint64_t id = number(f.bytes, LOCATION_ID);
            assert_true(id < LOCATIONS_MAX);
            d->addresses[id] = number(f.bytes, LOCATION_ADDRESS);
            d->mappings[id] = number(f.bytes, LOCATION_MAPPING_ID);
        }
    }
}

static void dump_sample(struct dump *d, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f;
    SCOPED(buf) stack = testing_buf(4096);
    while (wire_next(&r, &f)) {
        struct wire_numbers n = wire_numbers_of(&f);
        uint64_t v;
        while (wire_numbers_next(&n, &v)) {
            if (f.number == SAMPLE_VALUE) {
                buf_printf(&d->text, "%lld ", (long long)v);
            } else {
                assert_true(v < LOCATIONS_MAX);
                buf_printf(&stack, " %llx/%llu", (unsigned long long)d->addresses[v],
                           (unsigned long long)d->mappings[v]);
            }
        }
    }
    buf_printf(&d->text, "@%s\n", stack.data);
}

static void dump_rest(struct dump *d, const struct wire_field *f)
{
    if (f->number == PROFILE_MAPPING) {
        buf_printf(&d->text, "map %llx-%llx+%llx %.*s\n",
                   (unsigned long long)number(f->bytes, MAPPING_START),
                   (unsigned long long)number(f->bytes, MAPPING_LIMIT),
                   (unsigned long long)number(f->bytes, MAPPING_OFFSET),
                   SV_ARG(d->strings[number(f->bytes, MAPPING_FILENAME)]));
    } else if (f->number == PROFILE_SAMPLE_TYPE || f->number == PROFILE_PERIOD_TYPE) {
        buf_printf(&d->text, "%s%.*s/%.*s\n", f->number == PROFILE_SAMPLE_TYPE ? "" : "period ",
                   SV_ARG(d->strings[number(f->bytes, VALUE_TYPE_TYPE)]),
                   SV_ARG(d->strings[number(f->bytes, VALUE_TYPE_UNIT)]));
    } else if (f->number == PROFILE_PERIOD) {
        buf_printf(&d->text, "%llu\n", (unsigned long long)f->value);
    } else if (f->number == PROFILE_TIME_NANOS || f->number == PROFILE_DURATION_NANOS) {
        buf_printf(&d->text, "%s %llu\n", f->number == PROFILE_TIME_NANOS ? "at" : "for",
                   (unsigned long long)f->value);
    }
}

static void check_output(const struct legacy_output *out, const char *want, const char *row)
{
    SCOPED(scratch) *s = scratch_new();
    struct err err = ERR_INIT;
    struct sv plain;
    struct pprof_summary summary;
    struct dump d = {.n_strings = 0};
    buf_init(&d.text, (size_t)64 * 1024);
    CHECK_INT(sniff_profile((struct sv){out->data, out->size}, &err), SNIFF_PPROF_GZIP, row);
    struct sv zipped = {out->data, out->size};
    CHECK_INT(gzip_inflate(s, zipped, (size_t)1 << 26, 0, &plain, &err), true, row);
    CHECK_INT(pprof_check(plain, &summary, &err), true, row);
    collect(&d, plain);
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f;
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE) {
            dump_sample(&d, f.bytes);
        } else {
            dump_rest(&d, &f);
        }
    }
    CHECK_CONTAINS(d.text.data, want, row);
    buf_done(&d.text);
}

/* An exact copy, so that a sanitizer sees a read past the end. */
static enum legacy_result convert(struct sv body, struct legacy_output *out, struct err *err)
{
    SCOPED_MEMORY char *copy = testing_memory(body.n == 0 ? 1 : body.n);
    memcpy(copy, body.p, body.n);
    struct legacy_input in = {
        .body = {copy, body.n}, .time_ns = 1000, .duration_ns = 20, .seed = 1};
    in.scratch = scratch_new();
    enum legacy_result r = legacy_convert(&in, out, err);
    scratch_free(in.scratch);
    return r;
}

static void check_made(struct sv body, const char *want, const char *row)
{
    struct legacy_output out;
    struct err err = ERR_INIT;
    CHECK_INT(sniff_profile(body, &err), SNIFF_LEGACY, row);
    CHECK_INT(sniff_is_profile(SNIFF_LEGACY), true, row);
    CHECK_INT(convert(body, &out, &err), LEGACY_MADE, row);
    CHECK_STR(err.msg, "", row);
    check_output(&out, want, row);
    free(out.data);
}

static void check_bad(struct sv body, enum legacy_result want, const char *message)
{
    struct legacy_output out;
    struct err err = ERR_INIT;
    CHECK_INT(convert(body, &out, &err), want, message);
    CHECK_CONTAINS(err.msg, message, message);
    assert_null(out.data);
}

/* ---- CPU ------------------------------------------------------------------------------------- */

#define END UINT64_C(0xffffffffffffffff) /* of a list of words */
#define HEADER 0, 3, 0, 10000, 0
#define TRAILER 0, 1, 0

/* The words, followed by the text. */
static struct buf cpu(const uint64_t *words, size_t size, bool big_endian, const char *maps)
{
    struct buf b = testing_buf((size_t)64 * 1024 * 1024);
    for (; *words != END; words++) {
        for (size_t i = 0; i < size; i++) {
            size_t shift = 8 * (big_endian ? size - 1 - i : i);
            buf_putc(&b, (char)(*words >> shift & 0xff));
        }
    }
    buf_puts(&b, maps);
    return b;
}

static struct sv view(const struct buf *b)
{
    return (struct sv){b->data, b->len};
}

TEST(cpu_samples)
{
    static const struct {
        const char *row;
        uint64_t words[WORDS_MAX];
        const char *maps, *want;
    } rows[] = {
        {"callers are one less, the leaf is not",
         {HEADER, 3, 2, 0x401000, 0x402000, 1, 2, 0x70000010, 0x402004, TRAILER, END},
         MAPS,
         "samples/count\ncpu/nanoseconds\n"
         "3 30000000 @ 401000/1 401fff/1\n1 10000000 @ 70000010/2 402003/1\n" MAPS_DUMP
         "period cpu/nanoseconds\n10000000\nat 1000\nfor 20\n"},
        {"the leaf twice",
         {HEADER, 1, 3, 0x401000, 0x401000, 0x402001, 1, 2, 0x403000, 0x404000, TRAILER, END},
         MAPS,
         "1 10000000 @ 401000/1 402000/1\n1 10000000 @ 403000/1 403fff/1\n"},
        {"two frames of the handler, in all samples",
         {HEADER, 1, 4, 0x401000, 0x70000011, 0x70000021, 0x402001, 1, 3, 0x403000, 0x70000011,
          0x70000021, TRAILER, END},
         MAPS,
         "1 10000000 @ 401000/1 402000/1\n1 10000000 @ 403000/1\n"},
        {"depth 0, and a count of 0",
         {HEADER, 7, 0, 0, 1, 0x401000, TRAILER, END},
         MAPS,
         "7 70000000 @\n0 0 @ 401000/1\n"},
        {"no samples", {HEADER, TRAILER, END}, MAPS, "cpu/nanoseconds\nmap"},
        {"no mappings",
         {HEADER, 1, 1, 0x401000, TRAILER, END},
         "",
         "1 10000000 @ 401000/1\nmap 0-ffffffffffffffff+0 \n"},
        {"no address, and one that nobody knows",
         {HEADER, 1, 1, 1, 1, 2, 0x50000000, 1, TRAILER, END},
         MAPS,
         "@ 1/3\n1 10000000 @ 50000000/3 0/0\n" MAPS_DUMP "map 0-ffffffffffffffff+0 \n"},
        {"garbage instead of mappings",
         {HEADER, 1, 1, 0x401000, TRAILER, END},
         "\xff\xfe garbage\n400000-\n-500000 r-xp\n00400000-00500000 r-xp\n"
         "00400000-00500000 r-xp 0 fd:00 12x /a\n00500000-00400000 r-xp 0 fd:00 12 /b\n"
         "00400000-00500000 r--p 0 fd:00 12 /c\n00400000-00500000 rxxx 0 fd:00 12",
         "@ 401000/1\nmap 400000-500000+0 \n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t form = 0; form < 4; form++) {
            SCOPED(buf) b = cpu(rows[i].words, form < 2 ? 4 : 8, form % 2 == 1, rows[i].maps);
            check_made(view(&b), rows[i].want, rows[i].row);
        }
    }
}

TEST(mappings_of_a_process)
{
    static const uint64_t words[] = {HEADER, 1, 1, 0x401000, TRAILER, END};
    static const struct text_case rows[] = {
        {"70000000-70010000 r-xp 00000000 fd:00 13   /lib/libc.so.6\n"
         "00400000-00500000 r-xp 00000000 fd:00 12   /bin/my server (deleted)\n",
         "@ 401000/1\nmap 400000-500000+0 /bin/my server\nmap 70000000"},
        {"00401000-00500000 r-xp 00001000 fd:00 12   /bin/server\n",
         "map 400000-500000+0 /bin/server\n"},
        {"00401000-00410000 r-xp 00001000 fd:00 12   /bin/server\n"
         "00410000-00420000 r-xp 00010000 fd:00 12   /bin/server\n"
         "00420000-00430000 r-xp 00090000 fd:00 12   /bin/server\n",
         "map 400000-420000+0 /bin/server\nmap 420000-430000+90000 /bin/server\n"},
        {"00200000-00400000 r-xp 00000000 00:00 0   /anon_hugepage (deleted)\n"
         "00400000-00410000 r-xp 00200000 fd:00 12   /bin/server\n",
         "@ 401000/1\nmap 400000-410000+200000 /bin/server\n"},
        {"00402000-00403000 r-xp 00003000 fd:00 12   /bin/server\n",
         "@ 401000/1\nmap 3ff000-403000+0 /bin/server\n"},
        {"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n"
         "00400000-00401001 r-xs 00000000 00:00 0  /bin/\xff\n",
         "map 400000-401001+0 /bin/\xef\xbf\xbd\nmap ffffffffff600000"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) b = cpu(words, 8, false, rows[i].text);
        check_made(view(&b), rows[i].want, rows[i].text);
    }
}

TEST(bad_cpu)
{
    static const struct {
        const char *message;
        uint64_t words[WORDS_MAX];
    } rows[] = {
        {"it ends within the sample at byte 40 of 40", {HEADER, END}},
        {"it ends within the sample at byte 64", {HEADER, 1, 1, 0x401000, END}},
        {"it ends within the sample at byte 40", {HEADER, 1, 4, 1, 2, 3, END}},
        {"it ends within the sample at byte 40", {HEADER, 1, UINT64_C(1) << 61, 1, 2, END}},
        {"it ends within the sample at byte 40", {HEADER, 1, END - 1, 1, 2, END}},
        {"an impossible count in the sample at byte 40", {HEADER, END - 1, 1, 1, TRAILER, END}},
        {"an impossible count in the sample at byte 64",
         {HEADER, 500000000000, 1, 1, 500000000000, 1, 1, TRAILER, END}},
        {"a period of more than an hour", {0, 3, 0, UINT64_C(1) << 60, 0, TRAILER, END}},
        {"none of the old formats", {0, 3, 0, 0, 0, TRAILER, END}},
        {"none of the old formats", {0, 3, 1, 10000, 0, TRAILER, END}},
        {"none of the old formats", {0, 3, 0, 10000, END}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) b = cpu(rows[i].words, 8, false, "");
        check_bad(view(&b), LEGACY_BAD, rows[i].message);
    }
}

/* A file that is cut anywhere before its end is refused. */
TEST(cut_anywhere)
{
    static const uint64_t words[] = {HEADER, 1, 2, 0x401000, 0x402000, TRAILER, END};
    for (size_t size = 4; size <= 8; size += 4) {
        SCOPED(buf) b = cpu(words, size, false, "");
        for (size_t n = 0; n < b.len; n++) {
            check_bad((struct sv){b.data, n}, LEGACY_BAD, "");
        }
    }
}

TEST(too_much)
{
    static uint64_t words[2 * LEGACY_DEPTH_MAX + 20] = {HEADER, 1, LEGACY_DEPTH_MAX + 1};
    words[LEGACY_DEPTH_MAX + 12] = END;
    SCOPED(buf) b = cpu(words, 4, false, "");
    check_bad(view(&b), LEGACY_TOO_LARGE, "more than 4096 frames in the sample at byte 20");
    buf_done(&b);
    static const uint64_t header[] = {HEADER, END};
    b = cpu(header, 4, true, "");
    for (size_t i = 0; i <= LEGACY_SAMPLES_MAX; i++) {
        buf_append(&b, "\0\0\0\1\0\0\0\0", 8);
    }
    check_bad(view(&b), LEGACY_TOO_LARGE, "more than 500000 samples");
    buf_done(&b);
    b = cpu(header, 4, true, "");
    for (uint32_t i = 1; i <= LEGACY_LOCATIONS_MAX + 1; i++) {
        const char sample[] = {0, 0, 0, 1, 0, 0, 0, 1, 1, (char)(i >> 16), (char)(i >> 8), (char)i};
        buf_append(&b, sample, sizeof(sample));
    }
    buf_append(&b, "\0\0\0\0\0\0\0\1\0\0\0\0", 12);
    check_bad(view(&b), LEGACY_TOO_LARGE, "more than 250000 addresses");
    SCOPED_MEMORY char *large = testing_memory(LEGACY_PLAIN_MAX + 1);
    check_bad((struct sv){large, LEGACY_PLAIN_MAX + 1}, LEGACY_TOO_LARGE, "larger than 33554432");
}

TEST(old_profiles_in_gzip)
{
    static const uint64_t words[] = {HEADER, 1, 1, 0x401000, TRAILER, END};
    SCOPED(scratch) *s = scratch_new();
    SCOPED(buf) b = cpu(words, 8, false, MAPS);
    struct sv z;
    assert_true(gzip_deflate(s, view(&b), &z));
    check_made(z, "1 10000000 @ 401000/1\n" MAPS_DUMP, "gzip");
    check_bad((struct sv){z.p, z.n - 1}, LEGACY_BAD_GZIP, "damaged or cut gzip");
}

/* ---- heap ------------------------------------------------------------------------------------ */

TEST(heap_profiles)
{
    static const struct text_case rows[] = {
        {"heap profile:  3:  300 [  9:  900] @ heapprofile\n"
         "  1:  100 [  4:  400] @ 0x00401001 0x00402001\n"
         "\n# a comment\n  2:  200 [  5:  500] @ 0x70000011\n"
         "MAPPED_LIBRARIES:\n" MAPS,
         "alloc_objects/count\nalloc_space/bytes\ninuse_objects/count\ninuse_space/bytes\n"
         "4 400 1 100 @ 401000/1 402000/1\n5 500 2 200 @ 70000010/2\n" MAPS_DUMP
         "period space/bytes\n1\nat 1000\n"},
        /* Allocations are unknown. A block of 1 KiB stands for some 512. */
        {"heap profile: 1: 1024 [1: 1024] @ heap_v2/524288\n 1: 1024 [1: 1024] @ 0x401001\n",
         "inuse_objects/count\ninuse_space/bytes\n512 524800 @ 401000/1\n"},
        {"heap profile: 1: 1024 [1: 1024] @ heap_v2/1\n 1: 1024 [0: 0] @ 0x401001\n"
         " 0: 0 [0: 0] @\n",
         "inuse_space/bytes\n1 1024 @ 401000/1\n0 0 @\n"},
        {"heap profile: 1: 1024 [1: 1024] @ growthz\n 1: 1024 [1: 1024] @ 0x401001\n",
         "objects/count\nspace/bytes\n1 1024 @ 401000/1\n"},
        {"heap_v2/524288\n  t*: 1: 1024 [0: 0]\n  t0: 1: 1024 [0: 0]\n"
         "@ 0x401001 0x402001\n  t*: 1: 1024 [0: 0]\n  t0: 1: 1024 [0: 0]\n\n"
         "MAPPED_LIBRARIES:\n" MAPS,
         "inuse_objects/count\ninuse_space/bytes\n512 524800 @ 401000/1 402000/1\n" MAPS_DUMP},
        {"heap_v2/1\n  t*: 1: 10 [7: 70]\n@ 0x401001\n  t*: 1: 10 [7: 70]\n",
         "alloc_objects/count\nalloc_space/bytes\ninuse_objects/count\ninuse_space/bytes\n"
         "7 70 1 10 @ 401000/1\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_made(sv_from(rows[i].text), rows[i].want, rows[i].text);
    }
}

#define HEAP "heap profile: 1: 2 [3: 4] @ heapprofile\n"
#define JEMALLOC "heap_v2/524288\n  t*: 1: 2 [3: 4]\n"

TEST(bad_heaps)
{
    static const struct text_case rows[] = {
        {HEAP " 1: 2 [3: 4]\n", "line 2: expected \"COUNT: BYTES"},
        {HEAP " -1: 2 [3: 4] @ 0x1\n", "line 2: expected \"COUNT: BYTES"},
        {HEAP " 1: 99999999999999999999 [3: 4] @ 0x1\n", "line 2: expected \"COUNT: BYTES"},
        {HEAP " 1: 2 [3: 4] @ 0x1 main\n", "line 2: expected addresses"},
        {HEAP " 1: 2 [3: 4] @ 0x\n", "line 2: expected addresses"},
        {HEAP " 1: 2 [3: 4] @ 0x12345678123456781\n", "line 2: expected addresses"},
        {HEAP " 0: 2 [3: 4] @ 0x1\n", "line 2: impossible numbers"},
        {HEAP "\n 1: 2 [3: 4] @ 0x40", "line 3: the end is missing"},
        {"heap profile: 1: 9 [1: 9] @ heap_v2/9007199254740992\n"
         " 9007199254740992: 1 [0: 0] @ 0x1\n",
         "line 2: impossible numbers"},
        {"heap_v2/524288\n", "line 1: expected \"t*:"},
        {JEMALLOC "@ 0x1\n", "line 3: expected \"t*:"},
        {JEMALLOC "@ 0x1\n  t0: 1: 2 [3: 4]\n", "line 4: expected \"t*:"},
        {JEMALLOC "@ 0x1\n  t*: 1: 2 [3: 4", "line 4: the end is missing"},
        {JEMALLOC "@ 0x1 x\n  t*: 1: 2 [3: 4]\n", "line 3: expected addresses"},
        {JEMALLOC "  x\n", "line 3: expected a stack or"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(sniff_profile(sv_from(rows[i].text), NULL), SNIFF_LEGACY, rows[i].text);
        check_bad(sv_from(rows[i].text), LEGACY_BAD, rows[i].want);
    }
}

/* ---- contention ------------------------------------------------------------------------------ */

#define CONTENTION "--- contention\ncycles/second=2000000000\n"

TEST(contention_profiles)
{
    static const struct text_case rows[] = {
        {CONTENTION "3000 2 @ 0x00401001 0x70000011\n\n" MAPS,
         "contentions/count\ndelay/nanoseconds\n2 1500 @ 401000/1 70000010/2\n" MAPS_DUMP
         "period contentions/count\n1\nat 1000\n"},
        {"--- contentionz 1 ---\nsampling period = 100\nms since reset = 5\nformat = java\n"
         "  30 2 @ 0x401001\n",
         "delay/nanoseconds\n200 3000 @ 401000/1\n"},
        {CONTENTION "10 1 @ 0x401001\n--- Memory map: ---\n" MAPS, "1 5 @ 401000/1\n" MAPS_DUMP},
        {CONTENTION MAPS, "delay/nanoseconds\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(sniff_profile(sv_from(rows[i].text), NULL), SNIFF_LEGACY, rows[i].text);
        check_made(sv_from(rows[i].text), rows[i].want, rows[i].text);
    }
}

TEST(bad_contention)
{
    static const struct text_case rows[] = {
        {CONTENTION "3000 2 @ 0x401001 main\n", "line 3: expected addresses"},
        {CONTENTION "3000 2 @ 0x12345678123456781\n", "line 3: expected addresses"},
        {"--- contention\ncycles/second=1\n9007199254740992 1 @ 0x1\n",
         "line 3: impossible numbers"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_bad(sv_from(rows[i].text), LEGACY_BAD, rows[i].want);
    }
}

/* Other texts are not converted, such as Go's own, whose protobuf has the names. */
TEST(other_texts)
{
    static const char *const rows[] = {
        "heap profile: 1: 2 [3: 4] @ heap/1048576\n",
        "heap profile: 1: 2 [3: 4] @ heapprofile",
        "heap profile: 1: 2 @ heapprofile\n",
        "heap profile: 1: 2 [3: 4] @ heap_v2/x\n",
        "heap_v2/\n",
        "heap_v2/524288",
        "--- contention:\n",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(sniff_profile(sv_from(rows[i]), NULL), SNIFF_TEXT, rows[i]);
        check_bad(sv_from(rows[i]), LEGACY_BAD, "none of the old formats");
    }
}
