/* Reason codes: a bounded set, since they are label values of a metric. */
#include <string.h>

#include "scraper/scraper.h"

/* Go's net/http/pprof says these in the body of an error. */
#define GO_CPU_IN_USE "cpu profiling already in use"
#define GO_DURATION "duration exceeds server's WriteTimeout"
/* A message stands at the start of a body. */
#define MESSAGE_MAX 512

static bool says(struct sv body, const char *message)
{
    size_t n = body.n < MESSAGE_MAX ? body.n : MESSAGE_MAX;
    return n > 0 && memmem(body.p, n, message, strlen(message)) != NULL;
}

static const char *status_reason(long status)
{
    static const struct {
        long status;
        const char *reason;
    } known[] = {
        {400, "http_400"}, {401, "http_401"}, {403, "http_403"}, {404, "http_404"},
        {405, "http_405"}, {406, "http_406"}, {407, "http_407"}, {408, "http_408"},
        {410, "http_410"}, {413, "http_413"}, {414, "http_414"}, {421, "http_421"},
        {429, "http_429"}, {431, "http_431"}, {500, "http_500"}, {501, "http_501"},
        {502, "http_502"}, {503, "http_503"}, {504, "http_504"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].status == status) {
            return known[i].reason;
        }
    }
    switch (status / 100) {
    case 3:
        return "redirect";
    case 4:
        return "http_4xx";
    case 5:
        return "http_5xx";
    default:
        return "http_other";
    }
}

const char *scrape_failure_reason(enum http_result result, long status, struct sv body)
{
    /* An error page that was cut or too long is first of all an error of that status. */
    bool answered = result == HTTP_DONE ||
                    (status >= 400 && (result == HTTP_ERR_TOO_LARGE || result == HTTP_ERR_CUT ||
                                       result == HTTP_ERR_NO_ROOM));
    if (!answered) {
        return http_result_name(result);
    }
    if (status == 500 && says(body, GO_CPU_IN_USE)) {
        return "cpu_in_use";
    }
    if (status == 400 && says(body, GO_DURATION)) {
        return "duration_too_long";
    }
    return status_reason(status);
}
