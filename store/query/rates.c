#include "store/query/rates.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/record_rule.h"
#include "store/query/query_private.h"

/* Number of points between two checks of the deadline. */
#define POINTS_A_LOOK 4096
/* How long before the range profiles are read, so that its first step has one before it. */
#define LOOKBACK_MS (INT64_C(2) * 60 * 1000)
/* Windows that are shorter on average say nothing: earlier versions stored deltas so. */
#define WINDOW_MIN_NS (NS_PER_S / 10)
#define NONE ((double)NAN)

/* The profiles of an instance in a step. */
struct step {
    double sum;
    int64_t window_ns;
    int64_t last_ns; /* the time of the last one */
    uint64_t n;
};

struct instance {
    uint32_t group;
    uint32_t kind;
    int64_t first_ns;
    struct step steps[];
};

struct instance_key {
    uint64_t set;
    uint64_t kind;
};

struct rates {
    const struct query *q;
    const struct query_rate_options *o;
    int64_t start_ms; /* of the first step, which is before the range */
    size_t before;    /* number of steps before the range */
    size_t n_steps;   /* all of them */
    struct budget budget;
    struct table keys; /* struct instance_key; the numbers are those of `at` */
    struct instance **at;
    size_t cap;
    struct table groups;             /* names of services */
    struct table seen;               /* struct seen_key: profiles whose other series were visited */
    const struct store_series *last; /* the series of the last point, and its instance */
    struct instance *last_instance;
    uint32_t last_number;
    bool is_cut;
    size_t visited;
    struct err err;
};

struct span {
    double from;
    double to;
};

/* The values of a group and a kind in each step, and the part of the step, from 0 to 1, for which
 * some instance of it lived. */
struct sums {
    double *at;
    struct span *lived;
};

struct seen_key {
    int64_t time_ns;
    uint64_t instance;
};

enum query_measure query_measure_of(const struct profile_type *type)
{
    static const char *const deltas[] = {"contentions", "delay"};
    const struct record_type t = {.name = type->name, .type = type->sample_type};
    if (!record_type_is_counter(&t)) {
        return MEASURE_LEVEL;
    }
    bool is_delta = sv_starts_with(type->sample_type, SV("alloc_")) ||
                    sv_in(type->sample_type, deltas, sizeof(deltas) / sizeof(deltas[0]));
    return is_delta ? MEASURE_GROWTH : MEASURE_WINDOW;
}

/* ---- instances ------------------------------------------------------------------------------- */

/* Returns the number of the kind of a series; n_kinds if it is of none. */
static size_t kind_of(const struct rates *r, const struct store_series *s)
{
    struct sv type = label_value(s->labels, s->n_labels, SV("__type__"));
    struct sv unit = label_value(s->labels, s->n_labels, SV("__unit__"));
    size_t i = 0;
    while (i < r->o->n_kinds &&
           (!sv_eq(r->o->kinds[i].type, type) || !sv_eq(r->o->kinds[i].unit, unit))) {
        i++;
    }
    return i;
}

static bool new_instance(struct rates *r, const struct store_series *s, size_t kind, uint32_t i)
{
    struct sv service =
        r->o->by_service ? label_value(s->labels, s->n_labels, SV(LABEL_SERVICE_NAME)) : SV("");
    size_t size = sizeof(struct instance) + r->n_steps * sizeof(struct step);
    struct instance **at =
        budget_grow(&r->budget, r->at, &r->cap, (size_t)i + 1, sizeof(struct instance *), &r->err);
    if (at == NULL) {
        return false;
    }
    r->at = at;
    at[i] = NULL;
    if (size > r->budget.max - r->budget.used) {
        return query_no_room(&r->err);
    }
    uint32_t group;
    if (!merge_table_add(&r->groups, &r->budget, service.p, service.n, service.n, &group,
                         &r->err)) {
        return false;
    }
    at[i] = calloc(1, size);
    if (at[i] == NULL) {
        return err_memory(&r->err);
    }
    r->budget.used += size;
    at[i]->group = group;
    at[i]->kind = (uint32_t)kind;
    at[i]->first_ns = INT64_MAX;
    return true;
}

