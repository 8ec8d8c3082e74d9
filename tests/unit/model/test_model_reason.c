/* The reason of each way in which a scrape can fail, with its name and kind. */
#include "tests/unit/lib/testing.h"

#include "model/reason.h"

TEST(responses)
{
    static const struct {
        enum http_result result;
        long status;
        const char *body, *want;
    } rows[] = {
        {HTTP_ERR_CONNECT, 0, "", "connect"},
        {HTTP_ERR_TIMEOUT, 0, "", "timeout"},
        {HTTP_ERR_TIMEOUT, 500, "", "timeout"},
        {HTTP_ERR_RESOLVE, 0, "", "resolve"},
        {HTTP_ERR_TLS, 0, "", "tls"},
        {HTTP_ERR_TOO_LARGE, 200, "", "too_large"},
        {HTTP_ERR_TOO_LARGE, 404, "", "http_404"},
        {HTTP_ERR_CUT, 200, "", "cut"},
        {HTTP_ERR_CUT, 413, "", "http_413"},
        {HTTP_ERR_REDIRECT, 302, "", "redirect"},
        {HTTP_DONE, 302, "", "redirect"},
        {HTTP_DONE, 404, "404 page not found", "http_404"},
        {HTTP_DONE, 418, "", "http_4xx"},
        {HTTP_DONE, 599, "", "http_5xx"},
        {HTTP_DONE, 999, "", "http_other"},
        {HTTP_DONE, 101, "", "http_other"},
        {HTTP_DONE, 500, "oops", "http_500"},
        {HTTP_DONE, 500, "Could not enable CPU profiling: cpu profiling already in use\n",
         "cpu_in_use"},
        {HTTP_DONE, 503, "cpu profiling already in use", "http_503"},
        {HTTP_DONE, 400, "profile duration exceeds server's WriteTimeout\n", "duration_too_long"},
        {HTTP_DONE, 400, "Bad Request", "http_400"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum reason r = reason_of_response(rows[i].result, rows[i].status, sv_from(rows[i].body));
        CHECK_STR(reason_name(r), rows[i].want, rows[i].want);
    }
}

TEST(profiles)
{
    static const struct {
        enum sniff_result result;
        const char *want;
    } rows[] = {
        {SNIFF_PPROF_GZIP, ""},
        {SNIFF_PPROF_PLAIN, ""},
        {SNIFF_JFR, ""},
        {SNIFF_LEGACY, ""},
        {SNIFF_EMPTY, "empty"},
        {SNIFF_HTML, "not_pprof_html"},
        {SNIFF_JSON, "not_pprof_json"},
        {SNIFF_TEXT, "not_pprof_text"},
        {SNIFF_TOO_SHORT, "not_pprof_short"},
        {SNIFF_BAD_GZIP, "bad_gzip"},
        {SNIFF_BAD_WIRE, "bad_protobuf"},
        {SNIFF_NOT_JFR, "not_jfr"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum reason r = reason_of_sniff(rows[i].result);
        CHECK_STR(reason_name(r), rows[i].want, rows[i].want);
        CHECK_INT(sniff_is_profile(rows[i].result), r == REASON_NONE, rows[i].want);
    }
    CHECK_STR(reason_name(reason_of_legacy(LEGACY_MADE)), "", "converted");
    CHECK_STR(reason_name(reason_of_legacy(LEGACY_BAD)), "bad_legacy", "not converted");
    CHECK_STR(reason_name(reason_of_legacy(LEGACY_TOO_LARGE)), "too_large", "too large");
    CHECK_STR(reason_name(reason_of_delta(DELTA_BAD_PPROF)), "bad_pprof", "no delta");
    CHECK_STR(reason_name(reason_of_delta(DELTA_NO_MEMORY)), "memory", "no memory for a delta");
}

/* Every reason has a name of its own, and a failed transfer the name of its result. */
TEST(names)
{
    for (int i = 0; i < REASONS; i++) {
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(reason_name((enum reason)i), reason_name((enum reason)k));
        }
    }
    for (int i = HTTP_ERR_RESOLVE; i <= HTTP_ERR_MEMORY; i++) {
        enum http_result result = (enum http_result)i;
        CHECK_STR(reason_name(reason_of_response(result, 0, SV(""))), http_result_name(result), "");
    }
}

TEST(kinds)
{
    CHECK_INT(reason_kind(REASON_NONE), REASON_KIND_SUCCESS, "");
    CHECK_INT(reason_kind(REASON_CPU_IN_USE), REASON_KIND_CONFLICT, "cpu_in_use");
    CHECK_INT(reason_kind(REASON_HTTP_404), REASON_KIND_ABSENT, "http_404");
    CHECK_INT(reason_kind(REASON_HTTP_410), REASON_KIND_FAILURE, "http_410");
    CHECK_INT(reason_kind(REASON_CONNECT), REASON_KIND_FAILURE, "connect");
}

/* The advice for failures that somebody can do something about. */
TEST(advice)
{
    CHECK_STR(reason_advice(REASON_NONE), "", "no failure");
    CHECK_STR(reason_advice(REASON_HTTP_500), "", "the message says it");
    for (int i = REASON_RESOLVE; i <= REASON_TLS; i++) {
        assert_true(reason_advice((enum reason)i)[0] != '\0');
    }
    CHECK_CONTAINS(reason_advice(REASON_CPU_IN_USE), "one CPU profile at a time", "");
    CHECK_CONTAINS(reason_advice(REASON_HTTP_404), "set its path", "");
}
