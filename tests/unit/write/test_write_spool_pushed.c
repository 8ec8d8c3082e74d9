/* Profiles that senders have pushed, when memory and disk are full: what was taken is kept, and
 * what has no room is refused, so that the sender tries again. */
#include "tests/unit/write/spool_rig.h"

#define MANY 400

/* Puts a pushed profile; true if it was taken. A refused one is counted as refused only. */
static bool push(struct rig *r, unsigned n, size_t size)
{
    struct profile *p = rig_profile(r, n, size);
    assert_non_null(p);
    p->refusable = p->is_pushed;
    enum send_put put = send_queue_put(r->e, p, r->now);
    if (put == SEND_REFUSED) {
        send_queue_refused(r->e, false);
    }
    CHECK_BALANCE(r);
    return put == SEND_TAKEN;
}

static uint64_t lost(struct rig *r)
{
    struct write_ledger l = send_queue_status(r->e).ledger;
    uint64_t n = 0;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        n += l.dropped[i];
    }
    return n;
}

/* Sends everything; each profile that was taken must come once. */
static void send_all(struct rig *r, const bool *taken)
{
    unsigned seen[MANY] = {0};
    while (rig_send(r, 999, seen, MANY) > 0) {
        rig_pass(r, 1000);
    }
    for (unsigned i = 0; i < MANY; i++) {
        char what[32];
        (void)snprintf(what, sizeof(what), "profile %u", i);
        CHECK_INT(seen[i], taken[i], what);
    }
    CHECK_INT(send_queue_status(r->e).ledger.queued, 0, "");
}

TEST(without_a_spool)
{
    static struct config_endpoint config = {.queue_max_bytes = 20 * 2048, .concurrency = 4};
    struct send_queue *q = send_queue_new(&config, 1);
    struct rig r = {.e = q, .in = intern_new()};
    unsigned n_taken = 0;
    rig_pushed = RIG_ALL_PUSHED;
    for (unsigned i = 0; i < 100; i++) {
        n_taken += push(&r, i, 1024);
    }
    assert_true(n_taken > 10 && n_taken < 25);
    CHECK_INT(lost(&r), 0, "");
    CHECK_INT(send_queue_status(q).ledger.queued, n_taken, "");
    CHECK_INT(send_queue_status(q).ledger.refused, 100 - n_taken, "");
    /* Scraped ones neither take their place. */
    rig_pushed = RIG_NONE_PUSHED;
    for (unsigned i = 100; i < 120; i++) {
        (void)push(&r, i, 1024);
    }
    CHECK_INT(send_queue_status(q).ledger.queued, n_taken, "");
    send_queue_free(q);
    intern_free(r.in);
}

/* Scraped profiles are thinned out for scraped ones, not for pushed ones. */
TEST(beside_scraped_ones)
{
    static struct config_endpoint config = {.queue_max_bytes = 20 * 2048, .concurrency = 4};
    struct send_queue *q = send_queue_new(&config, 1);
    struct rig r = {.e = q, .in = intern_new()};
    rig_pushed = RIG_NONE_PUSHED;
    for (unsigned i = 0; i < 8; i++) {
        assert_true(push(&r, 2 * i, 1024));
    }
    rig_pushed = RIG_ALL_PUSHED;
    unsigned n_taken = 0;
    for (unsigned i = 100; i < 200; i++) {
        n_taken += push(&r, 2 * i, 1024);
    }
    assert_true(n_taken > 5 && n_taken < 15);
    CHECK_INT(lost(&r), 0, "");
    rig_pushed = RIG_NONE_PUSHED;
    for (unsigned i = 200; i < 300; i++) {
        (void)push(&r, 2 * i, 1024);
    }
    assert_true(lost(&r) >= 90);
    unsigned n_pushed = 0;
    struct send_item *it;
    while ((it = send_queue_take(q, r.now)) != NULL) {
        n_pushed += send_item_profile(it)->is_pushed;
        send_queue_done(q, it, &answer_sent, r.now);
    }
    CHECK_INT(n_pushed, n_taken, "all of them are left");
    send_queue_free(q);
    intern_free(r.in);
}

