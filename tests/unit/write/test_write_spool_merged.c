/* Deltas that are on disk are merged. Whenever the process ends, either the result is on disk or
 * its parts are, never both and never neither. */
#include <unistd.h>

#include "tests/unit/write/merge_rig.h"
#include "tests/unit/write/spool_rig.h"

struct outage {
    struct rig r;
    char *dir;
    int64_t sum; /* of what was put */
    int64_t sent;
};

static void load(void *arg)
{
    rig_settle(arg);
}

static void begin(struct outage *o, char *dir)
{
    *o = (struct outage){.dir = dir};
    rig_init(&o->r, dir);
    o->r.max_age_ms = MS_PER_HOUR;
    o->r.spool_bytes = 2 << 20;
    o->r.max_bytes = 1 << 20;
    o->r.quiet = true;
    assert_true(rig_open_all(&o->r, NULL));
    rig_settle(&o->r);
    merge_rig_load = load;
    merge_rig_arg = &o->r;
}

static void put_deltas(struct outage *o, int n)
{
    for (int i = 0; i < n; i++) {
        struct profile *p = make_delta(1, i % 3, 1 << i % 10, i, o->r.now);
        o->sum += 1 << i % 10;
        CHECK_INT(send_queue_put(o->r.e, p, o->r.now), SEND_TAKEN, "");
    }
}

static void send_all(struct outage *o)
{
    struct send_item *it;
    while ((it = rig_take(&o->r)) != NULL) {
        o->sent += sums_of(send_item_profile(it)).counter;
        send_queue_done(o->r.e, it, &answer_sent, o->r.now);
        CHECK_BALANCE(&o->r);
    }
}

static void end(struct outage *o)
{
    rig_done(&o->r);
    testing_directory_leave(&o->dir);
}

/* So late that all of them are old. */
static size_t merge_old(struct outage *o)
{
    o->r.now = RIG_START_MS + MS_PER_HOUR / 100 * (MERGE_AGE_PERCENT + 1);
    return merge_round(o->r.e, o->r.now);
}

/* Merged once on disk, once before that, and sent. */
TEST_WITH(merged_on_disk, setup, teardown)
{
    struct outage o;
    begin(&o, testing_mkdtemp());
    put_deltas(&o, 10);
    rig_pass(&o.r, 500);
    CHECK_INT(spool_status(o.r.s).counts.profiles, 10, "");
    CHECK_INT(merge_old(&o), 1, "");
    CHECK_INT(balance(o.r.e).queued, 1, "");
    CHECK_INT(spool_status(o.r.s).counts.profiles, 10, "the parts stay until the result is there");
    rig_pass(&o.r, 500);
    CHECK_INT(spool_status(o.r.s).counts.profiles, 1, "");
    rig_close_all(&o.r);
    assert_true(rig_open_all(&o.r, NULL));
    rig_settle(&o.r);
    CHECK_INT(balance(o.r.e).replayed, 1, "");
    send_all(&o);
    CHECK_INT(o.sent, o.sum, "");
    rig_settle(&o.r);
    CHECK_INT(spool_status(o.r.s).counts.profiles, 0, "");
    end(&o);
}

/* A merged profile is sent before it was written: then its parts are done, too. */
TEST_WITH(sent_before_written, setup, teardown)
{
    struct outage o;
    begin(&o, testing_mkdtemp());
    put_deltas(&o, 10);
    rig_pass(&o.r, 500);
    CHECK_INT(merge_old(&o), 1, "");
    put_deltas(&o, 2);
    CHECK_INT(merge_round(o.r.e, o.r.now + MS_PER_HOUR), 1, "merged again");
    CHECK_INT(balance(o.r.e).queued, 1, "");
    o.r.now += 10;
    send_all(&o);
    CHECK_INT(o.sent, o.sum, "");
    rig_settle(&o.r);
    CHECK_INT(spool_status(o.r.s).counts.profiles, 0, "nothing is left to replay");
    CHECK_INT(spool_status(o.r.s).waiting, 0, "");
    rig_close_all(&o.r);
    assert_true(rig_open_all(&o.r, NULL));
    rig_settle(&o.r);
    CHECK_INT(balance(o.r.e).replayed, 0, "");
    end(&o);
}

/* The disk stops for good at one call after the other, which is what the end of the process looks
 * like from there. What had been on disk is there, once. */
