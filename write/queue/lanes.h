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
    char tenant[SERIES_TENANT_MAX + 1]; /* "": the requests name no tenant */
    struct backoff backoff;
    struct heap memory; /* items that may be sent, with their bytes in memory */
    struct heap disk;   /* items that may be sent, with their bytes only on disk */
    uint64_t ready;     /* items in both heaps */
    /* All items of the tenant: these, those that wait alone, and those in flight. */
    uint64_t items;
    unsigned refused_in_a_row; /* profiles in a row that the server has refused */
    uint64_t held;             /* bytes of queued profiles that are only in memory */
    unsigned thin_level;       /* one of 2^thin_level profiles of a group is kept; see thinning.c */
    /* A failure of this tenant has stopped the endpoint, and none of its profiles was sent since
     * then. */
    bool stopped_endpoint;
    TAILQ_ENTRY(lane) link;
    TAILQ_ENTRY(lane) turn;
};

TAILQ_HEAD(lane_list, lane);

struct lanes {
    struct map *by_tenant;
    struct lane_list all;  /* all lanes of by_tenant */
    struct lane_list turn; /* all lanes with something to send, in the order of their turns */
    struct lane unread;    /* the lane of profiles whose tenant is not known yet */
    struct lane shared;    /* the lane that tenants without a lane of their own share */
    uint64_t shared_profiles;
};

/* Returns false if out of memory; there is nothing to free then. */
bool lanes_init(struct lanes *l);
void lanes_done(struct lanes *l);
/* Returns the lane of a tenant; never NULL. */
struct lane *lanes_of(struct lanes *l, struct sv tenant);

/* Adds a node to, or removes it from, one of the lane's heaps. */
void lanes_add(struct lanes *l, struct lane *lane, struct heap *h, struct heap_node *n);
void lanes_remove(struct lanes *l, struct lane *lane, struct heap *h, struct heap_node *n);
/* Moves a lane that has had its turn to the end of the turns. */
void lanes_pass(struct lanes *l, struct lane *lane);

struct lanes_count {
    unsigned tenants; /* tenants with a lane of their own */
    unsigned failing;
    unsigned probing;
};
struct lanes_count lanes_count(const struct lanes *l);

#endif