TEST_RIG(with_a_full_spool)
{
    bool taken[MANY] = {false};
    unsigned n_taken = 0;
    rig_pushed = RIG_ALL_PUSHED;
    r->max_bytes = 300 * 1024;
    r->spool_bytes = 1 << 20;
    assert_true(rig_open_all(r, NULL));
    for (unsigned i = 0; i < 200; i++) {
        taken[i] = push(r, i, 10 * 1024);
        n_taken += taken[i];
        rig_pass(r, i % 5 == 4 ? 500 : 0);
        CHECK_MEMORY(r);
    }
    CHECK_INT(lost(r), 0, "nothing that was taken");
    assert_true(n_taken > 80 && n_taken < 150);
    assert_true(spool_status(r->s).full);
    assert_true(spool_status(r->s).up);
    assert_true(spool_status(r->s).counts.bytes <= 1 << 20);
    /* Nothing is tried again before there is room. */
    uint64_t calls = r->faults.calls;
    int64_t next = spool_step(r->s, r->now);
    assert_true(next > r->now);
    CHECK_INT(r->faults.calls, calls, "");
    /* The next process has what is on disk, and refuses as well until that has been sent. */
    rig_close_all(r);
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    uint64_t replayed = send_queue_status(r->e).ledger.replayed;
    assert_true(replayed > 80 && replayed <= n_taken);
    for (unsigned i = 200; i < 300; i++) {
        taken[i] = push(r, i, 10 * 1024);
        rig_pass(r, 500);
    }
    assert_false(taken[299]);
    CHECK_INT(lost(r), 0, "");
    unsigned seen[MANY] = {0};
    assert_true(rig_send(r, 60, seen, MANY) == 60);
    rig_pass(r, 500);
    assert_false(spool_status(r->s).full);
    assert_true(push(r, 300, 10 * 1024));
}

/* Profiles that an earlier process left, not read yet, are not dropped for new ones. */
TEST_RIG(full_of_unread_ones)
{
    bool taken[MANY] = {false};
    rig_pushed = RIG_ALL_PUSHED;
    r->spool_bytes = 1 << 20;
    r->max_bytes = 2 << 20;
    assert_true(rig_open_all(r, NULL));
    for (unsigned i = 0; i < 90; i++) {
        taken[i] = push(r, i, 10 * 1024);
    }
    rig_close_all(r);
    r->max_bytes = 40 * 1024; /* an index for some of them only */
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    assert_true(spool_status(r->s).reading);
    for (unsigned i = 90; i < 190; i++) {
        taken[i] = push(r, i, 10 * 1024);
        rig_pass(r, 1000);
        CHECK_MEMORY(r);
    }
    CHECK_INT(lost(r), 0, "");
    send_all(r, taken);
    CHECK_INT(send_queue_status(r->e).ledger.replayed, 90, "");
}

/* Among scraped profiles: these make room on disk, the pushed ones do not. */
TEST_RIG(segments_of_scraped_ones_are_dropped)
{
    bool pushed[MANY] = {false};
    r->max_bytes = 300 * 1024;
    r->spool_bytes = 1 << 20;
    assert_true(rig_open_all(r, NULL));
    rig_pushed = RIG_ALL_PUSHED;
    for (unsigned i = 0; i < 20; i++) {
        pushed[i] = push(r, i, 10 * 1024);
        rig_pass(r, 500);
    }
    rig_pushed = RIG_NONE_PUSHED;
    for (unsigned i = 20; i < 300; i++) {
        (void)push(r, i, 10 * 1024);
        rig_pass(r, 500);
        CHECK_MEMORY(r);
    }
    assert_true(send_queue_status(r->e).ledger.dropped[DROP_SPOOL_FULL] > 100);
    assert_false(spool_status(r->s).full);
    unsigned seen[MANY] = {0};
    rig_pushed = RIG_EVERY_THIRD_PUSHED; /* not compared: the numbers below 20 are pushed */
    struct send_item *it;
    while ((it = rig_take(r)) != NULL) {
        const struct profile *p = send_item_profile(it);
        uint64_t n = 0;
        assert_true(parse_u64(labels_get(p->labels, SV("n")), MANY - 1, &n));
        CHECK_INT(p->is_pushed, n < 20, "");
        seen[n]++;
        send_queue_done(r->e, it, &answer_sent, r->now);
    }
    for (unsigned i = 0; i < 20; i++) {
        assert_true(pushed[i]);
        CHECK_INT(seen[i], 1, "a pushed one");
    }
    assert_true(seen[299] == 1);
}

/* ---- receipts -------------------------------------------------------------------------------- */

/* A sender that waits. */
struct waiter {
    struct loop_task task; /* first: it is found by it */
    struct receipt *receipt;
    bool settled;
};

