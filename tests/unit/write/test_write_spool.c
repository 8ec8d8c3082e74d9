/* A queue with a spool: what is on disk when, what comes back after the end of the process, what
 * happens when the disk fails; and the ledger balances after every step. */
#include "tests/unit/write/spool_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned count_files(const char *dir, const char *suffix)
{
    char path[4096];
    unsigned n = 0;
    (void)snprintf(path, sizeof(path), "%s/main", dir);
    DIR *d = opendir(path);
    assert_non_null(d);
    const struct dirent *e;
    while ((e = readdir(d)) != NULL) {
        size_t len = strlen(e->d_name);
        n += len > 4 && strcmp(e->d_name + len - 4, suffix) == 0;
    }
    closedir(d);
    return n;
}

/* ---- what is where --------------------------------------------------------------------------- */

/* A profile that is sent within the time until it would be written never touches the disk. */
TEST_RIG(sent_before_written)
{
    unsigned seen[4] = {0};
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    rig_put(r, 1, 100);
    rig_pass(r, 499);
    CHECK_INT(spool_status(r->s).stored, 0, "not due yet");
    CHECK_INT(spool_status(r->s).waiting, 1, "");
    CHECK_INT(rig_send(r, 9, seen, 4), 1, "");
    rig_pass(r, 1000);
    CHECK_INT(spool_status(r->s).stored, 0, "");
    CHECK_INT(count_files(r->dir, ".seg"), 0, "");
    /* One that waits as long is written. */
    rig_put(r, 2, 100);
    rig_pass(r, 500);
    CHECK_INT(spool_status(r->s).stored, 1, "");
    CHECK_INT(spool_status(r->s).counts.profiles, 1, "");
    CHECK_INT(send_queue_status(r->e).ledger.queued, 1, "counted once");
    CHECK_INT(rig_send(r, 9, seen, 4), 1, "");
    rig_settle(r);
    CHECK_INT(spool_status(r->s).counts.profiles, 0, "");
    rig_done(r);
    CHECK_INT(count_files(r->dir, ".seg") + count_files(r->dir, ".ack"), 0,
              "all done: all removed");
}

TEST_RIG(fsync_always)
{
    r->fsync_ms = CONFIG_FSYNC_ALWAYS;
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    rig_put(r, 1, 100);
    rig_settle(r);
    CHECK_INT(spool_status(r->s).stored, 1, "");
}

TEST_RIG(survives_the_process)
{
    unsigned seen[20] = {0};
    r->concurrency = 1;
    assert_true(rig_open_all(r, NULL));
    for (unsigned i = 0; i < 20; i++) {
        rig_put(r, i, 10 + 1000 * (i % 3));
    }
    rig_pass(r, 500);
    CHECK_INT(rig_send(r, 7, seen, 20), 7, "");
    rig_close_all(r);
    r->now += 5000;
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    struct send_queue_status s = send_queue_status(r->e);
    CHECK_INT(s.ledger.replayed, 13, "");
    CHECK_INT(s.ledger.accepted, 0, "");
    CHECK_INT(s.ledger.queued, 13, "");
    CHECK_INT(s.on_disk_only, 13, "");
    int64_t age = r->now - s.oldest_ms;
    assert_true(age >= 5490 && age <= 5510); /* by the wall clock, which may be slewed */
    assert_false(spool_status(r->s).reading);
    /* New ones come after them. */
    rig_put(r, 0, 10);
    seen[0] = 0;
    CHECK_INT(rig_send(r, 13, seen, 20), 13, "");
    CHECK_INT(seen[0], 0, "the new one is last");
    CHECK_INT(rig_send(r, 99, seen, 20), 1, "");
    for (unsigned i = 0; i < 20; i++) {
        CHECK_INT(seen[i], 1, "each once");
    }
    rig_done(r);
    CHECK_INT(count_files(r->dir, ".seg") + count_files(r->dir, ".ack"), 0, "");
}

/* More than memory takes goes on in order, and nothing is lost. */
TEST_RIG(memory_overflows_to_disk)
{
    unsigned seen[200] = {0};
    r->max_bytes = 240 * 1024;
    r->concurrency = 1; /* one that is read does not let others pass */
    assert_true(rig_open_all(r, NULL));
    for (unsigned i = 0; i < 200; i++) {
        rig_put(r, i, 9 * 1024);
        CHECK_MEMORY(r);
        if (i % 10 == 9) {
            rig_pass(r, 500);
        }
    }
    struct send_queue_status s = send_queue_status(r->e);
    CHECK_INT(s.ledger.queued, 200, "");
    assert_true(s.on_disk_only > 150);
    for (unsigned i = 0; i < 200; i++) {
        struct send_item *it = rig_take(r);
        assert_non_null(it);
        CHECK_INT(rig_number(send_item_profile(it)), i, "in order");
        CHECK_MEMORY(r);
        send_queue_done(r->e, it, &answer_sent, r->now);
        seen[i]++;
    }
}

