/* Recorded metrics: sums of the samples of profiles, counted as the profiles pass, for Prometheus.
 *
 * A rule (model/record_rule.h) selects profiles by their labels and names the labels by which the
 * sums are kept apart. Rules come from the configuration and from the API of recording rules. An
 * unchanged rule keeps its series when the others change.
 *
 *     agent/delivery:  record_begin() -> queues of the destinations -> record_end()
 *     record thread:   reads the profile once, adds to the series of all rules that match
 *     a server:        record_render()
 *
 * A profile is counted when at least one destination has accepted it, with the labels that it has
 * after the rules of its job: the sums are those of the profiles in `accepted` of the ledger.
 * record_begin() only compares labels, whose results are cached; without rules it does nothing. The
 * thread exists from the first rule on.
 *
 * Any thread may call all functions, unless their comment says otherwise.
 */
#ifndef PROFPULL_RECORD_RECORD_H
#define PROFPULL_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"
#include "model/profile.h"
#include "model/record_rule.h"

/* Profiles that wait to be counted, in bytes; further ones are not counted. */
#define RECORD_PENDING_DEFAULT ((size_t)64 * 1024 * 1024)
/* Memory for reading one profile. */
#define RECORD_WORK_DEFAULT ((size_t)128 * 1024 * 1024)
/* The most label sets whose matching rules are remembered. Those that no profile has had for five
 * minutes are forgotten. */
#define RECORD_CACHED_MAX 65536

struct record;

struct record_options {
    struct log *log;
    struct metrics *metrics;
    size_t pending_max; /* 0: RECORD_PENDING_DEFAULT */
    size_t work_max;    /* 0: RECORD_WORK_DEFAULT */
};

/* Makes an object without rules. The options' log and metrics outlive it. NULL if out of memory. */
struct record *record_new(const struct record_options *o);
/* Counts what waits, ends the thread and frees the object. No profile may be begun any more.
 * Accepts NULL, returns NULL. */
struct record *record_free(struct record *r);

/* The rules of another configuration. */
struct record_change;
/* Compiles the section `record` of a configuration. Returns NULL with err. */
struct record_change *record_prepare(struct record *r, const struct config_record *c,
                                     struct err *err);
/* Puts the rules in force, and frees c. */
void record_commit(struct record *r, struct record_change *c);
/* Frees c without putting it in force. Accepts NULL, returns NULL. */
struct record_change *record_discard(struct record_change *c);

/* Replaces the rules of the API by n others, whose ids are set. Returns false with err, and nothing
 * has changed: ERR_INPUT for a wrong rule, ERR_LIMIT if there would be more than `max_rules`
 * together with those of the configuration. */
bool record_set_rules(struct record *r, const struct record_rule *rules, size_t n, struct err *err);

/* A profile on its way to the destinations, with the rules that it matches. */
struct record_item;
/* Finds the rules that match a profile, to which the item takes a reference of its own. Returns
 * NULL if no rule matches, or if the profile is a recording of Java. */
struct record_item *record_begin(struct record *r, struct profile *p);
/* Hands the profile to the record thread if a destination has taken it. Frees the item; accepts
 * NULL. */
void record_end(struct record *r, struct record_item *i, bool taken);

/* Appends the page of all series, in Prometheus' text format or in OpenMetrics. It waits up to a
 * second for profiles that passed before the call. Returns false if out has failed. */
bool record_render(struct record *r, bool openmetrics, struct buf *out);

#endif
