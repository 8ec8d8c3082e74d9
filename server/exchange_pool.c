#include "server/exchange_pool.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/worker.h"
#include "server/exchange.h"
#include "server/setup.h"
#include "server/shares.h"

/* Limit of a response. */
#define REPLY_MAX ((size_t)256 * 1024 * 1024)
#define HEADERS_MAX ((size_t)16 * 1024)

/* The first status that does not mean success. */
#define STATUS_REDIRECTION 300

struct job;
TAILQ_HEAD(job_list, job);

struct exchange_pool {
    struct exchange_pool_options o;
    struct worker_pool *workers;
    /* The members below belong to the loop. */
    struct job_list waiting; /* jobs that wait for their receipts */
    struct loop_timer *timer;
    bool stopped;
    struct shares *shares; /* of the queue */
    unsigned n;            /* requests that are queued, worked on, or wait for a receipt */
    struct metric_cell *requests;
    struct metric_cell *seconds;
};

struct job {
    struct work work; /* must be the first member: job_of() finds the job by it */
    struct exchange_pool *pool;
    struct connection *connection;
    const struct route *route;
    int64_t began_ms;
    struct in6_addr client;     /* counted in the shares of the pool unless the route is quick */
    struct server_setup *setup; /* a reference */
    int status; /* status of an error of the server's own, which `message` explains; 0: none */
    const char *message;
    struct loop_task settled; /* posted when the receipt is settled */
    TAILQ_ENTRY(job) link;    /* in exchange_pool.waiting */
    struct partial partial;
    struct exchange exchange;
};

static void fail(struct job *j, int status, const char *message)
{
    j->status = status;
    j->message = message;
}

static struct job *job_of(struct work *w)
{
    return (struct job *)(void *)w;
}

/* Runs the handler of the route, on a thread of the pool. */
static void exchange_pool_on_run(struct work *w)
{
    struct job *j = job_of(w);
    struct exchange *x = &j->exchange;
    if (atomic_load(x->cancelled)) {
        fail(j, STATUS_CANCELLED, "the client has closed the connection");
        return;
    }
    if (clock_mono_ms() >= x->deadline_ms) {
        fail(j, STATUS_UNAVAILABLE, "no time was left for this request when its turn came");
        return;
    }
    j->route->work(x);
    exchange_mark_partial(x);
    if (!buf_ok(&x->reply) || !buf_ok(&x->headers) || !buf_ok(&x->trailers)) {
        bool large =
            buf_too_big(&x->reply) || buf_too_big(&x->headers) || buf_too_big(&x->trailers);
        fail(j, STATUS_INTERNAL, large ? "the answer is too large" : "out of memory");
    }
}

static void answer(struct job *j)
{
    struct exchange *x = &j->exchange;
    if (j->status != 0) {
        reply_error(j->connection, j->route->errors, j->status, SV(""), j->message);
        return;
    }
    connection_answer(j->connection, &(struct connection_answer){
                                         .status = x->status,
                                         .type = x->content_type,
                                         .headers = {x->headers.data, x->headers.len},
                                         .body = &x->reply,
                                         .trailers = {x->trailers.data, x->trailers.len},
                                     });
}

/* Sends the response and frees the job. On the loop, as all functions below. */
static void finish(struct job *j)
{
    struct exchange_pool *p = j->pool;
    p->n--;
    if (!j->route->is_quick) {
        shares_give(p->shares, &j->client);
    }
    metric_gauge_add(p->requests, -1);
    metric_observe(p->seconds, (double)(clock_mono_ms() - j->began_ms) / 1000.0);
    if (connection_resume(j->connection)) {
        answer(j);
    }
    receipt_unref(j->exchange.receipt);
    buf_done(&j->exchange.headers);
    buf_done(&j->exchange.reply);
    buf_done(&j->exchange.trailers);
    setup_unref(j->setup);
    free(j);
}

/* ---- waiting for receipts -------------------------------------------------------------------- */

static void arm_timer(struct exchange_pool *p)
{
    const struct job *j = NULL;
    int64_t first_ms = INT64_MAX;
    TAILQ_FOREACH(j, &p->waiting, link)
    {
        first_ms = j->exchange.deadline_ms < first_ms ? j->exchange.deadline_ms : first_ms;
    }
    if (first_ms != INT64_MAX) {
        loop_timer_at(p->timer, first_ms);
    }
}

static void end_wait(struct job *j, enum exchange_wait result)
{
    struct exchange *x = &j->exchange;
    TAILQ_REMOVE(&j->pool->waiting, j, link);
    if (result != EXCHANGE_SETTLED) {
        buf_clear(&x->headers);
        buf_clear(&x->trailers);
    }
    x->settle(x, result);
    finish(j);
}

static void exchange_pool_on_settled(struct loop_task *task)
{
    struct job *j = (struct job *)(void *)((char *)task - offsetof(struct job, settled));
    end_wait(j, receipt_is_good(j->exchange.receipt) ? EXCHANGE_SETTLED : EXCHANGE_FAILED);
}

/* Ends the waits whose deadline has passed; when the server stops, all of them. */
static void end_waits(struct exchange_pool *p, int64_t now_ms)
{
    struct job *next;
    for (struct job *j = TAILQ_FIRST(&p->waiting); j != NULL; j = next) {
        next = TAILQ_NEXT(j, link);
        /* If the receipt is settled meanwhile, it has posted its task already, and that task ends
         * the wait. */
        if (j->exchange.deadline_ms <= now_ms && receipt_cancel(j->exchange.receipt)) {
            end_wait(j, EXCHANGE_LATE);
        }
    }
}

