/* Recognition of bodies: profiles and everything else that targets answer with; and summaries. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <zlib.h>

#include "pprof/put.h"
#include "pprof/sniff.h"
#include "pprof/summary.h"

SCOPED_POINTER(scratch, scratch_free)

/* A whole CPU profile: samples/count, cpu/nanoseconds, one sample of main, 10 s. */
static const unsigned char PROFILE[] = {
    0x0a, 0x04, 0x08, 0x01, 0x10, 0x02, 0x0a, 0x04, 0x08, 0x03, 0x10, 0x04, 0x12, 0x0a, 0x0a,
    0x01, 0x01, 0x12, 0x05, 0x05, 0x80, 0xe1, 0xeb, 0x17, 0x1a, 0x04, 0x08, 0x01, 0x38, 0x01,
    0x22, 0x0a, 0x08, 0x01, 0x10, 0x01, 0x22, 0x04, 0x08, 0x01, 0x10, 0x07, 0x2a, 0x08, 0x08,
    0x01, 0x10, 0x05, 0x18, 0x05, 0x20, 0x06, 0x32, 0x00, 0x32, 0x07, 's',  'a',  'm',  'p',
    'l',  'e',  's',  0x32, 0x05, 'c',  'o',  'u',  'n',  't',  0x32, 0x03, 'c',  'p',  'u',
    0x32, 0x0b, 'n',  'a',  'n',  'o',  's',  'e',  'c',  'o',  'n',  'd',  's',  0x32, 0x04,
    'm',  'a',  'i',  'n',  0x32, 0x07, 'm',  'a',  'i',  'n',  '.',  'g',  'o',  0x48, 0x80,
    0x80, 0xa8, 0xb1, 0xe3, 0x9f, 0xe7, 0xcb, 0x17, 0x50, 0x80, 0xc8, 0xaf, 0xa0, 0x25, 0x5a,
    0x04, 0x08, 0x03, 0x10, 0x04, 0x60, 0x80, 0xad, 0xe2, 0x04,
};

struct bytes {
    unsigned char *p;
    size_t n;
};

static struct bytes gzip(const void *data, size_t n)
{
    size_t cap = n + n / 100 + 256;
    struct bytes out = {.p = malloc(cap)};
    assert_non_null(out.p);
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)n};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = out.p;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out.n = cap - z.avail_out;
    deflateEnd(&z);
    return out;
}

static struct bytes join(struct bytes a, struct bytes b)
{
    struct bytes out = {.p = malloc(a.n + b.n), .n = a.n + b.n};
    assert_non_null(out.p);
    memcpy(out.p, a.p, a.n);
    memcpy(out.p + a.n, b.p, b.n);
    free(a.p);
    free(b.p);
    return out;
}

/* An exact copy, so that a sanitizer sees a read past the end. */
static void check(const char *row, const void *data, size_t n, enum sniff_result want,
                  const char *message)
{
    SCOPED_MEMORY char *copy = testing_memory(n == 0 ? 1 : n);
    if (n > 0) {
        memcpy(copy, data, n);
    }
    struct err err = ERR_INIT;
    enum sniff_result got = sniff_profile((struct sv){copy, n}, &err);
    CHECK_INT(got, want, row);
    CHECK_CONTAINS(err.msg, message, row);
    CHECK_INT(err.kind == ERR_NONE, sniff_is_profile(want), row);
}
#define CHECK_TEXT_BODY(text, want, message) check(text, text, sizeof(text) - 1, (want), (message))

TEST(plain_profiles)
{
    check("whole", PROFILE, sizeof(PROFILE), SNIFF_PPROF_PLAIN, "");
    CHECK_TEXT_BODY("\x0a\x04test", SNIFF_PPROF_PLAIN, "");
    CHECK_TEXT_BODY("\xa2\x06\x01x", SNIFF_PPROF_PLAIN, ""); /* an unknown field */
    CHECK_TEXT_BODY("\xa5\x06\x01\x02\x03\x04", SNIFF_PPROF_PLAIN, "");
    CHECK_TEXT_BODY("\xa1\x06\x01\x02\x03\x04\x05\x06\x07\x08", SNIFF_PPROF_PLAIN, "");
    /* Cut anywhere except between two fields, it is not a profile. */
    check("cut", PROFILE, sizeof(PROFILE) - 1, SNIFF_BAD_WIRE, "at byte");
    check("cut in a field", PROFILE, 10, SNIFF_BAD_WIRE, "runs past the end at byte 6");
}

