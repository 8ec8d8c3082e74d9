#include "write/spool/spool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "write/spool/spool_private.h"

/* The most loads and releases in one round, and the most heads that are read, before profiles are
 * written. */
#define ROUND_REQUESTS 64
#define ROUND_HEADS 64
/* The interval at which a profile is offered again if the queue had no room for it. */
#define ROOM_POLL_MS INT64_C(1000)
#define READ_RETRY_MS INT64_C(1000)
#define LOG_PERIOD_MS INT64_C(60000)
#define LINES 2

/* ---- failure and recovery; the thread -------------------------------------------------------- */

static void note_failure(struct spool *s, const struct err *err, int64_t now_ms)
{
    uint32_t suppressed = 0;
    bool news = s->own.up;
    /* All failures between two retries count as one. */
    if (!s->own.up && now_ms < s->retry_ms) {
        return;
    }
    s->own.up = false;
    s->backoff_ms = s->backoff_ms == 0 ? SPOOL_RETRY_MIN_MS : s->backoff_ms * 2;
    if (s->backoff_ms > SPOOL_RETRY_MAX_MS) {
        s->backoff_ms = SPOOL_RETRY_MAX_MS;
    }
    s->retry_ms = now_ms + s->backoff_ms;
    if (news && log_limit_allow(&s->failure_limit, now_ms, LOG_PERIOD_MS, LINES, &suppressed)) {
        log_warn(s->options.log, "spool fails, profiles are kept in memory only",
                 LOG_STR("endpoint", s->options.config->name), LOG_ERR(err),
                 LOG_INT("suppressed", suppressed));
    }
}

static void recover(struct spool *s)
{
    if (!s->own.up) {
        log_info(s->options.log, "spool works again", LOG_STR("endpoint", s->options.config->name));
    }
    s->own.up = true;
    s->backoff_ms = 0;
}

static void say_read_failure(struct spool *s, const struct err *err, int64_t now_ms)
{
    uint32_t suppressed = 0;
    if (log_limit_allow(&s->read_limit, now_ms, LOG_PERIOD_MS, LINES, &suppressed)) {
        log_warn(s->options.log, "spool cannot be read",
                 LOG_STR("endpoint", s->options.config->name), LOG_ERR(err),
                 LOG_INT("suppressed", suppressed));
    }
}

static void say_damage(struct spool *s, int64_t now_ms)
{
    const struct spool_counts *c = spool_store_counts(s->store);
    uint32_t suppressed = 0;
    if (c->damaged == s->said_damaged ||
        !log_limit_allow(&s->read_limit, now_ms, LOG_PERIOD_MS, LINES, &suppressed)) {
        return;
    }
    log_warn(s->options.log, "damaged places of the spool were skipped",
             LOG_STR("endpoint", s->options.config->name),
             LOG_INT("places", c->damaged - s->said_damaged), LOG_INT("bytes", c->damaged_bytes));
    s->said_damaged = c->damaged;
}

/* Logs skipped segments. They may hold profiles that are not sent: a newer version has written
 * them, or they are not profpull's. */
static void say_skipped(struct spool *s, int64_t now_ms)
{
    const struct spool_counts *c = spool_store_counts(s->store);
    uint64_t skipped = c->skipped[SPOOL_SKIP_NEWER] + c->skipped[SPOOL_SKIP_FOREIGN];
    char name[SPOOL_NAME_SIZE] = "";
    uint32_t suppressed = 0;
    bool more = skipped > s->said_skipped;
    if (more && !log_limit_allow(&s->skip_limit, now_ms, LOG_PERIOD_MS, LINES, &suppressed)) {
        return;
    }
    if (more) {
        spool_name_format(name, c->skipped_segment, false);
        log_warn(s->options.log, "files in the spool are ignored",
                 LOG_STR("endpoint", s->options.config->name),
                 LOG_INT("newer", c->skipped[SPOOL_SKIP_NEWER]),
                 LOG_INT("foreign", c->skipped[SPOOL_SKIP_FOREIGN]),
                 LOG_STR("segment", c->skipped_segment != 0 ? name : ""));
    }
    s->said_skipped = skipped;
}

/* ---- requests; the thread -------------------------------------------------------------------- */

/* Finishes the entries that an entry replaces, which are all with the store. */
static bool finish_parts(struct spool *s, struct spool_entry *e, struct err *err)
{
    bool ok = true;
    struct spool_entry *part;
    while ((part = e->parts) != NULL) {
        e->parts = part->next_part;
        while (part->parts != NULL) {
            struct spool_entry *inner = part->parts;
            part->parts = inner->next_part;
            spool_add_part(e, inner);
        }
        ok = spool_store_done(s->store, part, err) && ok;
    }
    return ok;
}

