#include "write/export.h"

#include <string.h>

#include "base/clock.h"

/* A metric with one value for each endpoint: a counter of the row, or what a function makes of it.
 */
struct family {
    const char *name;
    const char *help;
    enum metric_type type;
    size_t offset; /* of a uint64_t in the row */
    double (*value)(const struct export_row *r);
};
#define COUNT(member) .offset = offsetof(struct export_row, member)

static double up(const struct export_row *r)
{
    return r->status.failures == 0;
}

/* Closed, half open (a probe is in flight), open. */
static double breaker(const struct export_row *r)
{
    return r->status.failures == 0 ? 0 : r->status.probing ? 1 : 2;
}

static double spool_up(const struct export_row *r)
{
    return r->spool.up;
}

static double spool_reading(const struct export_row *r)
{
    return r->spool.reading;
}

static const struct family families[] = {
    {"profpull_write_accepted_profiles_total",
     "Profiles that the scraper has handed to the endpoint. With the replayed ones: sent + dropped "
     "+ "
     "queued + in flight.",
     METRIC_COUNTER, COUNT(status.ledger.accepted)},
    {"profpull_write_replayed_profiles_total",
     "Profiles of an earlier process that were found in the spool.", METRIC_COUNTER,
     COUNT(status.ledger.replayed)},
    {"profpull_write_sent_profiles_total", "Profiles that the endpoint has taken.", METRIC_COUNTER,
     COUNT(status.ledger.sent)},
    {"profpull_write_queued_profiles", "Profiles that wait.", METRIC_GAUGE,
     COUNT(status.ledger.queued)},
    {"profpull_write_in_flight_profiles", "Profiles that are being sent.", METRIC_GAUGE,
     COUNT(status.ledger.in_flight)},
    {"profpull_write_queued_bytes", "Bytes of memory for the profiles that wait.", METRIC_GAUGE,
     COUNT(status.ledger.queued_bytes)},
    {"profpull_write_queue_limit_bytes", "Most bytes that may wait and be in flight.", METRIC_GAUGE,
     COUNT(limit_bytes)},
    {"profpull_write_up", "1 if the last answer that counted was no failure of the endpoint.",
     METRIC_GAUGE, .value = up},
    {"profpull_write_breaker_state",
     "0 closed: all goes out; 1 half open: one profile probes; 2 open: the endpoint rests.",
     METRIC_GAUGE, .value = breaker},
};

/* Only of endpoints that have a spool. */
static const struct family spool_families[] = {
    {"profpull_write_spool_up", "1 if the disk did what was last asked of it.", METRIC_GAUGE,
     .value = spool_up},
    {"profpull_write_spool_reading", "1 while something of an earlier process is to be read.",
     METRIC_GAUGE, .value = spool_reading},
    {"profpull_write_spool_profiles", "Profiles on disk that are neither sent nor dropped.",
     METRIC_GAUGE, COUNT(spool.counts.profiles)},
    {"profpull_write_spool_only_profiles", "Queued profiles that are only on disk.", METRIC_GAUGE,
     COUNT(status.on_disk_only)},
    {"profpull_write_spool_waiting_profiles", "Profiles that are to be written to the disk.",
     METRIC_GAUGE, COUNT(spool.waiting)},
    {"profpull_write_spool_bytes", "Bytes of the spool's segments.", METRIC_GAUGE,
     COUNT(spool.counts.bytes)},
    {"profpull_write_spool_limit_bytes", "Most bytes of the spool's segments.", METRIC_GAUGE,
     COUNT(spool.limit)},
    {"profpull_write_spool_unread_bytes", "Bytes of an earlier process, not looked at yet.",
     METRIC_GAUGE, COUNT(spool.counts.unread_bytes)},
    {"profpull_write_spool_segments", "Segments of the spool.", METRIC_GAUGE,
     COUNT(spool.counts.segments)},
    {"profpull_write_spool_stored_profiles_total",
     "Profiles that were written, and synced as configured.", METRIC_COUNTER, COUNT(spool.stored)},
    {"profpull_write_spool_too_large_profiles_total",
     "Profiles that do not fit into the spool and are kept in memory only.", METRIC_COUNTER,
     COUNT(spool.too_large)},
    {"profpull_write_spool_dropped_segments_total", "Segments that made room for newer ones.",
     METRIC_COUNTER, COUNT(spool.counts.dropped_segments)},
    {"profpull_write_spool_damaged_total", "Damaged places and profiles that were skipped.",
     METRIC_COUNTER, COUNT(spool.counts.damaged)},
    {"profpull_write_spool_damaged_bytes_total", "Bytes that were skipped as damaged.",
     METRIC_COUNTER, COUNT(spool.counts.damaged_bytes)},
    {"profpull_write_spool_lost_acknowledgements_total",
     "Damaged acknowledgements; what they were for is sent again.", METRIC_COUNTER,
     COUNT(spool.counts.lost_acks)},
};

