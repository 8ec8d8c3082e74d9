/* Numbers, durations, sizes, host:port. */
#include "tests/unit/lib/testing.h"

TEST(parses_numbers)
{
    static const struct {
        const char *text;
        uint64_t max;
        bool ok;
        uint64_t want;
    } cases[] = {
        {"0", UINT64_MAX, true, 0},
        {"007", UINT64_MAX, true, 7},
        {"18446744073709551615", UINT64_MAX, true, UINT64_MAX},
        {"18446744073709551616", UINT64_MAX, false, 0},
        {"99999999999999999999", UINT64_MAX, false, 0},
        {"10", 10, true, 10},
        {"11", 10, false, 0},
        {"", 10, false, 0},
        {"-1", 10, false, 0},
        {"+1", 10, false, 0},
        {" 1", 10, false, 0},
        {"1 ", 10, false, 0},
        {"1.0", 10, false, 0},
        {"0x1", 10, false, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t value = 77;
        bool ok = parse_u64(sv_from(cases[i].text), cases[i].max, &value);
        CHECK_INT(ok, cases[i].ok, cases[i].text);
        assert_true(value == (ok ? cases[i].want : 77));
    }
}

#define S INT64_C(1000)
#define M (60 * S)
#define H (60 * M)
#define D (24 * H)

TEST(parses_durations)
{
    static const struct {
        const char *text;
        int64_t want;
    } cases[] = {
        {"0", 0},
        {"0s", 0},
        {"0ms", 0},
        {"1ms", 1},
        {"15s", 15 * S},
        {"1h30m", H + 30 * M},
        {"1y", 365 * D},
        {"2w", 14 * D},
        {"3d", 3 * D},
        {"1y2w3d4h5m6s7ms", 365 * D + 14 * D + 3 * D + 4 * H + 5 * M + 6 * S + 7},
        {"1d1ms", D + 1},
        {"90m", 90 * M},
        {"0005s", 5 * S},
        {"1m0s", M},
        {"9223372036854ms", INT64_C(9223372036854)}, /* INT64_MAX ns */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = ERR_INIT;
        int64_t ms = -1;
        bool ok = parse_duration_ms(sv_from(cases[i].text), &ms, &e);
        CHECK_STR(e.msg, "", cases[i].text);
        CHECK_INT(ok, true, cases[i].text);
        CHECK_INT(ms, cases[i].want, cases[i].text);
    }
}

TEST(refuses_durations)
{
    static const char *const bad[] = {
        "",    "1",    "00",   "s",     "-1s",        "+1s",  "1.5s", "1s ",  " 1s",
        "1 s", "1m1h", "1s1s", "1ms1s", "1h 1m",      "1H",   "1us",  "1ns",  "1sec",
        "1sm", "1s5",  "5",    "1mms",  "1\xc2\xb5s", "10s!", "1h1y", "1w1w", "1s0",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = ERR_INIT;
        int64_t ms = -7;
        char want[100];
        assert_false(parse_duration_ms(sv_from(bad[i]), &ms, &e));
        (void)snprintf(want, sizeof(want), "expected a duration such as \"15s\", got \"%s\"",
                       bad[i]);
        CHECK_STR(e.msg, want, bad[i]);
        CHECK_INT(e.kind, ERR_INPUT, bad[i]);
        CHECK_INT(ms, -7, bad[i]);
    }
}

TEST(refuses_endless_durations)
{
    static const char *const bad[] = {
        "9223372036855ms",
        "293y",
        "292y53w",
        "99999999999999999999s",
        "18446744073709551615y",
        "18446744073709551616ms",
        "1y18446744073709551615ms",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = ERR_INIT;
        int64_t ms = -7;
        char want[100];
        assert_false(parse_duration_ms(sv_from(bad[i]), &ms, &e));
        (void)snprintf(want, sizeof(want), "duration \"%s\" is longer than 292 years", bad[i]);
        CHECK_STR(e.msg, want, bad[i]);
        CHECK_INT(ms, -7, bad[i]);
    }
    struct err e = ERR_INIT;
    int64_t ms;
    assert_false(parse_duration_ms(SV("999999y5"), &ms, &e));
    CHECK_CONTAINS(e.msg, "expected a duration", "a wrong form is named before a wrong value");
}

TEST(shows_the_start_of_long_text)
{
    char text[5000];
    int64_t ms;
    uint64_t size;
    struct err e = ERR_INIT;
    memset(text, 'x', sizeof(text));
    struct sv v = {.p = text, .n = sizeof(text)};
    assert_false(parse_duration_ms(v, &ms, &e));
    CHECK_INT(strlen(e.msg), strlen("expected a duration such as \"15s\", got \"\"") + 100, "");
    assert_false(parse_size(v, &size, &e));
    CHECK_INT(strlen(e.msg), strlen("expected a size such as \"16MiB\", got \"\"") + 100, "");
}

TEST(formats_durations)
{
    static const struct {
        int64_t ms;
        const char *want;
    } cases[] = {
        {0, "0s"},
        {1, "1ms"},
        {1500, "1s500ms"},
        {15 * S, "15s"},
        {90 * M, "1h30m"},
        {H + 1, "1h1ms"},
        {7 * D, "1w"},
        {8 * D, "8d"}, /* weeks and years only if nothing is left over */
        {365 * D, "1y"},
        {730 * D, "2y"},
        {366 * D, "366d"},
        {-1500, "-1s500ms"},
        {INT64_MIN, "-106751991167d7h12m55s808ms"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64];
        format_duration_ms(cases[i].ms, text, sizeof(text));
        CHECK_STR(text, cases[i].want, cases[i].want);
        int64_t again;
        if (cases[i].ms >= 0) {
            assert_true(parse_duration_ms(sv_from(text), &again, NULL));
            CHECK_INT(again, cases[i].ms, text);
        }
    }
    char small[4];
    format_duration_ms(90 * M, small, sizeof(small));
    CHECK_STR(small, "1h3", "cut, not overrun");
}

TEST(parses_sizes)
{
    static const struct {
        const char *text;
        uint64_t want;
    } cases[] = {
        {"0", 0},
        {"1500", 1500},
        {"1500B", 1500},
        {"1KB", 1000},
        {"1KiB", 1024},
        {"2MB", 2000000},
        {"16MiB", UINT64_C(16) << 20},
        {"3GB", UINT64_C(3000000000)},
        {"1GiB", UINT64_C(1) << 30},
        {"4TB", UINT64_C(4000000000000)},
        {"5TiB", UINT64_C(5) << 40},
        {"16777215TiB", UINT64_C(16777215) << 40},
        {"18446744073709551615", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = ERR_INIT;
        uint64_t bytes = 77;
        bool ok = parse_size(sv_from(cases[i].text), &bytes, &e);
        CHECK_STR(e.msg, "", cases[i].text);
        assert_true(ok && bytes == cases[i].want);
    }
}

TEST(refuses_sizes)
{
    static const char *const bad[] = {"",   "MiB",   "-1",    "1.5MiB", "1 MiB", "1mib", "1kB",
                                      "1K", "1MiBs", "1MiB1", " 1",     "1EiB",  "0x10", "1\xff"};
    static const char *const large[] = {"16777216TiB", "18446744073709551616",
                                        "99999999999999999999KB", "18446744073709551615KB"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = ERR_INIT;
        uint64_t bytes = 77;
        char want[100];
        assert_false(parse_size(sv_from(bad[i]), &bytes, &e));
        (void)snprintf(want, sizeof(want), "expected a size such as \"16MiB\", got \"%s\"", bad[i]);
        CHECK_STR(e.msg, want, bad[i]);
        assert_true(bytes == 77);
    }
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        struct err e = ERR_INIT;
        uint64_t bytes = 77;
        char want[100];
        assert_false(parse_size(sv_from(large[i]), &bytes, &e));
        (void)snprintf(want, sizeof(want), "size \"%s\" is above 16777215TiB", large[i]);
        CHECK_STR(e.msg, want, large[i]);
        assert_true(bytes == 77);
    }
}

TEST(formats_sizes)
{
    static const struct {
        uint64_t bytes;
        const char *want;
    } cases[] = {
        {0, "0B"},
        {1, "1B"},
        {1023, "1023B"},
        {1024, "1KiB"},
        {1500, "1500B"},
        {1536, "1536B"},
        {3072, "3KiB"},
        {UINT64_C(16) << 20, "16MiB"},
        {UINT64_C(1) << 30, "1GiB"},
        {UINT64_C(1025) << 40, "1025TiB"},
        {UINT64_MAX, "18446744073709551615B"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[32];
        uint64_t again = 0;
        format_size(cases[i].bytes, text, sizeof(text));
        CHECK_STR(text, cases[i].want, cases[i].want);
        assert_true(parse_size(sv_from(text), &again, NULL));
        assert_true(again == cases[i].bytes);
    }
}

TEST(splits_host_port)
{
    static const struct {
        const char *text, *host;
        uint16_t port;
    } cases[] = {
        {"h:1", "h", 1},
        {"h", "h", 0},
        {"1.2.3.4", "1.2.3.4", 0},
        {"1.2.3.4:65535", "1.2.3.4", 65535},
        {"web-1.my_ns.svc.cluster.local.:80", "web-1.my_ns.svc.cluster.local.", 80},
        {"[::1]:6060", "::1", 6060},
        {"[::1]", "::1", 0},
        {"::1", "::1", 0},
        {"::", "::", 0},
        {"2001:db8::5", "2001:db8::5", 0},
        {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", 0},
        {"::ffff:1.2.3.4", "::ffff:1.2.3.4", 0},
        {"[::ffff:1.2.3.4]:1", "::ffff:1.2.3.4", 1},
        {"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
        {"fe80::1%eth0", "fe80::1%eth0", 0},
        {"h:00080", "h", 80},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = ERR_INIT;
        struct sv host = SV("");
        uint16_t port = 7;
        bool ok = split_host_port(sv_from(cases[i].text), &host, &port, &e);
        CHECK_STR(e.msg, "", cases[i].text);
        CHECK_INT(ok, true, cases[i].text);
        CHECK_INT(sv_eq_str(host, cases[i].host), true, cases[i].text);
        CHECK_INT(port, cases[i].port, cases[i].text);
    }
}

TEST(refuses_hosts)
{
    static const char *const bad[] = {
        "",
        ":80",
        "[]:80",
        "[h]:80",
        "[1.2.3.4]:80",
        "[::1",
        "[::1]80",
        "[::1]x:80",
        "::1]:80",
        "1:2:3",
        "h:1:2",
        ":::",
        "1:2:3:4:5:6:7:8:9",
        "http://h:80",
        "h/path:80",
        "h:80/path:1",
        "user@h:80",
        "h h:80",
        "h\t",
        "h#:80",
        "h?x:80",
        "h%41:80",
        "h\\x:80",
        "h\n:80",
        "\x7f",
        "h\xc3\xa9:80",
        "[fe80::1%]:80",
        "fe80::1%",
        "[fe80::1%e/h]:1",
        "[fe80::1%a\nb]",
        "\"h\":80",
        "h,i:80",
        "h;:80",
        "[00000000000000000000000000000000000000000000000000000000000001::]:1",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = ERR_INIT;
        struct sv host = SV("untouched");
        uint16_t port = 7;
        char want[200];
        CHECK_INT(split_host_port(sv_from(bad[i]), &host, &port, &e), false, bad[i]);
        (void)snprintf(want, sizeof(want), "expected host or host:port, got \"%s\"", bad[i]);
        CHECK_STR(e.msg, want, bad[i]);
        assert_true(sv_eq_str(host, "untouched") && port == 7);
    }
    struct err e = ERR_INIT;
    struct sv host;
    uint16_t port;
    assert_false(split_host_port(SV("h\0i:80"), &host, &port, &e));
    assert_false(split_host_port(SV("[::1\0]:80"), &host, &port, &e));
    assert_false(split_host_port((struct sv){.p = NULL, .n = 0}, &host, &port, &e));
}

TEST(refuses_ports)
{
    static const char *const bad[] = {"h:",     "h:0",     "h:65536", "h:99999", "h:http",
                                      "h:-1",   "h:+1",    "h: 80",   "h:80 ",   "h:000080",
                                      "[::1]:", "[::1]:0", "h:80/",   "h:0x50",  "1.2.3.4:1e3"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = ERR_INIT;
        struct sv host;
        uint16_t port;
        char want[200];
        CHECK_INT(split_host_port(sv_from(bad[i]), &host, &port, &e), false, bad[i]);
        (void)snprintf(want, sizeof(want), "expected a port within 1-65535, got \"%s\"", bad[i]);
        CHECK_STR(e.msg, want, bad[i]);
    }
}
