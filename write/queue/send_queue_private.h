/* The inside of a send queue; for write/queue/ only.
 *
 *   send_queue.c  the lists, putting, the ledger
 *   sending.c     what is sent next, and what an answer does
 *   lanes.c       the queued ones by tenant, in the order of sending
 *   backoff.c     when an endpoint or a tenant may be asked again
 *   groups.c      which queued profiles are of one series
 *   merging.c     deltas of a series become one, when the queue runs full
 *   thinning.c    other profiles are dropped evenly, when it is full
 *   room.c        who has to make room
 *   spooling.c    the events of the spool
 *
 * The bytes of a queued item are in memory or, with a spool, only on disk. Items in memory are in
 * one more list: `bare` if their bytes are nowhere else, `backed` if they are on disk as well. When
 * memory is short, the last of `backed` are evicted first, which loses nothing; then profiles are
 * thinned out.
 *
 * While deltas are merged, they are in the list `merging` instead of those of the queue, and are
 * counted as queued all the same.
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
#include "write/queue/lanes.h"
#include "write/queue/send_queue.h"
#include "write/spool/spool.h"

struct item_list;
struct send_group;
struct merge_job;

/* The numbers of profiles that were refused: after all others. */
#define SEND_QUEUE_SUSPECTS_FROM (UINT64_C(1) << 63)
/* And their share of the slots: one of so many. */
#define SEND_QUEUE_SUSPECT_SHARE 4

/* The fewest profiles that are merged. */
#define SEND_QUEUE_MERGE_MIN 2

struct send_item {
    struct profile *profile;   /* NULL: on disk only */
    struct spool_entry *entry; /* NULL: the spool does not know it */
    uint64_t cost;
    int64_t scraped_ms;
    uint64_t seq;      /* order of sending */
    struct lane *lane; /* of its tenant; NULL: not known yet */
    struct heap *heap; /* of the lane, or `waiting`; NULL: not queued */
    struct heap_node order;
    struct backoff_ticket ticket; /* of the endpoint */
    struct backoff_ticket lane_ticket;
    int64_t wait_until;  /* it waits alone; 0: it does not */
    int64_t asked_until; /* and that long at least, because the server asked for it */
    unsigned note;       /* of its sender */
    unsigned attempts;
    unsigned unanswered; /* of these, without any answer */
    unsigned doubts;     /* of these, with an answer that may blame the profile */
    unsigned alone;      /* failures of this profile alone */
    unsigned refused;    /* of these, with an answer that was about this profile */
    unsigned load_failures;
    bool blamed; /* it has stopped the endpoint once */
    bool loading;
    bool on_disk;             /* safe there */
    struct item_list *memory; /* the list that `kept` is in; NULL: none */
    TAILQ_ENTRY(send_item) send;
    TAILQ_ENTRY(send_item) age;
    TAILQ_ENTRY(send_item) kept;

    struct merge_job *job;    /* that it is a part of; NULL: none */
    struct send_group *group; /* NULL: unknown */
    bool is_delta;            /* may be merged with others of its group */
    bool unmergeable; /* it failed to be, or a server refused it: it must not spoil others */
    uint64_t index;   /* in order of arrival, among the profiles of its group */
    TAILQ_ENTRY(send_item) part; /* queued: in the parts of its group, or in `others` */
};

TAILQ_HEAD(item_list, send_item);

/* What the queue holds of one series and kind. */
struct send_group {
    uint64_t key;
    struct labels *labels;  /* a reference */
    size_t members;         /* items, those in flight included */
    uint64_t arrivals;      /* items, ever */
    struct item_list parts; /* queued deltas, in the order of scraped_ms */
    size_t n_parts;
    size_t merge_from; /* so many parts are worth another attempt */
};

struct send_queue {
    struct spool *spool; /* NULL: none; constant once anything is put */

    pthread_mutex_t lock; /* guards all that follows */
    const struct config_endpoint *config;
    struct item_list by_age; /* queued profiles, in the order of scraped_ms */
    struct lanes lanes;      /* the same ones by tenant, in the order of sending */
    struct heap waiting;     /* except these, which wait alone, by the end of the wait */
    uint64_t n_waiting;
    struct item_list suspects;     /* the same of profiles that were refused, and may be at fault */
    struct item_list bare;         /* of these, in memory only, in the order of scraped_ms */
    struct item_list backed;       /* and in memory and on disk, the next to be sent first */
    struct item_list loading;      /* in flight: taken, and on their way from the disk */
    struct item_list loaded;       /* in flight: from the disk, the sender may have them */
    struct item_list dropped;      /* to be freed outside of the lock */
    struct item_list merging;      /* deltas that are being merged */
    struct merge_job *loading_job; /* its parts are on their way from the disk; NULL: none */
    struct item_list others; /* queued profiles that are no deltas, about in the order of age */
    struct map *groups;      /* key -> struct send_group */
    uint64_t backed_bytes;   /* of the items in `backed` */
    uint64_t suspects_in_flight;
    unsigned thin_level; /* of 2^this profiles of a group one is kept */
    /* The last item that was replayed: the next one belongs after it. */
    struct send_item *last_replayed;
    uint64_t next_seq;
    uint64_t next_replay_seq;
    struct write_ledger ledger;
    uint64_t in_flight_bytes;
    uint64_t on_disk_only;  /* queued items without bytes */
    unsigned acknowledging; /* sent, but the disk does not know it yet: these hold a slot */
    int64_t load_rest_until;
    struct backoff backoff; /* of the endpoint */
    bool closed;
    bool draining;
    enum write_drop end; /* for what is put then, or cannot be sent in time */
    bool stopped;        /* nothing is taken any more */
    struct rng rng;
};

