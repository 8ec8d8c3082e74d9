/* The format, type and time of a file: a verdict has its error, and whatever passes as a profile is
 * still one with another time. */
#include <stdlib.h>

#include "cli/import/facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_restamp(struct sv body)
{
    struct profile_facts facts;
    char *out = NULL;
    size_t n = 0;
    if (!profile_restamp(body, 12345, 678, &out, &n, NULL)) {
        abort();
    }
    struct sv stamped = {.p = out, .n = n};
    if (profile_facts_read(stamped, &facts, NULL) != FACTS_OK || facts.time_ns != 12345 ||
        facts.duration_ns != 678) {
        abort();
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct profile_facts facts;
    struct sv body = {.p = (const char *)data, .n = size};
    enum facts_result r = profile_facts_read(body, &facts, &err);
    if ((r == FACTS_OK) != (err.kind == ERR_NONE)) {
        abort();
    }
    if (r == FACTS_OK && (facts.time_ns < 0 || facts.duration_ns < 0)) {
        abort();
    }
    if (r == FACTS_OK && facts.format == PROFILE_PPROF) {
        check_restamp(body);
    }
    return 0;
}