static void on_settled(struct loop_task *task)
{
    struct waiter *w = (struct waiter *)(void *)task;
    w->settled = true;
}

/* Puts a profile whose sender waits for it. */
static void push_and_wait(struct rig *r, struct loop *loop, struct waiter *w, unsigned n,
                          size_t size)
{
    struct profile *p = rig_profile(r, n, size);
    *w = (struct waiter){.task.run = on_settled, .receipt = receipt_new()};
    assert_non_null(p);
    assert_non_null(w->receipt);
    p->receipt = receipt_ref(w->receipt);
    p->refusable = true;
    if (send_queue_put(r->e, p, r->now) == SEND_REFUSED) {
        send_queue_refused(r->e, false);
    }
    receipt_wait(w->receipt, loop, &w->task);
}

/* The state of a receipt: nothing yet, all is safe, or not. */
static const char *state_of(struct loop *loop, struct waiter *w)
{
    loop_run_once(loop);
    return !w->settled ? "open" : receipt_is_good(w->receipt) ? "safe" : "failed";
}

TEST(receipts)
{
    static const struct answer no = {.class = ANSWER_REJECTED, .answered = true};
    struct rig r;
    struct waiter w[6];
    SCOPED(loop) *loop = loop_new(NULL);
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    rig_init(&r, dir);
    rig_pushed = RIG_ALL_PUSHED;
    r.max_bytes = 64 * 1024;
    r.spool_bytes = 20 * 1024;
    assert_true(rig_open_all(&r, NULL));
    rig_settle(&r);
    /* On disk. */
    push_and_wait(&r, loop, &w[0], 0, 100);
    rig_pass(&r, 499);
    CHECK_STR(state_of(loop, &w[0]), "open", "not written yet");
    rig_pass(&r, 1);
    CHECK_STR(state_of(loop, &w[0]), "safe", "written");
    struct send_item *it = rig_take(&r);
    send_queue_done(r.e, it, &answer_sent, r.now);
    /* Sent, or refused for good, before it is written. */
    push_and_wait(&r, loop, &w[1], 1, 100);
    send_queue_done(r.e, rig_take(&r), &answer_sent, r.now);
    CHECK_STR(state_of(loop, &w[1]), "safe", "sent");
    push_and_wait(&r, loop, &w[2], 2, 100);
    send_queue_done(r.e, rig_take(&r), &no, r.now);
    CHECK_STR(state_of(loop, &w[2]), "safe", "another try would not help");
    /* The profile will never be on disk, and waits. */
    push_and_wait(&r, loop, &w[3], 3, 30 * 1024);
    rig_pass(&r, 1000);
    CHECK_STR(state_of(loop, &w[3]), "open", "larger than the spool");
    /* No room. */
    push_and_wait(&r, loop, &w[4], 4, 63 * 1024);
    CHECK_STR(state_of(loop, &w[4]), "failed", "not taken");
    /* Both are given up at the end. */
    push_and_wait(&r, loop, &w[5], 5, 100);
    send_queue_drop_unsafe(r.e, DROP_SHUTDOWN);
    CHECK_STR(state_of(loop, &w[3]), "failed", "");
    CHECK_STR(state_of(loop, &w[5]), "failed", "");
    for (size_t i = 0; i < sizeof(w) / sizeof(w[0]); i++) {
        receipt_unref(w[i].receipt);
    }
    rig_done(&r);
}

/* Several profiles share a receipt; a wait that is cancelled posts nothing. */
TEST(receipts_of_several_profiles)
{
    SCOPED(loop) *loop = loop_new(NULL);
    struct waiter w = {.task.run = on_settled, .receipt = receipt_new()};
    for (int i = 0; i < 3; i++) {
        receipt_add(w.receipt);
    }
    receipt_end(w.receipt, true);
    receipt_wait(w.receipt, loop, &w.task);
    receipt_end(w.receipt, true);
    CHECK_STR(state_of(loop, &w), "open", "one is left");
    receipt_end(w.receipt, true);
    CHECK_STR(state_of(loop, &w), "safe", "");
    assert_false(receipt_cancel(w.receipt));
    receipt_unref(w.receipt);

    w = (struct waiter){.task.run = on_settled, .receipt = receipt_new()};
    receipt_add(w.receipt);
    receipt_wait(w.receipt, loop, &w.task);
    assert_true(receipt_cancel(w.receipt));
    receipt_end(w.receipt, false);
    loop_run_once(loop);
    assert_false(w.settled);
    receipt_unref(w.receipt);
}