/* Faster than the disk takes it: what is in memory is thinned out, as without a spool. */
TEST_RIG(too_fast_for_the_disk)
{
    rig_pushed = RIG_NONE_PUSHED;
    r->max_bytes = 10 * 2048;
    assert_true(rig_open_all(r, NULL));
    for (unsigned i = 0; i < 15; i++) {
        rig_put(r, i, 1024);
    }
    uint64_t thinned = send_queue_status(r->e).ledger.dropped[DROP_THINNED];
    assert_true(thinned >= 5 && thinned < 15);
    rig_pass(r, 500);
    CHECK_INT(spool_status(r->s).stored, 15 - thinned, "the dropped ones are not written");
}

/* The spool drops its oldest segment; who still has the bytes in memory loses nothing. */
TEST_RIG(spool_is_full)
{
    unsigned seen[200] = {0};
    rig_pushed = RIG_NONE_PUSHED;
    r->max_bytes = 300 * 1024;
    r->spool_bytes = 1 << 20;
    assert_true(rig_open_all(r, NULL));
    for (unsigned i = 0; i < 200; i++) {
        rig_put(r, i, 10 * 1024);
        if (i % 5 == 4) {
            rig_pass(r, 500);
        }
        assert_true(spool_status(r->s).counts.bytes <= 1 << 20);
        CHECK_MEMORY(r);
    }
    struct send_queue_status s = send_queue_status(r->e);
    uint64_t lost = s.ledger.dropped[DROP_SPOOL_FULL];
    assert_true(lost > 50 && lost < 120);
    assert_true(spool_status(r->s).counts.dropped_segments > 3);
    /* Profiles whose segment has gone fill the memory: some more may have had to go for that. */
    lost += s.ledger.dropped[DROP_THINNED];
    assert_true(s.ledger.dropped[DROP_THINNED] < 30);
    CHECK_INT(rig_send(r, 999, seen, 200), 200 - lost, "");
    unsigned of_the_last = 0;
    for (size_t i = 180; i < 200; i++) {
        of_the_last += seen[i];
    }
    assert_true(of_the_last > 5);
    /* A profile that the spool cannot hold stays in memory. */
    rig_close_all(r);
    r->max_bytes = 8 << 20;
    assert_true(rig_open_all(r, NULL));
    rig_put(r, 1, 2 << 20);
    rig_pass(r, 500);
    CHECK_INT(spool_status(r->s).too_large, 1, "");
    CHECK_INT(rig_send(r, 9, seen, 200), 1, "");
}

/* Profiles that an earlier process left are dropped and counted too, without being read. */
TEST_RIG(full_of_the_past)
{
    unsigned seen[200] = {0};
    rig_pushed = RIG_NONE_PUSHED;
    r->spool_bytes = 1 << 20;
    r->max_bytes = 2 << 20;
    assert_true(rig_open_all(r, NULL));
    for (unsigned i = 0; i < 90; i++) {
        rig_put(r, i, 10 * 1024);
    }
    rig_close_all(r);
    /* An index that is too small for them: most stay unread. */
    r->max_bytes = 40 * 1024;
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    CHECK_INT(send_queue_status(r->e).ledger.replayed, 20 * 1024 / SEND_QUEUE_INDEX_COST, "");
    assert_true(spool_status(r->s).reading);
    for (unsigned i = 90; i < 190; i++) {
        rig_put(r, i, 10 * 1024);
        rig_pass(r, 1000);
        CHECK_MEMORY(r);
    }
    unsigned sent = 0;
    unsigned more;
    while ((more = rig_send(r, 999, seen, 200)) > 0) {
        sent += more;
        rig_pass(r, 1000);
    }
    struct write_ledger l = send_queue_status(r->e).ledger;
    CHECK_INT(l.accepted, 100, "");
    CHECK_INT(l.replayed, 90, "");
    CHECK_INT(l.queued, 0, "");
    CHECK_INT(sent + l.dropped[DROP_SPOOL_FULL] + l.dropped[DROP_THINNED], 190, "");
    CHECK_INT(seen[189], 1, "");
}

