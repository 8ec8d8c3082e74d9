#include "write/queue/send_queue.h"

#include <stdlib.h>

#include "write/queue/send_queue_private.h"

struct endpoint *endpoint_new(const struct endpoint_options *options)
{
    struct endpoint *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return NULL;
    }
    e->options = *options;
    if (e->options.concurrency == 0) {
        e->options.concurrency = 1;
    }
    if (e->options.min_backoff_ms < 1) {
        e->options.min_backoff_ms = 1;
    }
    if (e->options.max_backoff_ms < e->options.min_backoff_ms) {
        e->options.max_backoff_ms = e->options.min_backoff_ms;
    }
    pthread_mutex_init(&e->lock, NULL);
    TAILQ_INIT(&e->by_send);
    TAILQ_INIT(&e->by_age);
    TAILQ_INIT(&e->bare);
    TAILQ_INIT(&e->backed);
    TAILQ_INIT(&e->loading);
    TAILQ_INIT(&e->loaded);
    e->recovered_ms = INT64_MIN;
    /* Those of an earlier process come before all others. */
    e->next_seq = UINT64_C(1) << 62;
    rng_seed(&e->rng, options->seed);
    return e;
}

/* What is on disk stays there: its entries are the spool's. */
static void forget(struct item_list *list)
{
    struct endpoint_item *it;
    while ((it = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, it, send);
        if (it->entry != NULL) {
            it->entry->owner = NULL;
        }
        profile_unref(it->profile);
        free(it);
    }
}

struct endpoint *endpoint_free(struct endpoint *e)
{
    if (e == NULL) {
        return NULL;
    }
    forget(&e->by_send);
    forget(&e->loading);
    forget(&e->loaded);
    pthread_mutex_destroy(&e->lock);
    free(e);
    return NULL;
}

struct profile *endpoint_item_profile(const struct endpoint_item *it)
{
    return it->profile;
}

unsigned endpoint_item_attempt(const struct endpoint_item *it)
{
    return it->attempts;
}

/* ---- the lists; under the lock --------------------------------------------------------------- */

static void insert_by_age(struct endpoint *e, struct endpoint_item *it)
{
    /* New ones belong at the end, those that come back mostly at the front, and what is read from
     * the disk behind the last of its kind: look there first. */
    struct endpoint_item *at = TAILQ_LAST(&e->by_age, item_list);
    if (at == NULL || at->scraped_ms <= it->scraped_ms) {
        TAILQ_INSERT_TAIL(&e->by_age, it, age);
        return;
    }
    at = TAILQ_FIRST(&e->by_age);
    if (e->last_replayed != NULL && e->last_replayed->scraped_ms <= it->scraped_ms) {
        at = e->last_replayed;
    }
    while (at->scraped_ms <= it->scraped_ms) {
        at = TAILQ_NEXT(at, age);
    }
    TAILQ_INSERT_BEFORE(at, it, age);
}

/* `bare` is in the order of age. */
static void insert_bare(struct endpoint *e, struct endpoint_item *it)
{
    struct endpoint_item *at = TAILQ_LAST(&e->bare, item_list);
    if (at == NULL || at->scraped_ms <= it->scraped_ms) {
        TAILQ_INSERT_TAIL(&e->bare, it, kept);
        return;
    }
    at = TAILQ_FIRST(&e->bare);
    while (at->scraped_ms <= it->scraped_ms) {
        at = TAILQ_NEXT(at, kept);
    }
    TAILQ_INSERT_BEFORE(at, it, kept);
}

/* `backed` is about in the order of sending: what comes back from an attempt is older than what
 * was just written. */
static void insert_backed(struct endpoint *e, struct endpoint_item *it)
{
    struct endpoint_item *last = TAILQ_LAST(&e->backed, item_list);
    if (last != NULL && last->seq > it->seq) {
        TAILQ_INSERT_HEAD(&e->backed, it, kept);
    } else {
        TAILQ_INSERT_TAIL(&e->backed, it, kept);
    }
}

static void unkeep(struct endpoint_item *it)
{
    if (it->memory != NULL) {
        TAILQ_REMOVE(it->memory, it, kept);
    }
    it->memory = NULL;
}

void endpoint_keep(struct endpoint *e, struct endpoint_item *it)
{
    unkeep(it);
    if (it->profile == NULL) {
        return;
    }
    it->memory = it->on_disk ? &e->backed : &e->bare;
    if (it->on_disk) {
        insert_backed(e, it);
    } else {
        insert_bare(e, it);
    }
}

