/* A look into any bytes: it ends, and looking for one thing finds what looking for the other does.
 */
#include <stdlib.h>

#include "write/protocols/peek.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peek samples;
    struct peek period;
    peek_profile(data, size, PEEK_SAMPLES, &samples);
    peek_profile(data, size, PEEK_PERIOD, &period);
    /* A search that went to the end without finding has seen all there is. */
    if (samples.whole && !samples.has_samples && period.has_samples) {
        abort();
    }
    if (period.whole && period.period == 0 && period.has_samples != samples.has_samples) {
        abort();
    }
    return 0;
}