TEST_RIG(age_counts_on)
{
    r->max_age_ms = 60000;
    assert_true(rig_open_all(r, NULL));
    rig_put(r, 1, 10);
    r->now += 30000;
    rig_put(r, 2, 10);
    rig_close_all(r);
    r->now += 40000;
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    assert_null(send_queue_take(r->e, r->now)); /* the other one has to be read first */
    CHECK_BALANCE(r);
    struct write_ledger l = send_queue_status(r->e).ledger;
    CHECK_INT(l.replayed, 2, "");
    CHECK_INT(l.dropped[DROP_EXPIRED], 1, "");
    rig_close_all(r);
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    CHECK_INT(send_queue_status(r->e).ledger.replayed, 1, "what has expired does not come back");
}

/* Until the disk knows that a profile was sent, it holds its slot: a process that is killed sends
 * no more twice than may be in flight. */
TEST_RIG(acknowledgement_holds_the_slot)
{
    r->concurrency = 2;
    assert_true(rig_open_all(r, NULL));
    for (unsigned i = 0; i < 5; i++) {
        rig_put(r, i, 10);
    }
    rig_pass(r, 500);
    for (unsigned i = 0; i < 2; i++) {
        struct send_item *it = send_queue_take(r->e, r->now);
        assert_non_null(it);
        send_queue_done(r->e, it, &answer_sent, r->now);
    }
    CHECK_INT(send_queue_status(r->e).ledger.sent, 2, "");
    assert_null(send_queue_take(r->e, r->now));
    r->changed = 0;
    rig_settle(r);
    assert_true(r->changed > 0);
    struct send_item *it = send_queue_take(r->e, r->now);
    assert_non_null(it);
    /* At the end it goes back. */
    send_queue_stop(r->e);
    send_queue_abandon(r->e, it);
    CHECK_BALANCE(r);
    CHECK_INT(send_queue_status(r->e).ledger.queued, 3, "");
}

TEST_RIG(flush_at_the_end)
{
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    rig_put(r, 1, 10);
    send_queue_stop(r->e);
    spool_flush(r->s);
    spool_step(r->s, r->now);
    CHECK_INT(r->flushed, 1, "");
    send_queue_drop_unsafe(r->e, DROP_SHUTDOWN);
    CHECK_INT(send_queue_status(r->e).ledger.queued, 1, "safe");
    CHECK_BALANCE(r);
    rig_close_all(r);
    /* With a disk that takes nothing they are dropped, and counted. */
    r->flushed = 0;
    assert_true(rig_open_all(r, NULL));
    testing_log_expect(r->log, "spool fails");
    rig_settle(r);
    rig_put(r, 2, 10);
    r->faults =
        (struct faults){.writes_only = true, .for_ever = true, .fail_at = 1, .error = ENOSPC};
    send_queue_stop(r->e);
    spool_flush(r->s);
    spool_step(r->s, r->now);
    CHECK_INT(r->flushed, 1, "");
    send_queue_drop_unsafe(r->e, DROP_SHUTDOWN);
    CHECK_INT(send_queue_status(r->e).ledger.dropped[DROP_SHUTDOWN], 1, "");
    CHECK_INT(send_queue_status(r->e).ledger.queued, 1, "that of the first process");
}

/* ---- one directory, two processes ------------------------------------------------------------ */

TEST(two_processes)
{
    struct rig a;
    struct rig b;
    struct err err = ERR_INIT;
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    rig_init(&a, dir);
    rig_init(&b, dir);
    assert_true(rig_open_all(&a, NULL));
    assert_false(rig_open_all(&b, &err));
    CHECK_CONTAINS(err.msg, "/main: another process uses this directory", "");
    rig_close_all(&a);
    b.e = send_queue_free(b.e);
    assert_true(rig_open_all(&b, NULL));
    rig_done(&b);
    rig_done(&a);
}

TEST(wrong_place)
{
    struct rig r;
    struct err err = ERR_INIT;
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    char path[4096];
    testing_write_file(dir, "file", "x");
    (void)snprintf(path, sizeof(path), "%s/file", dir);
    rig_init(&r, path);
    assert_false(rig_open_all(&r, &err));
    CHECK_CONTAINS(err.msg, "Not a directory", "");
    rig_done(&r);
}

/* ---- the disk fails and comes back ----------------------------------------------------------- */

