/* A destination: one endpoint of the configuration with its queue, protocol, timer, metrics and log
 * state. Everything belongs to the writer's loop, except the queue, which has a lock of its own,
 * and members whose comments say otherwise. Any thread may make a destination, which belongs to
 * that thread until the loop takes it over. */
#ifndef PROFPULL_WRITE_DESTINATION_H
#define PROFPULL_WRITE_DESTINATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/worker.h"
#include "bucket/credentials.h"
#include "http/http.h"
#include "write/conditions.h"
#include "write/protocol.h"
#include "write/queue/send_queue.h"
#include "write/series.h"
#include "write/sink_thread.h"
#include "write/spool/spool.h"
#include "write/write.h"

struct attempt;
struct batcher;
struct sample_labels;
struct destination;
struct writer;

/* ---- metrics and log (report.c) -------------------------------------------------------------- */

/* The most causes of lost profiles that the log distinguishes at the same time. */
#define REPORT_CAUSES_MAX 16

/* A cause for which profiles are given up. */
struct report_cause {
    uint64_t key; /* 0: free */
    int64_t said_ms;
    uint64_t more; /* the number of profiles since the last line of the log */
};

/* Tenants whose failures the log distinguishes at the same time. */
#define REPORT_TENANTS_MAX 16

/* A tenant that is refused for one cause. Under a rate limit, a server refuses and takes profiles
 * by turns. So the log says when refusals begin, and says that they are over only when there have
 * been none for a while. */
struct report_tenant {
    bool failing;
    char tenant[SERIES_TENANT_MAX + 1];
    char cause[32];
    int64_t since_ms;
    int64_t works_since_ms; /* 0: the tenant does not work */
    uint64_t failures;
};

struct report {
    struct log *log;
    /* Where the condition of the endpoint is published; may be NULL. */
    struct conditions *conditions;
    struct write_condition condition;
    const char *endpoint; /* its name in the configuration */
    struct metric *requests;
    struct metric_cell *retries;
    struct metric_cell *sent_bytes;
    struct metric_cell *duration;
    struct metric_cell *changes[SERIES_CHANGES];
    bool change_said[SERIES_CHANGES];
    /* The state of the endpoint as logged. */
    bool failing;
    int64_t failing_since_ms;
    char cause[32];
    struct log_limit cause_limit;
    struct report_tenant tenants[REPORT_TENANTS_MAX];
    struct log_limit tenants_limit;
    struct report_cause causes[REPORT_CAUSES_MAX];
    struct log_limit causes_limit;
    struct log_limit lost_limit;
    uint64_t lost; /* profiles lost to a full queue, age or memory, as far as the log has them */
};

void report_init(struct report *r, struct log *log, struct metrics *m, const char *endpoint);
/* Counts the changes that were made to the labels l; once for each profile. Logs the first cut that
 * each limit makes. */
void report_changes(struct report *r, const struct series *s, const struct labels *l);
/* The end of an attempt, for report_done(). result is for the metric: "2xx", "connect", ... */
struct report_attempt {
    const struct profile *profile;
    const struct answer *answer;
    const struct send_result *outcome;
    const char *result;
    const char *hint; /* what to do if it failed; "" if there is nothing to say */
    unsigned attempt;
    int64_t start_ms;
    int64_t now_ms;
};
void report_done(struct report *r, const struct report_attempt *a);
/* Counts a request of an attempt that is over, when the same attempt makes another request. */
void report_repeated(struct report *r, const char *result, int64_t took_ms);
/* Logs a profile that is given up, with one line for each cause and minute. */
void report_dropped(struct report *r, const struct labels *l, enum write_drop reason,
                    const char *why, int64_t now_ms);
/* Logs losses in the queue, at most once a minute, and tenants that are not refused any more.
 * Publishes the condition of the endpoint. Called often, because these change with time. */
void report_state(struct report *r, const struct send_queue_status *s, int64_t now_ms);

/* ---- sending (attempt.c) --------------------------------------------------------------------- */

TAILQ_HEAD(attempt_list, attempt);

