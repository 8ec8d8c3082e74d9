/* Profiles that others push to us: from a request that has been taken apart (api/receive) to
 * the destinations of `receive`.
 *
 * A profile is opened (is it one, and how large), then put: labels and time are checked, the rules
 * of `receive.profile_relabel_configs` apply, and it goes to the queues like a scraped one. What is
 * accepted is in a queue; its bytes are those that came. Messages are those of Pyroscope where it
 * has one.
 *
 * Any thread, and many at a time: only the rules have a lock.
 */
#ifndef PROFPULL_AGENT_RECEIVE_H
#define PROFPULL_AGENT_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"
#include "model/profile.h"
#include "pprof/scratch.h"
#include "pprof/summary.h"
#include "write/write.h"

/* Label of the metrics. */
enum receive_protocol {
    RECEIVE_PUSH,
    RECEIVE_INGEST,
    RECEIVE_DEEPFLOW,
    RECEIVE_PROFEFE,
    RECEIVE_PPROF,
    RECEIVE_PROTOCOLS, /* count */
};

/* What became of a profile: label of the metrics. */
enum receive_result {
    RECEIVE_ACCEPTED,
    RECEIVE_DROPPED, /* by a rule, as intended */
    RECEIVE_IGNORED, /* there is nothing to keep, as the protocol has it */
    /* Refused: it will never be taken. */
    RECEIVE_BAD_REQUEST, /* what is around it */
    RECEIVE_BAD_PROFILE,
    RECEIVE_BAD_LABELS,
    RECEIVE_BAD_TIME, /* outside of the window */
    RECEIVE_TOO_LARGE,
    RECEIVE_RULES_FAILED,
    /* Refused: another try may succeed. */
    RECEIVE_QUEUE_FULL,
    RECEIVE_NO_MEMORY,
    RECEIVE_RESULTS, /* count */
};
const char *receive_result_name(enum receive_result result);

/* What a sender adds to a profile that nobody carries on: label of a metric. */
enum receive_extra {
    RECEIVE_EXTRA_JFR_LABELS, /* the label contexts of a recording */
    RECEIVE_EXTRAS,           /* count */
};

/* The end of a request whose sender waits until its profiles are on disk (receive.acknowledge):
 * label of a metric. */
enum receive_wait {
    RECEIVE_STORED,     /* they are */
    RECEIVE_LATE,       /* not in time */
    RECEIVE_NOT_STORED, /* a destination did not take one, or lost it */
    RECEIVE_WAITS,      /* count */
};

struct receive;

struct receive_options {
    const struct config_receive *config;
    struct intern *intern;
    struct writer *writer;
    struct log *log;
    struct metrics *metrics;
};

/* All of the options outlive it, config too. */
struct receive *receive_new(const struct receive_options *options, struct err *err);
struct receive *receive_free(struct receive *r); /* accepts NULL, returns NULL */

/* What a configuration says about receiving, with its rules compiled. */
struct receive_setup;
/* That of another configuration, of which a reference is taken. NULL with an error. Any thread. */
struct receive_setup *receive_prepare(const struct receive *r, const struct config *next,
                                      struct err *err);
/* From now on profiles go where it says: when this returns, none goes elsewhere any more. The
 * limits of a profile that is open are those it was opened with. Any thread; takes s over. */
void receive_commit(struct receive *r, struct receive_setup *s);
/* In place of that. Accepts NULL, returns NULL. */
struct receive_setup *receive_discard(struct receive_setup *s);

/* A profile that has been opened. */
struct receive_item {
    enum receive_protocol protocol;
    enum profile_format format;
    struct sv data;               /* as it came, or converted */
    struct pprof_summary summary; /* with the texts of its types; times only for a recording */
    int64_t from_ns;              /* when it starts: from receive_put() on */
    uint16_t salt;                /* of the profile it has become, likewise */
    char *converted;              /* private, as is what follows */
    struct scratch *scratch;
    struct receive_setup *setup; /* a reference */
};

/* Reads a profile; data must live until receive_close(). RECEIVE_ACCEPTED, or why not, with err. */
enum receive_result receive_open(struct receive *r, enum receive_protocol protocol,
                                 enum profile_format format, struct sv data,
                                 struct receive_item *ret, struct err *err);
/* After receive_open(), whatever it returned. */
void receive_close(struct receive *r, struct receive_item *item);

/* A request with more labels for a profile is refused before they are looked at. */
#define RECEIVE_LABELS_MAX 1024

/* Labels and time of a profile, as its request gives them. */
struct receive_facts {
    struct label *labels; /* in any order; they are sorted. Empty values do not count */
    size_t n_labels;
    int64_t from_ns;         /* if the profile says no time, or one in 1970; 0: it is now */
    int64_t until_ns;        /* 0: unknown */
    bool keep_equal;         /* it is kept even if a store has an equal one */
    struct receipt *receipt; /* settled when the profile is on disk; NULL: nobody waits for that */
};

/* Hands an open profile to the destinations, and says of the item what it has become. err is set
 * unless it is accepted, or dropped by a rule. */
enum receive_result receive_put(struct receive *r, struct receive_item *item,
                                const struct receive_facts *facts, struct err *err);

/* Counts a profile that ended with this result, and logs a refusal. Once for each profile. */
void receive_count(struct receive *r, enum receive_protocol protocol, enum receive_result result,
                   size_t bytes, const struct err *err);
void receive_count_extra(struct receive *r, enum receive_extra extra);
/* Returns true if senders are answered when every destination has their profiles on disk. */
bool receive_waits(struct receive *r);
/* Counts a request that waited for that, and logs one that is refused. Once for each request. */
void receive_count_wait(struct receive *r, enum receive_wait result);

#endif