/* Memory takes over, and the ledger balances all the while. */
TEST(disk_fails_and_recovers)
{
    static const int errors[] = {ENOSPC, EIO, EROFS, EDQUOT};
    for (size_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++) {
        SCOPED_DIRECTORY char *dir = testing_mkdtemp();
        SCOPED(rig) r;
        unsigned seen[40] = {0};
        rig_init(&r, dir);
        assert_true(rig_open_all(&r, NULL));
        testing_log_expect(r.log, "spool fails, profiles are kept in memory only");
        rig_settle(&r);
        rig_put(&r, 0, 500);
        rig_pass(&r, 500);
        r.faults.writes_only = r.faults.for_ever = true;
        r.faults.fail_at = r.faults.calls + 1;
        r.faults.error = errors[k];
        for (unsigned i = 1; i < 20; i++) {
            rig_put(&r, i, 500);
            rig_pass(&r, 1000);
        }
        assert_false(spool_status(r.s).up);
        CHECK_INT(spool_status(r.s).stored, 1, "");
        CHECK_INT(send_queue_status(r.e).ledger.queued, 20, "in memory");
        /* Sending goes on, from memory. */
        CHECK_INT(rig_send(&r, 10, seen, 40), 10, "");
        const char *log = testing_log_text(r.log);
        const char *first = strstr(log, "spool fails");
        assert_non_null(first);
        assert_null(strstr(first + 1, "spool fails"));
        r.faults.fail_at = 0;
        rig_pass(&r, SPOOL_RETRY_MAX_MS);
        assert_true(spool_status(r.s).up);
        CHECK_CONTAINS(testing_log_text(r.log), "spool works again", "");
        CHECK_INT(spool_status(r.s).stored, 11, "what waited is written");
        rig_close_all(&r);
        assert_true(rig_open_all(&r, NULL));
        rig_settle(&r);
        CHECK_INT(send_queue_status(r.e).ledger.replayed, 10, "");
        CHECK_INT(rig_send(&r, 99, seen, 40), 10, "");
        for (unsigned i = 0; i < 20; i++) {
            CHECK_INT(seen[i], 1, "each once");
        }
    }
}

/* At the start: nothing is there yet, and nothing can be made. */
TEST_RIG(starts_without_a_disk)
{
    unsigned seen[4] = {0};
    r->faults.for_ever = true;
    r->faults.fail_at = 1;
    r->faults.error = EROFS;
    assert_true(rig_open_all(r, NULL));
    testing_log_expect(r->log, "spool fails");
    rig_put(r, 1, 10);
    rig_pass(r, 1000);
    assert_false(spool_status(r->s).up);
    CHECK_INT(rig_send(r, 9, seen, 4), 1, "");
    rig_put(r, 2, 10);
    r->faults.fail_at = 0;
    rig_pass(r, SPOOL_RETRY_MAX_MS);
    assert_true(spool_status(r->s).up);
    CHECK_INT(spool_status(r->s).stored, 1, "");
}

/* Profiles that are only on disk wait until they can be read again; those in memory go on. */
TEST_RIG(reading_fails_for_a_while)
{
    unsigned seen[8] = {0};
    assert_true(rig_open_all(r, NULL));
    rig_put(r, 0, 10);
    rig_put(r, 1, 10);
    rig_close_all(r);
    assert_true(rig_open_all(r, NULL));
    testing_log_expect(r->log, "spool cannot be read");
    rig_settle(r);
    rig_put(r, 2, 10);
    r->faults.for_ever = true;
    r->faults.fail_at = r->faults.calls + 1;
    CHECK_INT(rig_send(r, 9, seen, 8), 1, "");
    CHECK_INT(seen[2], 1, "");
    assert_true(send_queue_wake_ms(r->e) < INT64_MAX);
    r->faults.fail_at = 0;
    r->now += 2 * SEND_QUEUE_LOAD_REST_MS;
    CHECK_INT(rig_send(r, 9, seen, 8), 2, "");
    CHECK_INT(send_queue_status(r->e).ledger.sent, 3, "");
}

TEST_RIG(directory_vanishes)
{
    char path[4096];
    unsigned seen[8] = {0};
    assert_true(rig_open_all(r, NULL));
    testing_log_expect(r->log, "spool");
    rig_settle(r);
    (void)snprintf(path, sizeof(path), "%s/main", r->dir);
    testing_rmdir(path);
    rig_put(r, 1, 10);
    for (int i = 0; i < 5; i++) {
        rig_pass(r, SPOOL_RETRY_MAX_MS);
    }
    CHECK_INT(spool_status(r->s).stored, 1, "made again");
    CHECK_INT(rig_send(r, 9, seen, 8), 1, "");
}

