/* A queue with a spool and no thread: time and every round of the spool belong to the test, and
 * each system call can be made to fail. For the tests of the spool; included once a program.
 */
#ifndef PROFPULL_TESTS_SPOOL_RIG_H
#define PROFPULL_TESTS_SPOOL_RIG_H

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/unit/lib/testing.h"

#include "base/clock.h"
#include "write/queue/send_queue.h"
#include "write/spool/spool.h"

#define RIG_START_MS INT64_C(1000000)

/* Calls of the disk are counted; that number `fail_at` fails, or all from it on. */
struct faults {
    uint64_t calls;
    uint64_t fail_at; /* 0: none */
    bool for_ever;
    bool writes_only; /* a full or read-only disk: what reads works */
    bool short_writes;
    int error;
    uint64_t failed;
    pthread_barrier_t *hang;      /* NULL: none; one write waits there twice */
    pthread_barrier_t *hang_open; /* the same for making the directory */
};

/* The faults of the rig that was made last. */
static struct faults *rig_faults;

/* The profiles that a sender has pushed; the others are scraped. */
enum rig_pushed { RIG_EVERY_THIRD_PUSHED, RIG_NONE_PUSHED, RIG_ALL_PUSHED };
static enum rig_pushed rig_pushed;

static inline bool rig_is_pushed(uint64_t n)
{
    return rig_pushed == RIG_ALL_PUSHED || (rig_pushed == RIG_EVERY_THIRD_PUSHED && n % 3 == 1);
}

struct rig {
    struct faults faults;
    struct intern *in;
    struct testing_log *log;
    struct config_endpoint config;
    struct send_queue *e;
    struct spool *s;
    int64_t now;
    const char *dir;
    unsigned changed;
    unsigned flushed;
    /* How it is made; 0 takes a default. */
    uint64_t max_bytes;
    uint64_t spool_bytes;
    int64_t fsync_ms;
    unsigned concurrency;
    int64_t max_age_ms;
    unsigned tenants; /* of the profiles, in turns; 0: none */
    bool quiet;       /* no log: the test cannot know what will be said */
    bool has_thread;  /* the test calls spool_start(), which opens the directory */
};

static inline bool rig_fails(bool writes)
{
    struct faults *f = rig_faults;
    if (f == NULL || (f->writes_only && !writes))
        return false;
    f->calls++;
    if (f->fail_at == 0 || (f->for_ever ? f->calls < f->fail_at : f->calls != f->fail_at))
        return false;
    f->failed++;
    errno = f->error;
    return true;
}

/* The linker puts these in the place of the functions of the same name (see the Makefile). */
#define RIG_WRAPS(name) __typeof__(name) __wrap_##name, __real_##name
RIG_WRAPS(spool_io_make_directory);
RIG_WRAPS(spool_io_open_directory);
RIG_WRAPS(spool_io_open);
RIG_WRAPS(spool_io_read);
RIG_WRAPS(spool_io_write);
RIG_WRAPS(spool_io_truncate);
RIG_WRAPS(spool_io_sync);
RIG_WRAPS(spool_io_remove);
RIG_WRAPS(spool_io_list);
RIG_WRAPS(spool_io_lock);

/* One call waits at the barrier twice. */
static inline void rig_hang(pthread_barrier_t **barrier)
{
    pthread_barrier_t *hang = *barrier;
    if (hang != NULL) {
        *barrier = NULL;
        pthread_barrier_wait(hang);
        pthread_barrier_wait(hang);
    }
}

int __wrap_spool_io_make_directory(const char *path)
{
    if (rig_faults != NULL)
        rig_hang(&rig_faults->hang_open);
    return rig_fails(true) ? -1 : __real_spool_io_make_directory(path);
}
int __wrap_spool_io_open_directory(const char *path)
{
    return rig_fails(false) ? -1 : __real_spool_io_open_directory(path);
}
int __wrap_spool_io_open(int dir, const char *name, enum spool_open how, uint64_t *size)
{
    return rig_fails(how != SPOOL_OPEN_READ) ? -1 : __real_spool_io_open(dir, name, how, size);
}
ssize_t __wrap_spool_io_read(int fd, void *p, size_t n, uint64_t offset)
{
    return rig_fails(false) ? -1 : __real_spool_io_read(fd, p, n, offset);
}
ssize_t __wrap_spool_io_write(int fd, const struct iovec *parts, int n, uint64_t offset)
{
    struct iovec one = parts[0].iov_len > 0 ? parts[0] : parts[1];
    if (rig_faults != NULL && rig_faults->short_writes) {
        one.iov_len = one.iov_len / 2 + one.iov_len % 2;
        parts = &one;
        n = 1;
    }
    if (rig_faults != NULL)
        rig_hang(&rig_faults->hang);
    return rig_fails(true) ? -1 : __real_spool_io_write(fd, parts, n, offset);
}
int __wrap_spool_io_truncate(int fd, uint64_t size)
{
    return rig_fails(true) ? -1 : __real_spool_io_truncate(fd, size);
}
int __wrap_spool_io_sync(int fd)
{
    (void)fd;
    /* No test loses its power. */
    return rig_fails(true) ? -1 : 0;
}
int __wrap_spool_io_remove(int dir, const char *name)
{
    return rig_fails(true) ? -1 : __real_spool_io_remove(dir, name);
}
int __wrap_spool_io_list(int dir, bool (*fn)(void *, const char *), void *arg)
{
    return rig_fails(false) ? -1 : __real_spool_io_list(dir, fn, arg);
}
int __wrap_spool_io_lock(int fd, bool exclusive)
{
    return rig_fails(false) ? -1 : __real_spool_io_lock(fd, exclusive);
}

