#include "write/endpoint.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"

struct endpoint_item {
    struct profile *profile;
    uint64_t cost;
    uint64_t seq;        /* order of arrival */
    uint64_t generation; /* of the endpoint, when the attempt was started */
    unsigned attempts;
    unsigned unanswered; /* of these, without any answer */
    unsigned doubts;     /* of these, with an answer that may blame the profile */
    bool probe;
    TAILQ_ENTRY(endpoint_item) send;
    TAILQ_ENTRY(endpoint_item) age;
};

TAILQ_HEAD(item_list, endpoint_item);

struct endpoint {
    struct endpoint_options options; /* constant */

    pthread_mutex_t lock;     /* guards all that follows */
    struct item_list by_send; /* queued profiles, in the order of sending */
    struct item_list by_age;  /* the same ones, in the order of scraped_ms */
    uint64_t next_seq;
    struct write_ledger ledger;
    uint64_t in_flight_bytes;
    unsigned failures;   /* in a row; 0 = the endpoint works */
    int64_t rest_until;  /* counts while failures > 0 */
    uint64_t generation; /* changes with every failure that counts */
    bool probing;
    bool closed;
    bool draining;
    struct rng rng;
};

struct endpoint *endpoint_new(const struct endpoint_options *options)
{
    struct endpoint *e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    e->options = *options;
    if (e->options.concurrency == 0)
        e->options.concurrency = 1;
    if (e->options.min_backoff_ms < 1)
        e->options.min_backoff_ms = 1;
    if (e->options.max_backoff_ms < e->options.min_backoff_ms)
        e->options.max_backoff_ms = e->options.min_backoff_ms;
    pthread_mutex_init(&e->lock, NULL);
    TAILQ_INIT(&e->by_send);
    TAILQ_INIT(&e->by_age);
    rng_seed(&e->rng, options->seed);
    return e;
}

struct endpoint *endpoint_free(struct endpoint *e)
{
    if (!e)
        return NULL;
    endpoint_drop_queued(e, DROP_SHUTDOWN);
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
    /* New ones belong at the end, those that come back mostly at the front: look there first. */
    struct endpoint_item *at = TAILQ_LAST(&e->by_age, item_list);
    if (!at || at->profile->scraped_ms <= it->profile->scraped_ms) {
        TAILQ_INSERT_TAIL(&e->by_age, it, age);
        return;
    }
    at = TAILQ_FIRST(&e->by_age);
    while (at->profile->scraped_ms <= it->profile->scraped_ms)
        at = TAILQ_NEXT(at, age);
    TAILQ_INSERT_BEFORE(at, it, age);
}

static void enqueue(struct endpoint *e, struct endpoint_item *it, struct endpoint_item *before)
{
    if (before)
        TAILQ_INSERT_BEFORE(before, it, send);
    else
        TAILQ_INSERT_TAIL(&e->by_send, it, send);
    insert_by_age(e, it);
    e->ledger.queued++;
    e->ledger.queued_bytes += it->cost;
}

static void dequeue(struct endpoint *e, struct endpoint_item *it)
{
    TAILQ_REMOVE(&e->by_send, it, send);
    TAILQ_REMOVE(&e->by_age, it, age);
    e->ledger.queued--;
    e->ledger.queued_bytes -= it->cost;
}

/* Moves a queued item to the dead, who are buried outside of the lock. */
static void kill_queued(struct endpoint *e, struct endpoint_item *it, enum write_drop reason,
                        struct item_list *dead)
{
    dequeue(e, it);
    e->ledger.dropped[reason]++;
    TAILQ_INSERT_TAIL(dead, it, send);
}

static void bury(struct item_list *dead)
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
    return e->options.max_age_ms > 0 && now_ms - it->profile->scraped_ms >= e->options.max_age_ms;
}

static void expire(struct endpoint *e, int64_t now_ms, struct item_list *dead)
{
    struct endpoint_item *it;
    while ((it = TAILQ_FIRST(&e->by_age)) != NULL && is_expired(e, it, now_ms))
        kill_queued(e, it, DROP_EXPIRED, dead);
}

/* ---- putting --------------------------------------------------------------------------------- */

static bool has_room(const struct endpoint *e, uint64_t cost)
{
    return e->ledger.queued_bytes + e->in_flight_bytes + cost <= e->options.max_bytes;
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
        TAILQ_INSERT_TAIL(dead, it, send);
        return;
    }
    expire(e, now_ms, dead);
    while (!has_room(e, it->cost))
        kill_queued(e, TAILQ_FIRST(&e->by_age), DROP_QUEUE_FULL, dead);
    it->seq = e->next_seq++;
    enqueue(e, it, NULL);
}

void endpoint_put(struct endpoint *e, struct profile *p, int64_t now_ms)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    struct endpoint_item *it = calloc(1, sizeof(*it));
    pthread_mutex_lock(&e->lock);
    if (it) {
        it->profile = p;
        it->cost = profile_cost(p);
        put_item(e, it, now_ms, &dead);
    } else {
        e->ledger.accepted++;
        e->ledger.dropped[DROP_MEMORY]++;
    }
    pthread_mutex_unlock(&e->lock);
    if (!it)
        profile_unref(p);
    bury(&dead);
}

/* ---- sending --------------------------------------------------------------------------------- */

static bool may_send(const struct endpoint *e, int64_t now_ms)
{
    if (e->ledger.in_flight >= e->options.concurrency)
        return false;
    return e->failures == 0 || (!e->probing && now_ms >= e->rest_until);
}

