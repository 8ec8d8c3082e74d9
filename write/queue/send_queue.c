#include "write/queue/send_queue.h"

#include <stdlib.h>

#include "write/queue/send_queue_private.h"
#include "write/request.h"

static void init_lists(struct send_queue *q)
{
    TAILQ_INIT(&q->by_age);
    TAILQ_INIT(&q->memory_only);
    TAILQ_INIT(&q->quarantined);
    TAILQ_INIT(&q->evictable);
    TAILQ_INIT(&q->loading);
    TAILQ_INIT(&q->loaded);
    TAILQ_INIT(&q->merging);
    TAILQ_INIT(&q->finished);
    TAILQ_INIT(&q->thinnable);
}

struct send_queue *send_queue_new(const struct config_endpoint *config, uint64_t seed)
{
    struct send_queue *q = calloc(1, sizeof(*q));
    if (q == NULL || !lanes_init(&q->lanes)) {
        free(q);
        return NULL;
    }
    q->config = config;
    q->end = DROP_SHUTDOWN;
    pthread_mutex_init(&q->lock, NULL);
    init_lists(q);
    q->groups = map_new();
    if (q->groups == NULL) {
        lanes_done(&q->lanes);
        pthread_mutex_destroy(&q->lock);
        free(q);
        return NULL;
    }
    backoff_init(&q->backoff);
    /* Profiles of an earlier process come before all others. */
    q->next_seq = UINT64_C(1) << 62;
    rng_seed(&q->rng, seed);
    return q;
}

/* Frees the items of a list. Their bytes on disk stay there: the spool owns the entries. A sender
 * that still waits for one of them has to send it again. */
static void free_items(struct item_list *list)
{
    struct send_item *it;
    while ((it = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, it, link);
        if (it->entry != NULL) {
            it->entry->owner = NULL;
        }
        if (it->receipt != NULL) {
            receipt_end(it->receipt, false);
        }
        profile_unref(it->profile);
        free(it);
    }
}

struct send_queue *send_queue_free(struct send_queue *q)
{
    if (q == NULL) {
        return NULL;
    }
    struct send_item *it;
    for (it = TAILQ_FIRST(&q->by_age); it != NULL; it = TAILQ_NEXT(it, age)) {
        TAILQ_INSERT_TAIL(&q->finished, it, link);
    }
    free_items(&q->finished);
    free_items(&q->loading);
    free_items(&q->loaded);
    send_queue_free_job(q);
    free_items(&q->merging);
    send_queue_free_groups(q);
    lanes_done(&q->lanes);
    pthread_mutex_destroy(&q->lock);
    free(q);
    return NULL;
}

struct profile *send_item_profile(const struct send_item *it)
{
    return it->profile;
}

unsigned send_item_attempt(const struct send_item *it)
{
    return it->history.attempts;
}

unsigned send_item_note(const struct send_item *it)
{
    return it->note;
}

void send_item_set_note(struct send_item *it, unsigned note)
{
    it->note = note;
}

/* ---- the lists; under the lock --------------------------------------------------------------- */

/* Returns true if the walk to the place of an item by age is shorter from the front. */
static bool is_early(const struct send_item *first, const struct send_item *it,
                     const struct send_item *last)
{
    return it->scraped_ms - first->scraped_ms < last->scraped_ms - it->scraped_ms;
}

/* Walks forward from an item that is not younger than `it` to the first one that is. */
static struct send_item *younger_after(struct send_item *at, const struct send_item *it)
{
    while (at->scraped_ms <= it->scraped_ms) {
        at = TAILQ_NEXT(at, age);
    }
    return at;
}

/* Walks back from an item that is younger than `it` to the first one that is. */
static struct send_item *younger_before(struct send_item *at, const struct send_item *it)
{
    struct send_item *before = TAILQ_PREV(at, item_list, age);
    while (before != NULL && before->scraped_ms > it->scraped_ms) {
        at = before;
        before = TAILQ_PREV(at, item_list, age);
    }
    return at;
}