struct destination {
    TAILQ_ENTRY(destination) link; /* in a list of the writer; guarded by its table lock */
    struct writer *writer;
    const struct writer_options *options; /* the writer's */
    char *name;                           /* the name of the endpoint */
    size_t slot;
    /* A reference: the owner of `config`; NULL: the writer's first configuration. */
    const struct config *owner;
    const struct config_endpoint *config;
    struct send_queue *queue;
    struct spool *spool; /* NULL: none */
    atomic_bool flushed; /* the profiles that waited at the end of the drain have been written */
    const struct protocol *protocol;
    struct sink *sink; /* NULL: HTTP. Else the state of a destination that is not HTTP */
    struct sink_thread *sink_thread;
    struct http_client *http;
    /* The credentials of a bucket that are fetched; NULL: none so far. They refer to the
     * configuration `credentials_owner`, a reference (NULL: the writer's first configuration). */
    struct credentials *credentials;
    const struct config *credentials_owner;
    struct boundary boundary;
    struct rng rng;
    struct loop_timer *timer;
    struct attempt_list attempts; /* the attempts in flight */
    bool hurries;                 /* the loop makes no pauses for it */
    struct sample_labels *sample_labels;
    /* The version of the rules for labels of samples in config; from 1 on. */
    unsigned rules_version;
    struct batcher *batcher; /* NULL: each profile has a request of its own */
    struct report report;

    /* Guarded by the writer's table lock: a changed configuration that the loop has not taken over
     * yet. The queue and the spool use it already. */
    const struct config *wanted_owner;
    const struct config_endpoint *wanted;
    struct sink *wanted_sink;   /* NULL: the sink stays */
    struct write_ledger former; /* the counts of former destinations with this name */

    /* Monotonic: when a removed destination has to end; INT64_MAX: it is not removed. */
    _Atomic int64_t leave_ms;
    /* The destination is being removed, and the remaining profiles are being written to disk. */
    bool flushing;
    int64_t flush_end_ms;
    struct work closing; /* the end of a removed destination, on the closer's thread */
};
TAILQ_HEAD(destination_list, destination);

/* Makes the destination of an endpoint: its directory is made or locked, and its spool is read from
 * now on. owner: a reference is taken; NULL if the configuration outlives the writer. Blocks on
 * disks. NULL and an error without the name of the endpoint. */
struct destination *destination_new(struct writer *w, const struct config *owner,
                                    const struct config_endpoint *config, size_t slot,
                                    struct err *err);
/* Makes or changes the credentials of a bucket, by d->config. On the loop's thread, or before the
 * loop has the destination. Returns false if out of memory: requests fail then, and are retried. */
bool destination_use_credentials(struct destination *d, struct err *err);
/* Opens the directory, bucket or store of a destination that is not HTTP; a new one for an endpoint
 * that has changed. *ret_sink is NULL if there is nothing to open. */
bool destination_open_sink(const struct writer_options *o, const struct config_endpoint *config,
                           struct sink **ret_sink, struct err *err);
/* The three steps that end a destination, also one that was made in part only. Nothing may be in
 * flight. The first two steps block on disks and may run on any thread: destination_end() ends
 * merging and the events of the spool, destination_empty() frees the queue. The last step is for
 * the loop's thread, unless the loop has never had the destination. */
void destination_end(struct destination *d);
void destination_empty(struct destination *d);
struct destination *destination_free(struct destination *d); /* accepts NULL, returns NULL */

/* Sends all profiles that may be sent now, and ends a drain, or a removed destination, that is
 * complete (writer.c). */
void destination_pump(struct destination *d);

/* Sets whether queued profiles only wait for one in flight to end (send_queue_is_crowded()). While
 * they do, the loop makes no pauses. */
void destination_hurry(struct destination *d, bool hurries);

/* Stops taking profiles from the queue, ends the attempts in flight, and makes the spool write the
 * profiles that wait. */
void destination_stop(struct destination *d);
/* Returns true if all profiles that can be saved to disk have been saved. Call it after
 * destination_stop(). */
bool destination_is_flushed(const struct destination *d);

/* Sends an item that was taken from the destination's queue. The item returns to the queue in any
 * case. */
void attempt_start(struct destination *d, struct send_item *it, int64_t now_ms);
/* Ends all attempts in flight and drops their profiles with reason shutdown. A file that is being
 * written is finished, but not reported. */
void attempt_abandon_all(struct destination *d);

#endif
