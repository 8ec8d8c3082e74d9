/* The inside of a send queue; for write/queue/ only.
 *
 *   send_queue.c  the lists, putting, the ledger
 *   item.c        the states of an item
 *   sending.c     the choice of the next profile, and the effects of a response
 *   lanes.c       queued profiles by tenant, in the order of sending
 *   backoff.c     the rests of an endpoint or a tenant after failures
 *   groups.c      queued profiles by series
 *   merging.c     merges the deltas of a series when the queue runs full
 *   thinning.c    drops other profiles evenly when it is full
 *   room.c        chooses the tenant that has to make room
 *   spooling.c    the events of the spool
 *
 * Each profile is a struct send_item, whose state says which of the lists below hold it; item.h has
 * the states and their transitions.
 *
 * A queued item with bytes in memory is in one of three further lists, which say what may be done
 * with it when memory is short. First, the last items of `evictable` lose their bytes in memory;
 * these bytes are on disk as well. Then items of `quarantined` are dropped: the server has refused
 * them before. Then profiles of `memory_only` are thinned out.
 *
 * Deltas that are being merged are in `merging` instead of the lists of the queue, but are counted
 * as queued.
 *
 * Lock order: the queue's before the spool's. The spool calls back with no lock held.
 */
#ifndef PROFPULL_WRITE_QUEUE_SEND_QUEUE_PRIVATE_H
#define PROFPULL_WRITE_QUEUE_SEND_QUEUE_PRIVATE_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/map.h"
#include "write/queue/backoff.h"
#include "write/queue/heap.h"
#include "write/queue/item.h"
#include "write/queue/lanes.h"
#include "write/queue/send_queue.h"
#include "write/spool/spool.h"

struct merge_job;

/* Quarantined profiles, which a server has refused, have numbers from here on: they are sent after
 * all others. */
#define SEND_QUEUE_QUARANTINE_FROM (UINT64_C(1) << 63)
/* Quarantined profiles take at most one of so many slots. */
#define SEND_QUEUE_QUARANTINE_SHARE 4

/* The fewest profiles that are merged. */
#define SEND_QUEUE_MERGE_MIN 2

/* The profiles of one series and kind that the queue holds. */
struct send_group {
    uint64_t key;
    struct labels *labels;  /* a reference */
    size_t members;         /* items, those in flight included */
    uint64_t arrivals;      /* items that have ever joined */
    struct item_list parts; /* queued deltas, in the order of scraped_ms */
    size_t n_parts;
    size_t merge_from; /* the number of parts from which on another merge is worth trying */
};

struct send_queue {
    struct spool *spool; /* NULL: none; constant once anything is put */

    pthread_mutex_t lock; /* guards all that follows */
    const struct config_endpoint *config;
    struct lanes lanes;      /* items that are QUEUED, by tenant, in the order of sending */
    struct heap waiting;     /* items that are WAITING, by the end of their rest */
    uint64_t n_waiting;      /* the number of items in `waiting` */
    struct item_list by_age; /* items of `lanes` and `waiting`, in the order of scraped_ms */
    /* Items of `by_age` in memory only, in the order of scraped_ms. */
    struct item_list memory_only;
    /* Items of `by_age` in memory only that a server has refused. */
    struct item_list quarantined;
    /* Items of `by_age` in memory and on disk, the next one to send first. */
    struct item_list evictable;
    /* Items of `by_age` that are no deltas, about in the order of age. */
    struct item_list thinnable;
    struct item_list loading;      /* items that are LOADING */
    struct item_list loaded;       /* items that are LOADED */
    struct item_list merging;      /* items that are MERGING or PART_LOADING */
    struct item_list finished;     /* items that are FINISHED */
    struct merge_job *loading_job; /* the job whose parts are read from the disk; NULL: none */
    struct map *groups;            /* key -> struct send_group */
    uint64_t evictable_bytes;      /* the bytes of the items in `evictable` */
    uint64_t quarantined_in_flight;
    unsigned thin_level; /* one of 2^thin_level profiles of a group is kept */
    /* The item that was replayed last: the next replayed item belongs after it. */
    struct send_item *last_replayed;
    uint64_t next_seq;
    uint64_t next_replay_seq;
    struct write_ledger ledger;
    uint64_t in_flight_bytes;
    uint64_t on_disk_only; /* queued items without bytes */
    /* Profiles that were sent, but are not yet acknowledged on disk: they hold a slot. */
    unsigned acknowledging;
    int64_t load_rest_until;
    struct backoff backoff; /* the backoff of the endpoint */
    bool closed;
    bool draining;
    /* The reason to drop profiles that are put after the end, or cannot be sent in time. */
    enum write_drop end;
    bool stopped; /* send_queue_take() returns NULL */
    struct rng rng;
};

