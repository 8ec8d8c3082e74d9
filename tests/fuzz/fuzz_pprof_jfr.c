/* What passes as a recording: a verdict and its error belong together, and nothing is a recording
 * and a profile at once. */
#include <stdint.h>
#include <stdlib.h>

#include "pprof/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    enum check_result r = check_jfr(data, size, &err);
    bool good = r == CHECK_JFR;
    if (good != (err.kind == ERR_NONE) || good != check_is_good(r)) {
        abort();
    }
    enum check_result other = check_profile(data, size, NULL);
    if (good && (other == CHECK_PPROF_GZIP || other == CHECK_PPROF_PLAIN)) {
        abort();
    }
    return 0;
}
