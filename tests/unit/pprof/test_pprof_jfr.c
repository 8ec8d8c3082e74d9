/* Recognition of recordings of Java's Flight Recorder. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <zlib.h>

#include "pprof/sniff.h"

/* The start of a chunk: magic, version 2.0, then longs; the rest is not looked at. */
static size_t recording(char *out, size_t size)
{
    memset(out, 0, size);
    memcpy(out, "FLR\0\0\2\0\0", 8);
    return size;
}

static size_t gzip(const char *data, size_t size, char *out, size_t room)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data,
                  .avail_in = (uInt)size,
                  .next_out = (Bytef *)out,
                  .avail_out = (uInt)room};
    assert_int_equal(
        deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t n = room - z.avail_out;
    deflateEnd(&z);
    return n;
}

/* In a block of its own size, so that a sanitizer sees a read past its end. */
static enum sniff_result check(const char *data, size_t size, struct err *err)
{
    SCOPED_MEMORY char *copy = testing_memory(size == 0 ? 1 : size);
    memcpy(copy, data, size);
    enum sniff_result r = sniff_jfr((struct sv){copy, size}, err);
    return r;
}

TEST(good_ones)
{
    char data[5000];
    char packed[6000];
    struct err err = ERR_INIT;
    CHECK_INT(check(data, recording(data, sizeof(data)), &err), SNIFF_JFR, "plain");
    CHECK_INT(check(data, recording(data, 68), &err), SNIFF_JFR, "a header alone");
    size_t n = gzip(data, recording(data, sizeof(data)), packed, sizeof(packed));
    CHECK_INT(check(packed, n, &err), SNIFF_JFR, "gzip");
    CHECK_STR(err.msg, "", "no error");
    CHECK_INT(sniff_is_profile(SNIFF_JFR), true, "good");
}

TEST(other_ones)
{
    static const struct {
        const char *data;
        size_t size;
        enum sniff_result want;
        const char *message;
    } rows[] = {
        {"", 0, SNIFF_EMPTY, "empty body"},
        {"FLR\0", 4, SNIFF_NOT_JFR, "not a JFR recording: 4 bytes only"},
        {"FLR", 3, SNIFF_TEXT, "not a profile but text: \"FLR\""},
        {"<html><body>login", 17, SNIFF_HTML, "an HTML page"},
        {"{\"error\": 1}", 12, SNIFF_JSON, "JSON"},
        {"no such recording", 17, SNIFF_TEXT, "no such recording"},
        {"\x1f\x8b\x08", 3, SNIFF_BAD_GZIP, "damaged gzip"},
        {"\xff\xff\xff\xff", 4, SNIFF_NOT_JFR, "\"FLR\" expected at its start"},
        {"\x0a\x04\x08\x01\x10\x02\x32\x00", 8, SNIFF_NOT_JFR,
         "not a JFR recording but a pprof profile"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        enum sniff_result r = check(rows[i].data, rows[i].size, &err);
        CHECK_INT(r, rows[i].want, rows[i].message);
        CHECK_INT(sniff_is_profile(r), false, rows[i].message);
        CHECK_CONTAINS(err.msg, rows[i].message, rows[i].message);
    }
}

/* A body that only begins like the binary format of gperftools is named in the error. */
TEST(cut_cpu_profile_is_named)
{
    static const char rows[2][24] = {
        "\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        "\0\0\0\0\3\0\0\0\1\0\0\0\x10\x27\0\0",
    };
    for (size_t i = 0; i < 2; i++) {
        struct err err = ERR_INIT;
        CHECK_INT(sniff_profile((struct sv){rows[i], sizeof(rows[i])}, &err), SNIFF_BAD_WIRE,
                  "verdict");
        CHECK_CONTAINS(err.msg, "CPU profile of gperftools that is cut", "message");
    }
}

/* A recording is not accepted for a type of pprof. */
TEST(not_for_pprof)
{
    char data[100];
    struct err err = ERR_INIT;
    enum sniff_result r = sniff_profile((struct sv){data, recording(data, sizeof(data))}, &err);
    CHECK_INT(r, SNIFF_BAD_WIRE, "verdict");
}