TEST(texts_are_no_profiles)
{
    CHECK_TEXT_BODY("<!DOCTYPE html><html>", SNIFF_HTML, "an HTML page: \"<!DOCTYPE html><html>\"");
    CHECK_TEXT_BODY("\r\n  <html><body>", SNIFF_HTML, "an HTML page");
    CHECK_TEXT_BODY("<title>Login</title>", SNIFF_HTML, "an HTML page");
    CHECK_TEXT_BODY("<?xml version=\"1.0\"?>", SNIFF_HTML, "an HTML page");
    CHECK_TEXT_BODY("{\"error\": \"not found here\"}", SNIFF_JSON, "JSON");
    CHECK_TEXT_BODY("\n{\"a\":1}", SNIFF_JSON, "JSON");
    CHECK_TEXT_BODY("{}\n", SNIFF_JSON, "JSON");
    CHECK_TEXT_BODY("[ 1, 2, 3 ]", SNIFF_JSON, "JSON");
    CHECK_TEXT_BODY("heap profile: 1: 2 [3: 4] @ heap/1048576", SNIFF_TEXT, "is debug=1 set?");
    CHECK_TEXT_BODY("--- contention:\ncycles/second=1", SNIFF_TEXT, "is debug=1 set?");
    CHECK_TEXT_BODY("--- mutex:\n", SNIFF_TEXT, "is debug=1 set?");
    CHECK_TEXT_BODY("goroutine profile: total 5\n", SNIFF_TEXT, "is debug=1 set?");
    CHECK_TEXT_BODY("threadcreate profile: total 5\n", SNIFF_TEXT, "is debug=1 set?");
    CHECK_TEXT_BODY("404 page not found\n", SNIFF_TEXT, "but text: \"404 page not found");
    CHECK_TEXT_BODY("ok\n", SNIFF_TEXT, "but text");
}

TEST(bad_wire)
{
    CHECK_TEXT_BODY("\x1e\x01\x01\x01", SNIFF_BAD_WIRE, "wire type that does not exist at byte 0");
    CHECK_TEXT_BODY("\x0f\x01\x01\x01", SNIFF_BAD_WIRE, "wire type that does not exist");
    CHECK_TEXT_BODY("\x0b\x01\x01\x01", SNIFF_BAD_WIRE, "wire type that does not exist");
    CHECK_TEXT_BODY("\x02\x01\x01\x01", SNIFF_BAD_WIRE, "number 0");
    CHECK_TEXT_BODY("\x08\x01\x01\x01", SNIFF_BAD_WIRE, "of another wire type");
    CHECK_TEXT_BODY("\x4a\x01\x01\x01", SNIFF_BAD_WIRE, "of another wire type");
    CHECK_TEXT_BODY("\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", SNIFF_BAD_WIRE, "64 bits");
    CHECK_TEXT_BODY("\x48\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", SNIFF_BAD_WIRE, "64 bits");
    CHECK_TEXT_BODY("\xff\xff\xff\xff\xff\x01\x01", SNIFF_BAD_WIRE, "too large");
    CHECK_TEXT_BODY("\x0a\x7f\x01\x01", SNIFF_BAD_WIRE, "runs past the end at byte 0");
    CHECK_TEXT_BODY("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", SNIFF_BAD_WIRE, "past the end");
    CHECK_TEXT_BODY("\xa1\x06\x01\x02\x03", SNIFF_BAD_WIRE, "past the end");
    CHECK_TEXT_BODY("\x48\x80\x80", SNIFF_BAD_WIRE, "it starts with 48 80 80");
}

TEST(short_ones)
{
    check("nothing", "", 0, SNIFF_EMPTY, "empty body");
    CHECK_TEXT_BODY("\x0a", SNIFF_TOO_SHORT, "1 bytes only");
    CHECK_TEXT_BODY("\x0a\x00", SNIFF_TOO_SHORT, "2 bytes only");
    CHECK_TEXT_BODY("\x1f", SNIFF_TOO_SHORT, "1 bytes only");
    CHECK_TEXT_BODY("\x0a\x01x", SNIFF_PPROF_PLAIN, "");
}

static void check_gzipped(const char *row, const void *data, size_t n, enum sniff_result want,
                          const char *message)
{
    struct bytes z = gzip(data, n);
    check(row, z.p, z.n, want, message);
    free(z.p);
}