/* All of the following functions are called under the lock. */
/* Queues an item, at the place that seq and wait_until give it. */
void send_queue_enqueue(struct send_queue *q, struct send_item *it);
/* Takes a queued item out of all lists of the queue; the caller changes its state. */
void send_queue_dequeue(struct send_queue *q, struct send_item *it);
/* Drops a queued item; send_queue_unlock() frees it. */
void send_queue_drop_queued(struct send_queue *q, struct send_item *it, enum write_drop reason);
/* Drops an item that is in no list: it has landed, or was dequeued. */
void send_queue_drop_landed(struct send_queue *q, struct send_item *it, enum write_drop reason);
/* Takes an item out of flight; the caller queues or finishes it. */
void send_queue_land(struct send_queue *q, struct send_item *it);
/* Drops the queued profiles that are older than max_age. */
void send_queue_expire(struct send_queue *q, int64_t now_ms);
/* Returns the lane of the tenant that the request for a profile will name. If p is NULL, returns
 * the lane of profiles that are only on disk. */
struct lane *send_queue_lane_of(struct send_queue *q, const struct profile *p);
/* Puts an item that is not queued into the lane of its tenant. */
void send_queue_choose_lane(struct send_queue *q, struct send_item *it);
/* Moves a queued item to the heap that it belongs to now. */
void send_queue_place(struct send_queue *q, struct send_item *it);
/* Finishes an item that is in no list; send_queue_unlock() frees it. */
void send_queue_forget(struct send_queue *q, struct send_item *it);
/* Releases the entry of an item in the spool. Returns true if the item holds its slot until the
 * acknowledgement is on disk. */
bool send_queue_release(struct send_queue *q, struct send_item *it, bool hold);
/* Evicts the bytes of items that are on disk as well, until n more bytes fit. Returns false if that
 * does not suffice. */
bool send_queue_evict(struct send_queue *q, uint64_t n);
/* Moves a queued item to the memory list that it belongs to now. */
void send_queue_choose_memory_list(struct send_queue *q, struct send_item *it);
/* Ends the critical section, and frees the items that were finished in it. */
void send_queue_unlock(struct send_queue *q);
/* Returns the bytes of memory that a queued item takes. */
uint64_t send_queue_weight(const struct send_item *it);
/* Returns the bytes of memory that cannot be freed without a loss. */
uint64_t send_queue_held(const struct send_queue *q);

/* ---- merging.c ------------------------------------------------------------------------------- */

/* Takes a part of q->loading_job that the spool has read; p is NULL if that failed. */
void send_queue_part_loaded(struct send_queue *q, struct send_item *it, struct profile *p);
/* Frees a job that is not finished, with its parts; at the very end. */
void send_queue_free_job(struct send_queue *q);

/* ---- groups.c -------------------------------------------------------------------------------- */

/* Returns the key of the group of profiles with these labels, format and kind. */
uint64_t send_group_key(const struct labels *l, enum profile_format format, bool is_delta);
struct send_group *send_queue_group(const struct send_queue *q, uint64_t key);
/* Adds a new item to the group of its labels. If memory runs out, the item has no group. The item
 * must leave its group before it is freed. */
void send_queue_join(struct send_queue *q, struct send_item *it, struct labels *l, uint64_t key);
void send_queue_leave(struct send_queue *q, struct send_item *it);
void send_queue_free_groups(struct send_queue *q);
/* Adds an item that enters the queue to the parts of its group or to `thinnable`, and removes one
 * that leaves the queue. */
void send_queue_add_part(struct send_queue *q, struct send_item *it);
void send_queue_remove_part(struct send_queue *q, struct send_item *it);

/* ---- room.c ---------------------------------------------------------------------------------- */

/* Makes room for n bytes of a lane. Returns false if there is nothing that may be dropped. */
bool send_queue_make_room(struct send_queue *q, struct lane *lane, uint64_t n);
/* Returns the bytes that a lane may hold now. If there is only one tenant, it may fill the queue.
 */
uint64_t send_queue_share(const struct send_queue *q);

/* ---- thinning.c ------------------------------------------------------------------------------ */

/* Drops queued profiles that are no deltas, evenly over their time, of one lane, or of all lanes if
 * lane is NULL. Returns false if there is none to drop. */
bool send_queue_thin(struct send_queue *q, struct lane *lane);
/* Returns true if a new item that is no delta is to be dropped at once. */
bool send_queue_is_thinned(struct send_queue *q, const struct send_item *it);

#endif