static void load(struct spool *s, struct spool_entry *e, int64_t now_ms)
{
    struct err err = ERR_INIT;
    struct profile *p = NULL;
    enum spool_load result = spool_store_load(s->store, e, &p, &err);
    if (result == SPOOL_LOAD_FAILED) {
        say_read_failure(s, &err, now_ms);
    }
    s->options.events.loaded(s->options.events.arg, e, result, p, now_ms);
    s->changed = true;
}

/* Finishes an entry, after those that it replaces: the record that names them may be removed with
 * it. */
static bool finish(struct spool *s, struct spool_entry *e, struct err *err)
{
    bool ok = finish_parts(s, e, err);
    if (e->state == ENTRY_NEVER) {
        spool_entry_free(e);
        return ok;
    }
    return spool_store_done(s->store, e, err) && ok;
}

/* Runs the next request. Returns false if there is none. */
static bool run_request(struct spool *s, int64_t now_ms)
{
    struct err err = ERR_INIT;
    unsigned wants = 0;
    struct spool_entry *e = spool_take_request(s, &wants);
    if (e == NULL) {
        return false;
    }
    /* A released entry needs no loading. */
    if ((wants & WANTS_RELEASE) != 0) {
        s->acknowledged += (wants & WANTS_HOLD) != 0;
        if (!finish(s, e, &err)) {
            note_failure(s, &err, now_ms);
        }
    } else {
        load(s, e, now_ms);
    }
    return true;
}

/* ---- writing; the thread --------------------------------------------------------------------- */

/* Returns true if an entry of the batch need not be written any more; then it is freed. */
static bool is_needless(struct spool *s, struct spool_entry *e)
{
    pthread_mutex_lock(&s->lock);
    unsigned wants = e->wants;
    bool is_part = e->whole != NULL;
    if (is_part) {
        /* The entry became a part while it waited here: the entry that replaces it is written next.
         */
        spool_remove_part(e);
    }
    pthread_mutex_unlock(&s->lock);
    if (!is_part && (wants & WANTS_RELEASE) != 0) {
        (void)finish_parts(s, e, NULL);
        spool_free_released(s, e, wants);
    }
    return is_part || (wants & WANTS_RELEASE) != 0;
}

/* Sets the status `full`: nothing is written until other entries are done, and pushed profiles are
 * refused. */
static void note_full(struct spool *s)
{
    s->own.full = true;
    s->full_bytes = spool_store_counts(s->store)->bytes;
    pthread_mutex_lock(&s->lock);
    s->status.full = true;
    pthread_mutex_unlock(&s->lock);
}

/* Checks whether there is more room than when the spool was found full. */
static void check_full(struct spool *s)
{
    s->own.full = s->own.full && spool_store_counts(s->store)->bytes >= s->full_bytes;
}

/* Writes one entry, which it hands on unless there is no room or the disk fails. */
static enum spool_append append(struct spool *s, struct spool_entry *e, int64_t wall_offset,
                                struct spool_entry_list *ret_written, struct err *err)
{
    enum spool_append result = spool_store_append(s->store, e, wall_offset, err);
    if (result == SPOOL_APPENDED) {
        spool_push(ret_written, e);
    } else if (result == SPOOL_APPEND_TOO_LARGE) {
        s->own.too_large++;
        spool_hand_to_store(s, e);
    }
    return result;
}

/* Returns true if the entry stays in its batch, and no further one is written. */
static bool stops(enum spool_append result)
{
    return result == SPOOL_APPEND_FULL || result == SPOOL_APPEND_FAILED;
}

/* Writes the entries of the batch that are not released, as far as there is room; false when the
 * disk fails. */
static bool append_batch(struct spool *s, struct spool_entry_list *batch,
                         struct spool_entry_list *ret_written, struct err *err)
{
    int64_t wall_offset = clock_wall_offset_ns();
    enum spool_append result = SPOOL_APPENDED;
    struct spool_entry *e;
    while (!stops(result) && (e = spool_pop(batch)) != NULL) {
        if (!is_needless(s, e)) {
            result = append(s, e, wall_offset, ret_written, err);
        }
        if (stops(result)) {
            TAILQ_INSERT_HEAD(batch, e, link);
        }
    }
    if (result == SPOOL_APPEND_FULL) {
        note_full(s);
    }
    return result != SPOOL_APPEND_FAILED;
}

