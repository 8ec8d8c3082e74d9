/* For the tests of the engine: a simulated environment, with a clock that the test advances and
 * HTTP without sockets. Three jobs, "one", "two" and "three", with four types, of them /mem
 * enabled. A file that defines WORLD_SUBMITS as true before it includes this one gets an engine
 * that computes deltas of /mem from the beginning. */
#ifndef PROFPULL_TESTS_SCRAPER_WORLD_H
#define PROFPULL_TESTS_SCRAPER_WORLD_H

#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "scraper/engine.h"

#define PROFILE "\x0a\x04\x08\x01\x10\x02\x32\x00"
#define TRANSFERS_MAX 8192
#define PROFILES_MAX 4096
#ifndef WORLD_SUBMITS
#define WORLD_SUBMITS false
#endif
#define WALL_START INT64_C(1700000000000000000)

struct http_transfer {
    bool live;
    bool cancelled;
    char url[256];
    int64_t timeout_ms;
    bool checks_address;
    int64_t start_ns;
    size_t (*on_room)(void *arg, size_t len, uint64_t announced);
    size_t granted; /* by on_room() or later */
    void (*on_done)(void *arg, const struct http_response *response);
    void *arg;
};

struct world {
    int64_t now_ns;
    int64_t wall_offset_ns;
    int64_t armed_ms;
    struct http_transfer transfers[TRANSFERS_MAX]; /* in order of start */
    size_t n_transfers;
    struct profile *profiles[PROFILES_MAX];
    size_t n_profiles;
    uint64_t forward_to; /* of the last one */
    bool refuses[3];     /* the profiles of a job */
    bool was_refusable;  /* the last one that was refused */
    bool refuse_start;
    size_t bodies_max_bytes; /* of the next engine; 0: the default */
    bool submits;            /* deltas are made, by works() */
    struct work *works[64];
    size_t n_works;
    struct intern *intern;
    struct metrics *metrics;
    struct testing_log *log;
    struct labels_builder *b;
    struct engine *e;
    struct config_type types[4];
    struct config_job jobs[3];
};

enum { MEMORY, CPU, FGPROF, DELTA };

static inline int64_t world_mono(void *arg)
{
    return ((struct world *)arg)->now_ns;
}

static inline int64_t world_offset(void *arg)
{
    return ((struct world *)arg)->wall_offset_ns;
}

static inline struct http_transfer *world_start(void *arg, const struct http_request *r)
{
    struct world *w = arg;
    if (w->refuse_start) {
        return NULL;
    }
    assert_true(w->n_transfers < TRANSFERS_MAX);
    struct http_transfer *t = &w->transfers[w->n_transfers++];
    *t = (struct http_transfer){
        .live = true,
        .timeout_ms = r->timeout_ms,
        .on_room = r->on_room,
        .checks_address = r->refuses_address != NULL,
        .start_ns = w->now_ns,
        .on_done = r->on_done,
        .arg = r->arg,
    };
    snprintf(t->url, sizeof(t->url), "%s", r->url);
    return t;
}

static inline void world_cancel(void *arg, struct http_transfer *t)
{
    (void)arg;
    assert_true(t->live);
    t->live = false;
    t->cancelled = true;
}

static inline void world_grant(void *arg, struct http_transfer *t, size_t bytes)
{
    (void)arg;
    assert_true(t->live);
    t->granted = bytes;
}

static inline void world_wake_at(void *arg, int64_t mono_ms)
{
    ((struct world *)arg)->armed_ms = mono_ms;
}

static inline bool world_profile(void *arg, struct profile *p, uint64_t forward_to)
{
    struct world *w = arg;
    if (w->refuses[p->job]) {
        w->was_refusable = p->refusable;
        profile_unref(p);
        return false;
    }
    assert_true(w->n_profiles < PROFILES_MAX);
    w->profiles[w->n_profiles++] = p;
    w->forward_to = forward_to;
    return true;
}

static inline void world_submit(void *arg, struct work *work)
{
    struct world *w = arg;
    assert_true(w->n_works < 64);
    w->works[w->n_works++] = work;
}

/* Runs the deltas that wait. */
static inline void works(struct world *w)
{
    size_t n = w->n_works;
    w->n_works = 0;
    for (size_t i = 0; i < n; i++) {
        w->works[i]->run(w->works[i]);
        w->works[i]->done(w->works[i]);
    }
}

static inline void forget_profiles(struct world *w)
{
    for (size_t i = 0; i < w->n_profiles; i++) {
        profile_unref(w->profiles[i]);
    }
    w->n_profiles = 0;
}

static inline void make_engine(struct world *w, unsigned max_in_flight)
{
    const struct engine_io io = {
        .mono_ns = world_mono,
        .wall_offset_ns = world_offset,
        .start = world_start,
        .cancel = world_cancel,
        .grant = world_grant,
        .wake_at = world_wake_at,
        .submit = w->submits ? world_submit : NULL,
        .arg = w,
    };
    const struct scraper_options options = {
        .intern = w->intern,
        .log = testing_log(w->log),
        .metrics = w->metrics,
        .n_jobs = 3,
        .max_in_flight = max_in_flight,
        .bodies_max_bytes = w->bodies_max_bytes,
        .seed = 1,
        .on_profile = world_profile,
        .arg = w,
    };
    struct err err = ERR_INIT;
    w->armed_ms = INT64_MAX;
    w->e = engine_new(&options, &io, &err);
    assert_non_null(w->e);
}