static inline void rig_changed(void *arg)
{
    struct rig *r = arg;
    r->changed++;
}

static inline void rig_flushed(void *arg)
{
    struct rig *r = arg;
    r->flushed++;
}

static inline void rig_init(struct rig *r, const char *dir)
{
    memset(r, 0, sizeof(*r));
    r->faults.error = EIO;
    rig_faults = &r->faults;
    rig_pushed = RIG_EVERY_THIRD_PUSHED;
    r->now = RIG_START_MS;
    r->dir = dir;
    r->fsync_ms = 500;
}

/* A new process. False if it does not start, with the reason in *err. */
static inline bool rig_open_all(struct rig *r, struct err *err)
{
    if (r->log == NULL && !r->quiet)
        r->log = testing_log_new();
    if (r->in == NULL)
        r->in = intern_new();
    r->config =
        (struct config_endpoint){.name = "main",
                                 .spool_directory = r->dir,
                                 .spool_max_bytes = r->spool_bytes ? r->spool_bytes : 16 << 20,
                                 .spool_fsync_ms = r->fsync_ms,
                                 .queue_max_bytes = r->max_bytes ? r->max_bytes : 1 << 20,
                                 .concurrency = r->concurrency ? r->concurrency : 4,
                                 .min_backoff_ms = 100,
                                 .max_backoff_ms = 1000,
                                 .max_age_ms = r->max_age_ms};
    r->e = send_queue_new(&r->config, 1);
    if (r->e == NULL || r->in == NULL)
        return false;
    struct spool_options spool = {.config = &r->config,
                                  .flush_threshold = 1 << 30,
                                  .intern = r->in,
                                  .log = r->log != NULL ? testing_log(r->log) : NULL,
                                  .events = send_queue_spool_events(r->e),
                                  .seed = 7};
    spool.events.wake_arg = r;
    spool.events.changed = rig_changed;
    spool.events.flushed = rig_flushed;
    r->s = spool_new(&spool, err);
    if (r->s != NULL)
        send_queue_attach(r->e, r->s);
    if (r->s != NULL && !r->has_thread && !spool_open(r->s, err))
        r->s = spool_free(r->s);
    return r->s != NULL;
}

static inline void check_balance_(struct rig *r, const char *file, int line)
{
    struct write_ledger l = send_queue_status(r->e).ledger;
    uint64_t sum = l.sent + l.merged + l.queued + l.in_flight;
    for (size_t i = 0; i < WRITE_DROPS; i++)
        sum += l.dropped[i];
    check_int_((long long)sum, (long long)(l.accepted + l.replayed), "the ledger balances", file,
               line);
}
#define CHECK_BALANCE(r) check_balance_((r), __FILE__, __LINE__)

/* Checks that the profiles in memory are within the limit. */
#define CHECK_MEMORY(r)                                                                            \
    do {                                                                                           \
        struct send_queue_status s_ = send_queue_status((r)->e);                                   \
        assert_true(s_.ledger.queued_bytes + s_.in_flight_bytes <=                                 \
                    ((r)->max_bytes ? (r)->max_bytes : 1 << 20));                                  \
    } while (0)

/* Rounds of the spool until it has nothing to do at this time. */
static inline void rig_settle(struct rig *r)
{
    for (int i = 0; i < 10000 && spool_step(r->s, r->now) <= r->now; i++)
        CHECK_BALANCE(r);
    CHECK_BALANCE(r);
}

static inline void rig_pass(struct rig *r, int64_t ms)
{
    r->now += ms;
    rig_settle(r);
}

