#include "store/changes/observe.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/query/bodies.h"
#include "store/query/rates.h"
#include "store/query/stacks.h"
#include "store/query/tree_private.h"
#include "store/query/versions.h"

#define OWN_LABELS_MAX 256
#define NS_A_SECOND 1e9

/* An instance of a side: the profiles with the same labels. */
struct instance {
    size_t place;    /* among those that are read, or NOT_READ */
    size_t profiles; /* that the store has */
    int64_t last_ns; /* time of the last profile that was read */
};
#define NOT_READ SIZE_MAX

/* A side while it is read. */
struct side {
    struct query_scope scope;
    struct projections labels; /* numbers instances */
    struct instance *instances;
    size_t cap;
    size_t seen;     /* profiles of instances that are read */
    size_t every;    /* each second, third, ... profile is read */
    int64_t from_ns; /* of the first profile */
    int64_t until_ns;
};

struct observing {
    const struct query *q;
    const struct changes_question *question;
    struct changes *result;
    struct observations *o;
    struct side sides[SIDES];
    int now; /* the side that is being read */
    struct budget budget;
    enum query_measure measure;
    /* All profiles share one tree, whose self is of the profile that is being read. */
    struct tree *tree;
    struct stacks *stacks;
    bool *outermost; /* by node: no ancestor has its name, so its total counts for the name */
    size_t outermost_cap;
    size_t outermost_n;
    double **cells; /* by number of a name */
    size_t cells_cap;
};

/* ---- instances ------------------------------------------------------------------------------- */

/* Finds the number of the instance that labels belong to. Labels of samples and computed ones do
 * not count. */
static bool number_instance(struct observing *w, struct side *side, const struct label *labels,
                            size_t n, const struct store_series *series, uint32_t *ret,
                            struct err *err)
{
    struct label own[OWN_LABELS_MAX];
    size_t n_own = 0;
    for (size_t i = 0; i < n && n_own < OWN_LABELS_MAX; i++) {
        bool of_samples = sv_starts_with(labels[i].name, SV("__"));
        for (size_t k = 0; series != NULL && k < series->n_sample_labels; k++) {
            of_samples = of_samples || sv_eq(series->sample_labels[k].name, labels[i].name);
        }
        if (!of_samples) {
            own[n_own++] = labels[i];
        }
    }
    if (!projections_add(&side->labels, own, n_own, ret, err)) {
        return false;
    }
    size_t before = side->cap;
    struct instance *grown =
        budget_grow(&w->budget, side->instances, &side->cap, (size_t)*ret + 1, sizeof(*grown), err);
    if (grown == NULL) {
        return false;
    }
    side->instances = grown;
    memset(grown + before, 0, (side->cap - before) * sizeof(*grown));
    return true;
}

static bool is_of_side(const struct observing *w, const struct store_body *body)
{
    const struct changes_side *side = &w->result->side[w->now];
    return w->question->ranges ||
           sv_eq(query_version_in(body->labels, body->n_labels), side->version);
}

static bool observe_on_listed(void *arg, const struct store_body *body, struct err *err)
{
    struct observing *w = arg;
    struct side *side = &w->sides[w->now];
    uint32_t i;
    if (!is_of_side(w, body)) {
        return true;
    }
    if (!number_instance(w, side, body->labels, body->n_labels, NULL, &i, err)) {
        return false;
    }
    side->instances[i].profiles++;
    int64_t until_ns = body->until_ns > body->from_ns ? body->until_ns : body->from_ns;
    side->from_ns =
        side->from_ns == 0 || body->from_ns < side->from_ns ? body->from_ns : side->from_ns;
    side->until_ns = until_ns > side->until_ns ? until_ns : side->until_ns;
    if (w->result->side[w->now].label.n == 0 && !w->question->ranges) {
        struct sv name = query_version_label(body->labels, body->n_labels);
        const char *copy = arena_strndup(w->q->arena, name.p, name.n);
        w->result->side[w->now].label = copy != NULL ? (struct sv){copy, name.n} : SV("");
    }
    return true;
}

