/* The queue and its spool with their threads: one puts, one sends, the spool's own writes, reads
 * back and acknowledges, and now and then everything starts again. Nothing is lost, and the ledger
 * balances whenever somebody looks. For the thread sanitizer above all. */
#include "tests/unit/write/spool_rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define PROFILES 600
#define LIVES 4

static void *put_all(void *arg)
{
    struct rig *r = arg;
    for (unsigned i = 0; i < PROFILES; i++) {
        struct profile *p = rig_profile(r, i, 200 + i % 3000);
        assert_non_null(p);
        p->scraped_ms = clock_mono_ms();
        send_queue_put(r->e, p, clock_mono_ms());
        if (i % 50 == 0) {
            usleep(2000);
        }
    }
    return NULL;
}

/* Sends until so many have gone, or what is there is gone. */
static unsigned send_some(struct rig *r, unsigned most, unsigned *seen)
{
    unsigned sent = 0;
    while (sent < most) {
        struct send_item *it = send_queue_take(r->e, clock_mono_ms());
        struct write_ledger l = send_queue_status(r->e).ledger;
        CHECK_BALANCE(r);
        if (it != NULL) {
            seen[rig_number(send_item_profile(it))]++;
            send_queue_done(r->e, it, &answer_sent, clock_mono_ms());
            sent++;
        } else if (l.queued + l.in_flight == 0 && !spool_status(r->s).reading) {
            break;
        } else {
            usleep(100);
        }
    }
    return sent;
}

TEST(threads)
{
    SCOPED_MEMORY char *dir = testing_mkdtemp();
    unsigned *seen = calloc(PROFILES, sizeof(*seen));
    uint64_t dropped = 0;
    unsigned sent = 0;
    for (unsigned life = 0; life < LIVES; life++) {
        SCOPED(rig) r;
        pthread_t putter;
        rig_init(&r, dir);
        r.fsync_ms = life % 2 == 0 ? 1 : CONFIG_FSYNC_ALWAYS;
        r.max_bytes = life % 2 == 0 ? 1 << 20 : 8 << 20;
        assert_true(rig_open_all(&r, NULL));
        assert_true(spool_start(r.s, SPOOL_OPEN_WAIT_MS, NULL));
        assert_int_equal(pthread_create(&putter, NULL, put_all, &r), 0);
        sent += send_some(&r, PROFILES / 3, seen);
        pthread_join(putter, NULL);
        if (life + 1 == LIVES) {
            sent += send_some(&r, UINT32_MAX, seen);
        }
        send_queue_stop(r.e);
        spool_stop(r.s, clock_mono_ms());
        CHECK_BALANCE(&r);
        struct write_ledger l = send_queue_status(r.e).ledger;
        for (size_t i = 0; i < WRITE_DROPS; i++) {
            dropped += l.dropped[i];
        }
    }
    CHECK_INT(sent + dropped, LIVES * PROFILES, "each was sent or counted");
    testing_rmdir(dir);
    free(seen);
}

/* A call of the disk that does not return is seen from outside, and what is put meanwhile is sent.
 */
TEST(a_disk_that_hangs)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    unsigned *seen = calloc(PROFILES, sizeof(*seen));
    pthread_barrier_t hang;
    struct rig r;
    pthread_barrier_init(&hang, NULL, 2);
    rig_init(&r, dir);
    r.fsync_ms = CONFIG_FSYNC_ALWAYS;
    assert_true(rig_open_all(&r, NULL));
    CHECK_INT(spool_hung_ms(r.s, INT64_MAX), 0, "before it has begun");
    r.faults.hang = &hang;
    assert_true(spool_start(r.s, SPOOL_OPEN_WAIT_MS, NULL));
    send_queue_put(r.e, rig_profile(&r, 0, 300), clock_mono_ms());
    pthread_barrier_wait(&hang);
    int64_t now = clock_mono_ms();
    CHECK_INT(spool_hung_ms(r.s, now + 60000) >= 60000, true, "it hangs");
    CHECK_INT(spool_hung_ms(r.s, now), 0, "not for long yet");
    struct profile *p = rig_profile(&r, 1, 300);
    p->scraped_ms = now;
    send_queue_put(r.e, p, now);
    unsigned sent = 0;
    struct send_item *it;
    while ((it = send_queue_take(r.e, clock_mono_ms())) != NULL) {
        seen[rig_number(send_item_profile(it))]++;
        send_queue_done(r.e, it, &answer_sent, clock_mono_ms());
        sent++;
    }
    CHECK_INT(sent, 2, "from memory");
    pthread_barrier_wait(&hang);
    send_queue_stop(r.e);
    spool_stop(r.s, clock_mono_ms());
    CHECK_INT(spool_hung_ms(r.s, INT64_MAX), 0, "it is over");
    rig_done(&r);
    pthread_barrier_destroy(&hang);
    free(seen);
}

/* The disk hangs when the directory is to be opened. The start goes on, profiles are sent from
 * memory, and they are written when the disk answers. */
TEST(a_disk_that_hangs_at_the_start)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    pthread_barrier_t hang;
    struct rig r;
    pthread_barrier_init(&hang, NULL, 2);
    rig_init(&r, dir);
    r.fsync_ms = CONFIG_FSYNC_ALWAYS;
    r.has_thread = true;
    r.faults.hang_open = &hang;
    assert_true(rig_open_all(&r, NULL));
    testing_log_expect(r.log, "spool does not answer");
    assert_true(spool_start(r.s, 1, NULL));
    assert_false(spool_is_opened(r.s));
    pthread_barrier_wait(&hang);
    int64_t now = clock_mono_ms();
    CHECK_INT(spool_hung_ms(r.s, now + 60000) >= 60000, true, "it hangs");
    for (unsigned n = 0; n < 2; n++) {
        struct profile *p = rig_profile(&r, n, 300);
        p->scraped_ms = now;
        send_queue_put(r.e, p, now);
    }
    struct send_item *it = send_queue_take(r.e, now);
    assert_non_null(it);
    send_queue_done(r.e, it, &answer_sent, now);
    CHECK_INT(spool_status(r.s).stored, 0, "");
    pthread_barrier_wait(&hang);
    while (spool_status(r.s).stored == 0) {
        usleep(100);
    }
    CHECK_INT(spool_status(r.s).up, true, "");
    CHECK_INT(send_queue_status(r.e).ledger.queued, 1, "");
    send_queue_stop(r.e);
    spool_stop(r.s, clock_mono_ms());
    rig_done(&r);
    pthread_barrier_destroy(&hang);
}

/* Errors that somebody has to see end the start, as long as it waits for the disk. */
TEST(errors_of_the_start)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    SCOPED(rig) first;
    SCOPED(rig) second;
    struct err err = ERR_INIT;
    rig_init(&first, dir);
    assert_true(rig_open_all(&first, NULL));
    rig_init(&second, dir);
    second.has_thread = true;
    assert_true(rig_open_all(&second, NULL));
    assert_false(spool_start(second.s, 600000, &err));
    CHECK_CONTAINS(err.msg, "another process uses this directory", "");
}
