#include "base/clock.h"
#include "http/private.h"

/* The pause between two runs of the watchdog, and the delay past a deadline from which it ends a
 * request. */
#define WATCHDOG_MS 1000
#define OVERDUE_NS NS_PER_S

/* A limit of a transfer and the instant at which it is over. */
struct due {
    enum http_limit limit;
    int64_t at_ns;
};

static void take_earlier(struct due *due, enum http_limit limit, int64_t from_ns, int64_t ms)
{
    int64_t at_ns = ms < (INT64_MAX - from_ns) / NS_PER_MS ? from_ns + ms * NS_PER_MS : INT64_MAX;
    if (at_ns < due->at_ns) {
        *due = (struct due){limit, at_ns};
    }
}

/* Returns the limit that is reached first; the one of the whole request if two are reached at once.
 */
static struct due due_of(const struct http_transfer *t)
{
    const struct http_request *r = &t->request;
    struct due due = {HTTP_LIMIT_NONE, INT64_MAX};
    if (r->timeout_ms > 0) {
        take_earlier(&due, HTTP_LIMIT_TOTAL, t->start_ns, r->timeout_ms);
    }
    /* Until then only the whole request has a limit: the fetch of a token has limits of its own. */
    if (t->needs_token || t->hop_ns == 0) {
        return due;
    }
    if (t->sent_ns == 0) {
        take_earlier(&due, HTTP_LIMIT_CONNECT, t->hop_ns, http_connect_limit_ms(r));
    } else if (r->progress_timeout_ms > 0) {
        take_earlier(&due, HTTP_LIMIT_PROGRESS, t->progress_ns, r->progress_timeout_ms);
    }
    if (t->early && t->sent_ns != 0) {
        take_earlier(&due, HTTP_LIMIT_EARLY, t->early_ns, HTTP_EARLY_MAX_MS);
    }
    return due;
}

/* Returns the result of a transfer that has reached a limit. */
static enum http_result result_of(enum http_limit limit)
{
    return limit == HTTP_LIMIT_CONNECT ? HTTP_ERR_CONNECT
           : limit == HTTP_LIMIT_EARLY ? HTTP_ERR_PROTOCOL
                                       : HTTP_ERR_TIMEOUT;
}

/* Ends a transfer in any state: connecting, waiting for its token or for libcurl, or cancelled and
 * forgotten. Not while libcurl is on the stack. */
static void expire(struct http_transfer *t, const struct due *due, int64_t now_ns)
{
    if (now_ns - due->at_ns > OVERDUE_NS) {
        metric_inc(t->client->overdue);
    }
    if (t->cancelled) {
        http_transfer_detach(t);
        http_transfer_free(t);
        return;
    }
    t->in_lookup = t->lookup.name != NULL;
    http_shard_end(t, due->limit, result_of(due->limit));
}

static bool has_ended(const struct http_transfer *t)
{
    return t->end_ns != 0;
}

/* ---- the timer of a transfer ----------------------------------------------------------------- */

static void deadline_on_timer(void *arg)
{
    struct http_transfer *t = arg;
    int64_t now_ns = clock_mono_ns();
    struct due due = due_of(t);
    if (has_ended(t)) {
        return;
    }
    if (due.at_ns <= now_ns) {
        expire(t, &due, now_ns);
    } else {
        /* The transfer has connected or received bytes since the timer was set, which does not move
         * the timer. */
        http_deadline_arm(t);
    }
}

bool http_deadline_init(struct http_transfer *t)
{
    struct http_client *c = t->client;
    TAILQ_INSERT_TAIL(&c->all, t, all_link);
    if (TAILQ_FIRST(&c->all) == t) {
        loop_timer_after(c->watchdog, WATCHDOG_MS);
    }
    t->deadline = loop_timer_new(c->loop, deadline_on_timer, t);
    return t->deadline != NULL;
}

void http_deadline_done(struct http_transfer *t)
{
    struct http_client *c = t->client;
    t->deadline = loop_timer_free(t->deadline);
    TAILQ_REMOVE(&c->all, t, all_link);
    if (TAILQ_EMPTY(&c->all)) {
        loop_timer_cancel(c->watchdog);
    }
}

void http_deadline_arm(struct http_transfer *t)
{
    struct due due = due_of(t);
    if (due.limit != HTTP_LIMIT_NONE) {
        /* The instant is rounded up, so that the timer is never early. */
        loop_timer_at(t->deadline, due.at_ns / NS_PER_MS + 1);
    }
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

void http_watchdog_run(struct http_client *c, int64_t now_ns)
{
    struct http_transfer *next;
    for (struct http_transfer *t = TAILQ_FIRST(&c->all); t != NULL; t = next) {
        struct due due = due_of(t);
        bool freed = t->cancelled;
        next = TAILQ_NEXT(t, all_link);
        if (has_ended(t) || due.limit == HTTP_LIMIT_NONE || now_ns - due.at_ns <= OVERDUE_NS) {
            continue;
        }
        expire(t, &due, now_ns);
        /* If the transfer waited for a token, the fetch of the token may have been freed with
         * it. */
        next = freed ? next : TAILQ_NEXT(t, all_link);
    }
}

void http_watchdog_on_timer(void *arg)
{
    struct http_client *c = arg;
    http_watchdog_run(c, clock_mono_ns());
    if (!TAILQ_EMPTY(&c->all)) {
        loop_timer_after(c->watchdog, WATCHDOG_MS);
    }
}
