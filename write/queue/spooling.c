/* What the spool tells the queue; see endpoint_private.h. All on the spool's thread, but for the
 * functions at the end. */
#include <stdlib.h>

#include "model/profile.h"
#include "write/queue/send_queue_private.h"

/* Of the index: what waits on disk may take half of the memory before more of it is read. */
static bool index_has_room(const struct endpoint *e)
{
    return (e->on_disk_only + 1) * ENDPOINT_INDEX_COST <= e->options.max_bytes / 2;
}

/* The first one in the queue that was not replayed. */
static struct endpoint_item *first_of_this_process(const struct endpoint *e)
{
    struct endpoint_item *at =
        e->last_replayed != NULL ? TAILQ_NEXT(e->last_replayed, send) : TAILQ_FIRST(&e->by_send);
    while (at != NULL && at->seq < e->next_replay_seq) {
        at = TAILQ_NEXT(at, send);
    }
    return at;
}

static bool on_found(void *arg, struct spool_entry *entry)
{
    struct endpoint *e = arg;
    struct endpoint_item *it = NULL;
    pthread_mutex_lock(&e->lock);
    if (!e->closed && index_has_room(e) && endpoint_evict(e, ENDPOINT_INDEX_COST)) {
        it = calloc(1, sizeof(*it));
    }
    if (it != NULL) {
        it->entry = entry;
        it->on_disk = true;
        it->cost = profile_size_cost(entry->head.data_size);
        it->scraped_ms = entry->scraped_ms;
        it->seq = e->next_replay_seq++;
        entry->owner = it;
        e->ledger.replayed++;
        endpoint_enqueue(e, it, first_of_this_process(e));
        e->last_replayed = it;
    }
    pthread_mutex_unlock(&e->lock);
    return it != NULL;
}

static void on_unread_lost(void *arg, bool for_memory)
{
    struct endpoint *e = arg;
    pthread_mutex_lock(&e->lock);
    e->ledger.replayed++;
    e->ledger.dropped[for_memory ? DROP_MEMORY : DROP_SPOOL_FULL]++;
    pthread_mutex_unlock(&e->lock);
}

/* Queued, with its bytes. One in flight is in no list: its place is found when it comes back. */
static bool has_kept(const struct endpoint_item *it)
{
    return it->memory != NULL;
}

static void on_written(void *arg, struct spool_entry *entry)
{
    struct endpoint *e = arg;
    pthread_mutex_lock(&e->lock);
    struct endpoint_item *it = entry->owner;
    if (it != NULL) {
        it->on_disk = true;
        if (has_kept(it)) {
            endpoint_keep(e, it);
        }
    }
    pthread_mutex_unlock(&e->lock);
}

static void on_lost(void *arg, struct spool_entry *entry)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    struct endpoint *e = arg;
    pthread_mutex_lock(&e->lock);
    struct endpoint_item *it = entry->owner;
    if (it != NULL && it->on_disk) {
        it->on_disk = false;
        if (has_kept(it)) {
            endpoint_keep(e, it);
        } else if (it->profile == NULL && !it->loading) {
            endpoint_kill_queued(e, it, DROP_SPOOL_FULL, &dead);
        }
    }
    pthread_mutex_unlock(&e->lock);
    endpoint_bury(&dead);
}

/* Where an item goes that could not be loaded. */
static void not_loaded(struct endpoint *e, struct endpoint_item *it, enum spool_load result,
                       struct item_list *dead)
{
    bool passing = result == SPOOL_LOAD_FAILED || result == SPOOL_LOAD_MEMORY;
    endpoint_land(e, it);
    if (!passing || ++it->load_failures >= ENDPOINT_LOADS_MAX) {
        endpoint_kill(e, it,
                      result == SPOOL_LOAD_GONE && !it->on_disk ? DROP_SPOOL_FULL
                      : result == SPOOL_LOAD_MEMORY             ? DROP_MEMORY
                                                                : DROP_DAMAGED,
                      dead);
        return;
    }
    e->load_rest_until = clock_mono_ms() + ENDPOINT_LOAD_REST_MS;
    endpoint_put_back(e, it);
}

static void on_loaded(void *arg, struct spool_entry *entry, enum spool_load result,
                      struct profile *p)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    struct endpoint *e = arg;
    pthread_mutex_lock(&e->lock);
    struct endpoint_item *it = entry->owner;
    TAILQ_REMOVE(&e->loading, it, send);
    it->loading = false;
    if (p != NULL) {
        it->profile = p;
        it->load_failures = 0;
        TAILQ_INSERT_TAIL(&e->loaded, it, send);
    } else {
        not_loaded(e, it, result, &dead);
    }
    pthread_mutex_unlock(&e->lock);
    endpoint_bury(&dead);
}

static void on_acknowledged(void *arg, unsigned n)
{
    struct endpoint *e = arg;
    pthread_mutex_lock(&e->lock);
    e->acknowledging -= n;
    pthread_mutex_unlock(&e->lock);
}

/* ---- any thread ------------------------------------------------------------------------------ */

struct spool_events endpoint_spool_events(struct endpoint *e)
{
    return (struct spool_events){
        .arg = e,
        .found = on_found,
        .unread_lost = on_unread_lost,
        .written = on_written,
        .lost = on_lost,
        .loaded = on_loaded,
        .acknowledged = on_acknowledged,
    };
}

void endpoint_attach(struct endpoint *e, struct spool *spool)
{
    e->spool = spool;
}

void endpoint_stop(struct endpoint *e)
{
    pthread_mutex_lock(&e->lock);
    e->closed = true;
    e->stopped = true;
    struct endpoint_item *it;
    while ((it = TAILQ_FIRST(&e->loaded)) != NULL) {
        TAILQ_REMOVE(&e->loaded, it, send);
        endpoint_land(e, it);
        endpoint_put_back(e, it);
    }
    pthread_mutex_unlock(&e->lock);
}

void endpoint_drop_unsafe(struct endpoint *e, enum write_drop reason)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    struct endpoint_item *it;
    pthread_mutex_lock(&e->lock);
    while ((it = TAILQ_FIRST(&e->bare)) != NULL) {
        endpoint_kill_queued(e, it, reason, &dead);
    }
    pthread_mutex_unlock(&e->lock);
    endpoint_bury(&dead);
}
