#include "scraper/scrape_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "scraper/scraper.h"

static const double LATENESS_BUCKETS[] = {.001, .0025, .005, .01, .025, .05, .1,
                                          .25,  .5,    1,    2.5, 5,    10};
static const double DURATION_BUCKETS[] = {.005, .01, .025, .05, .1, .25, .5,
                                          1,    2.5, 5,    10,  15, 30,  60};
static const double SIZE_BUCKETS[] = {256,    1024,    4096,    16384,   65536,
                                      262144, 1048576, 4194304, 16777216};
static const double WAIT_BUCKETS[] = {.01, .1, .5, 1, 2.5, 5, 10, 30, 60};
#define BUCKETS(b) .buckets = (b), .n_buckets = sizeof(b) / sizeof((b)[0])

static const struct metric_desc SCRAPES = {
    .name = "profpull_scrapes_total",
    .help = "Scrapes by result; skipped: it was due while the last one still ran, or while "
            "profpull stopped.",
    .type = METRIC_COUNTER,
    .labels = {"job", "type", "result"},
};
static const struct metric_desc DURATIONS = {
    .name = "profpull_scrape_duration_seconds",
    .help = "Time from the start of a scrape to the last byte, of those that succeeded.",
    .type = METRIC_HISTOGRAM,
    .labels = {"type"},
    BUCKETS(DURATION_BUCKETS),
};
static const struct metric_desc SIZES = {
    .name = "profpull_scrape_size_bytes",
    .help = "Size of the profiles as received.",
    .type = METRIC_HISTOGRAM,
    .labels = {"type"},
    BUCKETS(SIZE_BUCKETS),
};
static const struct metric_desc LATENESS = {
    .name = "profpull_scrape_lateness_seconds",
    .help = "Time between the moment at which a scrape was due and its start.",
    .type = METRIC_HISTOGRAM,
    BUCKETS(LATENESS_BUCKETS),
};
static const struct metric_desc MEMORY_WAITS = {
    .name = "profpull_scrape_memory_wait_seconds",
    .help = "Time that scrapes waited for memory before their body was read; scrapes that did not "
            "wait are not counted.",
    .type = METRIC_HISTOGRAM,
    BUCKETS(WAIT_BUCKETS),
};

static void make_memory(struct scrape_metrics *m, struct metrics *metrics)
{
    struct metric *waiting =
        metrics_family(metrics, METRIC_GAUGE, "profpull_scrapes_waiting_for_memory",
                       "Scrapes that wait because memory is short. unread: the response has "
                       "arrived and is not read; held_back: the request is not sent yet.",
                       "state", NULL);
    m->unread = metric_cell_of(waiting, "unread");
    m->held_back = metric_cell_of(waiting, "held_back");
    m->memory_waits = metric_only(metrics_register(metrics, &MEMORY_WAITS));
}