/* Bytes of memory that a queued item takes. */
static uint64_t weight(const struct endpoint_item *it)
{
    return it->profile != NULL ? it->cost : ENDPOINT_INDEX_COST;
}

void endpoint_enqueue(struct endpoint *e, struct endpoint_item *it, struct endpoint_item *before)
{
    if (before != NULL) {
        TAILQ_INSERT_BEFORE(before, it, send);
    } else {
        TAILQ_INSERT_TAIL(&e->by_send, it, send);
    }
    insert_by_age(e, it);
    endpoint_keep(e, it);
    e->ledger.queued++;
    e->ledger.queued_bytes += weight(it);
    e->on_disk_only += it->profile == NULL;
}

void endpoint_dequeue(struct endpoint *e, struct endpoint_item *it)
{
    if (e->last_replayed == it) {
        e->last_replayed = NULL;
    }
    TAILQ_REMOVE(&e->by_send, it, send);
    TAILQ_REMOVE(&e->by_age, it, age);
    unkeep(it);
    e->ledger.queued--;
    e->ledger.queued_bytes -= weight(it);
    e->on_disk_only -= it->profile == NULL;
}

bool endpoint_release(struct endpoint *e, struct endpoint_item *it, bool hold)
{
    struct spool_entry *entry = it->entry;
    it->entry = NULL;
    if (entry == NULL) {
        return false;
    }
    entry->owner = NULL;
    return spool_release(e->spool, entry, hold);
}

void endpoint_kill(struct endpoint *e, struct endpoint_item *it, enum write_drop reason,
                   struct item_list *dead)
{
    e->ledger.dropped[reason]++;
    (void)endpoint_release(e, it, false);
    TAILQ_INSERT_TAIL(dead, it, send);
}

void endpoint_kill_queued(struct endpoint *e, struct endpoint_item *it, enum write_drop reason,
                          struct item_list *dead)
{
    endpoint_dequeue(e, it);
    endpoint_kill(e, it, reason, dead);
}

void endpoint_bury(struct item_list *dead)
{
    struct endpoint_item *it;
    while ((it = TAILQ_FIRST(dead)) != NULL) {
        TAILQ_REMOVE(dead, it, send);
        profile_unref(it->profile);
        free(it);
    }
}

static bool is_expired(const struct endpoint *e, const struct endpoint_item *it, int64_t now_ms)
{
    return e->options.max_age_ms > 0 && now_ms - it->scraped_ms >= e->options.max_age_ms;
}

static void expire(struct endpoint *e, int64_t now_ms, struct item_list *dead)
{
    struct endpoint_item *it;
    while ((it = TAILQ_FIRST(&e->by_age)) != NULL && is_expired(e, it, now_ms)) {
        endpoint_kill_queued(e, it, DROP_EXPIRED, dead);
    }
}

/* ---- putting --------------------------------------------------------------------------------- */

static bool has_room(const struct endpoint *e, uint64_t cost)
{
    return e->ledger.queued_bytes + e->in_flight_bytes + cost <= e->options.max_bytes;
}

bool endpoint_evict(struct endpoint *e, uint64_t n)
{
    struct endpoint_item *it;
    while (!has_room(e, n) && (it = TAILQ_LAST(&e->backed, item_list)) != NULL) {
        unkeep(it);
        e->ledger.queued_bytes -= weight(it);
        it->profile = profile_unref(it->profile);
        e->ledger.queued_bytes += weight(it);
        e->on_disk_only++;
    }
    return has_room(e, n);
}

/* Makes room whatever it takes: first of what is in memory alone, then of what is on disk, for that
 * has its price in memory too. */
static void make_room(struct endpoint *e, uint64_t n, struct item_list *dead)
{
    while (!endpoint_evict(e, n)) {
        struct endpoint_item *oldest = TAILQ_FIRST(&e->bare);
        if (oldest == NULL) {
            oldest = TAILQ_FIRST(&e->by_age);
        }
        endpoint_kill_queued(e, oldest, DROP_QUEUE_FULL, dead);
    }
}

/* Why the newcomer cannot be queued even if all others went; false if it can. */
static bool refuse(const struct endpoint *e, uint64_t cost, enum write_drop *ret_reason)
{
    if (e->closed) {
        *ret_reason = DROP_SHUTDOWN;
        return true;
    }
    *ret_reason = DROP_QUEUE_FULL;
    return cost > e->options.max_bytes || e->in_flight_bytes > e->options.max_bytes - cost;
}