static void insert_by_age(struct send_queue *q, struct send_item *it)
{
    /* New items belong at the end, merged ones near it, items that come back from an attempt mostly
     * at the front, and items that are replayed after the last one that was. */
    struct send_item *last = TAILQ_LAST(&q->by_age, item_list);
    if (last == NULL || last->scraped_ms <= it->scraped_ms) {
        TAILQ_INSERT_TAIL(&q->by_age, it, age);
        return;
    }
    struct send_item *first = TAILQ_FIRST(&q->by_age);
    if (q->last_replayed != NULL && q->last_replayed->scraped_ms <= it->scraped_ms) {
        first = q->last_replayed;
    }
    struct send_item *at =
        is_early(first, it, last) ? younger_after(first, it) : younger_before(last, it);
    TAILQ_INSERT_BEFORE(at, it, age);
}

/* Keeps `memory_only` in the order of age. */
static void insert_memory_only(struct send_queue *q, struct send_item *it)
{
    struct send_item *at = TAILQ_LAST(&q->memory_only, item_list);
    if (at == NULL || at->scraped_ms <= it->scraped_ms) {
        TAILQ_INSERT_TAIL(&q->memory_only, it, by_memory);
        return;
    }
    if (!is_early(TAILQ_FIRST(&q->memory_only), it, at)) {
        while (at != NULL && at->scraped_ms > it->scraped_ms) {
            at = TAILQ_PREV(at, item_list, by_memory);
        }
    } else {
        at = NULL;
    }
    at = at != NULL ? TAILQ_NEXT(at, by_memory) : TAILQ_FIRST(&q->memory_only);
    while (at->scraped_ms <= it->scraped_ms) {
        at = TAILQ_NEXT(at, by_memory);
    }
    TAILQ_INSERT_BEFORE(at, it, by_memory);
}

/* Keeps `evictable` about in the order of sending: an item that comes back from an attempt is older
 * than one that was just written. */
static void insert_evictable(struct send_queue *q, struct send_item *it)
{
    struct send_item *last = TAILQ_LAST(&q->evictable, item_list);
    if (last != NULL && last->seq > it->seq) {
        TAILQ_INSERT_HEAD(&q->evictable, it, by_memory);
    } else {
        TAILQ_INSERT_TAIL(&q->evictable, it, by_memory);
    }
}

static void leave_memory_list(struct send_queue *q, struct send_item *it)
{
    if (it->memory_list == &q->evictable) {
        q->evictable_bytes -= it->cost;
    } else if (it->memory_list != NULL) {
        it->lane->held -= it->cost;
    }
    if (it->memory_list != NULL) {
        TAILQ_REMOVE(it->memory_list, it, by_memory);
    }
    it->memory_list = NULL;
}

void send_queue_choose_memory_list(struct send_queue *q, struct send_item *it)
{
    leave_memory_list(q, it);
    if ((it->bytes & ITEM_MEMORY) == 0) {
        return;
    }
    if (it->bytes == ITEM_BOTH) {
        it->memory_list = &q->evictable;
        q->evictable_bytes += it->cost;
        insert_evictable(q, it);
        return;
    }
    it->lane->held += it->cost;
    if (it->history.refusals > 0) {
        it->memory_list = &q->quarantined;
        TAILQ_INSERT_TAIL(&q->quarantined, it, by_memory);
    } else {
        it->memory_list = &q->memory_only;
        insert_memory_only(q, it);
    }
}

uint64_t send_queue_weight(const struct send_item *it)
{
    return (it->bytes & ITEM_MEMORY) != 0 ? it->cost : SEND_QUEUE_INDEX_COST;
}

struct lane *send_queue_lane_of(struct send_queue *q, const struct profile *p)
{
    if (p == NULL) {
        return &q->lanes.unread;
    }
    struct sv label = series_tenant(p->labels, &q->config->external_labels);
    return lanes_of(&q->lanes, request_tenant(q->config, label));
}

void send_queue_choose_lane(struct send_queue *q, struct send_item *it)
{
    struct lane *lane = send_queue_lane_of(q, it->profile);
    if (it->lane == lane) {
        return;
    }
    if (it->lane != NULL) {
        it->lane->items--;
    }
    q->lanes.shared_profiles += lane == &q->lanes.shared;
    lane->items++;
    it->lane = lane;
}

