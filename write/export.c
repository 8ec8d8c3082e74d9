#include "write/export.h"

#include <string.h>

#include "base/clock.h"

/* A metric with one value for each endpoint, or with one for each value of a label. */
struct family {
    const char *name;
    const char *help;
    enum metric_type type;
    unsigned n;        /* the number of values of the label */
    size_t offset;     /* the offset of a uint64_t in the row, or of an array of n of them */
    const char *label; /* NULL: one value */
    const char *(*value_name)(unsigned i);
    bool in_ms; /* exported in seconds */
    bool spool; /* only for endpoints with a spool */
};
#define COUNT(member) .offset = offsetof(struct export_row, member)
#define LIST(member, label_, name_, n_)                                                            \
    COUNT(member), .label = (label_), .value_name = (name_), .n = (n_)

static const struct family families[] = {
    {"profpull_write_accepted_profiles_total",
     "Profiles that the scraper has handed to the endpoint. With the replayed ones: sent + dropped "
     "+ merged + queued + in flight.",
     METRIC_COUNTER, COUNT(status.ledger.accepted)},
    {"profpull_write_refused_profiles_total",
     "Profiles for which the endpoint had no room, and which are not lost: a delta becomes part of "
     "the next one, the sender of a pushed profile sends it again.",
     METRIC_COUNTER, COUNT(status.ledger.refused)},
    {"profpull_write_replayed_profiles_total",
     "Profiles of an earlier process that were found in the spool.", METRIC_COUNTER,
     COUNT(status.ledger.replayed)},
    {"profpull_write_sent_profiles_total", "Profiles that the endpoint has accepted.",
     METRIC_COUNTER, COUNT(status.ledger.sent)},
    {"profpull_write_merged_profiles_total",
     "Deltas that went into another one of their series, because the queue ran full or they were "
     "old.",
     METRIC_COUNTER, COUNT(status.ledger.merged)},
    {"profpull_write_merge_failures_total",
     "Merges that failed, or that left deltas out; these deltas stay as they are.", METRIC_COUNTER,
     COUNT(status.ledger.merge_failures)},
    {"profpull_write_queued_profiles", "Profiles that are queued.", METRIC_GAUGE,
     COUNT(status.ledger.queued)},
    {"profpull_write_in_flight_profiles", "Profiles that are in flight.", METRIC_GAUGE,
     COUNT(status.ledger.in_flight)},
    {"profpull_write_queued_bytes", "Bytes of memory of the queued profiles.", METRIC_GAUGE,
     COUNT(status.ledger.queued_bytes)},
    {"profpull_write_queue_limit_bytes", "Limit of the bytes that are queued and in flight.",
     METRIC_GAUGE, COUNT(limit_bytes)},
    {"profpull_write_up",
     "1 if the endpoint works, for one of its tenants at least, and its disk does not hang.",
     METRIC_GAUGE, COUNT(up)},
    {"profpull_write_hung_seconds",
     "Time since a disk of the endpoint, its directory or its spool, has stopped answering; 0 "
     "below 5 s.",
     METRIC_GAUGE, COUNT(hung_ms), .in_ms = true},
    {"profpull_write_breaker_state",
     "State of the circuit breaker: 0 closed: all profiles are sent; 1 half open: one profile is "
     "sent as a probe; 2 open: nothing is sent.",
     METRIC_GAUGE, COUNT(breaker)},
    {"profpull_write_tenants", "Tenants for which the endpoint's backoff is kept.", METRIC_GAUGE,
     COUNT(tenants)},
    {"profpull_write_resting_tenants",
     "Tenants that the endpoint refuses, and to which nothing is sent until their backoff ends.",
     METRIC_GAUGE, COUNT(resting)},
    {"profpull_write_shared_backoff_profiles_total",
     "Profiles of tenants that share one backoff, because too many tenants have profiles queued.",
     METRIC_COUNTER, COUNT(status.shared)},
    {"profpull_write_doubtful_profiles",
     "Queued profiles that wait alone, because the endpoint has refused them with a doubtful "
     "answer.",
     METRIC_GAUGE, COUNT(status.waiting)},
    {"profpull_write_dropped_profiles_total", "Profiles that were dropped, by reason.",
     METRIC_COUNTER, LIST(status.ledger.dropped, "reason", write_drop_name, WRITE_DROPS)},
    {"profpull_write_oldest_age_seconds", "Age of the oldest queued profile; 0 if none is queued.",
     METRIC_GAUGE, COUNT(age_ms), .in_ms = true},
    {"profpull_write_spool_up", "1 if the last operation on the disk succeeded.", METRIC_GAUGE,
     COUNT(spool_up), .spool = true},
    {"profpull_write_spool_needs_restart",
     "1 if the directory was removed, and the process may not make it again.", METRIC_GAUGE,
     COUNT(spool_needs_restart), .spool = true},
    {"profpull_write_spool_reading", "1 while profiles of an earlier process are still to be read.",
     METRIC_GAUGE, COUNT(spool_reading), .spool = true},
    {"profpull_write_spool_full",
     "1 while profiles wait for room in the spool, because only pushed profiles could be dropped. "
     "Pushed profiles are refused then.",
     METRIC_GAUGE, COUNT(spool_full), .spool = true},
    {"profpull_write_spool_profiles", "Profiles on disk that are neither sent nor dropped.",
     METRIC_GAUGE, COUNT(spool.counts.profiles), .spool = true},
    {"profpull_write_spool_only_profiles", "Queued profiles that are only on disk.", METRIC_GAUGE,
     COUNT(status.on_disk_only), .spool = true},
    {"profpull_write_spool_waiting_profiles", "Profiles that are to be written to the disk.",
     METRIC_GAUGE, COUNT(spool.waiting), .spool = true},
    {"profpull_write_spool_bytes", "Bytes of the spool's segments.", METRIC_GAUGE,
     COUNT(spool.counts.bytes), .spool = true},
    {"profpull_write_spool_limit_bytes", "Limit of the bytes of the spool's segments.",
     METRIC_GAUGE, COUNT(spool.limit), .spool = true},
    {"profpull_write_spool_unread_bytes",
     "Bytes of an earlier process that have not been read yet.", METRIC_GAUGE,
     COUNT(spool.counts.unread_bytes), .spool = true},
    {"profpull_write_spool_segments", "Segments of the spool.", METRIC_GAUGE,
     COUNT(spool.counts.segments), .spool = true},
    {"profpull_write_spool_stored_profiles_total",
     "Profiles that were written, and synced as configured.", METRIC_COUNTER, COUNT(spool.stored),
     .spool = true},
    {"profpull_write_spool_too_large_profiles_total",
     "Profiles that do not fit into the spool and are kept in memory only.", METRIC_COUNTER,
     COUNT(spool.too_large), .spool = true},
    {"profpull_write_spool_dropped_segments_total",
     "Segments that were removed to make room for newer ones.", METRIC_COUNTER,
     COUNT(spool.counts.dropped_segments), .spool = true},
    {"profpull_write_spool_damaged_total", "Damaged places and profiles that were skipped.",
     METRIC_COUNTER, COUNT(spool.counts.damaged), .spool = true},
    {"profpull_write_spool_damaged_bytes_total", "Bytes that were skipped as damaged.",
     METRIC_COUNTER, COUNT(spool.counts.damaged_bytes), .spool = true},
    {"profpull_write_spool_lost_acknowledgements_total",
     "Damaged acknowledgements; their profiles are sent again.", METRIC_COUNTER,
     COUNT(spool.counts.lost_acks), .spool = true},
    {"profpull_write_spool_errors_total", "System calls of the spool that failed, by operation.",
     METRIC_COUNTER, LIST(spool.counts.errors, "operation", spool_error_name, SPOOL_ERRORS),
     .spool = true},
    {"profpull_write_spool_skipped_files", "Files in the spool's directory that are ignored.",
     METRIC_GAUGE, LIST(spool.counts.skipped, "reason", spool_skip_name, SPOOL_SKIPS),
     .spool = true},
};