static void put_item(struct endpoint *e, struct endpoint_item *it, int64_t now_ms,
                     struct item_list *dead)
{
    enum write_drop reason;
    e->ledger.accepted++;
    if (refuse(e, it->cost, &reason)) {
        e->ledger.dropped[reason]++;
        spool_entry_free(it->entry);
        it->entry = NULL;
        TAILQ_INSERT_TAIL(dead, it, send);
        return;
    }
    expire(e, now_ms, dead);
    make_room(e, it->cost, dead);
    it->seq = e->next_seq++;
    endpoint_enqueue(e, it, NULL);
    if (it->entry != NULL) {
        it->entry->owner = it;
        spool_submit(e->spool, it->entry, now_ms);
    }
}

void endpoint_put(struct endpoint *e, struct profile *p, int64_t now_ms)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    struct endpoint_item *it = calloc(1, sizeof(*it));
    /* Without an entry, for want of memory, it is in memory only. */
    struct spool_entry *entry = it != NULL && e->spool != NULL ? spool_entry_new(p) : NULL;
    pthread_mutex_lock(&e->lock);
    if (it != NULL) {
        it->profile = p;
        it->entry = entry;
        it->cost = profile_cost(p);
        it->scraped_ms = p->scraped_ms;
        put_item(e, it, now_ms, &dead);
    } else {
        e->ledger.accepted++;
        e->ledger.dropped[DROP_MEMORY]++;
    }
    pthread_mutex_unlock(&e->lock);
    if (it == NULL) {
        profile_unref(p);
    }
    endpoint_bury(&dead);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Whether behind an outage this many may be in flight already. */
static bool is_paced(const struct endpoint *e, int64_t now_ms)
{
    if (e->recovered_ms == INT64_MIN || e->draining) {
        return false;
    }
    int64_t steps = (now_ms - e->recovered_ms) / ENDPOINT_PACE_MS;
    return steps < 16 && e->ledger.in_flight >= UINT64_C(1) << (steps > 0 ? steps : 0);
}

static bool has_slot(const struct endpoint *e)
{
    return e->ledger.in_flight + e->acknowledging < e->options.concurrency;
}

static bool may_send(const struct endpoint *e, int64_t now_ms)
{
    if (e->stopped || !has_slot(e) || is_paced(e, now_ms)) {
        return false;
    }
    return e->failures == 0 || (!e->probing && now_ms >= e->rest_until);
}

/* The one that has waited longest among those with their bytes in memory. */
static struct endpoint_item *first_in_memory(const struct endpoint *e)
{
    struct endpoint_item *a = TAILQ_FIRST(&e->bare);
    struct endpoint_item *b = TAILQ_FIRST(&e->backed);
    return a == NULL || (b != NULL && b->seq < a->seq) ? b : a;
}

/* What is to be sent next: the head of the queue, or, if that is on disk and cannot be read now,
 * the first one in memory. */
static struct endpoint_item *next_to_send(struct endpoint *e, int64_t now_ms)
{
    struct endpoint_item *it = TAILQ_FIRST(&e->by_send);
    if (now_ms >= e->load_rest_until) {
        e->load_rest_until = 0;
    }
    if (it == NULL || it->profile != NULL) {
        return it;
    }
    /* Its place in the index is free when it is taken. */
    uint64_t more = it->cost > ENDPOINT_INDEX_COST ? it->cost - ENDPOINT_INDEX_COST : 0;
    bool rests = e->load_rest_until != 0;
    bool fits = !rests && endpoint_evict(e, more);
    /* Nothing else takes memory: then this one may, however large it is. */
    bool alone = !rests && TAILQ_EMPTY(&e->bare) && e->ledger.in_flight == 0;
    return fits || alone ? it : first_in_memory(e);
}

/* Takes a queued item into flight. */
static void take_off(struct endpoint *e, struct endpoint_item *it)
{
    endpoint_dequeue(e, it);
    e->ledger.in_flight++;
    e->in_flight_bytes += it->cost;
    it->probe = e->failures > 0;
    e->probing = e->probing || it->probe;
}

/* One that has come from the disk, unless the endpoint began to fail meanwhile. */
static struct endpoint_item *take_loaded(struct endpoint *e)
{
    struct endpoint_item *it;
    while ((it = TAILQ_FIRST(&e->loaded)) != NULL) {
        TAILQ_REMOVE(&e->loaded, it, send);
        if (!e->stopped && (e->failures == 0 || it->probe)) {
            return it;
        }
        endpoint_land(e, it);
        endpoint_put_back(e, it);
    }
    return NULL;
}