static void unplace(struct send_queue *q, struct send_item *it)
{
    if (it->heap == &q->waiting) {
        heap_remove(it->heap, &it->order);
        q->n_waiting--;
    } else if (it->heap != NULL) {
        lanes_remove(&q->lanes, it->lane, it->heap, &it->order);
    }
    it->heap = NULL;
}

static void place_in_lane(struct send_queue *q, struct send_item *it)
{
    struct heap *from = it->heap;
    it->heap = (it->bytes & ITEM_MEMORY) != 0 ? &it->lane->memory : &it->lane->disk;
    if (from == NULL) {
        it->order.key = it->seq;
        lanes_add(&q->lanes, it->lane, it->heap, &it->order);
    } else {
        /* The lane keeps its turn. */
        heap_remove(from, &it->order);
        heap_add(it->heap, &it->order);
    }
}

void send_queue_place(struct send_queue *q, struct send_item *it)
{
    bool waits = it->wait_until != 0;
    if (waits || it->heap == &q->waiting) {
        unplace(q, it);
    }
    if (waits) {
        it->heap = &q->waiting;
        it->order.key = (uint64_t)it->wait_until;
        heap_add(it->heap, &it->order);
        q->n_waiting++;
    } else {
        place_in_lane(q, it);
    }
    enum item_state state = waits ? ITEM_WAITING : ITEM_QUEUED;
    if (it->state != state) {
        item_become(it, state);
    }
}

void send_queue_enqueue(struct send_queue *q, struct send_item *it)
{
    if (it->lane == NULL) {
        send_queue_choose_lane(q, it);
    }
    send_queue_place(q, it);
    insert_by_age(q, it);
    send_queue_choose_memory_list(q, it);
    q->ledger.queued++;
    q->ledger.queued_bytes += send_queue_weight(it);
    q->on_disk_only += (it->bytes & ITEM_MEMORY) == 0;
    send_queue_add_part(q, it);
}

void send_queue_dequeue(struct send_queue *q, struct send_item *it)
{
    if (q->last_replayed == it) {
        q->last_replayed = NULL;
    }
    unplace(q, it);
    TAILQ_REMOVE(&q->by_age, it, age);
    leave_memory_list(q, it);
    q->ledger.queued--;
    q->ledger.queued_bytes -= send_queue_weight(it);
    q->on_disk_only -= (it->bytes & ITEM_MEMORY) == 0;
    send_queue_remove_part(q, it);
}

void send_queue_forget(struct send_queue *q, struct send_item *it)
{
    if (it->lane != NULL) {
        it->lane->items--;
    }
    it->lane = NULL;
    TAILQ_INSERT_TAIL(&q->finished, it, link);
    item_become(it, ITEM_FINISHED);
}

bool send_queue_release(struct send_queue *q, struct send_item *it, bool hold)
{
    struct spool_entry *entry = it->entry;
    it->entry = NULL;
    if (entry == NULL) {
        return false;
    }
    entry->owner = NULL;
    return spool_release(q->spool, entry, hold);
}

/* Returns true for reasons that would apply again if the sender sent the same profile again. */
static bool is_for_good(enum write_drop reason)
{
    static const bool for_good[WRITE_DROPS] = {
        [DROP_REJECTED] = true, [DROP_RETRIES] = true, [DROP_LABELS] = true,
        [DROP_FORMAT] = true,   [DROP_EMPTY] = true,   [DROP_TOO_LARGE] = true,
        [DROP_TOO_OLD] = true,  [DROP_BURST] = true,
    };
    return for_good[reason];
}

void send_queue_drop_landed(struct send_queue *q, struct send_item *it, enum write_drop reason)
{
    if (is_for_good(reason)) {
        item_acknowledge(it);
    }
    q->ledger.dropped[reason]++;
    (void)send_queue_release(q, it, false);
    send_queue_forget(q, it);
}

void send_queue_drop_queued(struct send_queue *q, struct send_item *it, enum write_drop reason)
{
    send_queue_dequeue(q, it);
    send_queue_drop_landed(q, it, reason);
}

