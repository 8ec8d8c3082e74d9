/* The queue's handlers for the events of the spool; see send_queue_private.h. The spool's thread
 * calls them; any thread may call the functions at the end. */
#include <stdlib.h>

#include "model/profile.h"
#include "write/queue/send_queue_private.h"

static bool send_queue_on_found(void *arg, struct spool_entry *entry, struct labels *labels)
{
    struct send_queue *q = arg;
    struct send_item *it = NULL;
    pthread_mutex_lock(&q->lock);
    /* The index of profiles that are only on disk may take half of max_bytes. */
    uint64_t index = (q->on_disk_only + 1) * SEND_QUEUE_INDEX_COST;
    if (!q->closed && index <= q->config->queue_max_bytes / 2 &&
        send_queue_evict(q, SEND_QUEUE_INDEX_COST)) {
        it = calloc(1, sizeof(*it));
    }
    if (it != NULL) {
        it->entry = entry;
        item_set_on_disk(it, true);
        it->cost = profile_cost_of(entry->head.data_size, entry->head.labels_size);
        it->scraped_ms = entry->scraped_ms;
        it->seq = q->next_replay_seq++;
        it->is_delta =
            entry->head.format == PROFILE_PPROF && (entry->head.flags & SPOOL_FLAG_DELTA) != 0;
        it->is_pushed = (entry->head.flags & SPOOL_FLAG_PUSHED) != 0;
        it->index = it->seq;
        entry->owner = it;
        if (labels != NULL && it->is_delta) {
            send_queue_join(q, it, labels, send_group_key(labels, PROFILE_PPROF, true));
        }
        q->ledger.replayed++;
        send_queue_enqueue(q, it);
        q->last_replayed = it;
    }
    pthread_mutex_unlock(&q->lock);
    return it != NULL;
}

static void send_queue_on_unread_lost(void *arg, bool for_memory)
{
    struct send_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    q->ledger.replayed++;
    q->ledger.dropped[for_memory ? DROP_MEMORY : DROP_SPOOL_FULL]++;
    pthread_mutex_unlock(&q->lock);
}

static void send_queue_on_written(void *arg, struct spool_entry *entry)
{
    struct send_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    struct send_item *it = entry->owner;
    if (it != NULL) {
        item_set_on_disk(it, true);
        item_acknowledge(it);
        /* An item in flight is in no memory list; it gets one when it is queued again. */
        if (it->memory_list != NULL) {
            send_queue_choose_memory_list(q, it);
        }
    }
    pthread_mutex_unlock(&q->lock);
}

static void send_queue_on_lost(void *arg, struct spool_entry *entry, bool removed)
{
    struct send_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    struct send_item *it = entry->owner;
    if (it != NULL && (it->bytes & ITEM_DISK) != 0) {
        bool queued = it->state == ITEM_QUEUED || it->state == ITEM_WAITING;
        item_set_on_disk(it, false);
        if (queued && it->bytes == ITEM_NOWHERE) {
            send_queue_drop_queued(q, it, removed ? DROP_DAMAGED : DROP_SPOOL_FULL);
        } else if (queued) {
            send_queue_choose_memory_list(q, it);
        }
    }
    send_queue_unlock(q);
}

static bool send_queue_on_give_up(void *arg, struct spool_entry *entry)
{
    struct send_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    struct send_item *it = entry->owner;
    bool in_memory = it == NULL || (it->bytes & ITEM_MEMORY) != 0;
    if (it != NULL && it->bytes == ITEM_BOTH) {
        item_set_on_disk(it, false);
        if (it->memory_list != NULL) {
            send_queue_choose_memory_list(q, it);
        }
    }
    pthread_mutex_unlock(&q->lock);
    return in_memory;
}

static struct profile *send_queue_on_profile(void *arg, struct spool_entry *entry)
{
    struct send_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    const struct send_item *it = entry->owner;
    struct profile *p = it != NULL && it->profile != NULL ? profile_ref(it->profile) : NULL;
    pthread_mutex_unlock(&q->lock);
    return p;
}

/* Queues an item that could not be read again, or drops it. */
static void not_loaded(struct send_queue *q, struct send_item *it, enum spool_load result,
                       int64_t now_ms)
{
    bool may_pass = result == SPOOL_LOAD_FAILED || result == SPOOL_LOAD_MEMORY;
    send_queue_land(q, it);
    if (!may_pass || ++it->history.load_failures >= SEND_QUEUE_LOADS_MAX) {
        enum write_drop reason = result == SPOOL_LOAD_MEMORY ? DROP_MEMORY : DROP_DAMAGED;
        bool lost = result == SPOOL_LOAD_GONE && (it->bytes & ITEM_DISK) == 0;
        send_queue_drop_landed(q, it, lost ? DROP_SPOOL_FULL : reason);
        return;
    }
    q->load_rest_until = now_ms + SEND_QUEUE_LOAD_REST_MS;
    send_queue_enqueue(q, it);
}

static void send_queue_on_loaded(void *arg, struct spool_entry *entry, enum spool_load result,
                                 struct profile *p, int64_t now_ms)
{
    struct send_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    struct send_item *it = entry->owner;
    if (it->state == ITEM_PART_LOADING) {
        send_queue_part_loaded(q, it, p);
        pthread_mutex_unlock(&q->lock);
        return;
    }
    TAILQ_REMOVE(&q->loading, it, link);
    if (p != NULL) {
        item_add_bytes(it, p);
        it->history.load_failures = 0;
        item_become(it, ITEM_LOADED);
        TAILQ_INSERT_TAIL(&q->loaded, it, link);
    } else {
        not_loaded(q, it, result, now_ms);
    }
    send_queue_unlock(q);
}

static void send_queue_on_acknowledged(void *arg, unsigned n)
{
    struct send_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    q->acknowledging -= n;
    pthread_mutex_unlock(&q->lock);
}

/* ---- any thread ------------------------------------------------------------------------------ */

struct spool_events send_queue_spool_events(struct send_queue *q)
{
    return (struct spool_events){
        .arg = q,
        .found = send_queue_on_found,
        .unread_lost = send_queue_on_unread_lost,
        .written = send_queue_on_written,
        .lost = send_queue_on_lost,
        .give_up = send_queue_on_give_up,
        .profile = send_queue_on_profile,
        .loaded = send_queue_on_loaded,
        .acknowledged = send_queue_on_acknowledged,
    };
}

void send_queue_attach(struct send_queue *q, struct spool *spool)
{
    q->spool = spool;
}

void send_queue_stop(struct send_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    q->stopped = true;
    struct send_item *it;
    while ((it = TAILQ_FIRST(&q->loaded)) != NULL) {
        TAILQ_REMOVE(&q->loaded, it, link);
        send_queue_land(q, it);
        send_queue_enqueue(q, it);
    }
    pthread_mutex_unlock(&q->lock);
}

void send_queue_drop_unsafe(struct send_queue *q, enum write_drop reason)
{
    struct send_item *it;
    pthread_mutex_lock(&q->lock);
    while ((it = TAILQ_FIRST(&q->memory_only)) != NULL ||
           (it = TAILQ_FIRST(&q->quarantined)) != NULL) {
        send_queue_drop_queued(q, it, reason);
    }
    send_queue_unlock(q);
}
