#include "cli/query/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

bool value_format(int64_t value, const char *unit, char out[VALUE_TEXT_MAX])
{
    static const struct {
        const char *unit;
        double scale;
        const char *shown;
    } units[] = {
        {"nanoseconds", 1.0 / (double)NS_PER_S, "s"},
        {"microseconds", 1e-6, "s"},
        {"bytes", 1.0 / (1024 * 1024), "MiB"},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].unit) == 0) {
            (void)snprintf(out, VALUE_TEXT_MAX, "%.2f%s", (double)value * units[i].scale,
                           units[i].shown);
            return true;
        }
    }
    (void)snprintf(out, VALUE_TEXT_MAX, "%" PRId64, value);
    return false;
}

void value_with_unit(int64_t value, const char *unit, struct buf *out)
{
    char text[VALUE_TEXT_MAX];
    bool complete = value_format(value, unit, text) || unit[0] == '\0';
    buf_puts(out, text);
    if (!complete) {
        buf_putc(out, ' ');
        json_escape(sv_from(unit), out);
    }
}

double value_share(int64_t value, int64_t total)
{
    return total == 0 ? 0.0 : 100.0 * (double)value / (double)total;
}
