/* An item of a send queue: one profile, from send_queue_put() until it has been sent, dropped or
 * merged. For write/queue/ only; every function needs the lock of the queue.
 *
 * `state` says how far the item is, and therefore which lists of struct send_queue hold it. The
 * table item_transitions has every change of a state; docs/architecture.md shows it as a diagram.
 *
 * Builds with sanitizers (`make asan`, `make tsan`, fuzz targets and every other build with
 * SANITIZE, which defines INSTRUMENTED) assert the transitions. Other builds do not: a wrong state
 * must not end a process that still holds profiles.
 */
#ifndef PROFPULL_WRITE_QUEUE_ITEM_H
#define PROFPULL_WRITE_QUEUE_ITEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "model/profile.h"
#include "write/queue/backoff.h"
#include "write/queue/heap.h"
#include "write/queue/lanes.h"
#include "write/spool/spool.h"

struct item_list;
struct send_group;

enum item_state {
    ITEM_NEW,          /* in no list: just allocated */
    ITEM_QUEUED,       /* in its lane: it is sent in its turn */
    ITEM_WAITING,      /* queued, but in the heap `waiting`: only this profile rests, until
                          wait_until */
    ITEM_LOADING,      /* in flight, in `loading`: the spool reads its bytes */
    ITEM_LOADED,       /* in flight, in `loaded`: its bytes have arrived, the sender may take it */
    ITEM_IN_FLIGHT,    /* in flight, in no list: the sender has it */
    ITEM_LANDED,       /* in no list: the attempt is over, the same critical section decides on */
    ITEM_MERGING,      /* in `merging`: a part of a merge job; counted as queued */
    ITEM_PART_LOADING, /* the same, while the spool reads its bytes */
    ITEM_FINISHED,     /* in `finished`: sent, dropped or merged; send_queue_unlock() frees it */
    ITEM_STATES
};

/* The memory and disk that hold the bytes of the profile: a set of two bits. */
enum item_bytes {
    ITEM_NOWHERE = 0, /* new, or lost from the disk while they were read */
    ITEM_MEMORY = 1,
    ITEM_DISK = 2,
    ITEM_BOTH = ITEM_MEMORY | ITEM_DISK,
};

/* The attempts to send a profile so far. */
struct item_history {
    unsigned attempts;
    unsigned unanswered;    /* attempts that got no response */
    unsigned doubts;        /* attempts whose response may blame the profile */
    unsigned failures;      /* failed attempts after which only this profile waited */
    unsigned refusals;      /* the number of these failures with a response of the server */
    unsigned load_failures; /* reads from the disk that failed in a row */
    bool stopped_endpoint;  /* a failure of this profile has stopped the whole endpoint before */
};

struct send_item {
    enum item_state state; /* change it with item_become() */
    enum item_bytes bytes; /* change it with the three functions below */
    /* This item keeps one part of the receipt open; NULL: nobody waits for the item. */
    struct receipt *receipt;
    struct profile *profile;   /* the profile with its bytes; NULL without ITEM_MEMORY */
    struct spool_entry *entry; /* the bytes on disk; NULL: the spool does not know the item */
    uint64_t cost;             /* bytes of memory that the profile takes */
    int64_t scraped_ms;
    uint64_t seq;      /* order of sending */
    struct lane *lane; /* the lane of its tenant; NULL: not known yet */
    /* The heap that `order` is in: one of the lane, or `waiting`; NULL: not queued. */
    struct heap *heap;
    struct heap_node order;
    struct backoff_ticket ticket; /* the ticket of the endpoint's backoff */
    struct backoff_ticket lane_ticket;
    int64_t wait_until;  /* end of the rest of this profile alone; 0: none */
    int64_t asked_until; /* earliest end of that rest, because the server asked for it */
    unsigned note;       /* the sender's remark, see send_item_note() */
    struct item_history history;
    struct item_list *memory_list; /* the list that `by_memory` is in; NULL: none */
    TAILQ_ENTRY(send_item) link;   /* in `loading`, `loaded`, `merging` or `finished` */
    TAILQ_ENTRY(send_item) age;    /* in `by_age` */
    TAILQ_ENTRY(send_item) by_memory;

    struct send_group *group;    /* NULL: unknown */
    bool is_delta;               /* may be merged with other deltas of its group */
    bool is_pushed;              /* its sender got a 2xx for it: it is never thinned out */
    bool unmergeable;            /* merging it has failed: another merge would fail as well */
    uint64_t index;              /* in order of arrival, among the profiles of its group */
    TAILQ_ENTRY(send_item) part; /* while queued: in the parts of its group, or in `thinnable` */
};

TAILQ_HEAD(item_list, send_item);

/* The set of states that a state may change to, one bit for each. */
#define ITEM_TO(state) (1u << (state))
static const unsigned item_transitions[ITEM_STATES] = {
    [ITEM_NEW] = ITEM_TO(ITEM_QUEUED) | ITEM_TO(ITEM_FINISHED),
    [ITEM_QUEUED] = ITEM_TO(ITEM_LOADING) | ITEM_TO(ITEM_IN_FLIGHT) | ITEM_TO(ITEM_MERGING) |
                    ITEM_TO(ITEM_PART_LOADING) | ITEM_TO(ITEM_FINISHED),
    [ITEM_WAITING] = ITEM_TO(ITEM_QUEUED) | ITEM_TO(ITEM_FINISHED),
    [ITEM_LOADING] = ITEM_TO(ITEM_LOADED) | ITEM_TO(ITEM_LANDED),
    [ITEM_LOADED] = ITEM_TO(ITEM_IN_FLIGHT) | ITEM_TO(ITEM_LANDED),
    [ITEM_IN_FLIGHT] = ITEM_TO(ITEM_LANDED),
    [ITEM_LANDED] = ITEM_TO(ITEM_QUEUED) | ITEM_TO(ITEM_WAITING) | ITEM_TO(ITEM_FINISHED),
    [ITEM_MERGING] = ITEM_TO(ITEM_QUEUED) | ITEM_TO(ITEM_FINISHED),
    [ITEM_PART_LOADING] = ITEM_TO(ITEM_MERGING),
    [ITEM_FINISHED] = 0,
};

/* Changes the state; the caller has moved the item to the lists of the new state. */
void item_become(struct send_item *it, enum item_state state);

/* Gives an item that has no bytes in memory those of p, whose reference it takes over. */
void item_add_bytes(struct send_item *it, struct profile *p);
/* Frees the bytes in memory of an item whose bytes are on disk as well. */
void item_evict_bytes(struct send_item *it);
/* Sets whether the bytes are safe on disk. */
void item_set_on_disk(struct send_item *it, bool on_disk);

/* Ends the item's part of a receipt, if there is one: the profile is safe, or sending it again
 * would not help. */
void item_acknowledge(struct send_item *it);

#endif
