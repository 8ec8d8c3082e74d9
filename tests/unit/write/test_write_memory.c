/* Each allocation on the way of a profile through the writer fails once: the profile is dropped and
 * counted or goes out whole, the ledger balances at every step, and the next profile goes through.
 */
#include "tests/unit/lib/testing.h"

#include "tests/unit/lib/failing_malloc.h"
#include "write/protocols/table.h"
#include "write/queue/send_queue.h"
#include "write/request.h"

static const struct config_label_limits limits = CONFIG_LABEL_LIMITS_DEFAULT;

/* The surroundings of the scenarios, which have no parameter. */
static struct {
    const struct protocol *protocol;
    enum profile_format format;
    struct intern *intern;
} place;

static void balance(struct send_queue *e)
{
    struct write_ledger l = send_queue_status(e).ledger;
    uint64_t dropped = 0;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        dropped += l.dropped[i];
    }
    CHECK_INT(l.accepted, l.sent + dropped + l.queued + l.in_flight, "balance");
}

/* Without the allocator of the test: the profile is the scraper's. */
static struct profile *make(void)
{
    static const char data[] = "\x0a\x04\x08\x01\x10\x02\x12\x06\x0a\x01\x01\x12\x01\x05";
    bool armed = failing_malloc_pause();
    struct labels *l =
        testing_labels(place.intern, "__name__", "memory", "service_name", "ns/a\xff",
                       "app.kubernetes.io/name", "x,y", "__tenant_id__", "t", "z", "\xff", NULL);
    char *copy = strdup(data);
    struct profile *p = profile_new(l, copy, sizeof(data) - 1);
    assert_non_null(p);
    p->from_ns = p->until_ns = INT64_C(1795230000) * NS_PER_S;
    p->format = place.format;
    failing_malloc_resume(armed);
    return p;
}

/* Does what attempt.c does with a profile that was taken. Returns true if it made a request. */
static bool send_one(struct send_queue *e, const struct config_endpoint *config, int64_t now)
{
    static const struct answer good = {.class = ANSWER_SENT, .answered = true};
    struct send_item *it = send_queue_take(e, now);
    struct series s;
    struct request r;
    struct rng rng;
    struct boundary boundary = {.text = "profpull0123456789abcdef"};
    balance(e);
    if (it == NULL) {
        return false;
    }
    struct profile *p = send_item_profile(it);
    rng_seed(&rng, 1);
    bool ok = series_build(&s, p->labels, &config->external_labels, &limits,
                           &protocol_of(config)->labels);
    if (ok) {
        struct request_input in = {
            .endpoint = config, .series = &s, .profile = p, .boundary = &boundary, .rng = &rng};
        enum request_status status = request_build(&r, &in);
        CHECK_INT(status == REQUEST_OK || status == REQUEST_MEMORY, true, "status");
        ok = status == REQUEST_OK;
        if (ok) {
            CHECK_CONTAINS(r.url.data, "http://h/base", "whole");
        }
        request_done(&r);
        series_done(&s);
    }
    if (ok) {
        (void)send_queue_done(e, it, &good, now);
    } else {
        send_queue_drop(e, it, DROP_MEMORY);
    }
    balance(e);
    return ok;
}

static void scenario(bool *ret_complete)
{
    static const struct config_pair external[] = {{"cluster", "prod"}, {"z", "\xfe"}};
    static const struct config_pair headers[] = {{"X-A", "b"}};
    struct config_endpoint config = {.url = "http://h/base/",
                                     .protocol = &place.protocol->config,
                                     .remote_timeout_ms = 10000,
                                     .tenant_id = "t",
                                     .headers = {headers, 1},
                                     .external_labels = {external, 2}};
    struct config_endpoint small = {.queue_max_bytes = 1 << 20, .concurrency = 2};
    struct send_queue *e = send_queue_new(&small, 1);
    if (e == NULL) {
        return;
    }
    send_queue_put(e, make(), 0);
    balance(e);
    *ret_complete = send_one(e, &config, 0);
    assert_true(*ret_complete || failing_malloc_failed());
    /* There is memory again for the next one. */
    if (failing_malloc_failed()) {
        send_queue_put(e, make(), 1);
        assert_true(send_one(e, &config, 1));
        CHECK_INT(send_queue_status(e).ledger.queued, 0, "");
    }
    send_queue_free(e);
}

static void each_allocation_fails(const struct protocol *protocol, enum profile_format format)
{
    place.protocol = protocol;
    place.format = format;
    place.intern = intern_new();
    size_t n = failing_malloc_each(FAIL_OURS, scenario);
    print_message("%s: %zu allocations\n", protocol->config.name, n);
    assert_true(n >= 8);
    place.intern = intern_free(place.intern);
}

TEST(test_push)
{
    each_allocation_fails(&protocol_push, PROFILE_PPROF);
}

TEST(test_ingest)
{
    each_allocation_fails(&protocol_ingest, PROFILE_PPROF);
    each_allocation_fails(&protocol_ingest, PROFILE_JFR);
}

TEST(test_profefe)
{
    each_allocation_fails(&protocol_profefe, PROFILE_PPROF);
}
