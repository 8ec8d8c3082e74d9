/* Reading a profile back: the queries, what the responses mean, and the profile that is sent. */
#include "tests/unit/lib/testing.h"

#include "base/clock.h"
#include "cli/import/summary.h"
#include "cli/verify/readback.h"
#include "write/protocols/file.h"
#include "write/protocols/ingest.h"
#include "write/protocols/profefe.h"
#include "write/protocols/push.h"
#include "write/protocols/table.h"

TEST(queries_of_each_server)
{
    static const struct {
        const struct readback *how;
        const char *base, *url, *body;
    } cases[] = {
        {&readback_pyroscope, "http://h:4040/",
         "http://h:4040/querier.v1.QuerierService/SelectMergeStacktraces",
         "{\"profileTypeID\":\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\","
         "\"labelSelector\":\"{verify_id=\\\"0a\\\"}\",\"start\":1709204400000,"
         "\"end\":1709204460000}"},
        {&readback_pyroscope, "https://h/profile/push.v1.PusherService/Push",
         "https://h/profile/querier.v1.QuerierService/SelectMergeStacktraces", "{"},
        {&readback_pyroscope, "https://h/profile/ingest/",
         "https://h/profile/querier.v1.QuerierService/SelectMergeStacktraces", "{"},
        {&readback_deepflow, "http://df:20416", "http://df:20416/v1/profile/ProfileTracing",
         "{\"app_service\":\"my \\\"app\\\"\",\"profile_language_type\":\"Golang\","
         "\"profile_event_type\":\"cpu\",\"tag_filter\":\"\",\"time_start\":1709204400,"
         "\"time_end\":1709204460}"},
        {&readback_profefe, "http://p:10100/api/0/profiles",
         "http://p:10100/api/0/profiles?service=my%20%22app%22&type=cpu&from=2024-02-29T11%3A00%"
         "3A00&to=2024-02-29T11%3A01%3A00&labels=verify_id%3D0a",
         ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) url = testing_buf(4096);
        SCOPED(buf) body = testing_buf(4096);
        struct readback_query q = {.base_url = cases[i].base,
                                   .service = "my \"app\"",
                                   .id = "0a",
                                   .from_ns = INT64_C(1709204400) * NS_PER_S,
                                   .until_ns = INT64_C(1709204460) * NS_PER_S};
        assert_true(readback_request(cases[i].how, &q, &url, &body));
        CHECK_STR(url.data, cases[i].url, cases[i].base);
        if (cases[i].body[0] == '\0' || cases[i].body[1] != '\0') {
            CHECK_STR(body.data, cases[i].body, cases[i].base);
        }
    }
}

/* The service stands in the selector only if it needs no quoting. */
TEST(query_by_service)
{
    static const struct text_case cases[] = {
        {"profpull-verify", "{verify_id=\\\"0a\\\",service_name=\\\"profpull-verify\\\"}"},
        {"ns/app", "{verify_id=\\\"0a\\\"}"},
        {"a\"b", "{verify_id=\\\"0a\\\"}"},
        {"", "{verify_id=\\\"0a\\\"}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) url = testing_buf(4096);
        SCOPED(buf) body = testing_buf(4096);
        struct readback_query q = {
            .base_url = "http://h", .service = cases[i].text, .id = "0a", .until_ns = 1};
        assert_true(readback_request(&readback_pyroscope, &q, &url, &body));
        CHECK_CONTAINS(body.data, cases[i].want, cases[i].text);
    }
}

/* A Pyroscope is asked whether it has anything of the tenant. */
TEST(empty_tenants)
{
    static const struct {
        long status;
        const char *body;
        bool want;
    } cases[] = {
        {200, "{}", true},
        {200, "{\"dataIngested\":false,\"oldestProfileTime\":\"9223372036854775807\"}", true},
        {200, "{\"dataIngested\":true,\"oldestProfileTime\":\"1\"}", false},
        {200, "[]", false},
        {200, "<html>", false},
        {200, "", false},
        {404, "{}", false},
        {500, "{}", false},
    };
    SCOPED(buf) url = testing_buf(4096);
    SCOPED(buf) body = testing_buf(4096);
    assert_true(
        readback_empty_request(&readback_pyroscope, "http://h/profile/ingest", &url, &body));
    CHECK_STR(url.data, "http://h/profile/querier.v1.QuerierService/GetProfileStats", "");
    CHECK_STR(body.data, "{}", "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(readback_says_empty(&readback_pyroscope, cases[i].status, sv_from(cases[i].body)),
                  cases[i].want, cases[i].body);
    }
}

TEST(read_back_follows_from_protocol_and_url)
{
    static const struct {
        const struct protocol *protocol;
        const char *url;
        const struct readback *want;
    } cases[] = {
        {&protocol_push, "http://h", &readback_pyroscope},
        {&protocol_ingest, "http://h", &readback_pyroscope},
        {&protocol_ingest, "http://h/api/v1/profile", &readback_deepflow},
        {&protocol_ingest, "http://h/api/v1/profile/ingest", &readback_deepflow},
        {&protocol_push, "http://h/api/v1/profile", &readback_pyroscope},
        {&protocol_file, "file:///x", &readback_file},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config_endpoint e = {.protocol = &cases[i].protocol->config, .url = cases[i].url};
        CHECK_INT(readback_of(&e) == cases[i].want, true, cases[i].url);
    }
}