static double value_of(const struct family *f, const struct export_row *r)
{
    uint64_t count;
    if (f->value != NULL) {
        return f->value(r);
    }
    memcpy(&count, (const char *)r + f->offset, sizeof(count));
    return (double)count;
}

static void export_families(struct metrics_out *out, const struct family *list, size_t n_list,
                            const struct export_row *rows, size_t n, bool of_spools)
{
    for (const struct family *f = list; f < list + n_list; f++) {
        metrics_out_family(out, f->name, f->help, f->type);
        for (size_t i = 0; i < n; i++) {
            const char *const labels[][2] = {{"endpoint", rows[i].endpoint}};
            if (rows[i].has_spool || !of_spools) {
                metrics_out_sample(out, labels, 1, value_of(f, &rows[i]));
            }
        }
    }
}

/* One sample for each endpoint and name of a list. */
static void export_list(struct metrics_out *out, const struct export_row *r, const char *label,
                        const char *name, uint64_t value)
{
    const char *const labels[][2] = {{"endpoint", r->endpoint}, {label, name}};
    metrics_out_sample(out, labels, 2, (double)value);
}

static void export_spool_lists(struct metrics_out *out, const struct export_row *rows, size_t n)
{
    metrics_out_family(out, "profpull_write_spool_errors_total",
                       "System calls of the spool that failed, by what they were for.",
                       METRIC_COUNTER);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; rows[i].has_spool && k < SPOOL_ERRORS; k++) {
            export_list(out, &rows[i], "operation", spool_error_name((enum spool_error)k),
                        rows[i].spool.counts.errors[k]);
        }
    }
    metrics_out_family(out, "profpull_write_spool_skipped_files",
                       "Files in the spool's directory that are left alone.", METRIC_GAUGE);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; rows[i].has_spool && k < SPOOL_SKIPS; k++) {
            export_list(out, &rows[i], "reason", spool_skip_name((enum spool_skip)k),
                        rows[i].spool.counts.skipped[k]);
        }
    }
}

static void export_drops(struct metrics_out *out, const struct export_row *rows, size_t n)
{
    metrics_out_family(out, "profpull_write_dropped_profiles_total",
                       "Profiles that were given up, by reason.", METRIC_COUNTER);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < WRITE_DROPS; k++) {
            export_list(out, &rows[i], "reason", write_drop_name((enum write_drop)k),
                        rows[i].status.ledger.dropped[k]);
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
    bool any_spool = false;
    for (size_t i = 0; i < n; i++) {
        any_spool = any_spool || rows[i].has_spool;
    }
    export_families(out, families, sizeof(families) / sizeof(families[0]), rows, n, false);
    export_drops(out, rows, n);
    export_ages(out, rows, n, now_ms);
    if (any_spool) {
        export_families(out, spool_families, sizeof(spool_families) / sizeof(spool_families[0]),
                        rows, n, true);
        export_spool_lists(out, rows, n);
    }
}
