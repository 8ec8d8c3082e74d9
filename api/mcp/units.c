#include "api/mcp/units.h"

#include <math.h>
#include <stdio.h>

struct step {
    double size;
    const char *name;
};

static const struct step times[] = {{3600e9, "hours"},     {60e9, "minutes"},
                                    {1e9, "seconds"},      {1e6, "milliseconds"},
                                    {1e3, "microseconds"}, {1, "nanoseconds"}};
static const struct step sizes[] = {{1099511627776.0, "TiB"},
                                    {1073741824.0, "GiB"},
                                    {1048576.0, "MiB"},
                                    {1024.0, "KiB"},
                                    {1, "bytes"}};

static void scale(double value, const struct step *steps, size_t n, char out[UNITS_TEXT_MAX])
{
    size_t i = 0;
    while (i + 1 < n && fabs(value) < steps[i].size) {
        i++;
    }
    (void)snprintf(out, UNITS_TEXT_MAX, "%.4g %s", value / steps[i].size, steps[i].name);
}

void units_format(double value, struct sv unit, char out[UNITS_TEXT_MAX])
{
    if (sv_eq_str(unit, "nanoseconds")) {
        scale(value, times, sizeof(times) / sizeof(times[0]), out);
    } else if (sv_eq_str(unit, "bytes")) {
        scale(value, sizes, sizeof(sizes) / sizeof(sizes[0]), out);
    } else {
        bool counts = unit.n == 0 || sv_eq_str(unit, "count");
        (void)snprintf(out, UNITS_TEXT_MAX, "%.10g%s%.*s", value, counts ? "" : " ",
                       counts ? 0 : (int)(unit.n < 20 ? unit.n : 20), unit.p);
    }
}