TEST(good_and_bad_gzips)
{
    check_gzipped("profile", PROFILE, sizeof(PROFILE), SNIFF_PPROF_GZIP, "");
    check_gzipped("empty", "", 0, SNIFF_EMPTY, "an empty gzip");
    check_gzipped("html", "<html></html>", 13, SNIFF_HTML, "inflated: not a profile but an HTML");
    check_gzipped("json", "{\"a\": 1}", 8, SNIFF_JSON, "inflated: not a profile but JSON");
    check_gzipped("cut profile", PROFILE, 10, SNIFF_BAD_WIRE, "inflated: not a pprof profile");
    check_gzipped("short", "\x0a", 1, SNIFF_TOO_SHORT, "inflated");
    struct bytes inner = gzip(PROFILE, sizeof(PROFILE));
    check_gzipped("twice", inner.p, inner.n, SNIFF_BAD_GZIP, "a gzip within the gzip");
    free(inner.p);
}

TEST(damaged_gzips)
{
    struct bytes z = gzip(PROFILE, sizeof(PROFILE));
    for (size_t n = 2; n < z.n; n++) {
        check("cut", z.p, n, SNIFF_BAD_GZIP, "it ends too early");
    }
    z.p[z.n - 8] ^= 1;
    check("crc", z.p, z.n, SNIFF_BAD_GZIP, "incorrect data check");
    z.p[z.n - 8] ^= 1;
    z.p[z.n - 1] = 0xff;
    check("length", z.p, z.n, SNIFF_BAD_GZIP, "incorrect length check");
    z.p[2] = 7;
    check("method", z.p, z.n, SNIFF_BAD_GZIP, "unknown compression method");
    free(z.p);
}

TEST(gzip_of_several_members)
{
    struct bytes two = join(gzip(PROFILE, 24), gzip(PROFILE + 24, sizeof(PROFILE) - 24));
    check("two members", two.p, two.n, SNIFF_PPROF_GZIP, "");
    free(two.p);
    struct bytes hollow = join(gzip("", 0), gzip(PROFILE, sizeof(PROFILE)));
    check("an empty one first", hollow.p, hollow.n, SNIFF_PPROF_GZIP, "");
    free(hollow.p);
    struct bytes trail = join(gzip(PROFILE, sizeof(PROFILE)), gzip("", 0));
    trail.p[trail.n - 20] = 'x';
    check("garbage after the member", trail.p, trail.n, SNIFF_BAD_GZIP, "incorrect header check");
    check("a byte after the member", trail.p, trail.n - 19, SNIFF_BAD_GZIP, "");
    free(trail.p);
}

/* Only the start of a large gzip is looked at: neither a bomb nor damage farther on costs work. */
TEST(large_gzips)
{
    size_t n = (size_t)64 * 1024;
    SCOPED_MEMORY unsigned char *big = testing_memory(n);
    memset(big, 0, n);
    static const unsigned char head[] = {0x0a, 0x02, 0x08, 0x01, 0x12, 0x80, 0x80, 0x04};
    memcpy(big, head, sizeof(head)); /* a sample of 64 KiB: runs past the bytes that are read */
    check_gzipped("a field past the prefix", big, n, SNIFF_PPROF_GZIP, "");
    uint32_t x = 1;
    for (size_t i = sizeof(head); i < n; i++) {
        x = x * 1664525 + 1013904223;
        big[i] = (unsigned char)(x >> 24);
    }
    struct bytes z = gzip(big, n);
    check("does not compress", z.p, z.n, SNIFF_PPROF_GZIP, "");
    memset(z.p + z.n / 2, 0xff, z.n / 2);
    check("damage after the prefix", z.p, z.n, SNIFF_PPROF_GZIP, "");
    free(z.p);
    memset(big, 'a', n);
    check_gzipped("text", big, n, SNIFF_TEXT, "inflated");
}

TEST(header_fields)
{
    struct bytes z = gzip(PROFILE, sizeof(PROFILE));
    unsigned char named[10 + 40000 + 512];
    memcpy(named, z.p, 10);
    named[3] = 8; /* FNAME */
    memset(named + 10, 'n', 40000);
    named[10 + 39999] = '\0';
    memcpy(named + 10 + 40000, z.p + 10, z.n - 10);
    check("a name of 40 kB", named, 40000 + z.n, SNIFF_BAD_GZIP, "almost no data");
    named[10 + 99] = '\0';
    memcpy(named + 10 + 100, z.p + 10, z.n - 10);
    check("a name of 100 bytes", named, 100 + z.n, SNIFF_PPROF_GZIP, "");
    free(z.p);
}

