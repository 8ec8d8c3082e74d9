/* The choice of the next profile to send, and the effects of an answer; see send_queue_private.h.
 */
#include <stdio.h>

#include "write/queue/send_queue_private.h"

/* ---- the next item --------------------------------------------------------------------------- */

/* Returns the item of a node of a heap; NULL for NULL. */
static struct send_item *of_order(struct heap_node *n)
{
    return n == NULL ? NULL
                     : (struct send_item *)(void *)((char *)n - offsetof(struct send_item, order));
}

static bool has_slot(const struct send_queue *q)
{
    return q->ledger.in_flight + q->acknowledging < q->config->concurrency;
}

static bool may_send(const struct send_queue *q, int64_t now_ms)
{
    return !q->stopped && has_slot(q) && backoff_may_start(&q->backoff, now_ms);
}

/* Moves items whose own rest is over back to their lanes. */
static void end_waits(struct send_queue *q, int64_t now_ms)
{
    struct heap_node *n;
    while ((n = q->waiting.first) != NULL && (int64_t)n->key <= now_ms) {
        struct send_item *it = of_order(n);
        it->wait_until = 0;
        send_queue_place(q, it);
    }
}

/* Returns false for a quarantined profile while others of its kind have a quarter of the slots. */
static bool may_take(const struct send_queue *q, const struct send_item *it)
{
    return it->history.refusals == 0 || q->quarantined_in_flight == 0 ||
           q->quarantined_in_flight < q->config->concurrency / SEND_QUEUE_QUARANTINE_SHARE;
}

/* Returns the next item of a lane. If its bytes are only on disk and cannot be read now, the first
 * item with bytes in memory is taken instead. */
static struct send_item *next_in(struct send_queue *q, const struct lane *lane)
{
    const struct heap_node *m = lane->memory.first;
    struct send_item *it = of_order(lane->disk.first);
    if (it == NULL || (m != NULL && m->key < it->order.key)) {
        it = of_order(lane->memory.first);
        return it != NULL && may_take(q, it) ? it : NULL;
    }
    if (!may_take(q, it)) {
        return NULL;
    }
    /* An item that is taken frees its place in the index. */
    uint64_t more = it->cost > SEND_QUEUE_INDEX_COST ? it->cost - SEND_QUEUE_INDEX_COST : 0;
    bool rests = q->load_rest_until != 0;
    bool fits = !rests && send_queue_evict(q, more);
    /* If no other profile takes memory, this one may be read, however large it is. */
    bool alone = !rests && TAILQ_EMPTY(&q->memory_only) && TAILQ_EMPTY(&q->quarantined) &&
                 q->ledger.in_flight == 0;
    if (!fits && !alone) {
        it = of_order(lane->memory.first);
    }
    return it != NULL && may_take(q, it) ? it : NULL;
}

static struct send_item *next_to_send(struct send_queue *q, int64_t now_ms)
{
    struct lane *lane;
    for (lane = TAILQ_FIRST(&q->lanes.turn); lane != NULL; lane = TAILQ_NEXT(lane, turn)) {
        struct send_item *it = backoff_may_start(&lane->backoff, now_ms) ? next_in(q, lane) : NULL;
        if (it != NULL) {
            lanes_pass(&q->lanes, lane);
            return it;
        }
    }
    return NULL;
}

/* Takes a queued item into flight. */
static void start_sending(struct send_queue *q, struct send_item *it)
{
    send_queue_dequeue(q, it);
    item_become(it, (it->bytes & ITEM_MEMORY) != 0 ? ITEM_IN_FLIGHT : ITEM_LOADING);
    q->ledger.in_flight++;
    q->in_flight_bytes += it->cost;
    q->quarantined_in_flight += it->history.refusals > 0;
    backoff_start(&q->backoff, &it->ticket);
    backoff_start(&it->lane->backoff, &it->lane_ticket);
}

void send_queue_land(struct send_queue *q, struct send_item *it)
{
    item_become(it, ITEM_LANDED);
    q->ledger.in_flight--;
    q->in_flight_bytes -= it->cost;
    q->quarantined_in_flight -= it->history.refusals > 0;
    backoff_land(&q->backoff, &it->ticket);
    backoff_land(&it->lane->backoff, &it->lane_ticket);
}

/* ---- items that were read from disk ---------------------------------------------------------- */

static bool works(const struct backoff *b, const struct backoff_ticket *t)
{
    return b->failures == 0 || t->probe;
}

/* Returns true if an item that was loaded may still be sent: while it was read, its endpoint or its
 * tenant may have begun to fail. */
