#include "pages/service_rows.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "store/query/versions.h"

/* Number of steps of a sparkline. */
#define STEPS 60
#define STEP_MIN_MS 15000
#define PAGE_SCRAPES 64
/* A version that has had no profile for this long does not run any more. */
#define RUNNING_MS (INT64_C(10) * 60 * 1000)
#define CORES_PER_NS 1e-9

static const struct {
    const char *type;
    const char *unit;
    enum query_measure measure;
    const char *id;
} kinds[SERVICE_KINDS] = {
    [SERVICE_CPU] = {"cpu", "nanoseconds", MEASURE_WINDOW,
                     "process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
    [SERVICE_ALLOC] = {"alloc_space", "bytes", MEASURE_GROWTH,
                       "memory:alloc_space:bytes:space:bytes"},
    [SERVICE_HEAP] = {"inuse_space", "bytes", MEASURE_LEVEL,
                      "memory:inuse_space:bytes:space:bytes"},
    [SERVICE_GOROUTINES] = {"goroutine", "count", MEASURE_LEVEL,
                            "goroutine:goroutine:count:goroutine:count"},
};

const char *service_kind_type(enum service_kind kind)
{
    return kinds[kind].id;
}

/* The rows that are being made, and their numbers (+ 1) by name. */
struct making {
    const struct query *q;
    struct service_rows *rows;
    size_t cap;
    struct map *numbers;
};

static bool no_room(struct err *err)
{
    return err_set(err, ERR_LIMIT, "the services do not fit into the memory of a query");
}

/* Finds or makes the row of a service. NULL if there is no room. */
static struct service_row *row_of(struct making *m, struct sv name)
{
    size_t number = (size_t)(uintptr_t)map_get(m->numbers, name);
    if (number > 0) {
        return &m->rows->at[number - 1];
    }
    if (m->rows->n == m->cap) {
        size_t cap = m->cap == 0 ? 64 : 2 * m->cap;
        struct service_row *at = arena_array(m->q->arena, cap, sizeof(*at));
        if (at == NULL) {
            return NULL;
        }
        for (size_t i = 0; i < m->rows->n; i++) {
            at[i] = m->rows->at[i];
        }
        m->rows->at = at;
        m->cap = cap;
    }
    char *copy = arena_strndup(m->q->arena, name.p, name.n);
    if (copy == NULL || !map_put(m->numbers, name, (void *)(uintptr_t)(m->rows->n + 1), NULL)) {
        return NULL;
    }
    struct service_row *row = &m->rows->at[m->rows->n++];
    *row =
        (struct service_row){.name = {copy, name.n}, .version = SV(""), .version_before = SV("")};
    for (size_t k = 0; k < SERVICE_KINDS; k++) {
        row->means[k] = (double)NAN;
    }
    return row;
}

/* ---- rates ----------------------------------------------------------------------------------- */

static bool add_rates(struct making *m, const struct query_rates *rates, struct err *err)
{
    for (size_t i = 0; i < rates->n; i++) {
        const struct query_rate_group *group = &rates->at[i];
        struct service_row *row = row_of(m, group->service);
        if (row == NULL) {
            return no_room(err);
        }
        for (size_t k = 0; k < SERVICE_KINDS; k++) {
            row->values[k] = group->values[k];
            double factor = k == SERVICE_CPU ? CORES_PER_NS : 1;
            for (size_t s = 0; row->values[k] != NULL && s < rates->n_steps; s++) {
                row->values[k][s] *= factor;
            }
            row->means[k] = query_rate_mean(row->values[k], rates->n_steps);
        }
    }
    return true;
}

static bool read_rates(struct making *m, int64_t from_ms, int64_t until_ms, struct err *err)
{
    struct query_rate_kind asked[SERVICE_KINDS];
    struct query_rates rates;
    int64_t step_ms = (until_ms - from_ms + STEPS - 1) / STEPS;
    for (size_t k = 0; k < SERVICE_KINDS; k++) {
        asked[k] = (struct query_rate_kind){.type = sv_from(kinds[k].type),
                                            .unit = sv_from(kinds[k].unit),
                                            .measure = kinds[k].measure};
    }
    const struct query_range range = {.start_ms = from_ms, .end_ms = until_ms};
    const struct query_rate_options o = {.kinds = asked,
                                         .n_kinds = SERVICE_KINDS,
                                         .step_ms = step_ms < STEP_MIN_MS ? STEP_MIN_MS : step_ms,
                                         .by_service = true};
    if (!query_rates(m->q, &range, &o, &rates, err)) {
        return false;
    }
    m->rows->start_ms = rates.start_ms;
    m->rows->step_ms = rates.step_ms;
    m->rows->n_steps = rates.n_steps;
    m->rows->is_cut = rates.is_cut;
    return add_rates(m, &rates, err);
}

/* ---- versions -------------------------------------------------------------------------------- */

/* Returns true if a version runs. *at: index of the first running version of its service or of a
 * later one; the callers go through the services in order. */
static bool runs(const struct query_versions *running, size_t *at, const struct query_version *v)
{
    while (*at < running->n && sv_cmp(running->at[*at].service, v->service) < 0) {
        (*at)++;
    }
    for (size_t i = *at; i < running->n && sv_eq(running->at[i].service, v->service); i++) {
        if (sv_eq(running->at[i].version, v->version)) {
            return true;
        }
    }
    return false;
}

/* Sets the version of a service: of its versions, n in order of time, the last one that runs; the
 * last one if none runs any more. */
static void choose_version(struct service_row *row, const struct query_version *at, size_t n,
                           const struct query_versions *running, size_t *next)
{
    struct sv before = SV("");
    bool is_running = false;
    for (size_t i = 0; i < n; i++) {
        bool is_there = at[i].version.n > 0 && runs(running, next, &at[i]);
        if (at[i].version.n > 0 && (is_there || !is_running)) {
            row->version = at[i].version;
            row->version_before = before;
            row->version_ms = before.n > 0 ? at[i].first_ms : 0;
        }
        is_running = is_running || is_there;
        before = at[i].version.n > 0 ? at[i].version : before;
    }
}

/* Sets the versions of the services that have a row, and gives one to those that run and have only
 * profiles of other types. `all` is by service, then by time. */
static bool add_versions(struct making *m, const struct query_versions *all,
                         const struct query_versions *running, struct err *err)
{
    size_t next = 0;
    for (size_t i = 0, end; i < all->n; i = end) {
        bool is_listed = map_get(m->numbers, all->at[i].service) != NULL;
        end = i;
        while (end < all->n && sv_eq(all->at[end].service, all->at[i].service)) {
            is_listed = is_listed || runs(running, &next, &all->at[end]);
            end++;
        }
        struct service_row *row = is_listed ? row_of(m, all->at[i].service) : NULL;
        if (row == NULL && is_listed) {
            return no_room(err);
        }
        if (row != NULL) {
            choose_version(row, all->at + i, end - i, running, &next);
        }
    }
    return true;
}

static bool read_versions(struct making *m, int64_t until_ms, struct err *err)
{
    struct query_versions all;
    struct query_versions running;
    const struct query_range day = {.start_ms = until_ms - SERVICE_VERSIONS_MS, .end_ms = until_ms};
    const struct query_range last = {.start_ms = until_ms - RUNNING_MS, .end_ms = until_ms};
    return query_versions(m->q, &day, &all, err) && query_versions(m->q, &last, &running, err) &&
           add_versions(m, &all, &running, err);
}

/* ---- targets --------------------------------------------------------------------------------- */

/* A scrape counts for the target that it belongs to. */
struct seen_target {
    struct target *target; /* a reference */
    size_t row;
    bool is_down;
};

static int compare_targets(const void *a, const void *b)
{
    const struct seen_target *x = a;
    const struct seen_target *y = b;
    if (x->target != y->target) {
        return (uintptr_t)x->target < (uintptr_t)y->target ? -1 : 1;
    }
    return x->row != y->row ? (x->row < y->row ? -1 : 1) : (int)y->is_down - (int)x->is_down;
}

struct seen {
    struct seen_target *at;
    size_t n;
    size_t cap;
};

static bool note_scrape(struct making *m, struct seen *seen, const struct scrape_status *s,
                        struct err *err)
{
    struct sv service = labels_get(s->labels, SV(LABEL_SERVICE_NAME));
    struct service_row *row = row_of(m, service.n > 0 ? service : SV("unknown_service"));
    if (row == NULL) {
        return no_room(err);
    }
    if (seen->n == seen->cap) {
        size_t cap = seen->cap == 0 ? 256 : 2 * seen->cap;
        struct seen_target *at = reallocarray(seen->at, cap, sizeof(*at));
        if (at == NULL) {
            return err_memory(err);
        }
        seen->at = at;
        seen->cap = cap;
    }
    seen->at[seen->n++] = (struct seen_target){.target = target_ref(s->target),
                                               .row = (size_t)(row - m->rows->at),
                                               .is_down = s->health == SCRAPE_DOWN};
    return true;
}

/* Counts each target once for each of its services: the scrape that is down comes first. */
static void count_targets(struct service_rows *rows, const struct seen *seen)
{
    for (size_t i = 0; i < seen->n; i++) {
        const struct seen_target *t = &seen->at[i];
        if (i > 0 && seen->at[i - 1].target == t->target && seen->at[i - 1].row == t->row) {
            continue;
        }
        *(t->is_down ? &rows->at[t->row].down : &rows->at[t->row].up) += 1;
    }
}

static bool read_targets(struct making *m, struct scraper *scraper, struct err *err)
{
    struct scrape_status statuses[PAGE_SCRAPES];
    struct seen seen = {.n = 0};
    size_t cursor = 0;
    size_t n = 0;
    bool ok = true;
    m->rows->has_targets = scraper != NULL;
    while (scraper != NULL && ok &&
           (n = scraper_snapshot(scraper, &cursor, statuses, PAGE_SCRAPES)) > 0) {
        for (size_t i = 0; i < n; i++) {
            ok = ok && note_scrape(m, &seen, &statuses[i], err);
            scrape_status_done(&statuses[i]);
        }
    }
    if (seen.n > 0) {
        qsort(seen.at, seen.n, sizeof(*seen.at), compare_targets);
    }
    count_targets(m->rows, &seen);
    for (size_t i = 0; i < seen.n; i++) {
        target_unref(seen.at[i].target);
    }
    free(seen.at);
    return ok;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Compares values, the greater one first and none last. */
static int compare_down(double a, double b)
{
    double x = isnan(a) ? -1 : a;
    double y = isnan(b) ? -1 : b;
    return (x < y) - (x > y);
}

static int compare_rows(const void *a, const void *b)
{
    static const enum service_kind order[] = {SERVICE_CPU, SERVICE_HEAP, SERVICE_ALLOC};
    const struct service_row *x = a;
    const struct service_row *y = b;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        int by = compare_down(x->means[order[i]], y->means[order[i]]);
        if (by != 0) {
            return by;
        }
    }
    return sv_cmp(x->name, y->name);
}

bool service_rows_make(const struct query *q, struct scraper *scraper, int64_t from_ms,
                       int64_t until_ms, struct service_rows *ret, struct err *err)
{
    struct making m = {.q = q, .rows = ret, .numbers = map_new()};
    *ret = (struct service_rows){.n = 0};
    if (m.numbers == NULL) {
        return err_memory(err);
    }
    bool ok = read_rates(&m, from_ms, until_ms, err) && read_versions(&m, until_ms, err) &&
              read_targets(&m, scraper, err);
    map_free(m.numbers, NULL);
    if (!ok) {
        return false;
    }
    if (ret->n > 0) {
        qsort(ret->at, ret->n, sizeof(*ret->at), compare_rows);
    }
    ret->services_left_out = ret->n > SERVICE_ROWS_MAX ? ret->n - SERVICE_ROWS_MAX : 0;
    ret->n -= ret->services_left_out;
    return true;
}