/* The next one with its bytes; asks the disk for those of others on the way. */
static struct endpoint_item *take(struct endpoint *e, int64_t now_ms)
{
    struct endpoint_item *it = take_loaded(e);
    if (it != NULL) {
        return it;
    }
    while (may_send(e, now_ms) && (it = next_to_send(e, now_ms)) != NULL) {
        take_off(e, it);
        if (it->profile != NULL) {
            return it;
        }
        it->loading = true;
        TAILQ_INSERT_TAIL(&e->loading, it, send);
        spool_load(e->spool, it->entry);
    }
    return NULL;
}

struct endpoint_item *endpoint_take(struct endpoint *e, int64_t now_ms)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    pthread_mutex_lock(&e->lock);
    expire(e, now_ms, &dead);
    struct endpoint_item *it = take(e, now_ms);
    if (it != NULL) {
        it->attempts++;
        it->generation = e->generation;
    }
    pthread_mutex_unlock(&e->lock);
    endpoint_bury(&dead);
    return it;
}

void endpoint_land(struct endpoint *e, struct endpoint_item *it)
{
    e->ledger.in_flight--;
    e->in_flight_bytes -= it->cost;
    if (it->probe) {
        e->probing = false;
    }
    it->probe = false;
}

/* The rest behind the present failure. */
static int64_t backoff_ms(struct endpoint *e)
{
    int64_t high = e->options.min_backoff_ms;
    for (unsigned i = 0; i < e->failures && high < e->options.max_backoff_ms; i++) {
        high = high < INT64_MAX / 2 ? 2 * high : INT64_MAX;
    }
    int64_t low = high / 2;
    /* At the cap as well there is jitter: many of us may wait for one server. */
    if (high > e->options.max_backoff_ms) {
        high = e->options.max_backoff_ms;
        low = low < high / 2 ? low : high / 2;
    }
    int64_t wait = rng_range(&e->rng, low, high);
    return wait > ENDPOINT_WAIT_MIN_MS ? wait : ENDPOINT_WAIT_MIN_MS;
}

static void rest(struct endpoint *e, int64_t wait_ms, int64_t now_ms)
{
    if (e->draining && wait_ms > ENDPOINT_DRAIN_WAIT_MS) {
        wait_ms = ENDPOINT_DRAIN_WAIT_MS;
    }
    if (e->rest_until < now_ms + wait_ms) {
        e->rest_until = now_ms + wait_ms;
    }
}

/* What an attempt tells about the endpoint. True if it has recovered. */
static bool judge(struct endpoint *e, const struct endpoint_item *it, const struct answer *a,
                  int64_t now_ms)
{
    bool failed = a->class == ANSWER_RETRY || a->class == ANSWER_RETRY_DOUBTFUL;
    bool current = it->generation == e->generation;
    if (!failed && current && e->failures > 0) {
        e->failures = 0;
        e->rest_until = 0;
        e->recovered_ms = now_ms;
        return true;
    }
    if (!failed) {
        return false;
    }
    if (current) {
        e->failures += e->failures < 1000000;
        e->generation++;
        rest(e, backoff_ms(e), now_ms);
    }
    if (e->failures > 0) {
        rest(e, a->delay_ms, now_ms);
    }
    return false;
}

/* The first queued profile that arrived later. */
static struct endpoint_item *first_younger(const struct endpoint *e, const struct endpoint_item *it)
{
    struct endpoint_item *at = TAILQ_FIRST(&e->by_send);
    while (at != NULL && at->seq < it->seq) {
        at = TAILQ_NEXT(at, send);
    }
    return at;
}

void endpoint_put_back(struct endpoint *e, struct endpoint_item *it)
{
    endpoint_enqueue(e, it, first_younger(e, it));
}

