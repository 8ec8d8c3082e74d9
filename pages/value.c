#include "pages/value.h"

#include <math.h>

struct step {
    double least;
    const char *unit;
};

static void put_scaled(struct buf *out, double value, const struct step *steps, size_t n)
{
    size_t i = 0;
    while (i + 1 < n && fabs(value) < steps[i].least) {
        i++;
    }
    double number = value / steps[i].least;
    double size = fabs(number);
    int digits = size >= 100 || floor(number) == number ? 0 : size >= 10 ? 1 : 2;
    buf_printf(out, "%.*f%s%s", digits, number, steps[i].unit[0] != '\0' ? " " : "", steps[i].unit);
}

#define PUT(out, value, steps) put_scaled((out), (value), (steps), sizeof(steps) / sizeof(*(steps)))

void value_put(struct buf *out, int64_t value, struct sv unit)
{
    static const struct step seconds[] = {{86400, "d"}, {3600, "h"},  {60, "min"}, {1, "s"},
                                          {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
    static const struct step bytes[] = {
        {1099511627776.0, "TiB"}, {1073741824, "GiB"}, {1048576, "MiB"}, {1024, "KiB"}, {1, "B"}};
    static const struct step counts[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
    static const struct {
        const char *unit;
        double seconds;
    } times[] = {{"nanoseconds", 1e-9},
                 {"microseconds", 1e-6},
                 {"milliseconds", 1e-3},
                 {"seconds", 1},
                 {"ns", 1e-9}};
    if (value == 0) {
        buf_puts(out, "0");
        return;
    }
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (sv_eq_str(unit, times[i].unit)) {
            PUT(out, (double)value * times[i].seconds, seconds);
            return;
        }
    }
    if (sv_eq_str(unit, "bytes")) {
        PUT(out, (double)value, bytes);
    } else {
        PUT(out, (double)value, counts);
    }
}

void value_put_share(struct buf *out, int64_t part, int64_t whole)
{
    double percent = whole > 0 ? 100 * (double)part / (double)whole : 0;
    buf_printf(out, percent >= 10 || part == 0 ? "%.1f %%" : "%.2f %%", percent);
}
