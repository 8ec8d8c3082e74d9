/* Names that change with each start of a process become one. */
#include "tests/unit/lib/testing.h"

#include "jfr/cursor.h"
#include "jfr/names.h"

TEST(names)
{
    static const struct {
        const char *symbol;
        const char *want; /* NULL: the symbol */
    } cases[] = {
        {"jdk/internal/reflect/GeneratedMethodAccessor31",
         "jdk/internal/reflect/GeneratedMethodAccessor_"},
        {"jdk/internal/reflect/GeneratedMethodAccessor", NULL},
        {"jdk/internal/reflect/GeneratedMethodAccessor3x", NULL},
        {"x/jdk/internal/reflect/GeneratedMethodAccessor3", NULL},
        {"a/App$$Lambda$669.0x0000000800fd7318", "a/App$$Lambda_"},
        {"App$$Lambda.0x00007ffa600c4da0", "App$$Lambda_"},
        {"App$$Lambda$14/0x00000008000b1c40", "App$$Lambda_"},
        {"App$$Lambda$14/791885625", "App$$Lambda_"},
        {"App$$Lambda14", "App$$Lambda_"},
        {"App$$Lambda$14", NULL},
        {"App$$Lambda", NULL},
        {"$$Lambda14", NULL},
        {"App$$Lambda$14/0x", NULL},
        {"App$$Lambda$14/0x12G", NULL},
        {"App$$Lambda+0x00007ffa1c34eb40/408132785", NULL},
        {"App$$Lambda$1/22$$Lambda$3/44", "App$$Lambda$1/22$$Lambda_"},
        {"Owner$$EnhancerBySpringCGLIB$$a1b2c3d4", "Owner$$EnhancerBySpringCGLIB$$_"},
        {"Owner$$EnhancerBySpringCGLIB$$", "Owner$$EnhancerBySpringCGLIB$$_"},
        {"Owner$$EnhancerBySpringCGLIB$$a1$$Lambda$2/3", "Owner$$EnhancerBySpringCGLIB$$_"},
        {"$$EnhancerBySpringCGLIB$$a1", NULL},
        {"libzstd-jni-1.5.1-16931311898282279136.so", "libzstd-jni-_.so"},
        {"./tmp/libzstd-jni-1.5.1-16931311898282279136.so (deleted)", "libzstd-jni-_.so"},
        {"/tmp/libzstd-jni-1.5.1-1.so", "libzstd-jni-_.so"},
        {"libzstd-jni-1.5-1.so", NULL},
        {"libzstd-jni-1.5.1-1.so.1", NULL},
        {"./tmp/libamazonCorrettoCryptoProvider109b39cf33c563eb.so",
         "libamazonCorrettoCryptoProvider_.so"},
        {"./tmp/amazonCorrettoCryptoProviderNativeLibraries.7382c2f79097f415/libcrypto.so "
         "(deleted)",
         "libamazonCorrettoCryptoProvider_.so"},
        {"libamazonCorrettoCryptoProvider109b39cf33c563e.so", NULL},
        {"/tmp/libasyncProfiler-linux-x64-17b9a1d8156277a98ccc871afa9a8f69215f92.so",
         "libasyncProfiler-_.so"},
        {"libasyncProfiler.so", NULL},
        {"./tmp/snappy-1.1.8-d1f9bd24-libsnappyjava.so", NULL},
        {"java/lang/Thread", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *symbol = cases[i].symbol;
        SCOPED(buf) out = testing_buf(1024);
        jfr_name_put(sv_from(symbol), &out);
        CHECK_STR(out.data, cases[i].want != NULL ? cases[i].want : symbol, symbol);
    }
}

/* Strings become valid UTF-8, whatever their encoding. */
TEST(texts)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *want, *row;
    } cases[] = {
        {"\x00", 1, "", "null"},
        {"\x01", 1, "", "empty"},
        {"\x02\x05", 2, "", "in the pool"},
        {"\x03\x03"
         "a\xc3\xbc",
         5, "a\xc3\xbc", "UTF-8"},
        {"\x03\x02"
         "a\xff",
         4, "a\xef\xbf\xbd", "broken UTF-8"},
        {"\x04\x02"
         "a\xfc\x01",
         5, "a\xc3\xbc", "UTF-16"},
        {"\x04\x02\xbd\xb0\x03\x80\xbc\x03", 8, "\xf0\x9f\x98\x80", "a pair of surrogates"},
        {"\x04\x02\xbd\xb0\x03"
         "a",
         6,
         "\xef\xbf\xbd"
         "a",
         "half of a pair"},
        {"\x05\x02"
         "a\xfc",
         4, "a\xc3\xbc", "Latin-1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct jfr_string s;
        struct jfr_cursor c = {.p = (const unsigned char *)cases[i].bytes};
        c.end = c.p + cases[i].n;
        SCOPED(buf) out = testing_buf(1024);
        jfr_string(&c, &s);
        assert_null(c.problem);
        assert_ptr_equal(c.p, c.end);
        jfr_string_put(&s, &out);
        CHECK_STR(out.data, cases[i].want, cases[i].row);
    }
}

TEST(numbers)
{
    static const struct {
        const char *bytes;
        size_t n;
        uint64_t want;
        const char *problem;
    } cases[] = {
        {"\x00", 1, 0, NULL},
        {"\x7f", 1, 127, NULL},
        {"\x80\x01", 2, 128, NULL},
        {"\x80\x80\x00", 3, 0, NULL},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9, UINT64_MAX, NULL},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\x01", 9, (UINT64_C(1) << 57) - 1, NULL},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80", 9, UINT64_C(1) << 63, NULL},
        {"\x80", 1, 0, "a number without end"},
        {"", 0, 0, "a number without end"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char row[16];
        struct jfr_cursor c = {.p = (const unsigned char *)cases[i].bytes};
        c.end = c.p + cases[i].n;
        snprintf(row, sizeof(row), "%zu", i);
        assert_true(jfr_number(&c, JFR_LONG) == cases[i].want);
        CHECK_INT(c.p == c.end, true, row);
        CHECK_STR(c.problem != NULL ? c.problem : "",
                  cases[i].problem != NULL ? cases[i].problem : "", row);
    }
}
