#include "write/export.h"

#include "base/clock.h"

static double accepted(const struct export_row *r)
{
    return (double)r->status.ledger.accepted;
}

static double replayed(const struct export_row *r)
{
    return (double)r->status.ledger.replayed;
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

/* Closed, half open (a probe is under way), open. */
static double breaker(const struct export_row *r)
{
    if (r->status.failures == 0) {
        return 0;
    }
    return r->status.probing ? 1 : 2;
}

static const struct {
    const char *name;
    const char *help;
    enum metric_type type;
    double (*value)(const struct export_row *r);
} families[] = {
    {"profpull_write_accepted_profiles_total",
     "Profiles that the scraper has handed to the endpoint. With the replayed ones: sent + dropped "
     "+ "
     "queued + in flight.",
     METRIC_COUNTER, accepted},
    {"profpull_write_replayed_profiles_total",
     "Profiles of an earlier process that were found in the spool.", METRIC_COUNTER, replayed},
    {"profpull_write_sent_profiles_total", "Profiles that the endpoint has taken.", METRIC_COUNTER,
     sent},
    {"profpull_write_queued_profiles", "Profiles that wait.", METRIC_GAUGE, queued},
    {"profpull_write_in_flight_profiles", "Profiles that are being sent.", METRIC_GAUGE, in_flight},
    {"profpull_write_queued_bytes", "Bytes of memory for the profiles that wait.", METRIC_GAUGE,
     queued_bytes},
    {"profpull_write_queue_limit_bytes", "Most bytes that may wait and be in flight.", METRIC_GAUGE,
     limit_bytes},
    {"profpull_write_up", "1 if the last answer that counted was no failure of the endpoint.",
     METRIC_GAUGE, up},
    {"profpull_write_breaker_state",
     "0 closed: all goes out; 1 half open: one profile probes; 2 open: the endpoint rests.",
     METRIC_GAUGE, breaker},
};

/* ---- the spool; only of endpoints that have one ---------------------------------------------- */

static double spool_up(const struct export_row *r)
{
    return r->spool.up ? 1 : 0;
}

static double spool_reading(const struct export_row *r)
{
    return r->spool.reading ? 1 : 0;
}

static double spool_profiles(const struct export_row *r)
{
    return (double)r->spool.counts.profiles;
}

static double spool_only(const struct export_row *r)
{
    return (double)r->status.on_disk_only;
}

static double spool_bytes(const struct export_row *r)
{
    return (double)r->spool.counts.bytes;
}

static double spool_limit(const struct export_row *r)
{
    return (double)r->spool.limit;
}

static double spool_unread(const struct export_row *r)
{
    return (double)r->spool.counts.unread_bytes;
}

static double spool_segments(const struct export_row *r)
{
    return (double)r->spool.counts.segments;
}

static double spool_waiting(const struct export_row *r)
{
    return (double)r->spool.waiting;
}

static double spool_stored(const struct export_row *r)
{
    return (double)r->spool.stored;
}

static double spool_too_large(const struct export_row *r)
{
    return (double)r->spool.too_large;
}

static double spool_dropped_segments(const struct export_row *r)
{
    return (double)r->spool.counts.dropped_segments;
}

static double spool_damaged(const struct export_row *r)
{
    return (double)r->spool.counts.damaged;
}

static double spool_damaged_bytes(const struct export_row *r)
{
    return (double)r->spool.counts.damaged_bytes;
}

static double spool_lost_acks(const struct export_row *r)
{
    return (double)r->spool.counts.lost_acks;
}

static const struct {
    const char *name;
    const char *help;
    enum metric_type type;
    double (*value)(const struct export_row *r);
} spool_families[] = {
    {"profpull_write_spool_up", "1 if the disk did what was last asked of it.", METRIC_GAUGE,
     spool_up},
    {"profpull_write_spool_reading", "1 while something of an earlier process is to be read.",
     METRIC_GAUGE, spool_reading},
    {"profpull_write_spool_profiles", "Profiles on disk that are neither sent nor dropped.",
     METRIC_GAUGE, spool_profiles},
    {"profpull_write_spool_only_profiles", "Queued profiles that are only on disk.", METRIC_GAUGE,
     spool_only},
    {"profpull_write_spool_waiting_profiles", "Profiles that are to be written to the disk.",
     METRIC_GAUGE, spool_waiting},
    {"profpull_write_spool_bytes", "Bytes of the spool's segments.", METRIC_GAUGE, spool_bytes},
    {"profpull_write_spool_limit_bytes", "Most bytes of the spool's segments.", METRIC_GAUGE,
     spool_limit},
    {"profpull_write_spool_unread_bytes", "Bytes of an earlier process, not looked at yet.",
     METRIC_GAUGE, spool_unread},
    {"profpull_write_spool_segments", "Segments of the spool.", METRIC_GAUGE, spool_segments},
    {"profpull_write_spool_stored_profiles_total",
     "Profiles that were written, and synced as configured.", METRIC_COUNTER, spool_stored},
    {"profpull_write_spool_too_large_profiles_total",
     "Profiles that do not fit into the spool and are kept in memory only.", METRIC_COUNTER,
     spool_too_large},
    {"profpull_write_spool_dropped_segments_total", "Segments that made room for newer ones.",
     METRIC_COUNTER, spool_dropped_segments},
    {"profpull_write_spool_damaged_total", "Damaged places and profiles that were skipped.",
     METRIC_COUNTER, spool_damaged},
    {"profpull_write_spool_damaged_bytes_total", "Bytes that were skipped as damaged.",
     METRIC_COUNTER, spool_damaged_bytes},
    {"profpull_write_spool_lost_acknowledgements_total",
     "Damaged acknowledgements; what they were for is sent again.", METRIC_COUNTER,
     spool_lost_acks},
};

static void export_spool_lists(struct metrics_out *out, const struct export_row *rows, size_t n)
{
    metrics_out_family(out, "profpull_write_spool_errors_total",
                       "System calls of the spool that failed, by what they were for.",
                       METRIC_COUNTER);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; rows[i].has_spool && k < SPOOL_ERRORS; k++) {
            const char *const labels[][2] = {{"endpoint", rows[i].endpoint},
                                             {"operation", spool_error_name((enum spool_error)k)}};
            metrics_out_sample(out, labels, 2, (double)rows[i].spool.counts.errors[k]);
        }
    }
    metrics_out_family(out, "profpull_write_spool_skipped_files",
                       "Files in the spool's directory that are left alone.", METRIC_GAUGE);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; rows[i].has_spool && k < SPOOL_SKIPS; k++) {
            const char *const labels[][2] = {{"endpoint", rows[i].endpoint},
                                             {"reason", spool_skip_name((enum spool_skip)k)}};
            metrics_out_sample(out, labels, 2, (double)rows[i].spool.counts.skipped[k]);
        }
    }
}

static void export_spools(struct metrics_out *out, const struct export_row *rows, size_t n)
{
    size_t with = 0;
    for (size_t i = 0; i < n; i++) {
        with += rows[i].has_spool;
    }
    if (with == 0) {
        return;
    }
    for (size_t f = 0; f < sizeof(spool_families) / sizeof(spool_families[0]); f++) {
        metrics_out_family(out, spool_families[f].name, spool_families[f].help,
                           spool_families[f].type);
        for (size_t i = 0; i < n; i++) {
            const char *const labels[][2] = {{"endpoint", rows[i].endpoint}};
            if (rows[i].has_spool) {
                metrics_out_sample(out, labels, 1, spool_families[f].value(&rows[i]));
            }
        }
    }
    export_spool_lists(out, rows, n);
}

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
    export_spools(out, rows, n);
}