void send_queue_unlock(struct send_queue *q)
{
    struct item_list finished = TAILQ_HEAD_INITIALIZER(finished);
    struct send_item *it;
    for (it = TAILQ_FIRST(&q->finished); it != NULL; it = TAILQ_NEXT(it, link)) {
        send_queue_leave(q, it);
    }
    TAILQ_CONCAT(&finished, &q->finished, link);
    pthread_mutex_unlock(&q->lock);
    free_items(&finished);
}

void send_queue_expire(struct send_queue *q, int64_t now_ms)
{
    struct send_item *it;
    int64_t max_age_ms = q->config->max_age_ms > 0 ? q->config->max_age_ms : INT64_MAX;
    while ((it = TAILQ_FIRST(&q->by_age)) != NULL && now_ms - it->scraped_ms >= max_age_ms) {
        send_queue_drop_queued(q, it, DROP_EXPIRED);
    }
}

/* ---- putting --------------------------------------------------------------------------------- */

uint64_t send_queue_held(const struct send_queue *q)
{
    return q->ledger.queued_bytes + q->in_flight_bytes - q->evictable_bytes;
}

static bool has_room(const struct send_queue *q, uint64_t cost)
{
    return q->ledger.queued_bytes + q->in_flight_bytes + cost <= q->config->queue_max_bytes;
}

bool send_queue_evict(struct send_queue *q, uint64_t n)
{
    struct send_item *it;
    while (!has_room(q, n) && (it = TAILQ_LAST(&q->evictable, item_list)) != NULL) {
        leave_memory_list(q, it);
        q->ledger.queued_bytes -= send_queue_weight(it);
        item_evict_bytes(it);
        q->ledger.queued_bytes += send_queue_weight(it);
        q->on_disk_only++;
        send_queue_place(q, it);
    }
    return has_room(q, n);
}

/* Finishes an item that has not been queued. */
static enum send_put refuse(struct send_queue *q, struct send_item *it, enum write_drop reason)
{
    enum send_put result = SEND_REFUSED;
    if (it->profile->receipt != NULL) {
        receipt_fail(it->profile->receipt);
    }
    if (reason != DROP_QUEUE_FULL || !it->profile->refusable) {
        q->ledger.accepted++;
        q->ledger.dropped[reason]++;
        result = SEND_LOST;
    }
    spool_entry_free(it->entry);
    it->entry = NULL;
    send_queue_forget(q, it);
    return result;
}

/* Returns true if there is room for a new item. A pushed one never takes the room of others,
 * neither in memory nor on disk: if it is refused, its sender tries again. */
static bool find_room(struct send_queue *q, const struct send_item *it)
{
    if (!it->is_pushed) {
        return send_queue_make_room(q, it->lane, it->cost);
    }
    return it->lane->held + it->cost <= send_queue_share(q) && send_queue_evict(q, it->cost) &&
           (it->entry == NULL || spool_has_room(q->spool));
}

static enum send_put put_item(struct send_queue *q, struct send_item *it, uint64_t key,
                              int64_t now_ms)
{
    uint64_t max = q->config->queue_max_bytes;
    if (q->closed) {
        return refuse(q, it, q->end);
    }
    send_queue_join(q, it, it->profile->labels, key);
    send_queue_choose_lane(q, it);
    if (!it->is_delta && !it->is_pushed && send_queue_is_thinned(q, it)) {
        return refuse(q, it, DROP_THINNED);
    }
    /* There would be no room even if all queued profiles were dropped. */
    if (it->cost > max || q->in_flight_bytes > max - it->cost) {
        return refuse(q, it, DROP_QUEUE_FULL);
    }
    send_queue_expire(q, now_ms);
    if (!find_room(q, it)) {
        return refuse(q, it, DROP_QUEUE_FULL);
    }
    q->ledger.accepted++;
    it->seq = q->next_seq++;
    if (it->profile->receipt != NULL) {
        it->receipt = it->profile->receipt;
        receipt_add(it->receipt);
    }
    send_queue_enqueue(q, it);
    if (it->entry != NULL) {
        it->entry->owner = it;
        spool_submit(q->spool, it->entry, now_ms);
    }
    return SEND_TAKEN;
}

