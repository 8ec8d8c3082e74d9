/* Whole gzip bodies in and out, and their limits. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "pprof/gzip.h"

SCOPED_POINTER(scratch, scratch_free)

struct zipped {
    char *data; /* from malloc(), of its size: a sanitizer sees a read past the end */
    size_t n;
};

static struct zipped zip(const char *text, size_t n)
{
    struct zipped z;
    SCOPED(scratch) *s = scratch_new();
    assert_non_null(s);
    assert_true(gzip_pack(s, (struct sv){text, n}, &z.data, &z.n));
    return z;
}

TEST(there_and_back)
{
    size_t n = 3000000;
    SCOPED_MEMORY char *text = testing_memory(n);
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        text[i] = (char)(x >> 29);
    }
    static const size_t sizes[] = {0, 1, 5000, 3000000};
    static const size_t hints[] = {0, 1, 4999, 5000, 10000000};
    for (size_t i = 0; i < 4; i++) {
        struct zipped zipped = zip(text, sizes[i]);
        SCOPED(scratch) *s = scratch_new();
        assert_non_null(s);
        for (size_t j = 0; j < 5; j++) {
            struct sv out;
            struct err err = ERR_INIT;
            struct sv body = {zipped.data, zipped.n};
            assert_true(gzip_inflate(s, body, 10000000, hints[j], &out, &err));
            CHECK_INT(out.n, sizes[i], "");
            assert_memory_equal(out.p, text, sizes[i]);
            scratch_reset(s);
        }
        free(zipped.data);
    }
}

/* Returns byte i of the contents of a row. */
static char all_zero(size_t i)
{
    return (char)(i & 0);
}

static char like_a_table(size_t i)
{
    return i % 97 == 0 ? (char)(i / 97) : "\x12\x05samples\x08\x80\x01"[i % 12];
}

static char any_byte(size_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 29;
    return (char)(x * 0xbf58476d1ce4e5b9ULL >> 56);
}

/* Both of the libraries that inflate read what was compressed, and it is not larger than if it were
 * stored. */
static void check_packed_at(enum gzip_level level, struct sv plain, char *room, const char *row)
{
    SCOPED(scratch) *s = scratch_new();
    SCOPED_MEMORY char *data = NULL;
    struct sv packed;
    struct sv out;
    struct err err = ERR_INIT;
    assert_non_null(s);
    assert_true(gzip_pack_at(s, plain, level, &data, &packed.n));
    packed.p = data;
    assert_true(packed.n <= plain.n + 18 + 5 * (plain.n / 65535 + 1));
    CHECK_INT(gzip_claim(packed), plain.n, row);
    assert_true(gzip_inflate(s, packed, plain.n + 1, 0, &out, &err));
    CHECK_INT(out.n, plain.n, row);
    assert_memory_equal(out.p, plain.p, plain.n);
    struct gzip_start start = gzip_inflate_start(packed, room, plain.n + 1);
    assert_true(start.end && start.problem == NULL);
    CHECK_INT(start.plain.n, plain.n, row);
    assert_memory_equal(room, plain.p, plain.n);
}

static void check_packed(struct sv plain, char *room, const char *row)
{
    check_packed_at(GZIP_FAST, plain, room, row);
    check_packed_at(GZIP_QUICK, plain, room, row);
}

/* Sizes around those of blocks and vectors. What is compressed ends where memory ends, since the
 * sanitizers do not see what a library reads. */
TEST(contents_and_sizes)
{
    enum { MOST = 262144, STEPS = 260 };
    static const struct {
        const char *name;
        char (*at)(size_t i);
    } contents[] = {{"zeros", all_zero}, {"a table", like_a_table}, {"any bytes", any_byte}};
    static const size_t ends[] = {4096, 32768, 65535, 131070, MOST};
    char *memory =
        mmap(NULL, MOST + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SCOPED_MEMORY char *room = malloc(MOST + 1);
    assert_true(memory != MAP_FAILED && room != NULL);
    assert_int_equal(mprotect(memory + MOST, 4096, PROT_NONE), 0);
    for (size_t c = 0; c < sizeof(contents) / sizeof(contents[0]); c++) {
        for (size_t i = 0; i < MOST; i++) {
            memory[i] = contents[c].at(i);
        }
        for (size_t n = 0; n < STEPS; n++) {
            check_packed((struct sv){memory + MOST - n, n}, room, contents[c].name);
        }
        for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++) {
            for (size_t n = ends[e] - 2; n <= ends[e] + 2 && n <= MOST; n++) {
                check_packed((struct sv){memory + MOST - n, n}, room, contents[c].name);
            }
        }
    }
    munmap(memory, MOST + 4096);
}

/* The compressor takes its memory from the scratch, and does without if there is none. */
TEST(no_memory_to_compress)
{
    for (size_t max = 0; max < (size_t)300 * 1024; max += (size_t)10 * 1024) {
        SCOPED(scratch) *s = scratch_new();
        struct sv packed;
        assert_non_null(s);
        scratch_limit(s, max);
        if (!gzip_deflate(s, SV("hello"), &packed)) {
            assert_true(scratch_is_over(s));
            CHECK_INT(packed.n, 0, "size");
        }
    }
    struct sv none;
    assert_false(gzip_deflate(NULL, SV("hello"), &none));
}

