/* POST /ingest: name, query and multipart body, and the URLs of all protocols. */
#include "tests/unit/lib/testing.h"

#include "http/url.h"
#include "tests/unit/write/requests.h"
#include "write/protocols/ingest.h"
#include "write/protocols/push.h"
#include "write/protocols/sample_types.h"

#define T1 INT64_C(1795230000)
#define T2 INT64_C(1795230015)

static const struct ingest_facts go_facts = {
    .format = PROFILE_PPROF, .sample_rate = 100, .spy = "gospy"};

static void build(struct series *s, const struct pair *pairs, size_t n, struct labels **ret_labels)
{
    *ret_labels = labels_of(pairs, n);
    assert_true(
        series_build(s, *ret_labels, &no_external, &default_limits, &protocol_ingest.labels));
}

TEST_WITH(test_names, setup, teardown)
{
    static const struct {
        const char *name;
        struct pair labels[6];
        const char *want;
    } cases[] = {
        {"form",
         {{"service_name", "shop.cart"},
          {"env", "prod"},
          {"instance", "10.1.2.3:6060"},
          {"pod", "cart-7f"},
          {"__name__", "process_cpu"}},
         "shop.cart{env=prod,instance=10.1.2.3:6060,pod=cart-7f}"},
        {"no labels", {{"service_name", "shop"}}, "shop"},
        {"slash", {{"service_name", "default/api"}, {"a", "b"}}, "default.api{a=b}"},
        {"odd app", {{"service_name", "caf\xc3\xa9 (x)"}}, "caf___x_"},
        {"no app", {{"__name__", "memory"}, {"a", "b"}}, "unknown_service{a=b}"},
        {"not UTF-8", {{"service_name", "\x80"}}, "_"},
        {"delta and name stay out",
         {{"service_name", "s"}, {"__delta__", "false"}, {"__name__", "memory"}},
         "s"},
        {"comma and brace", {{"service_name", "s"}, {"v", "a,b}c{d=e\"f"}}, "s{v=a_b_c{d=e\"f}"},
        {"spaces around", {{"service_name", "s"}, {"v", " a b\t"}, {"w", "  "}}, "s{v=a b}"},
        {"narrow keys",
         {{"service_name", "s"}, {"otel.scope.name", "x"}, {"my-label", "y"}},
         "s{my_label=y,otel_scope_name=x}"},
        {"UTF-8 value", {{"service_name", "s"}, {"v", "\xe4\xb8\xad"}}, "s{v=\xe4\xb8\xad}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct series s;
        SCOPED(labels) * l;
        build(&s, cases[i].labels, 6, &l);
        SCOPED(buf) out = testing_buf(1 << 16);
        assert_true(ingest_name(&s, &out));
        CHECK_STR(out.data, cases[i].want, cases[i].name);
        series_done(&s);
    }
}

TEST_WITH(test_repaired_value_is_counted, setup, teardown)
{
    static const struct pair pairs[] = {{"service_name", "s"}, {"v", "a,b,c}"}, {"w", "fine"}};
    struct series s;
    SCOPED(labels) * l;
    build(&s, pairs, 3, &l);
    SCOPED(buf) out = testing_buf(1 << 16);
    assert_true(ingest_name(&s, &out));
    CHECK_INT(s.changes[SERIES_REPAIRED], 1, "one label");
    series_done(&s);
}

TEST_WITH(test_query, setup, teardown)
{
    static const struct pair pairs[] = {{"service_name", "shop.cart"},
                                        {"env", "prod"},
                                        {"instance", "10.1.2.3:6060"},
                                        {"pod", "cart-7f"},
                                        {"__name__", "process_cpu"}};
    struct series s;
    SCOPED(labels) * l;
    build(&s, pairs, 5, &l);
    SCOPED(buf) out = testing_buf(1 << 16);
    assert_true(ingest_query(&s, T1 * NS_PER_S + 999999999, T2 * NS_PER_S, &go_facts, &out));
    CHECK_STR(out.data,
              "name=shop.cart%7Benv%3Dprod%2Cinstance%3D10.1.2.3%3A6060%2Cpod%3Dcart-7f%7D"
              "&from=1795230000&until=1795230015&spyName=gospy&sampleRate=100&units=samples"
              "&aggregationType=sum",
              "form");
    assert_null(strstr(out.data, "format"));
    series_done(&s);
}

TEST_WITH(test_plus_and_space_are_encoded, setup, teardown)
{
    static const struct pair pairs[] = {{"service_name", "s"},
                                        {"v", "a+b c&d=e%f#g\n\xe4\xb8\xad"}};
    struct series s;
    SCOPED(labels) * l;
    build(&s, pairs, 2, &l);
    SCOPED(buf) out = testing_buf(1 << 16);
    assert_true(ingest_query(&s, T1 * NS_PER_S, T2 * NS_PER_S, &go_facts, &out));
    CHECK_CONTAINS(out.data, "name=s%7Bv%3Da%2Bb%20c%26d%3De%25f%23g%0A%E4%B8%AD%7D&from=", "");
    series_done(&s);
}

/* DeepFlow agents take ten digits as seconds, and nothing else in all versions. */
TEST_WITH(test_times_have_ten_digits, setup, teardown)
{
    static const struct {
        const char *name;
        int64_t from_ns, until_ns;
        const char *want;
    } cases[] = {
        {"normal", T1 * NS_PER_S, T2 * NS_PER_S, "&from=1795230000&until=1795230015&"},
        {"no from", 0, T2 * NS_PER_S, "&from=1795230015&until=1795230015&"},
        {"negative", -5, T2 * NS_PER_S, "&from=1795230015&until=1795230015&"},
        {"reversed", T2 * NS_PER_S, T1 * NS_PER_S, "&from=1795230015&until=1795230015&"},
        {"no time at all", 0, 0, "&from=1000000000&until=1000000000&"},
        {"the far end", INT64_MAX, INT64_MAX, "&from=9223372036&until=9223372036&"},
    };
    static const struct pair pairs[] = {{"service_name", "s"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct series s;
        SCOPED(labels) * l;
        build(&s, pairs, 1, &l);
        SCOPED(buf) out = testing_buf(1 << 16);
        assert_true(ingest_query(&s, cases[i].from_ns, cases[i].until_ns, &go_facts, &out));
        CHECK_CONTAINS(out.data, cases[i].want, cases[i].name);
        series_done(&s);
    }
}

TEST_WITH(test_goroutines_are_averaged, setup, teardown)
{
    static const struct pair pairs[] = {{"service_name", "s"}, {"__name__", "goroutine"}};
    struct series s;
    SCOPED(labels) * l;
    build(&s, pairs, 2, &l);
    SCOPED(buf) out = testing_buf(1 << 16);
    assert_true(ingest_query(&s, T1 * NS_PER_S, T2 * NS_PER_S, &go_facts, &out));
    CHECK_CONTAINS(out.data, "&aggregationType=average", "");
    series_done(&s);
}

static size_t encoded_size(const char *name, size_t n)
{
    SCOPED(buf) out = testing_buf(1 << 20);
    assert_true(url_encode((struct sv){.p = name, .n = n}, &out));
    size_t size = out.len;
    return size;
}

/* The labels l00 to l19, of the same value. */
static struct labels_builder *twenty_labels(const char *value)
{
    struct labels_builder *b = labels_builder_new(table);
    labels_builder_reset(b, NULL);
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "l%02d", i);
        labels_builder_set_str(b, name, value);
    }
    return b;
}