static void exchange_pool_on_timer(void *arg)
{
    struct exchange_pool *p = arg;
    end_waits(p, clock_mono_ms());
    arm_timer(p);
}

static void begin_wait(struct job *j)
{
    struct exchange_pool *p = j->pool;
    bool first = TAILQ_EMPTY(&p->waiting);
    j->settled = (struct loop_task){.run = exchange_pool_on_settled};
    TAILQ_INSERT_TAIL(&p->waiting, j, link);
    receipt_wait(j->exchange.receipt, p->o.loop, &j->settled);
    if (first) {
        arm_timer(p);
    }
}

static void exchange_pool_on_done(struct work *w)
{
    struct job *j = job_of(w);
    const struct exchange *x = &j->exchange;
    bool succeeds = j->status == 0 && x->status < STATUS_REDIRECTION && !x->fails;
    if (succeeds && x->receipt != NULL && !j->pool->stopped) {
        begin_wait(j);
    } else {
        finish(j);
    }
}

/* ---- submitting ------------------------------------------------------------------------------ */

/* Makes the job of a request. NULL if out of memory. */
static struct job *make_job(struct exchange_pool *p, struct connection *c,
                            const struct route *route, const struct request *r,
                            struct server_setup *setup)
{
    const struct server_options *o = &setup->options;
    const struct server_work *work = route->set == ROUTE_RECEIVE ? &o->receive : &o->query;
    struct job *j = calloc(1, sizeof(*j));
    if (j == NULL) {
        return NULL;
    }
    j->work = (struct work){
        .home = p->o.loop, .run = exchange_pool_on_run, .done = exchange_pool_on_done};
    j->pool = p;
    j->connection = c;
    j->route = route;
    j->setup = setup_ref(setup);
    j->began_ms = clock_mono_ms();
    j->exchange = (struct exchange){
        .request = r,
        .options = o,
        .body = connection_body(c),
        .deadline_ms = j->began_ms + work->timeout_ms,
        .cancelled = connection_cancelled(c),
        .bytes_max = work->bytes_max,
        .status = STATUS_OK,
    };
    buf_init(&j->exchange.headers, HEADERS_MAX);
    j->exchange.partial = &j->partial;
    buf_init(&j->exchange.reply, REPLY_MAX);
    buf_init(&j->exchange.trailers, HEADERS_MAX);
    p->n++;
    metric_gauge_add(p->requests, 1);
    return j;
}

/* Counts a request of a client. Returns false if the queue is full, or the client has its share. */
static bool take_place(struct exchange_pool *p, const struct route *route,
                       const struct server_setup *setup, const struct exchange_client *client)
{
    const struct server_options *o = &setup->options;
    const struct server_work *work = route->set == ROUTE_RECEIVE ? &o->receive : &o->query;
    size_t places = (size_t)p->o.threads + work->waiting_max;
    size_t share = client->has_neighbours ? (places + 1) / 2 : places;
    return p->n < places && shares_take(p->shares, &client->address, share);
}

bool exchange_pool_submit(struct exchange_pool *p, struct connection *c, const struct route *route,
                          const struct request *r, struct server_setup *setup,
                          const struct exchange_client *client)
{
    if (!route->is_quick && !take_place(p, route, setup, client)) {
        return false;
    }
    struct job *j = make_job(p, c, route, r, setup);
    if (j == NULL) {
        if (!route->is_quick) {
            shares_give(p->shares, &client->address);
        }
        return false;
    }
    j->client = client->address;
    connection_hold(c);
    if (route->is_quick) {
        exchange_pool_on_run(&j->work);
        finish(j);
    } else {
        worker_submit(p->workers, &j->work);
    }
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void make_metrics(struct exchange_pool *p)
{
    static const double buckets[] = {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60};
    static const struct metric_desc seconds = {
        .name = "profpull_api_request_seconds",
        .help = "Time from the end of a request to an API until its response, waiting included.",
        .type = METRIC_HISTOGRAM,
        .labels = {"api"},
        .buckets = buckets,
        .n_buckets = sizeof(buckets) / sizeof(buckets[0]),
    };
    struct metrics *m = p->o.metrics;
    struct metric *requests =
        metrics_family(m, METRIC_GAUGE, "profpull_api_requests_pending",
                       "Requests to an API that wait or are in progress.", "api", NULL);
    p->requests = metric_cell_of(requests, p->o.name);
    p->seconds = metric_cell_of(metrics_register(m, &seconds), p->o.name);
}

struct exchange_pool *exchange_pool_new(const struct exchange_pool_options *o, struct err *err)
{
    struct exchange_pool *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        err_memory(err);
        return NULL;
    }
    p->o = *o;
    TAILQ_INIT(&p->waiting);
    make_metrics(p);
    p->timer = loop_timer_new(o->loop, exchange_pool_on_timer, p);
    p->shares = shares_new();
    if (p->timer == NULL || p->shares == NULL) {
        err_memory(err);
        return exchange_pool_free(p);
    }
    p->workers = worker_pool_new_low(o->threads, err);
    return p->workers != NULL ? p : exchange_pool_free(p);
}

void exchange_pool_stop(struct exchange_pool *p)
{
    if (p != NULL) {
        p->stopped = true;
        p->workers = worker_pool_free(p->workers);
        end_waits(p, INT64_MAX);
        p->timer = loop_timer_free(p->timer);
    }
}

struct exchange_pool *exchange_pool_free(struct exchange_pool *p)
{
    exchange_pool_stop(p);
    if (p != NULL) {
        shares_free(p->shares);
        free(p);
    }
    return NULL;
}
