/* A selector, a newline, a value: whatever parses must match in the same way each time, and what
 * does not must say where. */
#include <string.h>

#include "model/selector.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct sv text = {(const char *)data, size};
    struct sv value = SV("");
    /* The text may have newlines itself: the value follows the last one. */
    for (size_t i = size; i > 0; i--) {
        if (data[i - 1] == '\n') {
            value = sv_skip(text, i);
            text.n = i - 1;
            break;
        }
    }
    struct selector *s = selector_parse(text, &err);
    if (s == NULL) {
        REQUIRE(err.kind != ERR_NONE);
        REQUIRE(err.kind != ERR_INPUT || strstr(err.msg, ": parse error: ") != NULL);
        return 0;
    }
    const struct label labels[] = {{SV("__name__"), value}, {SV("pod"), value}};
    bool all = selector_matches(s, labels, 2);
    REQUIRE(selector_matches(s, labels, 2) == all);
    const struct sv *equal = selector_equal(s, "pod");
    if (all && equal != NULL) {
        REQUIRE(sv_eq(*equal, value));
    }
    /* The same matchers once more change nothing. */
    if (selector_add_parsed(s, text, &err)) {
        REQUIRE(selector_matches(s, labels, 2) == all);
    }
    selector_free(s);
    return 0;
}
