/* Answers of symbol services: names are views within the answer, and reading ends. */
#include "symbols/service.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv answer = {(const char *)data, size};
    struct sv rest = answer;
    struct sv name;
    uint64_t address;
    size_t n = 0;
    struct buf url;
    (void)symbol_service_has_names(answer);
    while (symbol_service_next(&rest, &address, &name)) {
        REQUIRE(name.n > 0 && name.n <= SYMBOL_SERVICE_NAME_MAX);
        REQUIRE(name.p >= answer.p && name.p + name.n <= answer.p + size);
        REQUIRE(++n <= size / 4 + 1);
    }
    buf_init(&url, size + 16);
    REQUIRE(!symbol_service_url(answer, &url) || url.len <= size + sizeof("symbolz"));
    buf_done(&url);
    return 0;
}
