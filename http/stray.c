#include "http/stray.h"

const char *stray_name(enum stray reason)
{
    static const char *const names[STRAY_REASONS] = {
        [STRAY_IDLE] = "idle",       [STRAY_FIRST] = "first",       [STRAY_EARLY] = "early",
        [STRAY_SURPLUS] = "surplus", [STRAY_DOUBTFUL] = "doubtful",
    };
    return names[reason];
}

void stray_register(struct stray_counters *s, struct metrics *m, const char *client)
{
    struct metric *family = metrics_family(
        m, METRIC_COUNTER, "profpull_http_stray_total",
        "Times that a peer sent bytes that no request asked for.", "client", "reason");
    for (enum stray i = 0; i < STRAY_REASONS; i++) {
        s->cells[i] = metric_cell(family, (const char *const[]){client, stray_name(i)});
    }
}

void stray_count(const struct stray_counters *s, enum stray reason)
{
    metric_inc(s->cells[reason]);
}
