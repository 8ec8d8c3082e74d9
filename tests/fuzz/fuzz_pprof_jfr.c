/* Recognition of recordings: a verdict has its error, and no body is a recording and a profile at
 * once. */
#include "pprof/sniff.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv body = {.p = (const char *)data, .n = size};
    struct err err = ERR_INIT;
    enum sniff_result r = sniff_jfr(body, &err);
    bool good = r == SNIFF_JFR;
    if (good != (err.kind == ERR_NONE) || good != sniff_is_profile(r)) {
        abort();
    }
    enum sniff_result other = sniff_profile(body, NULL);
    if (good && (other == SNIFF_PPROF_GZIP || other == SNIFF_PPROF_PLAIN)) {
        abort();
    }
    return 0;
}