/* Finds or makes the instance of a series. r->last_instance is NULL if there is none. */
static bool find_instance(struct rates *r, const struct store_series *s)
{
    size_t kind = kind_of(r, s);
    const struct instance_key key = {s->set, kind};
    size_t before = r->keys.n;
    r->last = s;
    r->last_instance = NULL;
    if (kind == r->o->n_kinds) {
        return true;
    }
    if (!merge_table_add(&r->keys, &r->budget, &key, sizeof(key), sizeof(key), &r->last_number,
                         &r->err)) {
        return false;
    }
    size_t most = r->o->instances_max > 0 ? r->o->instances_max : QUERY_RATE_INSTANCES_MAX;
    if (r->keys.n > most) {
        merge_table_truncate(&r->keys, before);
        r->is_cut = true;
        return true;
    }
    if (r->keys.n > before && !new_instance(r, s, kind, r->last_number)) {
        merge_table_truncate(&r->keys, before);
        return false;
    }
    r->last_instance = r->at[r->last_number];
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Sets *ret to true if no other series of the profile has been visited. */
static bool is_first_piece(struct rates *r, const struct store_point *p, bool *ret)
{
    const struct seen_key key = {p->time_ns, r->last_number};
    size_t before = r->seen.n;
    uint32_t i;
    *ret = !p->shared;
    if (*ret) {
        return true;
    }
    bool ok = merge_table_add(&r->seen, &r->budget, &key, sizeof(key), sizeof(key), &i, &r->err);
    *ret = r->seen.n > before;
    return ok;
}

static bool rates_on_point(void *arg, const struct store_point *p)
{
    struct rates *r = arg;
    bool first;
    if (r->visited++ % POINTS_A_LOOK == 0 && !query_alive(r->q, &r->err)) {
        return false;
    }
    if (p->series != r->last && !find_instance(r, p->series)) {
        return false;
    }
    struct instance *in = r->last_instance;
    int64_t since_ms = p->time_ns / NS_PER_MS - r->start_ms;
    if (in == NULL || since_ms < 0) {
        return true;
    }
    if (!is_first_piece(r, p, &first)) {
        return false;
    }
    size_t i = (size_t)(since_ms / r->o->step_ms);
    struct step *step = &in->steps[i < r->n_steps ? i : r->n_steps - 1];
    step->sum += (double)p->value;
    if (first) {
        step->n++;
        step->window_ns += p->until_ns > p->time_ns ? p->until_ns - p->time_ns : 0;
        step->last_ns = p->time_ns > step->last_ns ? p->time_ns : step->last_ns;
        in->first_ns = p->time_ns < in->first_ns ? p->time_ns : in->first_ns;
    }
    return true;
}

/* Adds a matcher for the types of the kinds that are measured in windows, or of the others. Sets
 * *ret_any to false if there are none. The types are words, which need no escapes. */
static bool select_types(const struct rates *r, bool windows, struct selector *s, bool *ret_any,
                         struct err *err)
{
    struct buf types;
    buf_init(&types, SELECTOR_BYTES_MAX);
    size_t n = 0;
    for (size_t i = 0; i < r->o->n_kinds; i++) {
        const struct query_rate_kind *k = &r->o->kinds[i];
        if ((k->measure == MEASURE_WINDOW) == windows) {
            buf_printf(&types, "%s%.*s", n++ > 0 ? "|" : "", SV_ARG(k->type));
        }
    }
    struct sv text = {types.data, types.len};
    bool ok =
        n == 0 || selector_add(s, SV("__type__"), n == 1 ? MATCH_EQUAL : MATCH_REGEX, text, err);
    *ret_any = n > 0;
    buf_done(&types);
    return ok;
}

/* Windows cost a look-up for each point, so only the kinds that need them are read with them. */
static bool read_points(struct rates *r, const struct query_range *range, bool windows,
                        struct err *err)
{
    struct query_scope scope;
    bool any = false;
    struct selector *selector =
        range->selector != NULL ? selector_copy(range->selector, err) : selector_new(err);
    const struct query_range longer = {
        .start_ms = r->start_ms, .end_ms = range->end_ms, .selector = selector};
    bool ok = selector != NULL && select_types(r, windows, selector, &any, err);
    if (ok && any && (ok = query_scope_init(r->q, &scope, &longer, NULL, err))) {
        scope.range.with_zeros = true;
        scope.range.without_ids = true;
        scope.range.with_windows = windows;
        r->last = NULL; /* series of another scan may have the same address */
        ok = store_each_point(r->q->store, &scope.range, rates_on_point, r, err);
        ok = query_ended(ok, &r->err, err);
        query_scope_done(&scope);
    }
    selector_free(selector);
    return ok;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Returns the rate of a step by the time since the profile before it, whose time is before_ns (0:
 * there is none, so the first profile of the step only says where the time begins). */
static double growth(const struct instance *in, const struct step *s, int64_t before_ns)
{
    if (before_ns > 0) {
        return s->last_ns > before_ns ? s->sum * (double)NS_PER_S / (double)(s->last_ns - before_ns)
                                      : NONE;
    }
    if (s->n < 2 || s->last_ns <= in->first_ns) {
        return NONE;
    }
    double covered = (double)(s->last_ns - in->first_ns) * (double)s->n / (double)(s->n - 1);
    return s->sum * (double)NS_PER_S / covered;
}

static double value_of(const struct instance *in, const struct step *s, enum query_measure measure,
                       int64_t before_ns)
{
    if (s->n == 0) {
        return NONE;
    }
    if (measure == MEASURE_LEVEL) {
        return s->sum / (double)s->n;
    }
    if (measure == MEASURE_WINDOW && s->window_ns / (int64_t)s->n >= WINDOW_MIN_NS) {
        return s->sum * (double)NS_PER_S / (double)s->window_ns;
    }
    return growth(in, s, before_ns);
}

/* Gives the first profile of an instance, which has nothing before it, the rate of the one after
 * it.
 */
static void complete_first(const struct rates *r, const struct instance *in, double *v)
{
    size_t most = (size_t)(RATES_HOLE_MS / r->o->step_ms) + 1;
    size_t first = 0;
    while (first < r->n_steps && in->steps[first].n == 0) {
        first++;
    }
    for (size_t i = first + 1; i < r->n_steps && i <= first + most && isnan(v[first]); i++) {
        v[first] = v[i];
    }
}

/* Fills steps without a profile. The greatest distance of two steps with profiles is how many steps
 * a profile stands for, so the last value reaches as far. Returns true if it reaches to the end of
 * the range, where profiles are still to come. */
static bool fill(const struct rates *r, double *v)
{
    size_t most = (size_t)(RATES_HOLE_MS / r->o->step_ms) + 1;
    size_t last = r->n_steps;
    size_t gap = 1;
    for (size_t i = 0; i < r->n_steps; i++) {
        if (isnan(v[i])) {
            continue;
        }
        if (last < r->n_steps && i - last <= most) {
            gap = i - last > gap ? i - last : gap;
            for (size_t k = last + 1; k < i; k++) {
                v[k] = v[last];
            }
        }
        last = i;
    }
    for (size_t k = last + 1; k < r->n_steps && k - last <= gap; k++) {
        v[k] = v[last];
    }
    return last < r->n_steps && r->n_steps - 1 - last <= gap;
}

/* Returns the life of an instance in milliseconds since the first step: from its first profile to
 * its last one, and as long again as there was between two profiles on average. A single profile
 * stands for its step. */
static struct span life_of(const struct rates *r, const struct instance *in, bool is_current)
{
    double end_ms = (double)r->n_steps * (double)r->o->step_ms;
    int64_t last_ns = 0;
    uint64_t n = 0;
    for (size_t i = 0; i < r->n_steps; i++) {
        n += in->steps[i].n;
        last_ns = in->steps[i].last_ns > last_ns ? in->steps[i].last_ns : last_ns;
    }
    int64_t begin_ms = in->first_ns / NS_PER_MS - r->start_ms;
    int64_t latest_ms = last_ns / NS_PER_MS - r->start_ms;
    double first_ms = (double)begin_ms;
    double last_ms = (double)latest_ms;
    double step_ms = (double)r->o->step_ms;
    struct span life = {first_ms, last_ms};
    if (n > 1) {
        life.to += (last_ms - first_ms) / (double)(n - 1);
    } else {
        double step = floor(first_ms / step_ms);
        double last = (double)(r->n_steps - 1); /* has the end of the range as well */
        life.from = (step < last ? step : last) * step_ms;
        life.to = life.from + step_ms;
    }
    life.to = is_current ? end_ms : life.to;
    return life;
}

/* Adds the value of an instance in a step to the sum, by the part of the step for which it lived:
 * where one instance takes the place of another, both have profiles in the same step. *lived is the
 * part of the step for which some instance of the group lived. */
static void add_value(const struct rates *r, size_t step, double value, const struct span *life,
                      double *sum, struct span *lived)
{
    double step_ms = (double)r->o->step_ms;
    double from = life->from / step_ms - (double)step;
    double to = life->to / step_ms - (double)step;
    from = from > 0 ? from : 0;
    to = to < 1 ? to : 1;
    if (isnan(value) || to <= from) {
        return;
    }
    bool is_first = isnan(*sum);
    *sum = (is_first ? 0 : *sum) + value * (to - from);
    lived->from = is_first || from < lived->from ? from : lived->from;
    lived->to = is_first || to > lived->to ? to : lived->to;
}

/* Adds the values of an instance to the sums of its group, which are made if there are none. */
static bool add_instance(const struct rates *r, const struct instance *in, double *scratch,
                         struct sums *sums, struct err *err)
{
    size_t n = r->n_steps - r->before;
    int64_t before_ns = 0;
    for (size_t i = 0; i < r->n_steps; i++) {
        const struct step *s = &in->steps[i];
        scratch[i] = value_of(in, s, r->o->kinds[in->kind].measure, before_ns);
        before_ns = s->n > 0 ? s->last_ns : before_ns;
    }
    complete_first(r, in, scratch);
    bool is_current = fill(r, scratch);
    struct span life = life_of(r, in, is_current);
    if (sums->at == NULL) {
        sums->at = arena_array(r->q->arena, n, sizeof(*sums->at));
        sums->lived = arena_array(r->q->arena, n, sizeof(*sums->lived));
        if (sums->at == NULL || sums->lived == NULL) {
            return query_no_room(err);
        }
        for (size_t i = 0; i < n; i++) {
            sums->at[i] = NONE;
        }
    }
    for (size_t i = 0; i < n; i++) {
        add_value(r, r->before + i, scratch[r->before + i], &life, &sums->at[i], &sums->lived[i]);
    }
    return true;
}

/* Sets the values of a group. A step in which its first instance began, or its last one ended,
 * counts as far as they lived. */
static void finish_group(const struct rates *r, const struct sums *sums,
                         struct query_rate_group *group)
{
    for (size_t k = 0; k < r->o->n_kinds; k++) {
        for (size_t i = 0; sums[k].at != NULL && i < r->n_steps - r->before; i++) {
            sums[k].at[i] /= sums[k].lived[i].to - sums[k].lived[i].from;
        }
        group->values[k] = sums[k].at;
    }
}

static bool write_groups(const struct rates *r, struct query_rates *ret, struct err *err)
{
    struct arena *arena = r->q->arena;
    *ret = (struct query_rates){.start_ms = r->start_ms + (int64_t)r->before * r->o->step_ms,
                                .step_ms = r->o->step_ms,
                                .n_steps = r->n_steps - r->before,
                                .n = r->groups.n,
                                .is_cut = r->is_cut};
    size_t kinds = r->o->n_kinds;
    double *scratch = arena_array(arena, r->n_steps, sizeof(*scratch));
    struct sums *sums = arena_array(arena, ret->n * kinds + 1, sizeof(*sums));
    ret->at = arena_array(arena, ret->n + 1, sizeof(*ret->at));
    if (scratch == NULL || sums == NULL || ret->at == NULL) {
        return query_no_room(err);
    }
    for (uint32_t i = 0; i < ret->n; i++) {
        size_t size;
        const char *name = merge_table_get(&r->groups, i, &size);
        ret->at[i] = (struct query_rate_group){.service = {arena_strndup(arena, name, size), size}};
        if (ret->at[i].service.p == NULL) {
            return query_no_room(err);
        }
    }
    for (size_t i = 0; i < r->keys.n; i++) {
        const struct instance *in = r->at[i];
        if (!add_instance(r, in, scratch, &sums[in->group * kinds + in->kind], err)) {
            return false;
        }
    }
    for (size_t i = 0; i < ret->n; i++) {
        finish_group(r, &sums[i * kinds], &ret->at[i]);
    }
    return true;
}

static bool init(struct rates *r, const struct query_range *range, struct err *err)
{
    int64_t step_ms = r->o->step_ms;
    int64_t length_ms = range->end_ms > range->start_ms ? range->end_ms - range->start_ms : 1;
    int64_t steps = (length_ms + step_ms - 1) / step_ms;
    if (steps > QUERY_RATE_STEPS_MAX) {
        return err_set(err, ERR_INPUT, "expected at most %d steps, got %" PRId64,
                       QUERY_RATE_STEPS_MAX, steps);
    }
    int64_t before = (LOOKBACK_MS + step_ms - 1) / step_ms;
    int64_t fits = range->start_ms / step_ms;
    r->before = (size_t)(before < fits ? before : fits);
    r->start_ms = range->start_ms - (int64_t)r->before * step_ms;
    r->n_steps = r->before + (size_t)steps;
    return true;
}

bool query_rates(const struct query *q, const struct query_range *range,
                 const struct query_rate_options *o, struct query_rates *ret, struct err *err)
{
    struct rates r = {.q = q, .o = o, .budget.max = q->bytes_max / 2};
    if (!init(&r, range, err)) {
        return false;
    }
    merge_table_init(&r.keys, query_seed());
    merge_table_init(&r.groups, query_seed());
    merge_table_init(&r.seen, query_seed());
    bool ok = read_points(&r, range, true, err) && read_points(&r, range, false, err) &&
              write_groups(&r, ret, err);
    for (size_t i = 0; i < r.keys.n; i++) {
        free(r.at[i]);
    }
    free(r.at);
    merge_table_done(&r.keys);
    merge_table_done(&r.groups);
    merge_table_done(&r.seen);
    return ok;
}

double query_rate_mean(const double *values, size_t n)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; values != NULL && i < n; i++) {
        if (!isnan(values[i])) {
            sum += values[i];
            count++;
        }
    }
    return count > 0 ? sum / (double)count : NONE;
}