TEST(responses_of_each_server)
{
    static const struct {
        const struct readback *how;
        long status;
        const char *body;
        enum readback_verdict want;
        const char *says;
    } cases[] = {
        {&readback_pyroscope, 200,
         "{\"flamegraph\":{\"names\":[\"total\",\"profpull.verify\"],\"total\":\"20000000\"}}",
         READBACK_FOUND, ""},
        {&readback_pyroscope, 200, "{\"flamegraph\":{\"names\":[\"total\"]}}", READBACK_NOT_YET,
         ""},
        {&readback_pyroscope, 200, "{\"flamegraph\":{\"names\":[1,null]}}", READBACK_NOT_YET, ""},
        {&readback_pyroscope, 200, "{}", READBACK_NOT_YET, ""},
        {&readback_pyroscope, 200, "<html>", READBACK_IMPOSSIBLE, "not JSON"},
        {&readback_pyroscope, 200, "[]", READBACK_IMPOSSIBLE, "not JSON"},
        {&readback_pyroscope, 200, "", READBACK_IMPOSSIBLE, "not JSON"},
        {&readback_pyroscope, 400, "", READBACK_IMPOSSIBLE, "HTTP 400"},
        {&readback_pyroscope, 401, "", READBACK_IMPOSSIBLE, "write but not read"},
        {&readback_pyroscope, 403, "", READBACK_IMPOSSIBLE, "write but not read"},
        {&readback_pyroscope, 404, "", READBACK_IMPOSSIBLE, "nothing answers queries"},
        {&readback_pyroscope, 501, "", READBACK_IMPOSSIBLE, "nothing answers queries"},
        {&readback_pyroscope, 429, "", READBACK_NOT_YET, ""},
        {&readback_pyroscope, 503, "", READBACK_NOT_YET, ""},
        {&readback_deepflow, 200,
         "{\"OPT_STATUS\":\"SUCCESS\",\"result\":{\"node_values\":{\"values\":[[0,-1,1,1]]}}}",
         READBACK_FOUND, ""},
        {&readback_deepflow, 200, "{\"OPT_STATUS\":\"SUCCESS\",\"result\":[{\"node_id\":\"1\"}]}",
         READBACK_FOUND, ""},
        {&readback_deepflow, 200,
         "{\"OPT_STATUS\":\"SUCCESS\",\"result\":{\"node_values\":{\"values\":[]}}}",
         READBACK_NOT_YET, ""},
        {&readback_deepflow, 200, "{\"OPT_STATUS\":\"FAILED\",\"result\":[1]}", READBACK_NOT_YET,
         ""},
        {&readback_deepflow, 400, "{\"OPT_STATUS\":\"INVALID_POST_DATA\"}", READBACK_IMPOSSIBLE,
         "HTTP 400"},
        {&readback_profefe, 200, "{\"code\":200,\"body\":[{\"id\":\"x\"}]}", READBACK_FOUND, ""},
        {&readback_profefe, 200, "{\"code\":200,\"body\":[]}", READBACK_NOT_YET, ""},
        {&readback_profefe, 204, "", READBACK_NOT_YET, ""},
        {&readback_profefe, 404, "{\"code\":404,\"error\":\"nothing found\"}", READBACK_NOT_YET,
         ""},
        {&readback_profefe, 400, "", READBACK_IMPOSSIBLE, "HTTP 400"},
        /* Collectors of 2019 send the profile itself. */
        {&readback_profefe, 200, "\x0a\x04\x08\x01\x10\x02", READBACK_FOUND, ""},
        {&readback_profefe, 200, "<html>", READBACK_IMPOSSIBLE, "not JSON"},
        {&readback_pyroscope, 200, "\x0a\x04\x08\x01\x10\x02", READBACK_IMPOSSIBLE, "not JSON"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        enum readback_verdict v =
            readback_check(cases[i].how, cases[i].status, sv_from(cases[i].body), &err);
        CHECK_INT(v, cases[i].want, cases[i].body);
        CHECK_CONTAINS(err.msg, cases[i].says, cases[i].body);
        CHECK_INT(err.kind == ERR_NONE, v != READBACK_IMPOSSIBLE, cases[i].body);
    }
}

TEST(the_profile_is_valid)
{
    struct import_summary summary;
    struct err err = ERR_INIT;
    SCOPED(buf) b = testing_buf(4096);
    assert_true(readback_profile(INT64_C(1709204400) * NS_PER_S, 10 * NS_PER_MS, &b));
    CHECK_INT(import_summary_read((struct sv){.p = b.data, .n = b.len}, &summary, &err),
              IMPORT_PROFILE, err.msg);
    CHECK_STR(summary.type, READBACK_TYPE, "");
    CHECK_STR(summary.types, "samples/count cpu/nanoseconds", "");
    CHECK_INT(summary.time_ns, INT64_C(1709204400) * NS_PER_S, "");
    CHECK_INT(summary.duration_ns, 10 * NS_PER_MS, "");
    buf_done(&b);
    buf_init(&b, 20);
    assert_false(readback_profile(1, 1, &b));
}