#define SUMMARY_MAX ((size_t)64 * 1024 * 1024)

TEST(summary_of_a_whole_profile)
{
    SCOPED(scratch) *scratch = scratch_new();
    struct bytes z = gzip(PROFILE, sizeof(PROFILE));
    const struct sv bodies[] = {{(const char *)PROFILE, sizeof(PROFILE)}, {(const char *)z.p, z.n}};
    struct pprof_summary s;
    struct err err = ERR_INIT;
    char types[100];
    for (size_t i = 0; i < 2; i++) {
        assert_true(pprof_summary_read(scratch, bodies[i], SUMMARY_MAX, &s, &err));
        pprof_summary_print_types(&s, "?", types, sizeof(types));
        CHECK_STR(types, "samples/count cpu/nanoseconds", "types");
        CHECK_INT(s.n[PROFILE_SAMPLE], 1, "samples");
        CHECK_INT(s.duration_ns, 10000000000, "duration");
        CHECK_INT(s.time_ns, 1700000000000000000, "time");
        CHECK_INT(s.period, 10000000, "period");
        assert_true(sv_eq_str(s.period_type.type_text, "cpu"));
        assert_true(sv_eq_str(s.period_type.unit_text, "nanoseconds"));
        CHECK_INT(s.plain_size, sizeof(PROFILE), "inflated");
        CHECK_INT(s.whole, true, "whole");
    }
    assert_false(pprof_summary_read(scratch, (struct sv){(const char *)z.p, z.n - 9}, SUMMARY_MAX,
                                    &s, &err));
    CHECK_CONTAINS(err.msg, "damaged or cut gzip", "cut");
    err_clear(&err);
    assert_false(
        pprof_summary_read(scratch, (struct sv){(const char *)PROFILE, 10}, SUMMARY_MAX, &s, &err));
    CHECK_CONTAINS(err.msg, "runs past the end", "cut");
    assert_true(pprof_summary_read(scratch, SV("\x0a\x04\x08\x09\x10\x09"), SUMMARY_MAX, &s, NULL));
    pprof_summary_print_types(&s, "?", types, sizeof(types));
    CHECK_STR(types, "?/?", "strings that are not there");
    free(z.p);
}

/* The period after so many bytes of a field that nobody reads, in a gzip or plain. */
static struct bytes late_period(size_t filler, bool zip)
{
    SCOPED(buf) b = testing_buf(filler + 100);
    SCOPED_MEMORY char *zeros = calloc(1, filler);
    wire_put_bytes(&b, 100, zeros, filler);
    wire_put_number(&b, PROFILE_PERIOD, 77);
    if (!zip) {
        struct bytes plain;
        plain.p = (unsigned char *)buf_take(&b, &plain.n);
        return plain;
    }
    struct bytes z = gzip(b.data, b.len);
    return z;
}

/* A field is found wherever it stands within the limit, and not beyond it. */
TEST(summary_of_the_start)
{
    static const struct {
        size_t filler;
        bool found;
    } rows[] = {{0, true},
                {4080, true},
                {4091, true},
                {4096, true},
                {40000, true},
                {3000000, true},
                {SUMMARY_PEEK_MAX - 16, true},
                {SUMMARY_PEEK_MAX, false},
                {2 * SUMMARY_PEEK_MAX, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int zip = 0; zip < 2; zip++) {
            struct pprof_summary s;
            struct bytes body = late_period(rows[i].filler, zip != 0);
            struct sv v = {(const char *)body.p, body.n};
            pprof_summary_peek(v, PROFILE_PERIOD, &s);
            CHECK_INT(s.period, rows[i].found ? 77 : 0, "period");
            pprof_summary_peek(v, PROFILE_SAMPLE, &s);
            CHECK_INT(s.n[PROFILE_SAMPLE], 0, "samples");
            CHECK_INT(s.whole, rows[i].found, "whole");
            v.n -= 1;
            pprof_summary_peek(v, PROFILE_SAMPLE, &s);
            CHECK_INT(s.whole, false, "cut");
            free(body.p);
        }
    }
}
