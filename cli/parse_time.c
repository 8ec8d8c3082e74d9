#include "cli/parse_time.h"

#include "base/clock.h"
#include "base/str.h"

#define SECONDS_MAX UINT64_C(9223372036)

bool parse_time(const char *text, int64_t *ret_ns, struct err *err)
{
    uint64_t seconds;
    struct sv rest = sv_from(text);
    if (parse_u64(rest, SECONDS_MAX - 1, &seconds)) {
        *ret_ns = (int64_t)seconds * NS_PER_S;
        return true;
    }
    int64_t ns;
    if (!clock_take_rfc3339(&rest, 9, &ns) || rest.n > 0 || ns < 0 || ns == INT64_MAX) {
        return err_set(
            err, ERR_INPUT,
            "expected a time such as \"2026-11-21T03:23:34Z\", or seconds since 1970, got "
            "\"%s\"",
            text);
    }
    *ret_ns = ns;
    return true;
}