/* Twenty labels of 1,000 bytes: far too much for a request line. */
TEST_WITH(test_long_name_drops_labels, setup, teardown)
{
    char value[1001] = "";
    memset(value, 'v', 1000);
    SCOPED(labels_builder) *b = twenty_labels(value);
    labels_builder_set_str(b, "pod", value);
    labels_builder_set_str(b, "service_name", "s");
    SCOPED(labels) *l = labels_builder_build(b);
    SCOPED(series) s;
    assert_true(series_build(&s, l, &no_external, &default_limits, &protocol_ingest.labels));
    SCOPED(buf) out = testing_buf(1 << 16);
    assert_true(ingest_name(&s, &out));
    CHECK_CONTAINS(out.data, "pod=", "worth more than the rest");
    CHECK_CONTAINS(out.data, "l01=", "");
    assert_null(strstr(out.data, "l02="));
    assert_true(encoded_size(out.data, out.len) <= INGEST_NAME_MAX);
    CHECK_INT(s.changes[SERIES_SURPLUS], 18, "");
}

/* Exactly up to the limit: no label is dropped that would have fitted. */
TEST_WITH(test_name_limit_is_exact, setup, teardown)
{
    char service[INGEST_APP_MAX + 1] = "";
    memset(service, 's', INGEST_APP_MAX);
    for (size_t length = 100; length < 400; length++) {
        char value[400] = "";
        memset(value, length % 2 ? '/' : 'v', length);
        SCOPED(labels_builder) *b = twenty_labels(value);
        labels_builder_set_str(b, "service_name", service);
        SCOPED(labels) *l = labels_builder_build(b);
        SCOPED(series) s;
        assert_true(series_build(&s, l, &no_external, &default_limits, &protocol_ingest.labels));
        SCOPED(buf) out = testing_buf(1 << 16);
        assert_true(ingest_name(&s, &out));
        size_t size = encoded_size(out.data, out.len);
        size_t one_more = 3 + 3 + 3 + encoded_size(value, length);
        assert_true(size <= INGEST_NAME_MAX);
        if (s.changes[SERIES_SURPLUS] > 0) {
            assert_true(size + one_more > INGEST_NAME_MAX);
        }
    }
}

