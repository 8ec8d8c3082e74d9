/* The receiver: takes profiles that senders push, from requests that api/receive has parsed to the
 * destinations of `receive`.
 *
 * A profile is opened, which checks its bytes, and then put: its labels and its time are checked,
 * the rules of `receive.profile_relabel_configs` are applied, and the queues of the destinations
 * get it, as they get scraped profiles. An accepted profile is in a queue, with the bytes that the
 * sender sent. Messages are those of Pyroscope where it has one.
 *
 * Any number of threads at a time: only the rules have a lock.
 */
#ifndef PROFPULL_AGENT_RECEIVE_H
#define PROFPULL_AGENT_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/enrich.h"
#include "agent/naming/naming.h"
#include "agent/recordings.h"
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
    RECEIVE_OTLP,
    RECEIVE_PROTOCOLS, /* count */
};

/* The result for one profile: label of the metrics. */
enum receive_result {
    RECEIVE_ACCEPTED,
    RECEIVE_DROPPED, /* a rule dropped it, as intended */
    RECEIVE_IGNORED, /* by the rules of the protocol there is nothing to keep */
    /* Refused for good: another try of the sender would fail as well. */
    RECEIVE_BAD_REQUEST, /* the request around the profile is wrong */
    RECEIVE_BAD_PROFILE,
    RECEIVE_BAD_LABELS,
    RECEIVE_BAD_TIME, /* the time of the profile is outside of the accepted window */
    RECEIVE_TOO_LARGE,
    RECEIVE_RULES_FAILED,
    /* Refused for now: another try of the sender may succeed. */
    RECEIVE_QUEUE_FULL,
    RECEIVE_NO_MEMORY,
    RECEIVE_RESULTS, /* count */
};
const char *receive_result_name(enum receive_result result);

/* Parts that senders add to a profile and that no destination can carry: label of a metric. */
enum receive_extra {
    RECEIVE_EXTRA_JFR_LABELS, /* the label contexts of a recording */
    RECEIVE_EXTRAS,           /* count */
};

/* The samples of OTLP requests: label of a metric. */
enum receive_samples {
    RECEIVE_SAMPLES_READ,
    RECEIVE_SAMPLES_OLD,   /* read with the field numbers of an old version */
    RECEIVE_SAMPLES_EMPTY, /* left out, because they have neither a value nor a time */
    RECEIVE_SAMPLES,       /* count */
};

/* The end of a request whose sender waits until its profiles are on disk (receive.acknowledge):
 * label of a metric. */
enum receive_wait {
    RECEIVE_STORED,     /* all of its profiles are on disk */
    RECEIVE_LATE,       /* they were not on disk in time */
    RECEIVE_NOT_STORED, /* a destination has refused or lost a profile */
    RECEIVE_WAITS,      /* count */
};

struct receive;

struct receive_options {
    const struct config_receive *config;
    struct intern *intern;
    struct writer *writer;
    struct record *record; /* recorded metrics; may be NULL */
    struct enrich *enrich; /* NULL: profiles get no labels of targets */
    struct log *log;
    struct metrics *metrics;
    struct recordings *recordings;
    struct naming *naming; /* adds names to addresses; NULL: profiles stay as they are */
};

/* Makes a receiver. The options, config included, outlive it. Returns NULL with an error. */
struct receive *receive_new(const struct receive_options *options, struct err *err);
struct receive *receive_free(struct receive *r); /* accepts NULL, returns NULL */

/* The part `receive` of a configuration, with its rules compiled. */
struct receive_setup;
/* Prepares another configuration, and takes a reference of it. Returns NULL with an error. Any
 * thread. */
struct receive_setup *receive_prepare(const struct receive *r, const struct config *next,
                                      struct err *err);
/* Puts a setup in force and takes it over: when this returns, every profile goes where the setup
 * says. A profile that is open keeps the limits that it was opened with. Any thread. */
void receive_commit(struct receive *r, struct receive_setup *s);
/* Frees a setup that is not put in force. Accepts NULL, returns NULL. */
struct receive_setup *receive_discard(struct receive_setup *s);

/* A profile that has been opened. */
struct receive_item {
    enum receive_protocol protocol;
    enum profile_format format;
    struct sv data;               /* the bytes as they arrived, or converted */
    struct pprof_summary summary; /* with the texts of its types; times only for a recording */
    int64_t from_ns;              /* start of the profile; set by receive_put() */
    uint16_t salt;                /* the salt of the stored profile; set by receive_put() */
    char *converted;              /* private, as are the next members */
    struct scratch *scratch;
    struct receive_setup *setup; /* a reference */
};

/* Reads a profile; data must live until receive_close(). Returns RECEIVE_ACCEPTED, or another
 * result with err. */
enum receive_result receive_open(struct receive *r, enum receive_protocol protocol,
                                 enum profile_format format, struct sv data,
                                 struct receive_item *ret, struct err *err);
/* Takes a profile that our own code has made, from a format that is not pprof: its bytes are not
 * checked again, only its types and its size. summary: with the texts of its types, which live as
 * long as data. Otherwise like receive_open(). */
enum receive_result receive_open_made(struct receive *r, enum receive_protocol protocol,
                                      struct sv data, const struct pprof_summary *summary,
                                      struct receive_item *ret, struct err *err);
/* Closes an item; to be called after receive_open(), whatever that returned. */
void receive_close(struct receive *r, struct receive_item *item);

/* A request with more labels for one profile is refused before the labels are checked. */
#define RECEIVE_LABELS_MAX 1024

/* Labels and time of a profile, as its request gives them. */
struct receive_facts {
    struct label *labels; /* in any order; they are sorted. Empty values do not count */
    size_t n_labels;
    /* Used if the profile has no time, or one in 1970; 0: the present time is used. */
    int64_t from_ns;
    int64_t until_ns;        /* 0: unknown */
    bool keep_equal;         /* a store keeps the profile even if it has an equal one */
    struct receipt *receipt; /* settled when the profile is on disk; NULL: nobody waits for that */
    /* For the profiles that are made of a recording: */
    unsigned sample_rate; /* samples per second; 0: the settings of the recording decide */
    struct sv jfr_labels; /* the part `labels` of Pyroscope's agent; empty: none */
};

/* Hands an open profile to the destinations, and fills in from_ns and salt of the item. err is set
 * unless the profile is accepted, or dropped by a rule. */
enum receive_result receive_put(struct receive *r, struct receive_item *item,
                                const struct receive_facts *facts, struct err *err);

/* Counts the result of a profile, and logs a refusal. To be called once for each profile. */
void receive_count(struct receive *r, enum receive_protocol protocol, enum receive_result result,
                   size_t bytes, const struct err *err);
void receive_count_extra(struct receive *r, enum receive_extra extra);
void receive_count_samples(struct receive *r, enum receive_samples kind, uint64_t n);
/* Returns max_profile_size, in bytes. */
size_t receive_profile_max(struct receive *r);
/* Returns true if senders are answered when every destination has their profiles on disk. */
bool receive_waits(struct receive *r);
/* Counts a request that waited for the disk, and logs it if it is refused. Call it once for each
 * such request. */
void receive_count_wait(struct receive *r, enum receive_wait result);

#endif
