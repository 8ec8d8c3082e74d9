/* The reason code of each way in which a scrape can fail. */
#include "tests/unit/testing.h"

#include "scraper/scraper.h"

static void reasons(void **state)
{
    (void)state;
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
        CHECK_STR(scrape_failure_reason(rows[i].result, rows[i].status, sv_from(rows[i].body)),
                  rows[i].want, rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reasons)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
