/* Makes room for a new profile; see send_queue_private.h.
 *
 * First, profiles that a server has refused while it took others are dropped, the one that has
 * waited longest first. Then profiles that are no deltas are thinned out (thinning.c), those of the
 * tenant that holds most. A tenant that rests must not take the room of the others: if there are
 * several tenants, each may hold SHARE times the free room, so that some room is always left for
 * one more. */
#include "write/queue/send_queue_private.h"

/* With this share, a single tenant that rests fills nine tenths of the queue. */
#define SHARE 9

uint64_t send_queue_share(const struct send_queue *q)
{
    uint64_t max = q->config->queue_max_bytes;
    uint64_t held = send_queue_held(q);
    if (map_count(q->lanes.by_tenant) < 2) {
        return max;
    }
    return held < max ? (max - held) * SHARE : 0;
}

static bool drop_quarantined(struct send_queue *q)
{
    struct send_item *it = TAILQ_FIRST(&q->quarantined);
    /* If the server refuses everything, it is not the profiles' fault. */
    if (it == NULL || it->lane->refused_in_a_row >= SEND_QUEUE_REFUSED_MAX) {
        return false;
    }
    send_queue_drop_queued(q, it, DROP_QUEUE_FULL);
    return true;
}

static struct lane *largest(const struct send_queue *q)
{
    struct lane *found = NULL;
    struct lane *lane;
    for (lane = TAILQ_FIRST(&q->lanes.all); lane != NULL; lane = TAILQ_NEXT(lane, link)) {
        if (found == NULL || lane->held > found->held) {
            found = lane;
        }
    }
    return found;
}

bool send_queue_make_room(struct send_queue *q, struct lane *lane, uint64_t n)
{
    while (lane->held + n > send_queue_share(q)) {
        if (!drop_quarantined(q) && !send_queue_thin(q, lane)) {
            return false;
        }
    }
    while (!send_queue_evict(q, n)) {
        if (!drop_quarantined(q) && !send_queue_thin(q, largest(q)) && !send_queue_thin(q, NULL)) {
            return false;
        }
    }
    return true;
}