struct endpoint_item *endpoint_take(struct endpoint *e, int64_t now_ms)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    struct endpoint_item *it = NULL;
    pthread_mutex_lock(&e->lock);
    expire(e, now_ms, &dead);
    if (may_send(e, now_ms))
        it = TAILQ_FIRST(&e->by_send);
    if (it) {
        dequeue(e, it);
        e->ledger.in_flight++;
        e->in_flight_bytes += it->cost;
        it->attempts++;
        it->generation = e->generation;
        it->probe = e->failures > 0;
        e->probing = e->probing || it->probe;
    }
    pthread_mutex_unlock(&e->lock);
    bury(&dead);
    return it;
}

/* Takes an item out of flight; the caller says where it goes. */
static void land(struct endpoint *e, struct endpoint_item *it)
{
    e->ledger.in_flight--;
    e->in_flight_bytes -= it->cost;
    if (it->probe)
        e->probing = false;
    it->probe = false;
}

/* The rest behind the present failure. */
static int64_t backoff_ms(struct endpoint *e)
{
    int64_t high = e->options.min_backoff_ms;
    for (unsigned i = 0; i < e->failures && high < e->options.max_backoff_ms; i++)
        high = high < INT64_MAX / 2 ? 2 * high : INT64_MAX;
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
    if (e->draining && wait_ms > ENDPOINT_DRAIN_WAIT_MS)
        wait_ms = ENDPOINT_DRAIN_WAIT_MS;
    if (e->rest_until < now_ms + wait_ms)
        e->rest_until = now_ms + wait_ms;
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
        return true;
    }
    if (!failed)
        return false;
    if (current) {
        e->failures += e->failures < 1000000;
        e->generation++;
        rest(e, backoff_ms(e), now_ms);
    }
    if (e->failures > 0)
        rest(e, a->delay_ms, now_ms);
    return false;
}

/* The first queued profile that arrived later. */
static struct endpoint_item *first_younger(const struct endpoint *e, const struct endpoint_item *it)
{
    struct endpoint_item *at = TAILQ_FIRST(&e->by_send);
    while (at && at->seq < it->seq)
        at = TAILQ_NEXT(at, send);
    return at;
}

static void send_again(struct endpoint *e, struct endpoint_item *it, const struct answer *a)
{
    if (!a->answered)
        it->unanswered++;
    bool in_front = !a->answered && it->unanswered < ENDPOINT_UNANSWERED_MAX;
    enqueue(e, it, in_front ? first_younger(e, it) : NULL);
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
    } else if (a->class == ANSWER_REJECTED || enough) {
        r->fate = FATE_DROPPED;
        r->reason = enough ? DROP_RETRIES : DROP_REJECTED;
        e->ledger.dropped[r->reason]++;
    }
    if (r->fate == FATE_QUEUED)
        send_again(e, it, a);
    else
        TAILQ_INSERT_TAIL(dead, it, send);
}

struct endpoint_result endpoint_done(struct endpoint *e, struct endpoint_item *it,
                                     const struct answer *a, int64_t now_ms)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    struct endpoint_result r = {0};
    pthread_mutex_lock(&e->lock);
    land(e, it);
    r.recovered = judge(e, it, a, now_ms);
    settle(e, it, a, &r, &dead);
    r.failures = e->failures;
    r.wait_ms = e->failures > 0 && e->rest_until > now_ms ? e->rest_until - now_ms : 0;
    r.queued = e->ledger.queued;
    pthread_mutex_unlock(&e->lock);
    bury(&dead);
    return r;
}

void endpoint_drop(struct endpoint *e, struct endpoint_item *it, enum write_drop reason)
{
    pthread_mutex_lock(&e->lock);
    land(e, it);
    e->ledger.dropped[reason]++;
    pthread_mutex_unlock(&e->lock);
    profile_unref(it->profile);
    free(it);
}

/* ---- time and the end ------------------------------------------------------------------------ */

void endpoint_expire(struct endpoint *e, int64_t now_ms)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    pthread_mutex_lock(&e->lock);
    expire(e, now_ms, &dead);
    pthread_mutex_unlock(&e->lock);
    bury(&dead);
}

int64_t endpoint_wake_ms(struct endpoint *e)
{
    int64_t wake = INT64_MAX;
    pthread_mutex_lock(&e->lock);
    const struct endpoint_item *oldest = TAILQ_FIRST(&e->by_age);
    if (oldest && e->options.max_age_ms > 0)
        wake = oldest->profile->scraped_ms + e->options.max_age_ms;
    /* A probe or a full set in flight wakes the sender when it is done. */
    bool waits_for_time =
        e->failures > 0 && !e->probing && e->ledger.in_flight < e->options.concurrency && oldest;
    if (waits_for_time && e->rest_until < wake)
        wake = e->rest_until;
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
    if (e->rest_until > now_ms)
        e->rest_until = now_ms;
    pthread_mutex_unlock(&e->lock);
}

void endpoint_drop_queued(struct endpoint *e, enum write_drop reason)
{
    struct item_list dead = TAILQ_HEAD_INITIALIZER(dead);
    struct endpoint_item *it;
    pthread_mutex_lock(&e->lock);
    while ((it = TAILQ_FIRST(&e->by_send)) != NULL)
        kill_queued(e, it, reason, &dead);
    pthread_mutex_unlock(&e->lock);
    bury(&dead);
}

struct endpoint_status endpoint_status(struct endpoint *e)
{
    pthread_mutex_lock(&e->lock);
    const struct endpoint_item *oldest = TAILQ_FIRST(&e->by_age);
    struct endpoint_status s = {.ledger = e->ledger,
                                .in_flight_bytes = e->in_flight_bytes,
                                .oldest_ms = oldest ? oldest->profile->scraped_ms : INT64_MAX,
                                .failures = e->failures};
    pthread_mutex_unlock(&e->lock);
    return s;
}