static bool goes_on(struct send_queue *q, struct send_item *it, int64_t now_ms)
{
    if (q->stopped || !works(&q->backoff, &it->ticket)) {
        return false;
    }
    if (it->lane != &q->lanes.unread) {
        return works(&it->lane->backoff, &it->lane_ticket);
    }
    if (!backoff_may_start(&send_queue_lane_of(q, it->profile)->backoff, now_ms)) {
        return false;
    }
    backoff_land(&it->lane->backoff, &it->lane_ticket);
    send_queue_choose_lane(q, it);
    backoff_start(&it->lane->backoff, &it->lane_ticket);
    return true;
}

static struct send_item *take_loaded(struct send_queue *q, int64_t now_ms)
{
    struct send_item *it;
    while ((it = TAILQ_FIRST(&q->loaded)) != NULL) {
        TAILQ_REMOVE(&q->loaded, it, link);
        if (goes_on(q, it, now_ms)) {
            item_become(it, ITEM_IN_FLIGHT);
            return it;
        }
        send_queue_land(q, it);
        send_queue_choose_lane(q, it);
        send_queue_enqueue(q, it);
    }
    return NULL;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* Takes the next item whose bytes are in memory. For items before it, reading from disk is started.
 */
static struct send_item *take(struct send_queue *q, int64_t now_ms)
{
    struct send_item *it = take_loaded(q, now_ms);
    if (it != NULL) {
        return it;
    }
    end_waits(q, now_ms);
    if (now_ms >= q->load_rest_until) {
        q->load_rest_until = 0;
    }
    while (may_send(q, now_ms) && (it = next_to_send(q, now_ms)) != NULL) {
        start_sending(q, it);
        if (it->state == ITEM_IN_FLIGHT) {
            return it;
        }
        TAILQ_INSERT_TAIL(&q->loading, it, link);
        spool_load(q->spool, it->entry);
    }
    return NULL;
}

struct send_item *send_queue_take(struct send_queue *q, int64_t now_ms)
{
    pthread_mutex_lock(&q->lock);
    send_queue_expire(q, now_ms);
    struct send_item *it = take(q, now_ms);
    if (it != NULL) {
        it->history.attempts++;
        backoff_restart(&q->backoff, &it->ticket);
        backoff_restart(&it->lane->backoff, &it->lane_ticket);
    }
    send_queue_unlock(q);
    return it;
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Returns the bounds of a rest: those of the configuration, except that an endpoint that is out of
 * order is probed often. */
static struct backoff_times times_of(const struct send_queue *q, bool probing)
{
    struct backoff_times t = {q->config->min_backoff_ms, q->config->max_backoff_ms};
    int64_t most = probing ? SEND_QUEUE_PROBE_MS : INT64_MAX;
    most = most > t.min_ms ? most : t.min_ms;
    if (q->draining) {
        most = SEND_QUEUE_DRAIN_REST_MS;
    }
    t.max_ms = t.max_ms < most ? t.max_ms : most;
    return t;
}

static void stop_endpoint(struct send_queue *q, struct send_item *it, const struct answer *a,
                          int64_t now_ms)
{
    struct backoff_times t = times_of(q, true);
    bool begins = q->backoff.failures == 0;
    backoff_failed(&q->backoff, &it->ticket, &t, a->delay_ms, &q->rng, now_ms);
    if (begins && q->backoff.failures > 0) {
        it->history.stopped_endpoint = true;
        it->lane->stopped_endpoint = true;
    }
}

static void stop_tenant(struct send_queue *q, struct send_item *it, const struct answer *a,
                        int64_t now_ms)
{
    /* A rate limit is no outage, so its end is not probed for every few seconds. */
    struct backoff_times t = times_of(q, a->scope != ANSWER_OF_TENANT);
    backoff_failed(&it->lane->backoff, &it->lane_ticket, &t, a->delay_ms, &q->rng, now_ms);
}

/* Returns the scope of an answer: endpoint, tenant or profile. A profile (or tenant) that has
 * stopped the endpoint, while others passed afterwards, does not stop it again: the profile may
 * make the server fail, or only the tenant's part of the server may be down. */
static enum answer_scope scope_of(const struct send_queue *q, const struct send_item *it,
                                  const struct answer *a)
{
    bool fresh = a->scope == ANSWER_OF_ENDPOINT && q->backoff.failures == 0 &&
                 it->ticket.generation == q->backoff.generation;
    if (fresh && it->history.stopped_endpoint) {
        return ANSWER_OF_PROFILE;
    }
    if (fresh && it->lane->stopped_endpoint) {
        return ANSWER_OF_TENANT;
    }
    return a->scope;
}

/* Makes a profile rest after an answer that is about it alone. If its endpoint or tenant fails
 * already, that one rests instead. A tenant of which the server refuses one profile after another
 * rests as well. Returns the scope that rests. */
static enum answer_scope stop_profile(struct send_queue *q, struct send_item *it,
                                      const struct answer *a, int64_t now_ms)
{
    struct lane *lane = it->lane;
    struct backoff_times t = times_of(q, false);
    if (a->answered) {
        lane->refused_in_a_row += it->history.refusals == 0;
        it->history.refusals++;
    }
    it->history.failures++;
    it->wait_until = now_ms + backoff_rest_ms(&t, it->history.failures, &q->rng);
    it->asked_until = a->delay_ms > 0 ? now_ms + a->delay_ms : 0;
    if (it->wait_until < it->asked_until) {
        it->wait_until = it->asked_until;
    }
    if (q->backoff.failures > 0) {
        stop_endpoint(q, it, a, now_ms);
        return ANSWER_OF_ENDPOINT;
    }
    if (lane->backoff.failures > 0 || lane->refused_in_a_row >= SEND_QUEUE_REFUSED_MAX) {
        stop_tenant(q, it, a, now_ms);
        return ANSWER_OF_TENANT;
    }
    return ANSWER_OF_PROFILE;
}

/* ---- outcomes -------------------------------------------------------------------------------- */

/* Updates the state of the endpoint and the tenant. */
static void note_answer(struct send_queue *q, struct send_item *it, const struct answer *a,
                        int64_t now_ms, struct send_result *r)
{
    struct lane *lane = it->lane;
    if (a->class == ANSWER_SENT || a->class == ANSWER_REJECTED) {
        r->recovered = backoff_worked(&q->backoff, &it->ticket, now_ms);
        r->tenant_recovered = backoff_worked(&lane->backoff, &it->lane_ticket, now_ms);
        lane->refused_in_a_row = 0;
        lane->stopped_endpoint = false;
        return;
    }
    r->scope = scope_of(q, it, a);
    switch (r->scope) {
    case ANSWER_OF_PROFILE:
        r->scope = stop_profile(q, it, a, now_ms);
        break;
    case ANSWER_OF_TENANT:
        r->recovered = backoff_worked(&q->backoff, &it->ticket, now_ms);
        stop_tenant(q, it, a, now_ms);
        break;
    case ANSWER_OF_ENDPOINT:
        stop_endpoint(q, it, a, now_ms);
        break;
    }
}

/* Fills in the failures and the rest of the endpoint, tenant or profile that rests now. */
static void describe(const struct send_queue *q, const struct send_item *it, int64_t now_ms,
                     struct send_result *r)
{
    const struct backoff *b = r->scope == ANSWER_OF_ENDPOINT ? &q->backoff : &it->lane->backoff;
    r->failures = b->failures;
    r->wait_ms = backoff_wait_ms(b, now_ms);
    if (r->scope == ANSWER_OF_PROFILE) {
        r->failures = it->history.failures;
        r->wait_ms = it->wait_until - now_ms;
    }
    (void)snprintf(r->tenant, sizeof(r->tenant), "%s", it->lane->tenant);
}

static void send_again(struct send_queue *q, struct send_item *it, const struct answer *a)
{
    if (a->answered || ++it->history.unanswered >= SEND_QUEUE_UNANSWERED_MAX) {
        it->seq = q->next_seq++;
    }
    if (it->history.refusals > 0) {
        it->seq |= SEND_QUEUE_QUARANTINE_FROM;
    }
    send_queue_enqueue(q, it);
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

/* Returns true if a failure is final: max_attempts is reached, or doubtful answers came often
 * enough. A doubtful answer does not count against the profile in a drain, nor while the server
 * refuses every profile of the tenant. */
static bool is_enough(const struct send_queue *q, struct send_item *it, const struct answer *a)
{
    unsigned max = q->config->max_attempts;
    bool failed = a->class == ANSWER_RETRY || a->class == ANSWER_RETRY_DOUBTFUL;
    if (failed && max > 0 && it->history.attempts >= max) {
        return true;
    }
    bool others_pass = a->fault == ANSWER_FAULT_BURST || a->scope != ANSWER_OF_PROFILE ||
                       it->lane->refused_in_a_row < SEND_QUEUE_REFUSED_MAX;
    if (a->class != ANSWER_RETRY_DOUBTFUL || q->draining || !others_pass) {
        return false;
    }
    return ++it->history.doubts >= a->tries;
}

/* Sends the item again, drops it or finishes it, as the answer says. */
static void settle(struct send_queue *q, struct send_item *it, const struct answer *a,
                   struct send_result *r)
{
    bool enough = is_enough(q, it, a);
    r->outcome = WRITE_RETRIED;
    if (a->class == ANSWER_SENT) {
        r->outcome = WRITE_SENT;
        q->ledger.sent++;
        item_acknowledge(it);
        q->acknowledging += send_queue_release(q, it, true);
        send_queue_forget(q, it);
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
    note_answer(q, it, a, now_ms, &r);
    describe(q, it, now_ms, &r);
    settle(q, it, a, &r);
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
        send_queue_enqueue(q, it);
    } else {
        send_queue_drop_landed(q, it, q->end);
    }
    send_queue_unlock(q);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Returns the time from which a lane may be next; INT64_MIN if it need not wait for a time. */
static int64_t lane_wake_ms(const struct send_queue *q, const struct lane *lane)
{
    int64_t wake = backoff_wake_ms(&lane->backoff);
    bool needs_disk = lane->memory.first == NULL && q->load_rest_until != 0;
    return needs_disk && q->load_rest_until > wake ? q->load_rest_until : wake;
}

/* Returns the time from which a profile may be sent that may not be sent now; INT64_MAX if only an
 * answer can change that. */
static int64_t sending_wake_ms(const struct send_queue *q)
{
    int64_t rest = backoff_wake_ms(&q->backoff);
    int64_t wake = q->waiting.first != NULL ? (int64_t)q->waiting.first->key : INT64_MAX;
    const struct lane *lane;
    if (!has_slot(q) || q->stopped) {
        return INT64_MAX;
    }
    for (lane = TAILQ_FIRST(&q->lanes.turn); lane != NULL; lane = TAILQ_NEXT(lane, turn)) {
        int64_t at = lane_wake_ms(q, lane);
        at = at > rest ? at : rest;
        if (at != INT64_MIN && at < wake) {
            wake = at;
        }
    }
    wake = rest > wake ? rest : wake;
    /* During the pace after an outage, the next request waits for an answer. */
    return backoff_may_start(&q->backoff, wake) ? wake : INT64_MAX;
}

int64_t send_queue_wake_ms(struct send_queue *q)
{
    int64_t wake = INT64_MAX;
    pthread_mutex_lock(&q->lock);
    const struct send_item *oldest = TAILQ_FIRST(&q->by_age);
    if (oldest != NULL && q->config->max_age_ms > 0) {
        wake = oldest->scraped_ms + q->config->max_age_ms;
    }
    int64_t at = sending_wake_ms(q);
    pthread_mutex_unlock(&q->lock);
    return at < wake ? at : wake;
}

bool send_queue_is_crowded(struct send_queue *q, int64_t now_ms)
{
    pthread_mutex_lock(&q->lock);
    bool waits = q->ledger.queued > 0 && !q->stopped && q->backoff.failures == 0;
    bool crowded = waits && (!has_slot(q) || !backoff_may_start(&q->backoff, now_ms));
    pthread_mutex_unlock(&q->lock);
    return crowded;
}

bool send_queue_rests_until(struct send_queue *q, int64_t time_ms)
{
    pthread_mutex_lock(&q->lock);
    bool idle = q->ledger.in_flight == 0 && q->acknowledging == 0 && TAILQ_EMPTY(&q->merging);
    bool rests = idle && (q->ledger.queued == 0 || sending_wake_ms(q) >= time_ms);
    pthread_mutex_unlock(&q->lock);
    return rests;
}

/* ---- the end --------------------------------------------------------------------------------- */

void send_queue_close(struct send_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_mutex_unlock(&q->lock);
}

/* Ends the rests of single profiles at that time, unless the server asked for longer ones. */
static void shorten_waits(struct send_queue *q, int64_t until_ms)
{
    struct heap waiting = q->waiting;
    struct heap_node *n;
    q->waiting.first = NULL;
    while ((n = waiting.first) != NULL) {
        struct send_item *it = of_order(n);
        heap_remove(&waiting, n);
        int64_t least = it->asked_until > until_ms ? it->asked_until : until_ms;
        it->wait_until = it->wait_until < least ? it->wait_until : least;
        n->key = (uint64_t)it->wait_until;
        heap_add(&q->waiting, n);
    }
}

static void begin_end(struct send_queue *q, enum write_drop end, int64_t now_ms)
{
    int64_t until = now_ms + SEND_QUEUE_DRAIN_REST_MS;
    struct lane *lane;
    pthread_mutex_lock(&q->lock);
    q->end = end;
    q->closed = true;
    q->draining = true;
    backoff_shorten(&q->backoff, until);
    for (lane = TAILQ_FIRST(&q->lanes.all); lane != NULL; lane = TAILQ_NEXT(lane, link)) {
        backoff_shorten(&lane->backoff, until);
    }
    backoff_shorten(&q->lanes.shared.backoff, until);
    shorten_waits(q, until);
    pthread_mutex_unlock(&q->lock);
}

void send_queue_drain(struct send_queue *q, int64_t now_ms)
{
    begin_end(q, DROP_SHUTDOWN, now_ms);
}

void send_queue_remove(struct send_queue *q, int64_t now_ms)
{
    begin_end(q, DROP_REMOVED, now_ms);
}
