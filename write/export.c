#include "write/export.h"

#include "base/clock.h"

static double accepted(const struct export_row *r)
{
    return (double)r->status.ledger.accepted;
}

static double sent(const struct export_row *r)
{
    return (double)r->status.ledger.sent;
}

static double queued(const struct export_row *r)
{
    return (double)r->status.ledger.queued;
}

static double in_flight(const struct export_row *r)
{
    return (double)r->status.ledger.in_flight;
}

static double queued_bytes(const struct export_row *r)
{
    return (double)r->status.ledger.queued_bytes;
}

static double limit_bytes(const struct export_row *r)
{
    return (double)r->limit_bytes;
}

static double up(const struct export_row *r)
{
    return r->status.failures == 0 ? 1 : 0;
}

static const struct {
    const char *name;
    const char *help;
    enum metric_type type;
    double (*value)(const struct export_row *r);
} families[] = {
    {"profpull_write_accepted_profiles_total",
     "Profiles handed to the endpoint: sent + dropped + queued + in flight.", METRIC_COUNTER,
     accepted},
    {"profpull_write_sent_profiles_total", "Profiles that the endpoint has taken.", METRIC_COUNTER,
     sent},
    {"profpull_write_queued_profiles", "Profiles that wait.", METRIC_GAUGE, queued},
    {"profpull_write_in_flight_profiles", "Profiles that are being sent.", METRIC_GAUGE, in_flight},
    {"profpull_write_queued_bytes", "Bytes of the profiles that wait.", METRIC_GAUGE, queued_bytes},
    {"profpull_write_queue_limit_bytes", "Most bytes that may wait and be in flight.", METRIC_GAUGE,
     limit_bytes},
    {"profpull_write_up", "1 if the last answer that counted was no failure of the endpoint.",
     METRIC_GAUGE, up},
};

static void export_drops(struct metrics_out *out, const struct export_row *rows, size_t n)
{
    metrics_out_family(out, "profpull_write_dropped_profiles_total",
                       "Profiles that were given up, by reason.", METRIC_COUNTER);
    for (size_t i = 0; i < n; i++) {
        for (size_t d = 0; d < WRITE_DROPS; d++) {
            const char *const labels[][2] = {{"endpoint", rows[i].endpoint},
                                             {"reason", write_drop_name((enum write_drop)d)}};
            metrics_out_sample(out, labels, 2, (double)rows[i].status.ledger.dropped[d]);
        }
    }
}

static void export_ages(struct metrics_out *out, const struct export_row *rows, size_t n,
                        int64_t now_ms)
{
    metrics_out_family(out, "profpull_write_oldest_age_seconds",
                       "Age of the oldest profile that waits; 0 if none does.", METRIC_GAUGE);
    for (size_t i = 0; i < n; i++) {
        const char *const labels[][2] = {{"endpoint", rows[i].endpoint}};
        int64_t oldest = rows[i].status.oldest_ms;
        int64_t age = oldest < now_ms ? now_ms - oldest : 0;
        metrics_out_sample(out, labels, 1, (double)age / (double)MS_PER_S);
    }
}

void export_ledgers(struct metrics_out *out, const struct export_row *rows, size_t n,
                    int64_t now_ms)
{
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        metrics_out_family(out, families[f].name, families[f].help, families[f].type);
        for (size_t i = 0; i < n; i++) {
            const char *const labels[][2] = {{"endpoint", rows[i].endpoint}};
            metrics_out_sample(out, labels, 1, families[f].value(&rows[i]));
        }
    }
    export_drops(out, rows, n);
    export_ages(out, rows, n, now_ms);
}