static bool ends_at_call(uint64_t n, bool twice)
{
    struct outage o;
    begin(&o, testing_mkdtemp());
    put_deltas(&o, 12);
    rig_pass(&o.r, 500);
    CHECK_INT(spool_status(o.r.s).counts.profiles, 12, "");
    o.r.faults.for_ever = true;
    o.r.faults.fail_at = o.r.faults.calls + n;
    CHECK_INT(merge_old(&o), 1, "");
    if (twice) {
        rig_pass(&o.r, 500);
        put_deltas(&o, 1);
        o.sum--; /* it may never have reached the disk */
        CHECK_INT(merge_round(o.r.e, o.r.now + MS_PER_HOUR), 1, "");
    }
    rig_pass(&o.r, 500);
    rig_pass(&o.r, 500);
    bool failed = o.r.faults.failed > 0;
    rig_close_all(&o.r);
    o.r.faults.fail_at = 0;
    assert_true(rig_open_all(&o.r, NULL));
    rig_settle(&o.r);
    send_all(&o);
    int64_t more = o.sent - o.sum;
    assert_true(more == 0 || (twice && more == 1));
    end(&o);
    return failed;
}

TEST_WITH(ends_at_any_time, setup, teardown)
{
    uint64_t n = 1;
    while (ends_at_call(n, false)) {
        n++;
    }
    assert_true(n > 10);
    n = 1;
    while (ends_at_call(n, true)) {
        n++;
    }
    print_message("%llu calls\n", (unsigned long long)n);
    assert_true(n > 12);
}

/* Each call fails once: the process goes on, and loses nothing. */
TEST_WITH(every_call_fails_once, setup, teardown)
{
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        struct outage o;
        begin(&o, testing_mkdtemp());
        put_deltas(&o, 4);
        rig_pass(&o.r, 500);
        o.r.faults.fail_at = o.r.faults.calls + n;
        put_deltas(&o, 4);
        CHECK_INT(merge_old(&o), 1, "");
        for (int i = 0; i < 4; i++) {
            rig_pass(&o.r, SPOOL_RETRY_MAX_MS);
        }
        failed = o.r.faults.failed > 0;
        o.r.faults.fail_at = 0;
        rig_close_all(&o.r);
        o.r.max_age_ms = 0;
        assert_true(rig_open_all(&o.r, NULL));
        rig_settle(&o.r);
        send_all(&o);
        CHECK_INT(o.sent, o.sum, "");
        end(&o);
    }
}

/* A disk that has room for a few of them, and memory for fewer: all that is dropped is what cannot
 * be merged. */
TEST_WITH(disk_is_full, setup, teardown)
{
    struct outage o;
    begin(&o, testing_mkdtemp());
    rig_close_all(&o.r);
    o.r.spool_bytes = 512 * 1024;
    o.r.max_bytes = 40 * 1024;
    assert_true(rig_open_all(&o.r, NULL));
    rig_settle(&o.r);
    for (int i = 0; i < 400; i++) {
        put_deltas(&o, 8);
        rig_pass(&o.r, 500);
        CHECK_MEMORY(&o.r);
        if (merging_is_due(o.r.e, o.r.now)) {
            (void)merge_round(o.r.e, o.r.now);
            CHECK_MEMORY(&o.r);
        }
    }
    struct write_ledger l = balance(o.r.e);
    CHECK_INT(dropped_sum(&l), 0, "");
    assert_true(l.merged > 1000);
    rig_close_all(&o.r);
    o.r.max_bytes = 1 << 20;
    assert_true(rig_open_all(&o.r, NULL));
    rig_settle(&o.r);
    send_all(&o);
    CHECK_INT(o.sent, o.sum, "");
    end(&o);
}

/* Parts are asked for, and do not come. What is in memory is merged and sent meanwhile, and the end
 * of the process loses nothing. */
TEST_WITH(disk_hangs, setup, teardown)
{
    struct outage o;
    begin(&o, testing_mkdtemp());
    o.r.max_age_ms = MS_PER_HOUR;
    for (int i = 0; i < 12; i++) {
        put_deltas(&o, 50);
        rig_pass(&o.r, 500);
    }
    /* The large profile takes the memory of the youngest; the others come from disk. */
    struct profile *large = make_gauge(7, o.r.now, 500 * (size_t)1024);
    CHECK_INT(send_queue_put(o.r.e, large, o.r.now), SEND_TAKEN, "");
    assert_true(send_queue_status(o.r.e).on_disk_only > 100);
    o.r.now = RIG_START_MS + MS_PER_HOUR / 100 * (MERGE_AGE_PERCENT + 1);
    struct merge_candidate *plan = NULL;
    assert_true(merging_plan(o.r.e, o.r.now, &plan) > 0);
    struct merge_job *job = NULL;
    for (int i = 0; i < 20 && job == NULL && !merging_is_loading(o.r.e); i++) {
        job = merging_take(o.r.e, &plan[0]);
        if (job != NULL) {
            merging_run(job, NULL, MERGE_BYTES_MAX);
            merging_done(job, o.r.now);
            job = NULL;
        }
    }
    free(plan);
    assert_true(merging_is_loading(o.r.e));
    assert_null(merging_loaded(o.r.e));
    uint64_t merged = balance(o.r.e).merged;
    for (int i = 0; i < 6; i++) {
        struct profile *p = make_delta(2, i, 1 << i, 1, o.r.now - MS_PER_HOUR + 1000);
        o.sum += 1 << i;
        CHECK_INT(send_queue_put(o.r.e, p, o.r.now), SEND_TAKEN, "");
    }
    CHECK_INT(merging_is_due(o.r.e, o.r.now), true, "");
    assert_true(merging_plan(o.r.e, o.r.now, &plan) > 0);
    for (size_t i = 0; i < 1; i++) {
        job = merging_take(o.r.e, &plan[i]);
        assert_non_null(job);
        merging_run(job, NULL, MERGE_BYTES_MAX);
        merging_done(job, o.r.now);
    }
    free(plan);
    assert_true(balance(o.r.e).merged > merged);
    rig_close_all(&o.r);
    o.r.max_age_ms = 0;
    assert_true(rig_open_all(&o.r, NULL));
    rig_settle(&o.r);
    int64_t sent = 0;
    struct send_item *it;
    while ((it = rig_take(&o.r)) != NULL) {
        bool is_delta = send_item_profile(it)->is_delta;
        sent += is_delta ? sums_of(send_item_profile(it)).counter : 0;
        send_queue_done(o.r.e, it, &answer_sent, o.r.now);
    }
    CHECK_INT(sent, o.sum, "");
    end(&o);
}