/* All under the lock. */
/* Queues an item; seq and wait_until say where. */
void send_queue_enqueue(struct send_queue *q, struct send_item *it);
void send_queue_dequeue(struct send_queue *q, struct send_item *it);
/* Moves a queued item to the dropped ones, which send_queue_unlock() frees. */
void send_queue_drop_queued(struct send_queue *q, struct send_item *it, enum write_drop reason);
/* The same for one in flight that has landed. */
void send_queue_drop_landed(struct send_queue *q, struct send_item *it, enum write_drop reason);
/* Takes an item out of flight; the caller says where it goes. */
void send_queue_land(struct send_queue *q, struct send_item *it);
/* Drops what is older than max_age. */
void send_queue_expire(struct send_queue *q, int64_t now_ms);
/* The lane of what the request for a profile will carry as its tenant; that of the unread ones for
 * NULL. */
struct lane *send_queue_lane_of(struct send_queue *q, const struct profile *p);
/* Puts an item that is not queued into the lane of its tenant. */
void send_queue_choose_lane(struct send_queue *q, struct send_item *it);
/* Moves a queued item to the heap that it belongs to now. */
void send_queue_place(struct send_queue *q, struct send_item *it);
/* An item is sent or dropped: send_queue_unlock() frees it. */
void send_queue_forget(struct send_queue *q, struct send_item *it);
/* Gives the entry back to the spool; true if its slot is held until the acknowledgement is on disk.
 */
bool send_queue_release(struct send_queue *q, struct send_item *it, bool hold);
/* Evicts profiles that are on disk as well until n more bytes fit; false if that is not enough. */
bool send_queue_evict(struct send_queue *q, uint64_t n);
/* Moves a queued item to the memory list that it belongs to now. */
void send_queue_keep(struct send_queue *q, struct send_item *it);
/* Ends the critical section, and frees what was dropped in it. */
void send_queue_unlock(struct send_queue *q);
/* Bytes of memory that a queued item takes. */
uint64_t send_queue_weight(const struct send_item *it);
/* Bytes of memory that cannot be freed without a loss. */
uint64_t send_queue_held(const struct send_queue *q);

/* ---- merging.c ------------------------------------------------------------------------------- */

/* A part of a job has been read from the disk; p NULL: it could not be. */
void send_queue_part_loaded(struct send_queue *q, struct send_item *it, struct profile *p);
/* Frees a job that is not finished, with its parts; at the very end. */
void send_queue_free_job(struct send_queue *q);

/* ---- groups.c -------------------------------------------------------------------------------- */

/* Of the group that profiles with these labels belong to. */
uint64_t send_group_key(const struct labels *l, enum profile_format format, bool is_delta);
struct send_group *send_queue_group(const struct send_queue *q, uint64_t key);
/* A new item enters the group of its labels, and leaves it before it is freed. Without memory it
 * has none. */
void send_queue_join(struct send_queue *q, struct send_item *it, struct labels *l, uint64_t key);
void send_queue_leave(struct send_queue *q, struct send_item *it);
void send_queue_free_groups(struct send_queue *q);
/* For an item that enters or leaves the queue. */
void send_queue_add_part(struct send_queue *q, struct send_item *it);
void send_queue_remove_part(struct send_queue *q, struct send_item *it);

/* ---- room.c ---------------------------------------------------------------------------------- */

/* Makes room for n bytes of a lane; false if that cannot be. */
bool send_queue_make_room(struct send_queue *q, struct lane *lane, uint64_t n);
/* Bytes that a lane may hold now: all of the queue, unless there are other tenants. */
uint64_t send_queue_share(const struct send_queue *q);

/* ---- thinning.c ------------------------------------------------------------------------------ */

/* Drops queued profiles that are no deltas, evenly over their time; of one lane, or of all for
 * NULL. False if there is none. */
bool send_queue_thin(struct send_queue *q, struct lane *lane);
/* Whether a new item that is no delta is to be dropped at once. */
bool send_queue_is_thinned(struct send_queue *q, const struct send_item *it);

#endif