/* The codes of the quick level stay with the scratch, and go when its limit is too low for them. */
TEST(no_memory_to_compress_quickly)
{
    SCOPED(scratch) *s = scratch_new();
    unsigned made = 0;
    assert_non_null(s);
    for (size_t max = (size_t)400 * 1024; max > 0; max -= (size_t)20 * 1024) {
        SCOPED_MEMORY char *data = NULL;
        size_t n;
        scratch_limit(s, max);
        bool ok = gzip_pack_at(s, SV("hello"), GZIP_QUICK, &data, &n);
        CHECK_INT(scratch_is_over(s), !ok, "");
        scratch_reset(s);
        assert_true(scratch_bytes(s) <= max);
        made += ok;
    }
    assert_true(made > 5 && made < 20);
    char *data;
    size_t n;
    assert_false(gzip_pack_at(NULL, SV("hello"), GZIP_QUICK, &data, &n));
}

static void check_inflate(struct sv body, size_t max, enum err_kind want, const char *message,
                          const char *row)
{
    struct sv out;
    struct err err = ERR_INIT;
    SCOPED(scratch) *s = scratch_new();
    assert_non_null(s);
    CHECK_INT(gzip_inflate(s, body, max, 0, &out, &err), want == ERR_NONE, row);
    CHECK_INT(err.kind, want, row);
    CHECK_STR(err.msg, message, row);
    assert_true(want == ERR_NONE || out.n == 0);

    /* A buffer gets the same, and fails alike. */
    struct err again = ERR_INIT;
    SCOPED(buf) buf = testing_buf(max);
    CHECK_INT(gzip_inflate_buf(body, &buf, &again), want == ERR_NONE, row);
    CHECK_INT(again.kind, want, row);
    CHECK_STR(again.msg, message, row);
    CHECK_INT(buf.len, out.n, row);
    assert_memory_equal(buf.data, out.p, out.n);
}

TEST(damaged_cut_or_too_large)
{
    const char *damaged = "damaged or cut gzip";
    struct zipped z = zip("hello, hello, hello", 19);
    struct sv v = {z.data, z.n};
    for (size_t n = 0; n < v.n; n++) {
        check_inflate((struct sv){v.p, n}, 1000, ERR_INPUT, damaged, "cut");
    }
    z.data[z.n - 5] ^= 1;
    check_inflate(v, 1000, ERR_INPUT, damaged, "checksum");
    z.data[z.n - 5] ^= 1;
    memset(z.data + z.n - 4, 0xff, 4);
    check_inflate(v, 1000, ERR_INPUT, damaged, "a size that is a lie");
    z.data[z.n - 4] = 19;
    memset(z.data + z.n - 3, 0, 3);
    check_inflate(v, 1000, ERR_NONE, "", "whole");
    check_inflate(v, 19, ERR_NONE, "", "as much as may be");
    check_inflate(v, 18, ERR_LIMIT, "inflates to more than 18 bytes", "one byte more");
    free(z.data);
}

TEST(members_follow_each_other)
{
    struct zipped a = zip("abc", 3);
    struct zipped b = zip("defg", 4);
    struct err err = ERR_INIT;
    SCOPED(buf) both = testing_buf(1000);
    buf_append(&both, a.data, a.n);
    buf_append(&both, b.data, b.n);
    struct sv out;
    struct scratch *s = scratch_new();
    assert_non_null(s);
    struct sv body = {both.data, both.len};
    assert_true(gzip_inflate(s, body, 1000, 0, &out, &err));
    CHECK_INT(out.n, 7, "");
    assert_memory_equal(out.p, "abcdefg", 7);
    scratch_free(s);
    check_inflate((struct sv){both.data, both.len}, 6, ERR_LIMIT, "inflates to more than 6 bytes",
                  "together");
    buf_putc(&both, 'x');
    check_inflate((struct sv){both.data, both.len}, 1000, ERR_INPUT, "damaged or cut gzip",
                  "garbage at the end");
    free(a.data);
    free(b.data);
}

/* A body may inflate to a hundred times its size; a small one to more. */
TEST(bomb_is_refused)
{
    size_t n = 16 * 1024 * 1024;
    SCOPED_MEMORY char *zeros = testing_memory(n);
    struct zipped z = zip(zeros, n);
    assert_true(z.n * GZIP_RATIO_MAX < n);
    char message[64];
    snprintf(message, sizeof(message), "inflates to more than %zu bytes", z.n * GZIP_RATIO_MAX);
    check_inflate((struct sv){z.data, z.n}, 64 * 1024 * 1024, ERR_LIMIT, message, "bomb");
    free(z.data);
    z = zip(zeros, GZIP_SMALL);
    check_inflate((struct sv){z.data, z.n}, 64 * 1024 * 1024, ERR_NONE, "", "small");
    free(z.data);
}

/* A body that is plain already comes out as it is. */
TEST(plain_bodies)
{
    SCOPED(scratch) *s = scratch_new();
    struct zipped z = zip("hello", 5);
    struct sv out;
    struct err err = ERR_INIT;
    assert_true(gzip_plain(s, SV("hello"), 1, 0, &out, &err));
    assert_true(sv_eq_str(out, "hello"));
    assert_true(gzip_plain(s, (struct sv){z.data, z.n}, 5, 0, &out, &err));
    assert_true(sv_eq_str(out, "hello"));
    assert_false(gzip_plain(s, (struct sv){z.data, z.n}, 4, 0, &out, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "kind");
    free(z.data);
}
