/* The queued profiles of an endpoint by tenant, with a backoff for each tenant: a tenant over its
 * rate limit rests, and the profiles of the others are sent.
 *
 * Tenants take turns. Within a lane, the profile with the lowest number is next. At most LANES_MAX
 * tenants have a lane of their own; any further tenants share one lane until one of the others has
 * nothing queued. The tenant of a profile that an earlier process queued is not known before the
 * profile is read from disk: until then it is in a lane for such profiles, which comes before all
 * others.
 *
 * Belongs to a send queue, and is used under its lock. */
#ifndef PROFPULL_WRITE_QUEUE_LANES_H
#define PROFPULL_WRITE_QUEUE_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/str.h"
#include "write/queue/backoff.h"
#include "write/queue/heap.h"
#include "write/series.h"

#define LANES_MAX 256

struct lane {
    char tenant[SERIES_TENANT_MAX + 1]; /* "": the requests name none */
    struct backoff backoff;
    struct heap memory;        /* what may be sent, with its bytes in memory */
    struct heap disk;          /* and what is only on disk */
    uint64_t ready;            /* in both */
    uint64_t items;            /* these, those that wait alone, and those in flight */
    unsigned refused_in_a_row; /* profiles for which the server had no good answer */
    uint64_t held;             /* bytes of queued profiles that are only in memory */
    unsigned thin_level;       /* of 2^this profiles of a group one is kept; see thinning.c */
    bool stopped_endpoint;     /* by a failure, and has sent nothing since */
    TAILQ_ENTRY(lane) link;
    TAILQ_ENTRY(lane) turn;
};

TAILQ_HEAD(lane_list, lane);

struct lanes {
    struct map *by_tenant;
    struct lane_list all;  /* those of by_tenant */
    struct lane_list turn; /* with something to send, the next one first; any lane */
    struct lane unread;    /* of profiles whose tenant is not known */
    struct lane shared;    /* of tenants without a lane of their own */
    uint64_t shared_profiles;
};

/* False if out of memory; nothing to free then. */
bool lanes_init(struct lanes *l);
void lanes_done(struct lanes *l);
/* The lane of a tenant; never NULL. */
struct lane *lanes_of(struct lanes *l, struct sv tenant);

/* Adds to or removes from one of the lane's heaps. */
void lanes_add(struct lanes *l, struct lane *lane, struct heap *h, struct heap_node *n);
void lanes_remove(struct lanes *l, struct lane *lane, struct heap *h, struct heap_node *n);
/* The lane has had its turn. */
void lanes_pass(struct lanes *l, struct lane *lane);

struct lanes_count {
    unsigned tenants; /* with a lane of their own */
    unsigned failing;
    unsigned probing;
};
struct lanes_count lanes_count(const struct lanes *l);

#endif