enum send_put send_queue_put(struct send_queue *q, struct profile *p, int64_t now_ms)
{
    enum send_put result = p->refusable ? SEND_REFUSED : SEND_LOST;
    struct send_item *it = calloc(1, sizeof(*it));
    uint64_t key = send_group_key(p->labels, p->format, p->is_delta);
    /* If no entry can be allocated, the profile stays in memory only. */
    struct spool_entry *entry = it != NULL && q->spool != NULL ? spool_entry_new(p) : NULL;
    pthread_mutex_lock(&q->lock);
    if (it != NULL) {
        item_add_bytes(it, p);
        it->entry = entry;
        it->cost = profile_cost(p);
        it->scraped_ms = p->scraped_ms;
        it->is_delta = p->is_delta && p->format == PROFILE_PPROF;
        it->is_pushed = p->is_pushed;
        result = put_item(q, it, key, now_ms);
    } else if (result == SEND_LOST) {
        q->ledger.accepted++;
        q->ledger.dropped[DROP_MEMORY]++;
    }
    send_queue_unlock(q);
    if (it == NULL && p->receipt != NULL) {
        receipt_fail(p->receipt);
    }
    if (it == NULL) {
        profile_unref(p);
    }
    return result;
}

void send_queue_refused(struct send_queue *q, bool lost)
{
    pthread_mutex_lock(&q->lock);
    if (lost) {
        q->ledger.accepted++;
        q->ledger.dropped[DROP_QUEUE_FULL]++;
    } else {
        q->ledger.refused++;
    }
    pthread_mutex_unlock(&q->lock);
}

/* ---- another configuration ------------------------------------------------------------------- */

/* Puts a queued item into the lane of its tenant, which may have changed. If its bytes are only on
 * disk, its tenant is found when they are read. */
static void choose_again(struct send_queue *q, struct send_item *it)
{
    bool held = it->memory_list != NULL && it->memory_list != &q->evictable;
    it->wait_until = 0;
    it->asked_until = 0;
    unplace(q, it);
    if (it->profile != NULL) {
        it->lane->held -= held ? it->cost : 0;
        send_queue_choose_lane(q, it);
        it->lane->held += held ? it->cost : 0;
    }
    send_queue_place(q, it);
}

void send_queue_configure(struct send_queue *q, const struct config_endpoint *config)
{
    struct send_item *it = NULL;
    pthread_mutex_lock(&q->lock);
    q->config = config;
    TAILQ_FOREACH(it, &q->by_age, age)
    {
        choose_again(q, it);
    }
    pthread_mutex_unlock(&q->lock);
}

void send_queue_end_rests(struct send_queue *q)
{
    struct lane *lane = NULL;
    pthread_mutex_lock(&q->lock);
    backoff_end_rest(&q->backoff);
    TAILQ_FOREACH(lane, &q->lanes.all, link)
    {
        backoff_end_rest(&lane->backoff);
    }
    backoff_end_rest(&q->lanes.shared.backoff);
    pthread_mutex_unlock(&q->lock);
}

/* ---- the state ------------------------------------------------------------------------------- */

struct write_ledger send_queue_final(struct send_queue *q, enum write_drop reason)
{
    pthread_mutex_lock(&q->lock);
    struct write_ledger l = q->ledger;
    pthread_mutex_unlock(&q->lock);
    l.dropped[reason] += l.queued + l.in_flight;
    l.queued = l.in_flight = l.queued_bytes = 0;
    return l;
}

struct send_queue_status send_queue_status(struct send_queue *q)
{
    pthread_mutex_lock(&q->lock);
    const struct send_item *oldest = TAILQ_FIRST(&q->by_age);
    struct send_queue_status s = {.ledger = q->ledger,
                                  .in_flight_bytes = q->in_flight_bytes,
                                  .oldest_ms = oldest != NULL ? oldest->scraped_ms : INT64_MAX,
                                  .on_disk_only = q->on_disk_only,
                                  .waiting = q->n_waiting,
                                  .shared = q->lanes.shared_profiles,
                                  .failures = q->backoff.failures,
                                  .probing = q->backoff.probing,
                                  .lanes = lanes_count(&q->lanes)};
    pthread_mutex_unlock(&q->lock);
    return s;
}