bool scrape_metrics_init(struct scrape_metrics *m, struct metrics *metrics)
{
    *m = (struct scrape_metrics){.types = map_new()};
    m->scrapes = metrics_register(metrics, &SCRAPES);
    m->failures = metrics_family(metrics, METRIC_COUNTER, "profpull_scrape_failures_total",
                                 "Failed scrapes by reason.", "job", "reason");
    m->durations = metrics_register(metrics, &DURATIONS);
    m->sizes = metrics_register(metrics, &SIZES);
    m->lateness = metric_only(metrics_register(metrics, &LATENESS));
    m->in_flight = metrics_single(metrics, METRIC_GAUGE, "profpull_scrapes_in_flight",
                                  "Scrapes that run now.");
    m->waiting = metrics_single(metrics, METRIC_GAUGE, "profpull_scrapes_waiting",
                                "Scrapes that are due and wait because too many are in flight, or "
                                "because memory is short.");
    make_memory(m, metrics);
    struct metric *slots = metrics_family(metrics, METRIC_GAUGE, "profpull_scrape_slots",
                                          "Transfers in progress, by the class of the target; "
                                          "slow: the last one took over 2 s, without the sampling.",
                                          "class", NULL);
    for (unsigned c = 0; c < SLOT_CLASSES; c++) {
        m->slots[c] = metric_cell_of(slots, slot_class_name((enum slot_class)c));
    }
    struct metric *targets = metrics_family(
        metrics, METRIC_GAUGE, "profpull_targets",
        "Targets; refused: over the target_limit of their job; left_out: by its sampling.", "state",
        NULL);
    m->targets = metric_cell_of(targets, "active");
    m->targets_refused = metric_cell_of(targets, "refused");
    m->targets_left_out = metric_cell_of(targets, "left_out");
    m->states = metrics_family(
        metrics, METRIC_GAUGE, "profpull_scrapes",
        "Targets x profile types by health; absent: the path does not exist, and is requested "
        "rarely; "
        "follows: shares the scrape of another job; duplicate: set aside, since another target of "
        "the job is scraped at the same URL for the same type.",
        "job", "state");
    struct metric *refused = metrics_family(
        metrics, METRIC_COUNTER, "profpull_targets_refused_total",
        "Targets, and scrapes of targets (duplicate, memory), that were refused.", "reason", NULL);
    m->refused_limit = metric_cell_of(refused, "limit");
    m->refused_duplicate = metric_cell_of(refused, "duplicate");
    m->refused_memory = metric_cell_of(refused, "memory");
    return m->types != NULL;
}

void scrape_metrics_done(struct scrape_metrics *m)
{
    m->types = map_free(m->types, free);
}

_Static_assert(SCRAPES_FOLLOW == SCRAPE_HEALTHS, "the others come after the states of health");

static const char *state_name(int state)
{
    if (state < SCRAPE_HEALTHS) {
        return scrape_health_name((enum scrape_health)state);
    }
    return state == SCRAPES_FOLLOW ? "follows" : "duplicate";
}

static struct type_metrics *make_type(struct scrape_metrics *m, const char *job, const char *type)
{
    struct type_metrics *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return NULL;
    }
    static const char *const results[SCRAPE_RESULTS] = {
        [SCRAPE_OK] = "ok", [SCRAPE_FAILED] = "failed", [SCRAPE_SKIPPED] = "skipped"};
    for (size_t i = 0; i < SCRAPE_RESULTS; i++) {
        t->results[i] = metric_cell(m->scrapes, (const char *[]){job, type, results[i]});
    }
    for (int i = 0; i < SCRAPES_STATES; i++) {
        t->states[i] = metric_cell(m->states, (const char *[]){job, state_name(i)});
    }
    t->duration = metric_cell_of(m->durations, type);
    t->size = metric_cell_of(m->sizes, type);
    return t;
}

struct type_metrics *scrape_metrics_of_type(struct scrape_metrics *m, const char *job,
                                            const char *type)
{
    struct buf key;
    buf_init(&key, (size_t)64 * 1024);
    buf_append(&key, job, strlen(job) + 1);
    buf_puts(&key, type);
    struct type_metrics *t = NULL;
    if (buf_ok(&key)) {
        struct sv name = {.p = key.data, .n = key.len};
        t = map_get(m->types, name);
        if (t == NULL && (t = make_type(m, job, type)) != NULL &&
            !map_put(m->types, name, t, NULL)) {
            free(t);
            t = NULL;
        }
    }
    buf_done(&key);
    return t;
}

void scrape_metrics_learn(struct type_metrics *t, size_t size)
{
    size_t shrunk = t->expected - t->expected / 8;
    t->expected = size > shrunk ? size : shrunk;
}

void scrape_metrics_failed(struct scrape_metrics *m, const char *job, enum reason reason)
{
    metric_inc(metric_cell(m->failures, (const char *[]){job, reason_name(reason)}));
}
