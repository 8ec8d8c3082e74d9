/* A send queue with a clock of our own and nobody who sends. */
#ifndef PROFPULL_TESTS_UNIT_SEND_QUEUE_RIG_H
#define PROFPULL_TESTS_UNIT_SEND_QUEUE_RIG_H

#include "tests/unit/lib/testing.h"

#include "base/clock.h"
#include "tests/unit/write/requests.h"
#include "write/queue/backoff.h"
#include "write/queue/send_queue.h"

SCOPED_POINTER(send_queue, send_queue_free)

#define COST ((size_t)2048) /* of the profiles of make() */

/* tenant: NULL for none. */
static inline struct profile *make_of(int id, const char *tenant, int64_t scraped_ms, size_t size)
{
    char name[16];
    (void)snprintf(name, sizeof(name), "%d", id);
    char *data = testing_memory(size);
    memset(data, 'p', size);
    struct labels *l = tenant == NULL
                           ? testing_labels(table, "id", name, NULL)
                           : testing_labels(table, "id", name, LABEL_TENANT, tenant, NULL);
    struct profile *p = profile_new(l, data, size);
    assert_non_null(p);
    p->scraped_ms = scraped_ms;
    return p;
}

static inline struct profile *make_sized(int id, int64_t scraped_ms, size_t size)
{
    return make_of(id, NULL, scraped_ms, size);
}

static inline struct profile *make(int id, int64_t scraped_ms)
{
    struct profile *p = make_sized(id, scraped_ms, 1024);
    CHECK_INT(profile_cost(p), COST, "the tests count in this");
    return p;
}

static inline int id_of(const struct send_item *it)
{
    uint64_t id = 0;
    if (it == NULL) {
        return -1;
    }
    assert_true(parse_u64(labels_get(send_item_profile(it)->labels, SV("id")), 100000, &id));
    return (int)id;
}

/* max_attempts: 0 for any number. */
static inline struct send_queue *new_endpoint_with(unsigned concurrency, uint64_t max_bytes,
                                                   unsigned max_attempts)
{
    /* One queue at a time. */
    static struct config_endpoint config;
    config = (struct config_endpoint){.queue_max_bytes = max_bytes,
                                      .concurrency = concurrency,
                                      .min_backoff_ms = 500,
                                      .max_backoff_ms = 300000,
                                      .max_age_ms = MS_PER_HOUR,
                                      .max_attempts = max_attempts};
    struct send_queue *e = send_queue_new(&config, 7);
    assert_non_null(e);
    return e;
}

static inline struct send_queue *new_endpoint(unsigned concurrency, uint64_t max_bytes)
{
    return new_endpoint_with(concurrency, max_bytes, 0);
}

static const struct answer sent = {.class = ANSWER_SENT, .answered = true};
static const struct answer refused = {.class = ANSWER_RETRY, .answered = false};
static const struct answer unavailable = {.class = ANSWER_RETRY, .answered = true};
static const struct answer rejected = {.class = ANSWER_REJECTED, .answered = true};
static const struct answer limited = {.class = ANSWER_RETRY_DOUBTFUL,
                                      .scope = ANSWER_OF_TENANT,
                                      .answered = true,
                                      .tries = ANSWER_RATE_TRIES};
static const struct answer doubtful = {.class = ANSWER_RETRY_DOUBTFUL,
                                       .scope = ANSWER_OF_PROFILE,
                                       .answered = true,
                                       .tries = ANSWER_TRIES};

static inline uint64_t dropped_sum(const struct write_ledger *l)
{
    uint64_t n = 0;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        n += l->dropped[i];
    }
    return n;
}

static inline struct write_ledger ledger(struct send_queue *e)
{
    struct write_ledger l = send_queue_status(e).ledger;
    CHECK_INT(l.accepted, l.sent + dropped_sum(&l) + l.merged + l.queued + l.in_flight, "balance");
    return l;
}

static inline struct send_item *take(struct send_queue *e, int64_t now, int want)
{
    struct send_item *it = send_queue_take(e, now);
    CHECK_INT(id_of(it), want, "taken");
    ledger(e);
    return it;
}

static inline struct send_result done(struct send_queue *e, struct send_item *it,
                                      const struct answer *a, int64_t now)
{
    struct send_result r = send_queue_done(e, it, a, now);
    ledger(e);
    return r;
}

static inline void put(struct send_queue *e, int first, int last, int64_t now)
{
    for (int i = first; i <= last; i++) {
        send_queue_put(e, make(i, now), now);
    }
    ledger(e);
}

#endif
