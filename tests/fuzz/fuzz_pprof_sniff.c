/* Recognition of a scraped body, and the summary that `profpull scrape` prints. */
#include <string.h>

#include "pprof/sniff.h"
#include "pprof/summary.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv body = {.p = (const char *)data, .n = size};
    struct err err = ERR_INIT;
    enum sniff_result r = sniff_profile(body, &err);
    bool good = r == SNIFF_PPROF_GZIP || r == SNIFF_PPROF_PLAIN || r == SNIFF_LEGACY;
    /* A verdict and its error belong together, whatever the input. */
    if (good != (err.kind == ERR_NONE) || good != sniff_is_profile(r)) {
        abort();
    }
    if (size > (size_t)64 * 1024) {
        return 0;
    }
    struct scratch *scratch = scratch_new();
    struct pprof_summary summary;
    char text[512];
    err_clear(&err);
    bool ok = pprof_summary_read(scratch, body, (size_t)64 * 1024 * 1024, &summary, &err);
    if (ok != (err.kind == ERR_NONE)) {
        abort();
    }
    if (ok) {
        pprof_summary_print_types(&summary, "?", text, sizeof(text));
    }
    scratch_free(scratch);
    return 0;
}