static void write_batch(struct spool *s, int64_t now_ms)
{
    struct spool_entry_list batch;
    struct spool_entry_list written = TAILQ_HEAD_INITIALIZER(written);
    struct err err = ERR_INIT;
    struct spool_entry *e;
    spool_take_waiting(s, &batch);
    if (TAILQ_EMPTY(&batch)) {
        return;
    }
    bool ok = append_batch(s, &batch, &written, &err);
    bool safe = spool_store_sync(s->store, ok ? &err : NULL);
    while ((e = spool_pop(&written)) != NULL) {
        /* An entry whose segment has been dropped meanwhile is reported as lost. */
        if (safe && e->segment != NULL) {
            s->own.stored++;
            s->options.events.written(s->options.events.arg, e);
            (void)finish_parts(s, e, NULL);
        }
        spool_hand_to_store(s, e);
    }
    spool_put_back(s, &batch, now_ms);
    s->changed = true;
    if (ok && safe) {
        recover(s);
    } else {
        note_failure(s, &err, now_ms);
    }
}

/* ---- one round ------------------------------------------------------------------------------- */

struct plan {
    bool write;
    bool flush;
    bool stop;
    int64_t write_ms; /* when there is something to write: when it is due */
};

static struct plan make_plan(struct spool *s, int64_t now_ms)
{
    struct plan p = {.write_ms = INT64_MAX};
    int64_t fsync_ms = s->options.config->spool_fsync_ms;
    int64_t delay = fsync_ms == CONFIG_FSYNC_NEVER ? SPOOL_WRITE_DELAY_MS : fsync_ms;
    pthread_mutex_lock(&s->lock);
    p.flush = s->flush;
    p.stop = s->stop;
    if (s->n_waiting > 0 && !s->own.full) {
        bool full = s->waiting_bytes >= s->options.flush_threshold;
        p.write_ms = full ? now_ms : s->waiting_since_ms + delay;
    }
    pthread_mutex_unlock(&s->lock);
    if (!s->own.up && p.write_ms < s->retry_ms) {
        p.write_ms = s->retry_ms;
    }
    p.write = p.flush || p.stop || p.write_ms <= now_ms;
    return p;
}

/* Logs once a minute that the directory cannot be used: each new profile would be lost at the end
 * of the process. */
static void say_forbidden(struct spool *s, const struct err *err, int64_t now_ms)
{
    if (!s->own.forbidden || now_ms < s->forbidden_ms) {
        return;
    }
    s->forbidden_ms = now_ms + LOG_PERIOD_MS;
    log_error(s->options.log, "spool directory cannot be used, profiles are kept in memory only",
              LOG_STR("endpoint", s->options.config->name), LOG_ERR(err),
              LOG_STR("hint", "restart profpull: in its sandbox it may only use the directory that "
                              "it was started with"));
}

/* Checks whether the disk works again. */
static void retry(struct spool *s, int64_t now_ms)
{
    struct err err = ERR_INIT;
    if (!spool_store_is_listed(s->store)) {
        bool listed = spool_store_list(s->store, &err);
        s->own.forbidden = spool_store_is_forbidden(s->store);
        if (!listed) {
            note_failure(s, &err, now_ms);
            say_forbidden(s, &err, now_ms);
            return;
        }
        s->own.reading = true;
    }
    if (!spool_store_recover(s->store, clock_wall_offset_ns(), &err) ||
        !spool_store_retry(s->store, &err)) {
        note_failure(s, &err, now_ms);
    } else if (spool_status(s).waiting == 0) {
        recover(s);
    }
}

/* Checks that the files are there; the spool makes files that are gone again at once. */
static void check(struct spool *s, int64_t now_ms)
{
    struct err err = ERR_INIT;
    bool segments = now_ms >= s->check_ms;
    if (segments) {
        s->check_ms = now_ms + SPOOL_CHECK_MS;
    }
    if (!spool_store_check(s->store, segments, &err)) {
        note_failure(s, &err, now_ms);
        retry(s, now_ms);
        s->changed = true;
    }
}

static void say_found(struct spool *s)
{
    const struct spool_counts *c = spool_store_counts(s->store);
    uint64_t skipped = c->skipped[0] + c->skipped[1] + c->skipped[2];
    if (!s->said_found && c->segments + skipped > 0) {
        log_info(s->options.log, "spool of an earlier process",
                 LOG_STR("endpoint", s->options.config->name), LOG_INT("segments", c->segments),
                 LOG_INT("bytes", c->bytes), LOG_INT("skipped_files", skipped));
    }
    s->said_found = true;
}