/* Every call of the disk fails, one after the other, with a full write and with short ones. */
TEST(every_call_fails_once)
{
    static const int errors[] = {EIO, ENOSPC, EINTR};
    uint64_t runs = 0;
    for (size_t k = 0; k < 3; k++) {
        for (uint64_t n = 1;; n++, runs++) {
            struct rig r;
            struct err err = ERR_INIT;
            char *dir = testing_mkdtemp();
            unsigned seen[60] = {0};
            rig_init(&r, dir);
            r.quiet = true;
            r.max_bytes = 30 * 1024;
            r.spool_bytes = 1 << 20;
            r.faults.error = errors[k];
            r.faults.fail_at = n;
            r.faults.short_writes = n % 2 == 0;
            bool opened = rig_open_all(&r, &err);
            assert_true(opened || err.msg[0] != '\0');
            if (opened) {
                for (unsigned i = 0; i < 30; i++) {
                    rig_put(&r, i, 2000);
                    rig_pass(&r, 500);
                }
                rig_pass(&r, SPOOL_RETRY_MAX_MS);
                (void)rig_send(&r, 10, seen, 60);
                rig_close_all(&r);
            } else {
                r.e = send_queue_free(r.e);
            }
            opened = rig_open_all(&r, &err);
            assert_true(opened || r.faults.failed > 0);
            if (opened) {
                for (int i = 0; i < 8; i++) {
                    rig_pass(&r, SPOOL_RETRY_MAX_MS);
                }
                unsigned sent = rig_send(&r, 999, seen, 60);
                /* One that could not be read is tried again after a rest. */
                r.now += 2 * SEND_QUEUE_LOAD_REST_MS;
                sent += rig_send(&r, 999, seen, 60);
                struct write_ledger l = send_queue_status(r.e).ledger;
                CHECK_INT(l.sent, sent, "");
                CHECK_INT(l.queued, 0, "");
            }
            bool failed = r.faults.failed > 0;
            rig_done(&r);
            testing_directory_leave(&dir);
            if (!failed) {
                break;
            }
        }
    }
    assert_true(runs > 300);
}

/* The tenant of what is only on disk is known when it has been read. One that rests then holds up
 * nobody, wherever its profiles are. */
TEST(tenants_of_the_past)
{
    static const struct answer limited = {.class = ANSWER_RETRY_DOUBTFUL,
                                          .scope = ANSWER_OF_TENANT,
                                          .answered = true,
                                          .tries = ANSWER_RATE_TRIES,
                                          .delay_ms = 60000};
    struct rig r;
    struct send_item *it;
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    rig_init(&r, dir);
    r.tenants = 4;
    r.max_bytes = 100 * 1024; /* ten of them */
    assert_true(rig_open_all(&r, NULL));
    for (unsigned i = 0; i < 40; i++) {
        rig_put(&r, i, 9 * 1024);
        rig_pass(&r, 500);
    }
    rig_close_all(&r);
    assert_true(rig_open_all(&r, NULL));
    rig_settle(&r);
    CHECK_INT(send_queue_status(r.e).ledger.replayed, 40, "");
    CHECK_INT(send_queue_status(r.e).lanes.tenants, 0, "none is known");
    unsigned refused = 0;
    while ((it = rig_take(&r)) != NULL) {
        struct sv tenant = labels_get(send_item_profile(it)->labels, SV(LABEL_TENANT));
        bool bad = sv_eq_str(tenant, "t0");
        refused += bad;
        send_queue_done(r.e, it, bad ? &limited : &answer_sent, r.now);
        CHECK_BALANCE(&r);
        CHECK_MEMORY(&r);
    }
    struct send_queue_status s = send_queue_status(r.e);
    CHECK_INT(s.ledger.sent, 30, "all others");
    CHECK_INT(s.ledger.queued, 10, "");
    CHECK_INT(refused, 1, "one request of the tenant that rests");
    CHECK_INT(s.lanes.tenants, 4, "");
    CHECK_INT(send_queue_wake_ms(r.e), r.now + 60000, "");
    r.now += 60000;
    for (int i = 0; i < 20 && send_queue_status(r.e).ledger.queued > 0; i++) {
        while ((it = rig_take(&r)) != NULL) {
            send_queue_done(r.e, it, &answer_sent, r.now);
            CHECK_BALANCE(&r);
        }
        rig_pass(&r, 250);
    }
    CHECK_INT(send_queue_status(r.e).ledger.sent, 40, "");
    rig_done(&r);
}