/* Takes a job whose parts are read from the disk. */
static void load_parts(struct outage *o)
{
    for (int i = 0; i < 12; i++) {
        put_deltas(o, 50);
        rig_pass(&o->r, 500);
    }
    /* This profile takes the memory of the youngest deltas. */
    struct profile *large = make_gauge(7, o->r.now, 500 * (size_t)1024);
    CHECK_INT(send_queue_put(o->r.e, large, o->r.now), SEND_TAKEN, "");
    rig_pass(&o->r, 500);
    o->r.now = RIG_START_MS + MS_PER_HOUR / 100 * (MERGE_AGE_PERCENT + 1);
    struct merge_candidate *plan = NULL;
    assert_true(merging_plan(o->r.e, o->r.now, &plan) > 0);
    for (int i = 0; i < 20 && !merging_is_loading(o->r.e); i++) {
        struct merge_job *job = merging_take(o->r.e, &plan[0]);
        if (job != NULL) {
            merging_run(job, NULL, MERGE_BYTES_MAX);
            merging_done(job, o->r.now);
        }
    }
    free(plan);
    assert_true(merging_is_loading(o->r.e));
}

/* Somebody removes the file that the parts of a job are in, before they are read. The spool reports
 * them as lost while the job holds them; they are dropped when they should be sent. */
TEST_WITH(parts_are_removed, setup, teardown)
{
    struct outage o;
    char segment[512];
    begin(&o, testing_mkdtemp());
    load_parts(&o);
    (void)snprintf(segment, sizeof(segment), "%s/main/0000000000000001.seg", o.dir);
    CHECK_INT(unlink(segment), 0, "");
    rig_settle(&o.r);
    rig_pass(&o.r, SPOOL_CHECK_MS);
    struct merge_job *job = merging_loaded(o.r.e);
    assert_non_null(job);
    merging_run(job, NULL, MERGE_BYTES_MAX);
    merging_done(job, o.r.now);
    (void)balance(o.r.e);
    /* Each pass asks the spool for a few of the parts, which it does not have any more. */
    for (int i = 0; i < 100 && balance(o.r.e).queued > 0; i++) {
        send_all(&o);
    }
    struct write_ledger l = balance(o.r.e);
    CHECK_INT(l.queued, 0, "");
    CHECK_INT(l.sent + l.merged + l.dropped[DROP_DAMAGED] + l.dropped[DROP_SPOOL_FULL], l.accepted,
              "");
    assert_true(l.dropped[DROP_SPOOL_FULL] > 0);
    end(&o);
}

/* A label of that name in a configuration means nothing. */
TEST_WITH(label_of_that_name, setup, teardown)
{
    struct outage o;
    begin(&o, testing_mkdtemp());
    put_deltas(&o, 3);
    rig_pass(&o.r, 500);
    struct profile *p = make_delta(1, 1, 64, 1, o.r.now);
    profile_set_labels(p, testing_labels(table, "__name__", "memory", SPOOL_REPLACES_LABEL,
                                         "0000000000000001:00000200", NULL));
    o.sum += 64;
    send_queue_put(o.r.e, p, o.r.now);
    rig_pass(&o.r, 500);
    rig_close_all(&o.r);
    assert_true(rig_open_all(&o.r, NULL));
    rig_settle(&o.r);
    send_all(&o);
    CHECK_INT(o.sent, o.sum, "");
    end(&o);
}
