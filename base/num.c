#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void num_format(double value, char out[NUM_TEXT_MAX])
{
    if (isnan(value)) {
        (void)snprintf(out, NUM_TEXT_MAX, "NaN");
        return;
    }
    if (isinf(value)) {
        (void)snprintf(out, NUM_TEXT_MAX, value > 0 ? "+Inf" : "-Inf");
        return;
    }
    /* 17 digits are always enough, 15 nearly always. */
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out, NUM_TEXT_MAX, "%.*g", digits, value);
        double again = strtod(out, NULL);
        if (again <= value && again >= value) {
            return;
        }
    }
}