/* The end of the process: what is not sent stays on disk, if it can be written. */
static inline void rig_close_all(struct rig *r)
{
    if (r->e != NULL)
        send_queue_stop(r->e);
    if (r->s != NULL) {
        spool_stop(r->s, r->now);
        CHECK_BALANCE(r);
    }
    r->e = send_queue_free(r->e);
    r->s = spool_free(r->s);
}

static inline void rig_done(struct rig *r)
{
    rig_close_all(r);
    rig_faults = NULL;
    intern_free(r->in);
    r->in = NULL;
    if (r->log != NULL)
        testing_log_done(r->log);
    r->log = NULL;
}
SCOPED_VALUE(rig, rig_done)

/* Begins a case with the rig "r", which has a directory of its own and is not open yet. */
#define TEST_RIG(name)                                                                             \
    static void name##_on(struct rig *r);                                                          \
    TEST(name)                                                                                     \
    {                                                                                              \
        SCOPED_DIRECTORY char *dir = testing_mkdtemp();                                            \
        SCOPED(rig) rig;                                                                           \
        rig_init(&rig, dir);                                                                       \
        name##_on(&rig);                                                                           \
    }                                                                                              \
    static void name##_on(struct rig *r)

/* A profile number n of so many bytes, each containing the number. NULL if out of memory. */
static inline struct profile *rig_profile(struct rig *r, unsigned n, size_t size)
{
    char name[16];
    (void)snprintf(name, sizeof(name), "%u", n);
    struct labels_builder *b = labels_builder_new(r->in);
    if (b == NULL)
        return NULL;
    labels_builder_set_str(b, "__name__", "memory");
    labels_builder_set_str(b, "n", name);
    if (r->tenants > 0) {
        (void)snprintf(name, sizeof(name), "t%u", n % r->tenants);
        labels_builder_set_str(b, LABEL_TENANT, name);
    }
    struct labels *l = labels_builder_build(b);
    labels_builder_free(b);
    char *data = l != NULL ? malloc(size + 1) : NULL;
    if (data == NULL) {
        labels_unref(l);
        return NULL;
    }
    memset(data, (int)('a' + n % 26), size);
    struct profile *p = profile_new(l, data, size);
    if (p == NULL)
        return NULL;
    p->from_ns = 1000 + n;
    p->until_ns = 2000 + n;
    p->scraped_ms = r->now;
    p->is_delta = n % 2 == 1;
    p->is_pushed = rig_is_pushed(n);
    p->format = n % 5 == 4 ? PROFILE_JFR : PROFILE_PPROF;
    return p;
}

static inline void rig_put(struct rig *r, unsigned n, size_t size)
{
    struct profile *p = rig_profile(r, n, size);
    if (p != NULL)
        send_queue_put(r->e, p, r->now);
    CHECK_BALANCE(r);
}

/* The number of a profile; checks everything else of it. */
static inline unsigned rig_number(const struct profile *p)
{
    uint64_t n = 0;
    assert_true(parse_u64(labels_get(p->labels, SV("n")), 1000000, &n));
    CHECK_INT(labels_count(p->labels), 2, "labels");
    CHECK_INT(p->from_ns, 1000 + n, "from");
    CHECK_INT(p->until_ns, 2000 + n, "until");
    CHECK_INT(p->is_delta, n % 2, "delta");
    CHECK_INT(p->is_pushed, rig_is_pushed(n), "pushed");
    CHECK_INT(p->format, n % 5 == 4 ? PROFILE_JFR : PROFILE_PPROF, "format");
    for (size_t i = 0; i < p->size; i++)
        assert_int_equal(p->data[i], 'a' + n % 26);
    return (unsigned)n;
}

static const struct answer answer_sent = {.class = ANSWER_SENT, .answered = true};

/* Takes the next one, from the disk if need be; NULL if there is none. */
static inline struct send_item *rig_take(struct rig *r)
{
    for (int i = 0; i < 3; i++) {
        struct send_item *it = send_queue_take(r->e, r->now);
        CHECK_BALANCE(r);
        if (it != NULL)
            return it;
        rig_settle(r);
    }
    return NULL;
}

/* Sends at most max of what is queued; the numbers go to seen[] (how often each came). */
static inline unsigned rig_send(struct rig *r, unsigned max, unsigned *seen, unsigned n_seen)
{
    unsigned sent = 0;
    struct send_item *it;
    while (sent < max && (it = rig_take(r)) != NULL) {
        unsigned n = rig_number(send_item_profile(it));
        assert_true(n < n_seen);
        seen[n]++;
        sent++;
        send_queue_done(r->e, it, &answer_sent, r->now);
        CHECK_BALANCE(r);
    }
    return sent;
}

#endif
