/* The protocol of symbol services. */
#include "tests/unit/lib/testing.h"

#include "symbols/service.h"

TEST(urls_are_derived_as_by_pprof)
{
    static const struct {
        const char *profile;
        const char *want; /* "": there is no service */
    } cases[] = {
        {"http://h:1/debug/pprof/profile?seconds=5", "http://h:1/debug/pprof/symbol"},
        {"http://h:1/a/debug/pprof/heap", "http://h:1/a/debug/pprof/symbol"},
        {"http://h:1/debug/pprof/mine/too", "http://h:1/debug/pprof/mine/symbol"},
        {"http://h:1/pprof/heap", "http://h:1/pprof/symbol"},
        {"http://h:1/pprof/growth", "http://h:1/pprof/symbol"},
        {"https://h/x/pprof/profile?seconds=5#f", "https://h/x/pprof/symbol"},
        {"http://h:1/pprof/pmuprofile", "http://h:1/pprof/symbol"},
        {"http://h:1/pprof/contention", "http://h:1/pprof/symbol"},
        {"http://h:1/pprof/other", "http://h:1/pprof/symbolz"},
        {"http://h:1/heapz", "http://h:1/symbolz"},
        {"http://h:1/", "http://h:1/symbolz"},
        {"http://h:1", ""},
        {"/pprof/heap", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) out = testing_buf(1000);
        bool ok = symbol_service_url(sv_from(cases[i].profile), &out);
        CHECK_STR(ok ? out.data : "", cases[i].want, cases[i].profile);
    }
}

TEST(the_number_of_symbols_says_if_there_are_names)
{
    static const struct {
        const char *body;
        bool want;
    } cases[] = {
        {"num_symbols: 1\n", true}, {"num_symbols: 4711", true},   {"num_symbols: 0\n", false},
        {"num_symbols:1", true},    {"num_symbols: \n", false},    {"num_symbols: yes", false},
        {"404 not found\n", false}, {"x\nnum_symbols: 3\n", true}, {"", false},
        {"xnum_symbols: 1", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(symbol_service_has_names(sv_from(cases[i].body)), cases[i].want, cases[i].body);
    }
}

TEST(addresses_are_joined)
{
    static const uint64_t addresses[] = {0x4d4b50, 0x7f12ab, UINT64_MAX};
    static uint64_t many[SYMBOL_SERVICE_ADDRESSES_MAX + 5];
    SCOPED(buf) out = testing_buf((size_t)1 << 20);
    assert_true(symbol_service_put_addresses(addresses, 3, &out));
    CHECK_STR(out.data, "0x4d4b50+0x7f12ab+0xffffffffffffffff", "");
    buf_clear(&out);
    assert_true(symbol_service_put_addresses(many, SYMBOL_SERVICE_ADDRESSES_MAX + 5, &out));
    assert_int_equal(out.len, SYMBOL_SERVICE_ADDRESSES_MAX * 4 - 1); /* "0x0+", no "+" at the end */
}

TEST(answers_are_read_line_by_line)
{
    static const char answer[] = "num_symbols: 1\n"
                                 "0x4d4b50\tmain\r\n"
                                 "0x4D4B51  brpc::Server::Start(int, char const*)\n"
                                 "0x10\t0x10\n"
                                 "0x11\t??\n"
                                 "0x12\t_end\n"
                                 "0x12\n"
                                 "0x13nothing\n"
                                 "0x\tnothing\n"
                                 "17\tnothing\n"
                                 "0x11112222333344445\ttoo large\n"
                                 "\n"
                                 "0x14 net/http.(*conn).serve";
    struct sv rest = SV(answer);
    struct sv name;
    uint64_t address;
    SCOPED(buf) text = testing_buf(10000);
    while (symbol_service_next(&rest, &address, &name)) {
        buf_printf(&text, "%llx %.*s\n", (unsigned long long)address, SV_ARG(name));
    }
    CHECK_STR(text.data, "4d4b50 main\n4d4b51 brpc::Server::Start\n14 net/http.(*conn).serve\n",
              "");
}

TEST(long_names_are_cut)
{
    struct sv name;
    uint64_t address;
    SCOPED(buf) answer = testing_buf(100000);
    buf_puts(&answer, "0x1\t");
    for (size_t i = 0; i < SYMBOL_SERVICE_NAME_MAX; i++) {
        buf_puts(&answer, "\xc3\xa4"); /* two bytes of UTF-8 */
    }
    struct sv rest = {answer.data, answer.len};
    assert_true(symbol_service_next(&rest, &address, &name));
    assert_int_equal(name.n, SYMBOL_SERVICE_NAME_MAX);
    assert_int_equal(rest.n, 0);
}

TEST(parameters_are_dropped)
{
    static const char *const cases[][2] = {
        {"main", "main"},
        {"f(int)", "f"},
        {"a::f<int>(std::vector<int, std::allocator<int> >&) const", "a::f<int>"},
        {"(anonymous namespace)::f(void (*)(int))", "(anonymous namespace)::f"},
        {"a::operator()(int) const", "a::operator()"},
        {"a::operator()", "a::operator()"},
        {"std::function<void ()>::operator()() const", "std::function<void ()>::operator()"},
        {"main.(*T).Method", "main.(*T).Method"},
        {"a::(anonymous)", "a::(anonymous)"},
        {"(x)", "(x)"},
        {"x)", "x)"},
        {"f() const", "f"},
        {" const", " const"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char got[200];
        snprintf(got, sizeof(got), "%.*s", SV_ARG(symbol_without_parameters(sv_from(cases[i][0]))));
        CHECK_STR(got, cases[i][1], cases[i][0]);
    }
}
