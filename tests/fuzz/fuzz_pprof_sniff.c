/* Recognition of a scraped body, and the summary that `profpull scrape` prints. */
#include <string.h>

#include "pprof/sniff.h"
#include "pprof/summary.h"
#include "tests/fuzz/fuzz.h"

FUZZ(body)
{
    struct err err = ERR_INIT;
    enum sniff_result r = sniff_profile(body, &err);
    bool good = r == SNIFF_PPROF_GZIP || r == SNIFF_PPROF_PLAIN || r == SNIFF_LEGACY;
    /* A verdict and its error belong together, whatever the input. */
    REQUIRE(good == (err.kind == ERR_NONE) && good == sniff_is_profile(r));
    if (body.n > (size_t)64 * 1024) {
        return;
    }
    struct scratch *scratch = scratch_new();
    struct pprof_summary summary;
    char text[512];
    err_clear(&err);
    bool ok = pprof_summary_read(scratch, body, (size_t)64 * 1024 * 1024, &summary, &err);
    REQUIRE(ok == (err.kind == ERR_NONE));
    if (ok) {
        pprof_summary_print_types(&summary, "?", text, sizeof(text));
    }
    scratch_free(scratch);
}
