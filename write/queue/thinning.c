/* Thinning out: see send_queue_private.h.
 *
 * At level k, a group keeps every 2^k-th of its profiles, both of the queued ones and of new ones.
 * The number in the group decides, shifted by a hash of the group: even if hardly one profile of
 * each series is left, all of them together are spread over the outage. Profiles that are in memory
 * only are dropped first. When room is needed, the level rises until something is dropped. When
 * there is room again, all profiles are kept. The queue has a level, and so has each tenant; the
 * higher one counts. */
#include "write/queue/send_queue_private.h"

/* At this level one profile of 65,536 stays, and none of most groups. */
#define LEVEL_MAX 16
/* Below this share of the queue, or of the bytes that a tenant may hold, nothing is thinned out. */
#define CALM_SHARE 4

static bool is_kept(const struct send_queue *q, const struct send_item *it)
{
    unsigned level = q->thin_level > it->lane->thin_level ? q->thin_level : it->lane->thin_level;
    uint64_t number = it->index + (it->group != NULL ? it->group->key >> 32 : 0);
    return (number & ((UINT64_C(1) << level) - 1)) == 0;
}

/* Returns false for deltas, which are merged, and for profiles whose senders got a 2xx. */
static bool may_thin(const struct send_item *it)
{
    return !it->is_delta && !it->is_pushed;
}

static bool is_of(const struct send_item *it, const struct lane *lane)
{
    return lane == NULL || it->lane == lane;
}

/* Drops the profiles that are only in memory and that the present level does not keep. */
static bool sweep_memory_only(struct send_queue *q, const struct lane *lane)
{
    struct send_item *next;
    bool any = false;
    for (struct send_item *it = TAILQ_FIRST(&q->memory_only); it != NULL; it = next) {
        next = TAILQ_NEXT(it, by_memory);
        if (is_of(it, lane) && may_thin(it) && !is_kept(q, it)) {
            send_queue_drop_queued(q, it, DROP_THINNED);
            any = true;
        }
    }
    return any;
}

/* Does the same for all profiles, because a profile on disk takes memory for its place in the
 * index. */
static bool sweep_all(struct send_queue *q, const struct lane *lane)
{
    struct send_item *next;
    bool any = false;
    for (struct send_item *it = TAILQ_FIRST(&q->thinnable); it != NULL; it = next) {
        next = TAILQ_NEXT(it, part);
        if (is_of(it, lane) && !is_kept(q, it)) {
            send_queue_drop_queued(q, it, DROP_THINNED);
            any = true;
        }
    }
    return any;
}

static struct send_item *oldest_memory_only(const struct send_queue *q, const struct lane *lane)
{
    struct send_item *it = TAILQ_FIRST(&q->memory_only);
    while (it != NULL && (!may_thin(it) || !is_of(it, lane))) {
        it = TAILQ_NEXT(it, by_memory);
    }
    return it;
}

static struct send_item *oldest_thinnable(const struct send_queue *q, const struct lane *lane)
{
    struct send_item *it = TAILQ_FIRST(&q->thinnable);
    while (it != NULL && !is_of(it, lane)) {
        it = TAILQ_NEXT(it, part);
    }
    return it;
}

bool send_queue_thin(struct send_queue *q, struct lane *lane)
{
    struct send_item *oldest = oldest_memory_only(q, lane);
    bool (*sweep)(struct send_queue *, const struct lane *) =
        oldest != NULL ? sweep_memory_only : sweep_all;
    unsigned *level = lane != NULL ? &lane->thin_level : &q->thin_level;
    oldest = oldest != NULL ? oldest : oldest_thinnable(q, lane);
    if (oldest == NULL) {
        return false;
    }
    if (sweep(q, lane)) {
        return true;
    }
    while (*level < LEVEL_MAX) {
        ++*level;
        if (sweep(q, lane)) {
            return true;
        }
    }
    send_queue_drop_queued(q, oldest, DROP_QUEUE_FULL);
    return true;
}

bool send_queue_is_thinned(struct send_queue *q, const struct send_item *it)
{
    if (q->thin_level > 0 && send_queue_held(q) < q->config->queue_max_bytes / CALM_SHARE) {
        q->thin_level = 0;
    }
    if (it->lane->thin_level > 0 && it->lane->held < send_queue_share(q) / CALM_SHARE) {
        it->lane->thin_level = 0;
    }
    return it->group != NULL && !is_kept(q, it);
}