/* Chooses the instances that are read: all, or INSTANCES_MAX of them, evenly. */
static void choose(struct observing *w, int which)
{
    struct side *side = &w->sides[which];
    size_t n = side->labels.table.n;
    size_t chosen = n < INSTANCES_MAX ? n : INSTANCES_MAX;
    for (size_t i = 0; i < n; i++) {
        side->instances[i].place = NOT_READ;
    }
    for (size_t k = 0; k < chosen; k++) {
        size_t i = k * n / chosen;
        side->instances[i].place = k;
        side->seen += side->instances[i].profiles;
    }
    side->every = 1 + side->seen / (CHANGES_PROFILES_MAX + 1);
    side->seen = 0;
    w->o->n[which] = chosen;
    w->result->side[which].instances_seen = n;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Finds out for new nodes of the tree whether an ancestor has the same name. */
static bool mark_nodes(struct observing *w, struct err *err)
{
    size_t n = tree_size(w->tree);
    bool *marks = budget_grow(&w->budget, w->outermost, &w->outermost_cap, n, sizeof(bool), err);
    if (marks == NULL) {
        return false;
    }
    w->outermost = marks;
    for (; w->outermost_n < n; w->outermost_n++) {
        uint32_t node = (uint32_t)w->outermost_n;
        bool is = node > 0;
        uint32_t name = node > 0 ? tree_edge_of(w->tree, node)->name : 0;
        for (uint32_t up = node; is && up > 0;) {
            up = tree_edge_of(w->tree, up)->parent;
            is = up == 0 || tree_edge_of(w->tree, up)->name != name;
        }
        marks[node] = is;
    }
    return true;
}

/* Returns the cells of a name, which are made on first use. */
static double *cells_of(struct observing *w, uint32_t name, struct err *err)
{
    size_t before = w->cells_cap;
    double **all =
        budget_grow(&w->budget, w->cells, &w->cells_cap, (size_t)name + 1, sizeof(*all), err);
    if (all == NULL) {
        return NULL;
    }
    w->cells = all;
    memset(all + before, 0, (w->cells_cap - before) * sizeof(*all));
    if (all[name] == NULL) {
        size_t n = COSTS * (w->o->n[SIDE_BASE] + w->o->n[SIDE_NEW]) * SLOTS;
        all[name] = arena_array(w->q->arena, n, sizeof(double));
        if (all[name] == NULL) {
            (void)query_no_room(err);
        }
    }
    return all[name];
}

/* Moves the values of the tree to the cells of an instance and slot. */
static bool harvest(struct observing *w, size_t at, struct err *err)
{
    struct tree *t = w->tree;
    size_t costs = (w->o->n[SIDE_BASE] + w->o->n[SIDE_NEW]) * SLOTS;
    if (!mark_nodes(w, err)) {
        return false;
    }
    tree_sum(t);
    for (uint32_t node = 1; node < tree_size(t); node++) {
        if (t->total[node] <= 0) {
            continue;
        }
        double *cells = cells_of(w, tree_edge_of(t, node)->name, err);
        if (cells == NULL) {
            return false;
        }
        cells[at] += (double)t->self[node];
        cells[costs + at] += w->outermost[node] ? (double)t->total[node] : 0;
    }
    w->o->totals[at] += (double)t->total[0];
    memset(t->self, 0, tree_size(t) * sizeof(*t->self));
    return true;
}

/* ---- profiles -------------------------------------------------------------------------------- */

static size_t slot_of(const struct side *side, int64_t time_ns)
{
    double span = (double)(side->until_ns - side->from_ns) + 1;
    double at = (double)(time_ns - side->from_ns) / span * SLOTS;
    return at <= 0 ? 0 : at >= SLOTS ? SLOTS - 1 : (size_t)at;
}

/* Returns the seconds that the profile covers. */
static double seconds_of(const struct observing *w, const struct instance *instance,
                         const struct store_body *body)
{
    int64_t ns = stacks_times(w->stacks).duration_ns;
    if (ns <= 0) {
        ns = body->until_ns - body->from_ns;
    }
    if (ns <= 0 && instance->last_ns > 0) {
        ns = body->from_ns - instance->last_ns;
    }
    return ns > 0 ? (double)ns / NS_A_SECOND : 0;
}

/* Sets the value of a sample: the period, if it has the unit of the values. */
static void set_quantum(struct observing *w)
{
    const struct profile_type *type = &w->question->type;
    int64_t period = stacks_times(w->stacks).period;
    if (w->o->quantum <= 0 && period > 0 && sv_eq(type->sample_unit, type->period_unit)) {
        w->o->quantum = (double)period;
    }
}

static bool observe_on_body(void *arg, const struct store_body *body, struct err *err)
{
    struct observing *w = arg;
    struct side *side = &w->sides[w->now];
    uint32_t i;
    int64_t sum;
    if (!is_of_side(w, body)) {
        return true;
    }
    size_t known = side->labels.table.n;
    if (!number_instance(w, side, body->labels, body->n_labels, NULL, &i, err)) {
        return false;
    }
    /* An instance may be new since the first pass. */
    if (i >= known || side->instances[i].place == NOT_READ || side->seen++ % side->every != 0) {
        return true;
    }
    for (size_t column = 0; query_next_column(body, &column); column++) {
        if (!stacks_add(w->stacks, body, column, &sum, err)) {
            memset(w->tree->self, 0, tree_size(w->tree) * sizeof(*w->tree->self));
            return false;
        }
    }
    size_t first = w->now == SIDE_BASE ? 0 : w->o->n[SIDE_BASE];
    size_t at = (first + side->instances[i].place) * SLOTS + slot_of(side, body->from_ns);
    set_quantum(w);
    w->o->seconds[at] += w->measure == MEASURE_LEVEL ? 1 : seconds_of(w, &side->instances[i], body);
    side->instances[i].last_ns = body->from_ns;
    w->result->side[w->now].profiles++;
    return harvest(w, at, err);
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* Sums and counts of the single profiles of a side. */
struct levels {
    struct observing *w;
    double sum[INSTANCES_MAX];
    double n[INSTANCES_MAX];
    uint64_t first_series[INSTANCES_MAX]; /* the series whose points are counted */
    struct err err;
};

static bool observe_on_point(void *arg, const struct store_point *p)
{
    struct levels *l = arg;
    struct observing *w = l->w;
    struct side *side = &w->sides[w->now];
    const struct store_series *s = p->series;
    uint32_t i;
    size_t known = side->labels.table.n;
    if (!w->question->ranges &&
        !sv_eq(query_version_in(s->labels, s->n_labels), w->result->side[w->now].version)) {
        return true;
    }
    if (!number_instance(w, side, s->labels, s->n_labels, s, &i, &l->err)) {
        return false;
    }
    size_t place = i < known ? side->instances[i].place : NOT_READ;
    if (place != NOT_READ) {
        l->first_series[place] = l->first_series[place] == 0 ? s->id : l->first_series[place];
        l->sum[place] += (double)p->value;
        l->n[place] += l->first_series[place] == s->id;
    }
    return true;
}

/* A merged profile has the sum of the levels of all profiles in it, so it must count as often as
 * there were profiles: the number is set so that the rate of the instance is the mean of its single
 * profiles. */
static bool count_levels(struct observing *w, struct err *err)
{
    struct levels l = {.w = w};
    size_t first = w->now == SIDE_BASE ? 0 : w->o->n[SIDE_BASE];
    if (!store_each_point(w->q->store, &w->sides[w->now].scope.range, observe_on_point, &l, err) ||
        l.err.kind != ERR_NONE) {
        return query_ended(false, &l.err, err);
    }
    for (size_t k = 0; k < w->o->n[w->now]; k++) {
        double read = 0;
        for (size_t s = 0; s < SLOTS; s++) {
            read += w->o->totals[(first + k) * SLOTS + s];
        }
        for (size_t s = 0; s < SLOTS && l.sum[k] > 0 && read > 0; s++) {
            size_t at = (first + k) * SLOTS + s;
            w->o->seconds[at] = w->o->totals[at] / l.sum[k] * l.n[k];
        }
    }
    return true;
}

/* ---- both passes ----------------------------------------------------------------------------- */

static bool visit(struct observing *w, bool with_data,
                  bool (*on_body)(void *arg, const struct store_body *body, struct err *err),
                  struct err *err)
{
    static const struct query_stacks all;
    struct side *side = &w->sides[w->now];
    if (with_data) {
        return query_each_body(w->q, &side->scope, &all, on_body, w, err);
    }
    return query_each_head(w->q, &side->scope, on_body, w, err);
}

/* Limits the range of a side to the last CHANGES_SIDE_MS of what it has. */
static void limit_range(struct side *side)
{
    int64_t from_ns = side->until_ns - CHANGES_SIDE_MS * NS_PER_MS;
    if (side->from_ns < from_ns) {
        side->from_ns = from_ns;
    }
    side->scope.range.from_ns = side->from_ns;
}

static bool prepare(struct observing *w, struct err *err)
{
    const struct changes_question *question = w->question;
    static const struct projection everything = {.others = true};
    for (w->now = 0; w->now < SIDES; w->now++) {
        struct changes_side *of = &w->result->side[w->now];
        struct side *side = &w->sides[w->now];
        const struct query_range range = {of->from_ms, of->until_ms, question->selector};
        projections_init(&side->labels, &everything, &w->budget);
        if (!query_scope_init(w->q, &side->scope, &range, &question->type, err) ||
            (side->scope.selector == NULL) ||
            !selector_add(side->scope.selector, SV(LABEL_SERVICE_NAME), MATCH_EQUAL,
                          question->service, err) ||
            !visit(w, false, observe_on_listed, err)) {
            return false;
        }
        limit_range(side);
        choose(w, w->now);
    }
    size_t n = (w->o->n[SIDE_BASE] + w->o->n[SIDE_NEW]) * SLOTS + 1;
    w->o->totals = arena_array(w->q->arena, n, sizeof(double));
    w->o->seconds = arena_array(w->q->arena, n, sizeof(double));
    w->tree = tree_new(w->q->bytes_max / 2, err);
    static const struct query_stacks all;
    w->stacks = w->tree == NULL ? NULL : stacks_new(w->tree, &all, w->q->bytes_max / 2, err);
    if (w->stacks == NULL) {
        return false;
    }
    stacks_want_times(w->stacks);
    return (w->o->totals != NULL && w->o->seconds != NULL) || query_no_room(err);
}

/* Reads the profiles of both sides. */
static bool read_sides(struct observing *w, struct err *err)
{
    for (w->now = 0; w->now < SIDES; w->now++) {
        struct changes_side *of = &w->result->side[w->now];
        const struct side *side = &w->sides[w->now];
        if (w->o->n[w->now] == 0) {
            *of = (struct changes_side){.label = of->label, .version = of->version};
            continue;
        }
        of->from_ms = side->from_ns / NS_PER_MS;
        of->until_ms = side->until_ns / NS_PER_MS + 1;
        of->instances = w->o->n[w->now];
        if (!visit(w, true, observe_on_body, err) ||
            (w->measure == MEASURE_LEVEL && !count_levels(w, err))) {
            return false;
        }
    }
    return true;
}

/* Lists the functions that have values, with copies of their names. */
static bool list_functions(struct observing *w, struct err *err)
{
    size_t n = w->tree->names.n < w->cells_cap ? w->tree->names.n : w->cells_cap;
    w->o->cells = arena_array(w->q->arena, n + 1, sizeof(double *));
    w->result->names = arena_array(w->q->arena, n + 1, sizeof(struct sv));
    if (w->o->cells == NULL || w->result->names == NULL) {
        return query_no_room(err);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (w->cells[i] == NULL) {
            continue;
        }
        struct sv name = tree_name_of(w->tree, i);
        const char *copy = arena_strndup(w->q->arena, name.p, name.n);
        if (copy == NULL) {
            return query_no_room(err);
        }
        w->result->names[w->o->n_functions] = (struct sv){copy, name.n};
        w->o->cells[w->o->n_functions++] = w->cells[i];
    }
    return true;
}

bool observe(const struct query *q, const struct changes_question *question, struct changes *ret,
             struct observations *o, struct err *err)
{
    struct observing w = {.q = q,
                          .question = question,
                          .result = ret,
                          .o = o,
                          .budget = {.max = q->bytes_max / 4},
                          .measure = query_measure_of(&question->type)};
    ret->is_level = w.measure == MEASURE_LEVEL;
    bool ok = prepare(&w, err) && read_sides(&w, err) && list_functions(&w, err);
    stacks_free(w.stacks);
    tree_free(w.tree);
    free(w.outermost);
    free(w.cells);
    for (int side = 0; side < SIDES; side++) {
        query_scope_done(&w.sides[side].scope);
        projections_done(&w.sides[side].labels);
        free(w.sides[side].instances);
    }
    return ok;
}
