#include "write/queue/send_queue.h"

#include <stdlib.h>

#include "write/queue/send_queue_private.h"

struct send_queue *send_queue_new(const struct config_endpoint *config, uint64_t seed)
{
    struct send_queue *q = calloc(1, sizeof(*q));
    if (q == NULL) {
        return NULL;
    }
    q->config = config;
    pthread_mutex_init(&q->lock, NULL);
    TAILQ_INIT(&q->by_send);
    TAILQ_INIT(&q->by_age);
    TAILQ_INIT(&q->bare);
    TAILQ_INIT(&q->backed);
    TAILQ_INIT(&q->loading);
    TAILQ_INIT(&q->loaded);
    TAILQ_INIT(&q->dropped);
    backoff_init(&q->backoff);
    /* Profiles of an earlier process come before all others. */
    q->next_seq = UINT64_C(1) << 62;
    rng_seed(&q->rng, seed);
    return q;
}

/* What is on disk stays there: the spool owns the entries. */
static void free_items(struct item_list *list)
{
    struct send_item *it;
    while ((it = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, it, send);
        if (it->entry != NULL) {
            it->entry->owner = NULL;
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
    free_items(&q->by_send);
    free_items(&q->loading);
    free_items(&q->loaded);
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
    return it->attempts;
}

/* ---- the lists; under the lock --------------------------------------------------------------- */

static void insert_by_age(struct send_queue *q, struct send_item *it)
{
    /* New ones belong at the end, those that come back mostly at the front, and what is read from
     * the disk after the last of its kind: look there first. */
    struct send_item *at = TAILQ_LAST(&q->by_age, item_list);
    if (at == NULL || at->scraped_ms <= it->scraped_ms) {
        TAILQ_INSERT_TAIL(&q->by_age, it, age);
        return;
    }
    at = TAILQ_FIRST(&q->by_age);
    if (q->last_replayed != NULL && q->last_replayed->scraped_ms <= it->scraped_ms) {
        at = q->last_replayed;
    }
    while (at->scraped_ms <= it->scraped_ms) {
        at = TAILQ_NEXT(at, age);
    }
    TAILQ_INSERT_BEFORE(at, it, age);
}

/* `bare` is in the order of age. */
static void insert_bare(struct send_queue *q, struct send_item *it)
{
    struct send_item *last = TAILQ_LAST(&q->bare, item_list);
    if (last == NULL || last->scraped_ms <= it->scraped_ms) {
        TAILQ_INSERT_TAIL(&q->bare, it, kept);
        return;
    }
    struct send_item *at = TAILQ_FIRST(&q->bare);
    while (at->scraped_ms <= it->scraped_ms) {
        at = TAILQ_NEXT(at, kept);
    }
    TAILQ_INSERT_BEFORE(at, it, kept);
}

/* `backed` is about in the order of sending: what comes back from an attempt is older than what
 * was just written. */
static void insert_backed(struct send_queue *q, struct send_item *it)
{
    struct send_item *last = TAILQ_LAST(&q->backed, item_list);
    if (last != NULL && last->seq > it->seq) {
        TAILQ_INSERT_HEAD(&q->backed, it, kept);
    } else {
        TAILQ_INSERT_TAIL(&q->backed, it, kept);
    }
}

static void unkeep(struct send_item *it)
{
    if (it->memory != NULL) {
        TAILQ_REMOVE(it->memory, it, kept);
    }
    it->memory = NULL;
}

void send_queue_keep(struct send_queue *q, struct send_item *it)
{
    unkeep(it);
    if (it->profile == NULL) {
        return;
    }
    if (it->on_disk) {
        it->memory = &q->backed;
        insert_backed(q, it);
    } else {
        it->memory = &q->bare;
        insert_bare(q, it);
    }
}

/* Bytes of memory that a queued item takes. */
static uint64_t weight(const struct send_item *it)
{
    return it->profile != NULL ? it->cost : SEND_QUEUE_INDEX_COST;
}

void send_queue_enqueue(struct send_queue *q, struct send_item *it, struct send_item *before)
{
    if (before != NULL) {
        TAILQ_INSERT_BEFORE(before, it, send);
    } else {
        TAILQ_INSERT_TAIL(&q->by_send, it, send);
    }
    insert_by_age(q, it);
    send_queue_keep(q, it);
    q->ledger.queued++;
    q->ledger.queued_bytes += weight(it);
    q->on_disk_only += it->profile == NULL;
}

void send_queue_dequeue(struct send_queue *q, struct send_item *it)
{
    if (q->last_replayed == it) {
        q->last_replayed = NULL;
    }
    TAILQ_REMOVE(&q->by_send, it, send);
    TAILQ_REMOVE(&q->by_age, it, age);
    unkeep(it);
    q->ledger.queued--;
    q->ledger.queued_bytes -= weight(it);
    q->on_disk_only -= it->profile == NULL;
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

void send_queue_drop_landed(struct send_queue *q, struct send_item *it, enum write_drop reason)
{
    q->ledger.dropped[reason]++;
    (void)send_queue_release(q, it, false);
    TAILQ_INSERT_TAIL(&q->dropped, it, send);
}

void send_queue_drop_queued(struct send_queue *q, struct send_item *it, enum write_drop reason)
{
    send_queue_dequeue(q, it);
    send_queue_drop_landed(q, it, reason);
}

void send_queue_unlock(struct send_queue *q)
{
    struct item_list dropped = TAILQ_HEAD_INITIALIZER(dropped);
    TAILQ_CONCAT(&dropped, &q->dropped, send);
    pthread_mutex_unlock(&q->lock);
    free_items(&dropped);
}

static void expire(struct send_queue *q, int64_t now_ms)
{
    struct send_item *it;
    int64_t max_age_ms = q->config->max_age_ms > 0 ? q->config->max_age_ms : INT64_MAX;
    while ((it = TAILQ_FIRST(&q->by_age)) != NULL && now_ms - it->scraped_ms >= max_age_ms) {
        send_queue_drop_queued(q, it, DROP_EXPIRED);
    }
}

/* ---- putting --------------------------------------------------------------------------------- */

static bool has_room(const struct send_queue *q, uint64_t cost)
{
    return q->ledger.queued_bytes + q->in_flight_bytes + cost <= q->config->queue_max_bytes;
}

bool send_queue_evict(struct send_queue *q, uint64_t n)
{
    struct send_item *it;
    while (!has_room(q, n) && (it = TAILQ_LAST(&q->backed, item_list)) != NULL) {
        unkeep(it);
        q->ledger.queued_bytes -= weight(it);
        it->profile = profile_unref(it->profile);
        q->ledger.queued_bytes += weight(it);
        q->on_disk_only++;
    }
    return has_room(q, n);
}

/* Makes room in any case: drops first what is only in memory, then what is on disk, which takes
 * memory for its index. */
static void make_room(struct send_queue *q, uint64_t n)
{
    while (!send_queue_evict(q, n)) {
        struct send_item *oldest = TAILQ_FIRST(&q->bare);
        if (oldest == NULL) {
            oldest = TAILQ_FIRST(&q->by_age);
        }
        send_queue_drop_queued(q, oldest, DROP_QUEUE_FULL);
    }
}

/* Gives up an item that is not in the queue yet. */
static enum send_put refuse(struct send_queue *q, struct send_item *it, enum write_drop reason)
{
    enum send_put result = SEND_REFUSED;
    if (reason == DROP_SHUTDOWN || !it->profile->refusable) {
        q->ledger.accepted++;
        q->ledger.dropped[reason]++;
        result = SEND_LOST;
    }
    spool_entry_free(it->entry);
    it->entry = NULL;
    TAILQ_INSERT_TAIL(&q->dropped, it, send);
    return result;
}

static enum send_put put_item(struct send_queue *q, struct send_item *it, int64_t now_ms)
{
    uint64_t max = q->config->queue_max_bytes;
    if (q->closed) {
        return refuse(q, it, DROP_SHUTDOWN);
    }
    /* It cannot be queued even if all others were dropped. */
    if (it->cost > max || q->in_flight_bytes > max - it->cost) {
        return refuse(q, it, DROP_QUEUE_FULL);
    }
    expire(q, now_ms);
    make_room(q, it->cost);
    q->ledger.accepted++;
    it->seq = q->next_seq++;
    send_queue_enqueue(q, it, NULL);
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
    /* If no entry can be allocated, it is in memory only. */
    struct spool_entry *entry = it != NULL && q->spool != NULL ? spool_entry_new(p) : NULL;
    pthread_mutex_lock(&q->lock);
    if (it != NULL) {
        it->profile = p;
        it->entry = entry;
        it->cost = profile_cost(p->size);
        it->scraped_ms = p->scraped_ms;
        result = put_item(q, it, now_ms);
    } else if (result == SEND_LOST) {
        q->ledger.accepted++;
        q->ledger.dropped[DROP_MEMORY]++;
    }
    send_queue_unlock(q);
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

/* ---- sending --------------------------------------------------------------------------------- */

static bool has_slot(const struct send_queue *q)
{
    return q->ledger.in_flight + q->acknowledging < q->config->concurrency;
}

static bool may_send(const struct send_queue *q, int64_t now_ms)
{
    return !q->stopped && has_slot(q) && backoff_may_start(&q->backoff, now_ms);
}

/* The one that has waited longest of those with their bytes in memory. */
static struct send_item *first_in_memory(const struct send_queue *q)
{
    struct send_item *a = TAILQ_FIRST(&q->bare);
    struct send_item *b = TAILQ_FIRST(&q->backed);
    return a == NULL || (b != NULL && b->seq < a->seq) ? b : a;
}

/* The next to be sent: the head of the queue or, if that is on disk and cannot be read now, the
 * first one in memory. */
static struct send_item *next_to_send(struct send_queue *q, int64_t now_ms)
{
    struct send_item *it = TAILQ_FIRST(&q->by_send);
    if (now_ms >= q->load_rest_until) {
        q->load_rest_until = 0;
    }
    if (it == NULL || it->profile != NULL) {
        return it;
    }
    /* Taking it frees its place in the index. */
    uint64_t more = it->cost > SEND_QUEUE_INDEX_COST ? it->cost - SEND_QUEUE_INDEX_COST : 0;
    bool rests = q->load_rest_until != 0;
    bool fits = !rests && send_queue_evict(q, more);
    /* If nothing else takes memory, this one may, however large it is. */
    bool alone = !rests && TAILQ_EMPTY(&q->bare) && q->ledger.in_flight == 0;
    return fits || alone ? it : first_in_memory(q);
}

/* Takes a queued item into flight. */
static void start_sending(struct send_queue *q, struct send_item *it)
{
    send_queue_dequeue(q, it);
    q->ledger.in_flight++;
    q->in_flight_bytes += it->cost;
    backoff_start(&q->backoff, &it->ticket);
}

/* One that was read from disk, unless the endpoint began to fail meanwhile. */
static struct send_item *take_loaded(struct send_queue *q)
{
    struct send_item *it;
    while ((it = TAILQ_FIRST(&q->loaded)) != NULL) {
        TAILQ_REMOVE(&q->loaded, it, send);
        if (!q->stopped && (q->backoff.failures == 0 || it->ticket.probe)) {
            return it;
        }
        send_queue_land(q, it);
        send_queue_put_back(q, it);
    }
    return NULL;
}

/* The next one with its bytes; starts loading those that come before it. */
static struct send_item *take(struct send_queue *q, int64_t now_ms)
{
    struct send_item *it = take_loaded(q);
    if (it != NULL) {
        return it;
    }
    while (may_send(q, now_ms) && (it = next_to_send(q, now_ms)) != NULL) {
        start_sending(q, it);
        if (it->profile != NULL) {
            return it;
        }
        it->loading = true;
        TAILQ_INSERT_TAIL(&q->loading, it, send);
        spool_load(q->spool, it->entry);
    }
    return NULL;
}

struct send_item *send_queue_take(struct send_queue *q, int64_t now_ms)
{
    pthread_mutex_lock(&q->lock);
    expire(q, now_ms);
    struct send_item *it = take(q, now_ms);
    if (it != NULL) {
        it->attempts++;
        backoff_restart(&q->backoff, &it->ticket);
    }
    send_queue_unlock(q);
    return it;
}

void send_queue_land(struct send_queue *q, struct send_item *it)
{
    q->ledger.in_flight--;
    q->in_flight_bytes -= it->cost;
    backoff_land(&q->backoff, &it->ticket);
}

/* Updates the state of the endpoint. True if it has recovered. */
static bool note_answer(struct send_queue *q, const struct send_item *it, const struct answer *a,
                        int64_t now_ms)
{
    struct backoff_times times = {q->config->min_backoff_ms, q->config->max_backoff_ms};
    int64_t asked_ms = a->delay_ms;
    if (a->class == ANSWER_SENT || a->class == ANSWER_REJECTED) {
        bool recovered = backoff_worked(&q->backoff, &it->ticket, now_ms);
        if (q->draining) {
            backoff_hurry(&q->backoff);
        }
        return recovered;
    }
    if (q->draining) {
        times.max_ms =
            times.max_ms < SEND_QUEUE_DRAIN_WAIT_MS ? times.max_ms : SEND_QUEUE_DRAIN_WAIT_MS;
        asked_ms = asked_ms < SEND_QUEUE_DRAIN_WAIT_MS ? asked_ms : SEND_QUEUE_DRAIN_WAIT_MS;
    }
    backoff_failed(&q->backoff, &it->ticket, &times, asked_ms, &q->rng, now_ms);
    return false;
}

void send_queue_put_back(struct send_queue *q, struct send_item *it)
{
    struct send_item *younger = TAILQ_FIRST(&q->by_send);
    while (younger != NULL && younger->seq < it->seq) {
        younger = TAILQ_NEXT(younger, send);
    }
    send_queue_enqueue(q, it, younger);
}

static void send_again(struct send_queue *q, struct send_item *it, const struct answer *a)
{
    if (!a->answered && ++it->unanswered < SEND_QUEUE_UNANSWERED_MAX) {
        send_queue_put_back(q, it);
    } else {
        send_queue_enqueue(q, it, NULL);
    }
}

static enum write_drop drop_reason(const struct answer *a, bool enough)
{
    switch (a->fault) {
    case ANSWER_FAULT_TOO_LARGE:
        return DROP_TOO_LARGE;
    case ANSWER_FAULT_TOO_OLD:
        return DROP_TOO_OLD;
    case ANSWER_FAULT_BURST:
        return DROP_BURST;
    case ANSWER_FAULT_OTHER:
    default:
        return enough ? DROP_RETRIES : DROP_REJECTED;
    }
}

/* Moves the item to where the answer sends it. */
static void settle(struct send_queue *q, struct send_item *it, const struct answer *a,
                   struct send_result *r)
{
    bool enough = a->class == ANSWER_RETRY_DOUBTFUL && ++it->doubts >= a->tries;
    r->outcome = WRITE_RETRIED;
    if (a->class == ANSWER_SENT) {
        r->outcome = WRITE_SENT;
        q->ledger.sent++;
        q->acknowledging += send_queue_release(q, it, true);
        TAILQ_INSERT_TAIL(&q->dropped, it, send);
    } else if (a->class == ANSWER_REJECTED || enough) {
        r->outcome = WRITE_DROPPED;
        r->reason = drop_reason(a, enough);
        send_queue_drop_landed(q, it, r->reason);
    } else {
        send_again(q, it, a);
    }
}

struct send_result send_queue_done(struct send_queue *q, struct send_item *it,
                                   const struct answer *a, int64_t now_ms)
{
    struct send_result r = {0};
    pthread_mutex_lock(&q->lock);
    send_queue_land(q, it);
    r.recovered = note_answer(q, it, a, now_ms);
    settle(q, it, a, &r);
    r.failures = q->backoff.failures;
    r.wait_ms = backoff_wait_ms(&q->backoff, now_ms);
    r.queued = q->ledger.queued;
    send_queue_unlock(q);
    return r;
}

void send_queue_drop(struct send_queue *q, struct send_item *it, enum write_drop reason)
{
    pthread_mutex_lock(&q->lock);
    send_queue_land(q, it);
    send_queue_drop_landed(q, it, reason);
    send_queue_unlock(q);
}

void send_queue_abandon(struct send_queue *q, struct send_item *it)
{
    pthread_mutex_lock(&q->lock);
    send_queue_land(q, it);
    if (it->entry != NULL) {
        send_queue_put_back(q, it);
    } else {
        send_queue_drop_landed(q, it, DROP_SHUTDOWN);
    }
    send_queue_unlock(q);
}

/* ---- time and the end ------------------------------------------------------------------------ */

int64_t send_queue_wake_ms(struct send_queue *q)
{
    int64_t wake = INT64_MAX;
    pthread_mutex_lock(&q->lock);
    const struct send_item *oldest = TAILQ_FIRST(&q->by_age);
    if (oldest != NULL && q->config->max_age_ms > 0) {
        wake = oldest->scraped_ms + q->config->max_age_ms;
    }
    /* A finished probe, or a finished attempt of a full set, wakes the sender anyway. */
    int64_t rest = backoff_wake_ms(&q->backoff);
    if (rest != INT64_MIN && rest < wake && has_slot(q) && oldest != NULL && !q->stopped) {
        wake = rest;
    }
    const struct send_item *first = TAILQ_FIRST(&q->by_send);
    bool waits_for_disk =
        first != NULL && first->profile == NULL && q->backoff.failures == 0 && has_slot(q);
    if (waits_for_disk && q->load_rest_until != 0 && q->load_rest_until < wake) {
        wake = q->load_rest_until;
    }
    pthread_mutex_unlock(&q->lock);
    return wake;
}

void send_queue_close(struct send_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_mutex_unlock(&q->lock);
}

void send_queue_drain(struct send_queue *q, int64_t now_ms)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    q->draining = true;
    backoff_end_rest(&q->backoff, now_ms);
    backoff_hurry(&q->backoff);
    pthread_mutex_unlock(&q->lock);
}

struct send_queue_status send_queue_status(struct send_queue *q)
{
    pthread_mutex_lock(&q->lock);
    const struct send_item *oldest = TAILQ_FIRST(&q->by_age);
    struct send_queue_status s = {.ledger = q->ledger,
                                  .in_flight_bytes = q->in_flight_bytes,
                                  .oldest_ms = oldest != NULL ? oldest->scraped_ms : INT64_MAX,
                                  .on_disk_only = q->on_disk_only,
                                  .failures = q->backoff.failures,
                                  .probing = q->backoff.probing};
    pthread_mutex_unlock(&q->lock);
    return s;
}