TEST_WITH(test_long_service_name, setup, teardown)
{
    char value[3001] = "";
    memset(value, 's', 3000);
    const struct pair pairs[] = {{"service_name", value}, {"a", "b"}};
    struct series s;
    SCOPED(labels) * l;
    build(&s, pairs, 2, &l);
    SCOPED(buf) out = testing_buf(1 << 16);
    assert_true(ingest_name(&s, &out));
    CHECK_INT(out.len, INGEST_APP_MAX + strlen("{a=b}"), "");
    series_done(&s);
}

/* ---- body ------------------------------------------------------------------------------------ */

TEST(test_body_e1)
{
    SCOPED(buf) head = testing_buf(4096);
    SCOPED(buf) tail = testing_buf(4096);
    assert_true(ingest_body("pprofpull7f3a9c", PROFILE_PPROF, SV(""), &head, &tail));
    CHECK_STR(head.data,
              "--pprofpull7f3a9c\r\n"
              "Content-Disposition: form-data; name=\"profile\"; filename=\"profile.pprof\"\r\n"
              "Content-Type: application/octet-stream\r\n"
              "\r\n",
              "");
    CHECK_STR(tail.data, "\r\n--pprofpull7f3a9c--\r\n", "");
    CHECK_INT(head.len, 135, "");
    CHECK_INT(head.len + 130 + tail.len, 288, "");
}

TEST(test_body_e3)
{
    SCOPED(buf) json = testing_buf(4096);
    assert_true(sample_types_builtin(SV("memory"), &json));
    struct sv config = {.p = json.data, .n = json.len};
    CHECK_INT(config.n, 185, "");
    SCOPED(buf) head = testing_buf(4096);
    SCOPED(buf) tail = testing_buf(4096);
    assert_true(ingest_body("pprofpull7f3a9c", PROFILE_PPROF, config, &head, &tail));
    CHECK_INT(head.len + 130 + tail.len, 631, "");
    CHECK_CONTAINS(tail.data,
                   "\r\n--pprofpull7f3a9c\r\n"
                   "Content-Disposition: form-data; name=\"sample_type_config\"; "
                   "filename=\"sample_type_config.json\"\r\n"
                   "Content-Type: application/octet-stream\r\n"
                   "\r\n"
                   "{\"alloc_objects\":",
                   "");
    CHECK_CONTAINS(tail.data, "}}\r\n--pprofpull7f3a9c--\r\n", "");
}

TEST(test_boundary)
{
    struct rng rng;
    rng_seed(&rng, 42);
    struct boundary a;
    struct boundary b;
    boundary_new(&a, &rng);
    boundary_new(&b, &rng);
    CHECK_INT(strlen(a.text), sizeof(a.text) - 1, "");
    assert_true(strlen(a.text) >= 16 && strlen(a.text) <= 70);
    assert_int_not_equal(strcmp(a.text, b.text), 0);
    CHECK_INT(strspn(a.text + 8, "0123456789abcdef"), 32, "");

    char body[200] = "";
    (void)snprintf(body + 50, sizeof(body) - 50, "\r\n--%s", a.text);
    assert_false(boundary_fits(&a, body, sizeof(body)));
    assert_true(boundary_fits(&b, body, sizeof(body)));
    assert_true(boundary_fits(&a, NULL, 0));
}
