/* Answers of symbol services: names are views within the answer, and reading ends. */
#include "symbols/service.h"
#include "tests/fuzz/fuzz.h"

FUZZ(answer)
{
    struct sv rest = answer;
    struct sv name;
    uint64_t address;
    size_t n = 0;
    struct buf url;
    (void)symbol_service_has_names(answer);
    while (symbol_service_next(&rest, &address, &name)) {
        REQUIRE(name.n > 0 && name.n <= SYMBOL_SERVICE_NAME_MAX);
        REQUIRE(name.p >= answer.p && name.p + name.n <= answer.p + answer.n);
        REQUIRE(++n <= answer.n / 4 + 1);
    }
    buf_init(&url, answer.n + 16);
    REQUIRE(!symbol_service_url(answer, &url) || url.len <= answer.n + sizeof("symbolz"));
    buf_done(&url);
}