static int64_t read_on(struct spool *s, int64_t now_ms)
{
    struct err err = ERR_INIT;
    if (now_ms < s->read_ms) {
        return s->read_ms;
    }
    say_found(s);
    switch (spool_store_read(s->store, ROUND_HEADS, clock_wall_offset_ns(), &err)) {
    case SPOOL_READ_MORE:
        s->read_failures = 0;
        s->changed = true;
        return now_ms;
    case SPOOL_READ_ALL:
        s->own.reading = false;
        s->changed = true;
        return INT64_MAX;
    case SPOOL_READ_NO_ROOM:
        return now_ms + ROOM_POLL_MS;
    case SPOOL_READ_FAILED:
    default:
        say_read_failure(s, &err, now_ms);
        if (++s->read_failures >= SPOOL_READ_TRIES) {
            spool_store_give_up(s->store);
            s->read_failures = 0;
        }
        s->read_ms = now_ms + READ_RETRY_MS;
        return s->read_ms;
    }
}

static void emit_events(struct spool *s, bool flushed)
{
    const struct spool_events *on = &s->options.events;
    pthread_mutex_lock(&s->lock);
    s->own.counts = *spool_store_counts(s->store);
    s->status = s->own;
    if (flushed) {
        s->flush = false;
    }
    pthread_mutex_unlock(&s->lock);
    if (s->acknowledged > 0) {
        on->acknowledged(on->arg, s->acknowledged);
    }
    if (flushed) {
        on->flushed(on->wake_arg);
    }
    if (s->acknowledged > 0 || s->changed || flushed) {
        on->changed(on->wake_arg);
    }
    s->acknowledged = 0;
    s->changed = false;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns when the next round is due, if there is nothing to read before read_ms. */
static int64_t next_step(struct spool *s, int64_t read_ms, int64_t now_ms)
{
    int64_t next = earlier(read_ms, make_plan(s, now_ms).write_ms);
    if (!s->own.up) {
        next = earlier(next, s->retry_ms > now_ms ? s->retry_ms : now_ms);
    }
    return s->own.counts.profiles > 0 ? earlier(next, s->check_ms) : next;
}

static void take_limits(struct spool *s)
{
    pthread_mutex_lock(&s->lock);
    bool same =
        s->config.spool_max_bytes == s->max_bytes && s->config.spool_fsync_ms == s->fsync_ms;
    s->config.spool_max_bytes = s->own.limit = s->max_bytes;
    s->config.spool_fsync_ms = s->fsync_ms;
    pthread_mutex_unlock(&s->lock);
    if (!same) {
        s->own.full = false;
        spool_store_configure(s->store);
    }
}

int64_t spool_step(struct spool *s, int64_t now_ms)
{
    unsigned n = 0;
    take_limits(s);
    while (n < ROUND_REQUESTS && run_request(s, now_ms)) {
        n++;
    }
    if ((!s->own.up || !spool_store_is_listed(s->store)) && now_ms >= s->retry_ms) {
        retry(s, now_ms);
    }
    check_full(s);
    struct plan p = make_plan(s, now_ms);
    if (p.write || now_ms >= s->check_ms) {
        check(s, now_ms);
    }
    if (p.write && spool_store_is_listed(s->store)) {
        write_batch(s, now_ms);
    }
    int64_t next = INT64_MAX;
    if (spool_store_is_listed(s->store) && s->own.reading && !p.stop) {
        next = read_on(s, now_ms);
    }
    say_damage(s, now_ms);
    say_skipped(s, now_ms);
    emit_events(s, p.flush);
    return n == ROUND_REQUESTS ? now_ms : next_step(s, next, now_ms);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Waits for work, at most until `until_ms`. Returns false when the thread has to stop. */
static bool wait_for_work(struct spool *s, int64_t until_ms)
{
    struct timespec at = clock_timespec(until_ms);
    int timeout = 0;
    pthread_mutex_lock(&s->lock);
    while (!s->poked && until_ms == INT64_MAX) {
        pthread_cond_wait(&s->wake, &s->lock);
    }
    while (!s->poked && timeout == 0) {
        timeout = pthread_cond_timedwait(&s->wake, &s->lock, &at);
    }
    s->poked = false;
    bool more = !s->stop;
    pthread_mutex_unlock(&s->lock);
    return more;
}

/* Opens the directory, and wakes spool_start(). Returns false if spool_start() reports an error
 * then. */
static bool open_first(struct spool *s)
{
    struct err err = ERR_INIT;
    atomic_store(&s->since_ms, clock_mono_ms());
    bool ok = spool_store_open(s->store, &err);
    atomic_store(&s->since_ms, BETWEEN_ROUNDS);
    pthread_mutex_lock(&s->lock);
    s->opened = true;
    s->misplaced = !ok;
    s->open_error = err;
    bool goes_on = ok || !s->waited_for;
    pthread_cond_signal(&s->opening);
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

static void *spool_run(void *arg)
{
    struct spool *s = arg;
    int64_t next = 0;
    if (!open_first(s)) {
        return NULL;
    }
    while (wait_for_work(s, next)) {
        int64_t now_ms = clock_mono_ms();
        atomic_store(&s->since_ms, now_ms);
        next = spool_step(s, now_ms);
        atomic_store(&s->since_ms, BETWEEN_ROUNDS);
    }
    return NULL;
}

int64_t spool_hung_ms(const struct spool *s, int64_t now_ms)
{
    int64_t since_ms = atomic_load(&s->since_ms);
    bool hangs = since_ms != BETWEEN_ROUNDS && now_ms - since_ms >= SPOOL_HANG_MS;
    return hangs ? now_ms - since_ms : 0;
}

/* Waits until the directory has been opened. Returns true if that has failed for good. */
static bool wait_for_opening(struct spool *s, int64_t until_ms)
{
    const struct timespec at = clock_timespec(until_ms);
    int timeout = 0;
    pthread_mutex_lock(&s->lock);
    while (!s->opened && timeout == 0) {
        timeout = pthread_cond_timedwait(&s->opening, &s->lock, &at);
    }
    bool opened = s->opened;
    bool misplaced = s->misplaced;
    s->waited_for = false;
    pthread_mutex_unlock(&s->lock);
    if (!opened) {
        log_warn(s->options.log, "spool does not answer, profiles are kept in memory only",
                 LOG_STR("endpoint", s->name));
    }
    return misplaced;
}

bool spool_start(struct spool *s, int64_t wait_ms, struct err *err)
{
    s->waited_for = true;
    s->started = thread_start(&s->thread, "spool", spool_run, s, err);
    if (s->started && wait_for_opening(s, clock_mono_ms() + wait_ms)) {
        pthread_join(s->thread, NULL);
        s->started = false;
        if (err != NULL) {
            *err = s->open_error;
        }
    }
    return s->started;
}

bool spool_open(struct spool *s, struct err *err)
{
    return spool_store_open(s->store, err);
}

bool spool_is_opened(struct spool *s)
{
    pthread_mutex_lock(&s->lock);
    bool opened = s->opened;
    pthread_mutex_unlock(&s->lock);
    return opened;
}

void spool_stop(struct spool *s, int64_t now_ms)
{
    /* A spool whose start has failed holds nothing. */
    if (s == NULL || (s->misplaced && !s->started)) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    spool_poke(s);
    pthread_mutex_unlock(&s->lock);
    if (s->started) {
        pthread_join(s->thread, NULL);
    }
    s->started = false;
    /* The thread may have been stopped in the middle of its work. */
    do {
        (void)spool_step(s, now_ms);
    } while (!TAILQ_EMPTY(&s->requests));
}

/* ---- making and freeing ---------------------------------------------------------------------- */

struct spool *spool_new(const struct spool_options *o, struct err *err)
{
    struct spool *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    s->options = *o;
    s->config = *o->config;
    s->options.config = &s->config;
    s->max_bytes = s->config.spool_max_bytes;
    s->fsync_ms = s->config.spool_fsync_ms;
    atomic_init(&s->since_ms, BETWEEN_ROUNDS);
    s->own =
        (struct spool_status){.limit = o->config->spool_max_bytes, .up = true, .reading = true};
    s->status = s->own;
    TAILQ_INIT(&s->waiting);
    TAILQ_INIT(&s->requests);
    pthread_mutex_init(&s->lock, NULL);
    clock_cond_init(&s->wake);
    clock_cond_init(&s->opening);
    s->config.name = s->name = strdup(o->config->name);
    s->config.spool_directory = s->directory = strdup(o->config->spool_directory);
    if (s->name == NULL || s->directory == NULL) {
        err_memory(err);
        return spool_free(s);
    }
    s->store = spool_store_new(&s->options, err);
    return s->store != NULL ? s : spool_free(s);
}

struct spool *spool_free(struct spool *s)
{
    struct spool_entry *e;
    if (s == NULL) {
        return NULL;
    }
    while ((e = spool_pop(&s->waiting)) != NULL) {
        spool_entry_free(e);
    }
    spool_store_close(s->store);
    pthread_cond_destroy(&s->wake);
    pthread_cond_destroy(&s->opening);
    pthread_mutex_destroy(&s->lock);
    free(s->name);
    free(s->directory);
    free(s);
    return NULL;
}