static inline void make_job(struct world *w, size_t i)
{
    static const char *const names[] = {"one", "two", "three"};
    w->jobs[i] = (struct config_job){
        .name = names[i],
        .scheme = "http",
        .path_prefix = "",
        .types = w->types,
        .n_types = 4,
        .target_limit = 10000,
        .body_size_limit = UINT64_C(1024) * 1024,
        .forward_to = 5,
    };
}

static inline int setup(void **state)
{
    struct world *w = testing_memory(sizeof(*w));
    w->now_ns = 1000 * NS_PER_S;
    w->wall_offset_ns = WALL_START;
    w->intern = intern_new();
    w->metrics = metrics_new();
    w->log = testing_log_new();
    w->b = labels_builder_new(w->intern);
    static const struct config_type types[] = {
        {.key = "memory", .name = "memory", .path = "/mem", .cumulative = true, .enabled = true},
        {.key = "process_cpu",
         .name = "process_cpu",
         .path = "/cpu",
         .sampling = true,
         .seconds = 4},
        {.key = "fgprof", .name = "fgprof", .path = "/fg", .sampling = true, .seconds = 4},
        {.key = "godeltaprof_memory", .name = "memory", .path = "/delta", .is_delta = true},
    };
    memcpy(w->types, types, sizeof(types));
    for (size_t i = 0; i < 4; i++) {
        w->types[i].interval_ms = 15000;
        w->types[i].timeout_ms = 10000;
    }
    w->submits = WORLD_SUBMITS;
    if (w->submits) {
        w->types[MEMORY].delta = DELTA_AUTO;
    }
    make_job(w, 0);
    make_job(w, 1);
    make_job(w, 2);
    make_engine(w, 0);
    *state = w;
    return 0;
}

static inline int teardown(void **state)
{
    struct world *w = *state;
    engine_free(w->e);
    works(w); /* those that end after the engine was freed */
    for (size_t i = 0; i < w->n_transfers; i++) {
        assert_false(w->transfers[i].live);
    }
    forget_profiles(w);
    labels_builder_free(w->b);
    metrics_free(w->metrics);
    intern_free(w->intern);
    testing_log_done(w->log);
    free(w);
    return 0;
}

static inline struct target *make_target(struct world *w, size_t job, const char *address,
                                         const char *name, const char *value)
{
    labels_builder_reset(w->b, NULL);
    labels_builder_set_str(w->b, "__address__", address);
    labels_builder_set_str(w->b, name, value);
    struct err err = ERR_INIT;
    struct target *t = target_make(NULL, job, &w->jobs[job], w->b, NULL, &err);
    CHECK_STR(err.msg, "", address);
    return t;
}

/* Replaces a group by targets at these addresses, with a label v=VALUE. */
static inline void set(struct world *w, size_t job, const char *source, const char *value,
                       const char *const *addresses)
{
    struct target *targets[64];
    size_t n = 0;
    while (addresses[n] != NULL) {
        targets[n] = make_target(w, job, addresses[n], "v", value);
        n++;
    }
    assert_true(engine_set_group(w->e, job, source, targets, n));
}
#define AT(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NOTHING ((const char *const[]){NULL})

/* Advances the clock, stopping whenever the timer is due. */
static inline void turn(struct world *w, int64_t ms)
{
    int64_t end = w->now_ns + ms * NS_PER_MS;
    while (w->armed_ms <= end / NS_PER_MS) {
        if (w->armed_ms * NS_PER_MS > w->now_ns) {
            w->now_ns = w->armed_ms * NS_PER_MS;
        }
        w->armed_ms = INT64_MAX;
        engine_wake(w->e);
    }
    w->now_ns = end;
}

/* Advances the clock until a transfer starts; fails if none does within a minute. */
static inline struct http_transfer *next_start(struct world *w)
{
    size_t before = w->n_transfers;
    for (int i = 0; i < 60000 && w->n_transfers == before; i++) {
        turn(w, 1);
    }
    assert_true(w->n_transfers > before);
    return &w->transfers[before];
}

static inline void answer(struct world *w, struct http_transfer *t, enum http_result result,
                          long status, const char *body, size_t n)
{
    assert_true(t->live);
    SCOPED(buf) buf = testing_buf((size_t)1024 * 1024);
    buf_append(&buf, body, n);
    struct http_response r = {
        .result = result,
        .status = status,
        .error = result == HTTP_DONE ? "" : "the connection was refused",
        .content_type = "",
        .location = "",
        .body = &buf,
        .start_ns = t->start_ns,
        .sent_ns = result == HTTP_DONE ? t->start_ns + 5 * NS_PER_MS : 0,
        .end_ns = w->now_ns,
    };
    t->live = false;
    t->on_done(t->arg, &r);
}

static inline void succeed(struct world *w, struct http_transfer *t)
{
    answer(w, t, HTTP_DONE, 200, PROFILE, sizeof(PROFILE) - 1);
}

static inline const char *label(const struct profile *p, const char *name)
{
    return labels_get(p->labels, sv_from(name)).p;
}

static inline uint64_t metric(struct world *w, const char *text)
{
    return testing_metric(w->metrics, text);
}

/* How many scrapes of all jobs are in a state; 0 if none ever was. */
static inline uint64_t scrapes(struct world *w, const char *state)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof(w->jobs) / sizeof(w->jobs[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text), "profpull_scrapes{job=\"%s\",state=\"%s\"}", w->jobs[i].name,
                 state);
        uint64_t n = metric(w, text);
        sum += n == TESTING_NO_METRIC ? 0 : n;
    }
    return sum;
}

static inline struct scrape_status status(struct world *w)
{
    size_t cursor = 0;
    struct scrape_status st;
    CHECK_INT(engine_snapshot(w->e, &cursor, &st, 1), 1, "snapshot");
    return st;
}

#endif
