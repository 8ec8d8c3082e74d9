/* The format, type and time of a file: a verdict has its error, and whatever passes as a profile is
 * still one with another time. */
#include "cli/import/summary.h"
#include "pprof/restamp.h"
#include "tests/fuzz/fuzz.h"

static void check_restamp(struct sv body)
{
    struct import_summary summary;
    char *out = NULL;
    size_t n = 0;
    REQUIRE(pprof_restamp(body, 12345, 678, &out, &n, NULL));
    struct sv stamped = {.p = out, .n = n};
    REQUIRE(import_summary_read(stamped, &summary, NULL) == IMPORT_PROFILE &&
            summary.time_ns == 12345 && summary.duration_ns == 678);
    free(out);
}

FUZZ(body)
{
    struct err err = ERR_INIT;
    struct import_summary summary;
    enum import_verdict r = import_summary_read(body, &summary, &err);
    REQUIRE((r == IMPORT_PROFILE || r == IMPORT_OLD) == (err.kind == ERR_NONE));
    REQUIRE(r != IMPORT_PROFILE || (summary.time_ns >= 0 && summary.duration_ns >= 0));
    if (r == IMPORT_PROFILE && summary.format == PROFILE_PPROF) {
        check_restamp(body);
    }
}