static double value_of(const struct family *f, const struct export_row *r, unsigned i)
{
    uint64_t count;
    memcpy(&count, (const char *)r + f->offset + i * sizeof(count), sizeof(count));
    return f->in_ms ? (double)count / (double)MS_PER_S : (double)count;
}

static void export_row(struct metrics_out *out, const struct family *f, const struct export_row *r)
{
    if (f->label == NULL) {
        const char *const labels[][2] = {{"endpoint", r->endpoint}};
        metrics_out_sample(out, labels, 1, value_of(f, r, 0));
    }
    for (unsigned i = 0; i < f->n; i++) {
        const char *const labels[][2] = {{"endpoint", r->endpoint}, {f->label, f->value_name(i)}};
        metrics_out_sample(out, labels, 2, value_of(f, r, i));
    }
}

void export_ledgers(struct metrics_out *out, const struct export_row *rows, size_t n)
{
    bool any_spool = false;
    for (size_t i = 0; i < n; i++) {
        any_spool = any_spool || rows[i].has_spool;
    }
    for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); k++) {
        const struct family *f = &families[k];
        if (f->spool && !any_spool) {
            continue;
        }
        metrics_out_family(out, f->name, f->help, f->type);
        for (size_t i = 0; i < n; i++) {
            if (rows[i].has_spool || !f->spool) {
                export_row(out, f, &rows[i]);
            }
        }
    }
}
