/* A peek into any bytes ends, and searches for different fields agree on what they have seen. Any
 * bytes have a language, or none.
 */
#include "pprof/language.h"
#include "pprof/summary.h"
#include "tests/fuzz/fuzz.h"

FUZZ(body)
{
    struct pprof_summary samples;
    struct pprof_summary period;
    pprof_summary_peek(body, PROFILE_SAMPLE, &samples);
    pprof_summary_peek(body, PROFILE_PERIOD, &period);
    bool has_samples = samples.n[PROFILE_SAMPLE] > 0;
    bool also_samples = period.n[PROFILE_SAMPLE] > 0;
    /* A search that went to the end without finding has seen all there is. */
    REQUIRE(!samples.whole || has_samples || !also_samples);
    REQUIRE(!period.whole || period.n[PROFILE_PERIOD] != 0 || also_samples == has_samples);
    REQUIRE(pprof_language_of(body) < LANGUAGES);
}