static void send_again(struct endpoint *e, struct endpoint_item *it, const struct answer *a)
{
    if (!a->answered) {
        it->unanswered++;
    }
    if (!a->answered && it->unanswered < ENDPOINT_UNANSWERED_MAX) {
        endpoint_put_back(e, it);
    } else {
        endpoint_enqueue(e, it, NULL);
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
static void settle(struct endpoint *e, struct endpoint_item *it, const struct answer *a,
                   struct endpoint_result *r, struct item_list *dead)
{
    bool enough = a->class == ANSWER_RETRY_DOUBTFUL && ++it->doubts >= a->tries;
    r->fate = FATE_QUEUED;
    if (a->class == ANSWER_SENT) {
        r->fate = FATE_SENT;
        e->ledger.sent++;
        e->acknowledging += endpoint_release(e, it, true);
        TAILQ_INSERT_TAIL(dead, it, send);
    } else if (a->class == ANSWER_REJECTED || enough) {
        r->fate = FATE_DROPPED;
        r->reason = drop_reason(a, enough);
        endpoint_kill(e, it, r->reason, dead);
    } else {
        send_again(e, it, a);
    }
}

struct endpoint_result endpoint_done(struct endpoint *e, struct endpoint_item *it,
                                     const struct answer *a, int64_t now_ms)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    struct endpoint_result r = {0};
    pthread_mutex_lock(&e->lock);
    endpoint_land(e, it);
    r.recovered = judge(e, it, a, now_ms);
    settle(e, it, a, &r, &dead);
    r.failures = e->failures;
    r.wait_ms = e->failures > 0 && e->rest_until > now_ms ? e->rest_until - now_ms : 0;
    r.queued = e->ledger.queued;
    pthread_mutex_unlock(&e->lock);
    endpoint_bury(&dead);
    return r;
}

void endpoint_drop(struct endpoint *e, struct endpoint_item *it, enum write_drop reason)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    pthread_mutex_lock(&e->lock);
    endpoint_land(e, it);
    endpoint_kill(e, it, reason, &dead);
    pthread_mutex_unlock(&e->lock);
    endpoint_bury(&dead);
}

void endpoint_abandon(struct endpoint *e, struct endpoint_item *it)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    pthread_mutex_lock(&e->lock);
    endpoint_land(e, it);
    if (it->entry != NULL) {
        endpoint_put_back(e, it);
    } else {
        endpoint_kill(e, it, DROP_SHUTDOWN, &dead);
    }
    pthread_mutex_unlock(&e->lock);
    endpoint_bury(&dead);
}

/* ---- time and the end ------------------------------------------------------------------------ */

void endpoint_expire(struct endpoint *e, int64_t now_ms)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    pthread_mutex_lock(&e->lock);
    expire(e, now_ms, &dead);
    pthread_mutex_unlock(&e->lock);
    endpoint_bury(&dead);
}

int64_t endpoint_wake_ms(struct endpoint *e)
{
    int64_t wake = INT64_MAX;
    pthread_mutex_lock(&e->lock);
    const struct endpoint_item *oldest = TAILQ_FIRST(&e->by_age);
    if (oldest != NULL && e->options.max_age_ms > 0) {
        wake = oldest->scraped_ms + e->options.max_age_ms;
    }
    /* A probe or a full set in flight wakes the sender when it is done. */
    bool waits_for_time =
        e->failures > 0 && !e->probing && has_slot(e) && oldest != NULL && !e->stopped;
    if (waits_for_time && e->rest_until < wake) {
        wake = e->rest_until;
    }
    const struct endpoint_item *first = TAILQ_FIRST(&e->by_send);
    bool waits_for_disk =
        first != NULL && first->profile == NULL && e->failures == 0 && has_slot(e);
    if (waits_for_disk && e->load_rest_until != 0 && e->load_rest_until < wake) {
        wake = e->load_rest_until;
    }
    pthread_mutex_unlock(&e->lock);
    return wake;
}

void endpoint_close(struct endpoint *e)
{
    pthread_mutex_lock(&e->lock);
    e->closed = true;
    pthread_mutex_unlock(&e->lock);
}

void endpoint_drain(struct endpoint *e, int64_t now_ms)
{
    pthread_mutex_lock(&e->lock);
    e->closed = true;
    e->draining = true;
    if (e->rest_until > now_ms) {
        e->rest_until = now_ms;
    }
    pthread_mutex_unlock(&e->lock);
}

struct endpoint_status endpoint_status(struct endpoint *e)
{
    pthread_mutex_lock(&e->lock);
    const struct endpoint_item *oldest = TAILQ_FIRST(&e->by_age);
    struct endpoint_status s = {.ledger = e->ledger,
                                .in_flight_bytes = e->in_flight_bytes,
                                .oldest_ms = oldest != NULL ? oldest->scraped_ms : INT64_MAX,
                                .on_disk_only = e->on_disk_only,
                                .failures = e->failures,
                                .probing = e->probing};
    pthread_mutex_unlock(&e->lock);
    return s;
}
