/* The peers of this process: other profpull processes, which are asked for the profiles that only
 * their disks have.
 *
 *     scan (store/scan.c) -> gather.h -> this: calls over HTTP -> answer.h in the other process
 *
 * The peers are a list of hosts, the addresses of a DNS name, or the members that share the
 * targets. One thread runs the requests and the lookups. A peer that could not be reached is not
 * asked for five seconds, so that a query of many scans does not wait for it each time. The process
 * itself may be among its peers: it recognises its own answers by the id of the process.
 *
 * A peering without peers has no thread. Any thread may call these functions, unless their comment
 * says otherwise.
 */
#ifndef PROFPULL_STORE_PEERING_PEERING_H
#define PROFPULL_STORE_PEERING_PEERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/str.h"
#include "http/contents.h"
#include "http/http.h"

/* The path of the endpoint that answers questions. */
#define PEERING_PATH "/profpull.v1/peer"
/* The media type of questions and answers. */
#define PEERING_TYPE "application/x-profpull-peer"
/* Limit of peers. Further addresses are not asked, and every answer is partial. */
#define PEERING_PEERS_MAX 1000
/* Time between two lookups of a DNS name. */
#define PEERING_LOOKUP_MS 10000

enum peering_mode {
    PEERING_NONE,
    PEERING_HOSTS,   /* a fixed list */
    PEERING_DNS,     /* all addresses of a name */
    PEERING_MEMBERS, /* addresses that peering_set_members() gives */
};

struct peering_settings {
    enum peering_mode mode;
    const char *const *hosts; /* PEERING_HOSTS: "HOST:PORT" each */
    size_t n_hosts;
    const char *dns; /* PEERING_DNS: "NAME:PORT" */
    uint16_t port;   /* PEERING_MEMBERS */
    bool https;
    const struct http_settings *http; /* credentials, TLS, proxy and headers */
    int64_t timeout_ms;               /* of one request */
    /* Called when the settings are not used any more; may be NULL. */
    void (*release)(void *owner);
    void *owner;
};

struct peering_options {
    struct log *log;                /* may be NULL */
    struct metrics *metrics;        /* may be NULL */
    struct http_contents *contents; /* credentials that are not in files; may be NULL */
    lookup_fn *lookup;              /* for tests; NULL: getaddrinfo() */
};

struct peering;

/* Makes a peering without peers. NULL with err. */
struct peering *peering_new(const struct peering_options *o, struct err *err);
/* Ends all calls, which then fail. */
void peering_stop(struct peering *p);
/* No call may be in progress. Accepts NULL, returns NULL. */
struct peering *peering_free(struct peering *p);
/* Takes over settings, whose release() is called in any case. One thread at a time. False with err,
 * and the former settings stay. */
bool peering_configure(struct peering *p, const struct peering_settings *s, struct err *err);
/* Sets the addresses of the members, without ports: "10.0.0.1", "fd00::1". They are used while the
 * mode is PEERING_MEMBERS. An empty list leaves the former ones: the Service was deleted, or its
 * probe fails everywhere. */
void peering_set_members(struct peering *p, const struct sv *addresses, size_t n);
/* Returns true if there are peers to ask. */
bool peering_is_used(struct peering *p);
/* Returns the id of this process, PEERING_ID_DIGITS hexadecimal digits. */
const char *peering_id(const struct peering *p);

struct peering_stats {
    enum peering_mode mode;
    size_t peers;              /* known, without this process */
    size_t down;               /* of these, the ones whose last request has failed */
    bool known;                /* the peers are known: the name was resolved */
    char problem[ERR_MSG_MAX]; /* why one of them is down, or none is known; "" if none is */
};
void peering_stats(struct peering *p, struct peering_stats *ret);

/* ---- for gather.c ---------------------------------------------------------------------------- */

struct peer;
struct peer *peer_ref(struct peer *p);
struct peer *peer_unref(struct peer *p); /* accepts NULL, returns NULL */
/* Returns its URL without a path. */
const char *peer_name(const struct peer *p);

/* Returns the peers to ask, with references, without those that are known to be this process. The
 * caller frees the list with peering_peers_free(). Waits until the peers are known, at most until
 * deadline_ms. NULL with err if they are not known, or if memory is short; *ret_cut is true if
 * there are more of them than PEERING_PEERS_MAX. */
struct peer **peering_peers(struct peering *p, int64_t deadline_ms, size_t *ret_n, bool *ret_cut,
                            struct err *err);
void peering_peers_free(struct peer **peers, size_t n);
/* Notes the id that a peer has answered with. Returns false if it is this process. */
bool peering_is_other(struct peering *p, struct peer *peer, struct sv instance);
/* Notes that the answer of a peer was wrong: it counts as a failed request. */
void peering_note_bad(struct peering *p, struct peer *peer, const struct err *err);

/* One request to a peer. */
struct peering_call {
    struct peer *peer;
    struct buf question; /* the body */
    size_t answer_max;
    /* Results: */
    bool ok;
    struct buf answer;
    struct err err; /* names the peer, and says what to do */
};
void peering_call_init(struct peering_call *c, struct peer *peer, size_t answer_max);
void peering_call_done(struct peering_call *c);
/* Makes n calls at the same time, and waits until all have ended: none takes longer than the time
 * limit of the settings, nor than until deadline_ms (0: no deadline). */
void peering_run(struct peering *p, struct peering_call *calls, size_t n, int64_t deadline_ms);

#endif
