/* The page of recorded metrics: its format by the Accept of the scraper. */
#include "tests/unit/lib/testing.h"

#include "record/record.h"
#include "tests/unit/api/exchange_rig.h"

#define TEXT "text/plain; version=0.0.4; charset=utf-8"
#define OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"

TEST(formats_follow_accept)
{
    static const struct text_case cases[] = {
        {NULL, TEXT},
        {"*/*", TEXT},
        {"text/plain", TEXT},
        {"application/openmetrics-text", OPEN},
        /* The headers of a Prometheus that prefers OpenMetrics, and of one that prefers text. */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         OPEN},
        {"text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5", TEXT},
        {"application/openmetrics-text;q=0", TEXT},
        {"application/openmetrics-text ; q=0.2 , text/html;q=1", OPEN},
    };
    SCOPED(metrics) *metrics = metrics_new();
    const struct record_options o = {.metrics = metrics};
    struct rig_process process = {.sets = ROUTE_ADMIN, .metrics = metrics};
    process.served.record = record_new(&o);
    assert_non_null(process.served.record);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char head[512];
        (void)snprintf(head, sizeof(head), "GET /metrics/recorded HTTP/1.1\r\n%s%s%s",
                       cases[i].text != NULL ? "Accept: " : "",
                       cases[i].text != NULL ? cases[i].text : "",
                       cases[i].text != NULL ? "\r\n" : "");
        SCOPED(rig_answer) a = rig_ask(&process, head, SV(""));
        CHECK_INT(a.status, 200, head);
        CHECK_STR(a.type, cases[i].want, head);
        CHECK_STR(a.body, strcmp(cases[i].want, OPEN) == 0 ? "# EOF\n" : "", head);
    }
    record_free(process.served.record);
}
