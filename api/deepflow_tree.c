#include "api/deepflow_tree.h"

#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "api/pprof_reply.h"
#include "api/served.h"
#include "base/map.h"
#include "store/query/stacks.h"

/* Nanoseconds between two samples of a CPU profile of Go, which has 100 samples a second. */
#define NS_PER_SAMPLE 10000000
#define MATCHER_MAX ((size_t)4096)
#define SAMPLES_SUFFIX "_samples"

/* ---- events ---------------------------------------------------------------------------------- */

/* An event of DeepFlow, and the series that belong to it: regexes for `__name__` (NULL: any name)
 * and `__type__`. */
struct event {
    const char *event;
    const char *name;
    const char *type;
    bool is_state; /* only the last value of each process counts */
    const struct event *otherwise;
    int64_t divisor; /* values are divided by it; 0: 1 */
};

#define MEMORY "memory|heap|allocs"

static const struct event cpu_time = {
    "cpu", "process_cpu", "cpu", false, NULL, NS_PER_SAMPLE,
};
static const struct event events[] = {
    {"cpu", "process_cpu", "samples|sample", false, &cpu_time, 0},
    {"inuse_space", MEMORY, "inuse_space", true, NULL, 0},
    {"inuse_objects", MEMORY, "inuse_objects", true, NULL, 0},
    {"alloc_space", MEMORY, "alloc_space", false, NULL, 0},
    {"alloc_objects", MEMORY, "alloc_objects", false, NULL, 0},
    {"goroutines", "goroutines?", "goroutines?", true, NULL, 0},
    {"mutex_count", "mutex", "contentions", false, NULL, 0},
    {"mutex_duration", "mutex", "delay", false, NULL, 0},
    {"block_count", "block", "contentions", false, NULL, 0},
    {"block_duration", "block", "delay", false, NULL, 0},
    {"fgprof", "fgprof", "time", false, NULL, 0},
};
/* For a sample type without a row: the event has the name of the sample type. */
static const struct event any_event = {NULL, NULL, NULL, false, NULL, 0};
static const struct event any_state = {NULL, NULL, NULL, true, NULL, 0};

static const struct event *find_event(struct sv event)
{
    static const char *const states[] = {"inuse_", "mem-inuse", "hbm-inuse"};
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        if (sv_eq_str(event, events[i].event)) {
            return &events[i];
        }
    }
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        if (sv_starts_with(event, sv_from(states[i]))) {
            return &any_state;
        }
    }
    return &any_event;
}

/* Selects the series of an event without a row; "wall_samples" are the samples of the type wall. */
static bool select_any(struct selector *s, struct sv event, struct err *err)
{
    struct sv suffix = SV(SAMPLES_SUFFIX);
    if (event.n <= suffix.n || !sv_ends_with(event, suffix)) {
        return selector_add(s, SV("__type__"), MATCH_EQUAL, event, err);
    }
    struct sv name = {event.p, event.n - suffix.n};
    return selector_add(s, SV("__name__"), MATCH_EQUAL, name, err) &&
           selector_add(s, SV("__type__"), MATCH_REGEX, SV("samples|sample"), err);
}

static struct selector *make_selector(const struct deepflow_question *q, const struct event *e,
                                      struct err *err)
{
    struct selector *s = selector_new(err);
    bool ok = s != NULL;
    if (ok && q->service.n > 0) {
        ok = selector_add(s, SV(LABEL_SERVICE_NAME), MATCH_EQUAL, q->service, err);
    }
    if (ok && e->type == NULL) {
        ok = select_any(s, q->event, err);
    } else if (ok) {
        ok = selector_add(s, SV("__name__"), MATCH_REGEX, sv_from(e->name), err) &&
             selector_add(s, SV("__type__"), MATCH_REGEX, sv_from(e->type), err);
    }
    return ok ? s : selector_free(s);
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* A series, and the id of the profile that it is a part of (NULL: none). */
struct tagged {
    const struct deepflow_question *question;
    const struct store_series *series;
    const char *id;
};

static struct sv label_of(const struct tagged *t, struct sv name)
{
    return label_value(t->series->labels, t->series->n_labels, name);
}

static struct sv ip_of(const struct tagged *t)
{
    struct sv host;
    uint16_t port;
    bool ok = split_host_port(label_of(t, SV(LABEL_INSTANCE)), &host, &port, NULL);
    return ok ? host : SV("");
}

/* Returns the value of our label that corresponds to a tag of DeepFlow. */
static struct sv renamed(const struct tagged *t, struct sv tag)
{
    static const struct {
        const char *tag;
        const char *label;
    } names[] = {
        {"app_service", LABEL_SERVICE_NAME},
        {"app_instance", LABEL_INSTANCE},
        {"pod_ns", "namespace"},
        {"pod_node", "node"},
        {"pod_cluster", "cluster"},
        {"host", "node"},
    };
    static const char *const prefixes[] = {"k8s.label.", "k8s.annotation."};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (sv_eq_str(tag, names[i].tag)) {
            return label_of(t, sv_from(names[i].label));
        }
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (sv_starts_with(tag, sv_from(prefixes[i]))) {
            return label_of(t, sv_skip(tag, strlen(prefixes[i])));
        }
    }
    return sv_eq_str(tag, "ip") ? ip_of(t) : SV("");
}

/* Returns the value of a tag: that of the label with its name, else that of our corresponding
 * label, else a part of the question. */
static struct sv deepflow_tag(void *arg, struct sv tag)
{
    const struct tagged *t = arg;
    struct sv value = label_of(t, tag);
    if (value.n == 0) {
        value = renamed(t, tag);
    }
    if (value.n > 0) {
        return value;
    }
    return sv_eq_str(tag, "profile_event_type")      ? t->question->event
           : sv_eq_str(tag, "profile_language_type") ? t->question->language
           : sv_eq_str(tag, "profile_id")            ? sv_from(t->id)
                                                     : value;
}

static bool passes(const struct deepflow_question *q, const struct store_series *series,
                   const char *id, bool *ret_passes, struct err *err)
{
    struct tagged t = {.question = q, .series = series, .id = id};
    return tag_filter_matches(q->filter, deepflow_tag, &t, ret_passes, err);
}

/* ---- services -------------------------------------------------------------------------------- */

struct services {
    const struct exchange *x;
    const struct deepflow_question *question;
    struct map *names;
    struct err *err;
    bool ok;
};

static bool deepflow_on_series(void *arg, const struct store_series *series)
{
    struct services *s = arg;
    struct tagged t = {.question = s->question, .series = series};
    bool fits = false;
    s->ok = !exchange_is_over(s->x, s->err) && passes(s->question, series, NULL, &fits, s->err);
    if (s->ok && fits && map_count(s->names) <= s->x->bytes_max / LABELS_BYTES_MAX + 1000) {
        s->ok =
            map_put(s->names, label_of(&t, SV(LABEL_SERVICE_NAME)), s, NULL) || err_memory(s->err);
    }
    return s->ok;
}

static int compare_names(const void *a, const void *b)
{
    const struct sv *x = a;
    const struct sv *y = b;
    return sv_cmp(*x, *y);
}

static bool join(const struct map *names, struct buf *out, struct err *err)
{
    size_t n = 0;
    size_t cursor = 0;
    void *value;
    struct sv *sorted = calloc(map_count(names) + 1, sizeof(*sorted));
    if (sorted == NULL) {
        return err_memory(err);
    }
    while (map_next(names, &cursor, &sorted[n], &value)) {
        n++;
    }
    qsort(sorted, n, sizeof(*sorted), compare_names);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i > 0 ? ", " : "");
        buf_append(out, sorted[i].p, sorted[i].n);
    }
    free(sorted);
    return buf_ok(out) || err_memory(err);
}

static bool find_services(struct services *s, const struct event *e, struct err *err)
{
    struct selector *selector = make_selector(s->question, e, err);
    struct store_range range = {.from_ns = s->question->from_ns,
                                .until_ns = s->question->until_ns,
                                .selector = selector,
                                .partial = s->x->partial,
                                .peers = ask_peers(s->x, s->x->deadline_ms)};
    bool ok = selector != NULL &&
              store_each_series(s->x->options->served->store, &range, deepflow_on_series, s, err) &&
              s->ok;
    selector_free(selector);
    return ok;
}

bool deepflow_services(const struct exchange *x, const struct deepflow_question *q, struct buf *ret,
                       size_t *ret_n, struct err *err)
{
    struct services s = {.x = x, .question = q, .names = map_new(), .err = err, .ok = true};
    const struct event *e = find_event(q->event);
    bool ok = (s.names != NULL || err_memory(err)) && find_services(&s, e, err);
    if (ok && map_count(s.names) == 0 && e->otherwise != NULL) {
        ok = find_services(&s, e->otherwise, err);
    }
    if (ok) {
        *ret_n = map_count(s.names);
        ok = join(s.names, ret, err);
    }
    map_free(s.names, NULL);
    return ok;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

struct gathering {
    const struct exchange *x;
    const struct deepflow_question *question;
    const struct event *event;
    struct tree *tree;
    struct stacks *stacks; /* adds stacks to `tree` */
    struct map *last; /* for a state: series -> its last value, which is removed when it is used */
    size_t bodies;
    struct err *err;
    bool ok;
};

/* Lists the series of a body that pass the filter; *ret_n is their number. */
static bool filter_series(const struct gathering *g, const struct store_body *body,
                          const struct store_series **ret, size_t *ret_n)
{
    *ret_n = 0;
    for (size_t i = 0; i < body->n_series; i++) {
        bool fits = false;
        if (!passes(g->question, body->series[i], body->id, &fits, g->err)) {
            return false;
        }
        if (fits) {
            ret[(*ret_n)++] = body->series[i];
        }
    }
    return true;
}

/* Adds the samples of some series of a body, column by column. */
static bool add_series(struct stacks *to, const struct store_body *body,
                       const struct store_series *const *series, size_t n, int64_t *ret_sum,
                       struct err *err)
{
    struct store_body part = *body;
    part.series = series;
    part.n_series = n;
    part.whole = body->whole && n == body->n_series;
    *ret_sum = 0;
    for (size_t i = 0; i < n; i++) {
        bool done = false;
        for (size_t j = 0; j < i && !done; j++) {
            done = series[j]->column == series[i]->column;
        }
        int64_t sum = 0;
        if (!done && !stacks_add(to, &part, series[i]->column, &sum, err)) {
            return false;
        }
        *ret_sum += sum;
    }
    return true;
}

static bool count_body(struct gathering *g, const struct store_body *body,
                       const struct store_series **series)
{
    size_t n;
    int64_t sum;
    if (!filter_series(g, body, series, &n)) {
        return false;
    }
    g->bodies += n > 0;
    return n == 0 || add_series(g->stacks, body, series, n, &sum, g->err);
}

/* Clears the error of a profile whose stacks cannot be read (a recording of Java, or a damaged
 * profile): the other profiles are still counted. */
static bool excuse(struct gathering *g)
{
    if (!g->ok && g->err->kind == ERR_INPUT) {
        err_clear(g->err);
        g->ok = true;
    }
    return g->ok;
}

static bool deepflow_on_body(void *arg, const struct store_body *body)
{
    struct gathering *g = arg;
    const struct store_series **series = calloc(body->n_series + 1, sizeof(void *));
    if (series == NULL) {
        g->ok = err_memory(g->err);
        return false;
    }
    g->ok = !exchange_is_over(g->x, g->err) && count_body(g, body, series);
    free(series);
    return excuse(g);
}

/* ---- states ---------------------------------------------------------------------------------- */

static struct sv key_of(const struct store_series *const *series)
{
    return (struct sv){(const char *)&(*series)->id, sizeof((*series)->id)};
}

/* Remembers the value of a point. The points of each series come in order of time, so its last
 * value remains. */
static bool deepflow_on_point(void *arg, const struct store_point *point)
{
    struct gathering *g = arg;
    int64_t *value = map_get(g->last, key_of(&point->series));
    if (value == NULL) {
        size_t held = map_count(g->last) * 256;
        value = held < g->x->bytes_max / 2 ? malloc(sizeof(*value)) : NULL;
        if (value == NULL || !map_put(g->last, key_of(&point->series), value, NULL)) {
            free(value);
            g->ok = err_set(g->err, ERR_LIMIT, "too many series for query.max_bytes");
            return false;
        }
    }
    *value = point->value;
    g->ok = !exchange_is_over(g->x, g->err);
    return g->ok;
}

static int64_t scale(int64_t value, int64_t by, int64_t of)
{
    __extension__ typedef __int128 wide;
    return of == 0 || by == of ? value : (int64_t)((wide)value * by / of);
}

/* Adds a tree to another one, with each value multiplied by `by` and divided by `of`. */
static bool add_tree(struct tree *to, const struct tree *from, int64_t by, int64_t of,
                     struct err *err)
{
    size_t n = tree_size(from);
    uint32_t *places = calloc(n, sizeof(*places));
    bool ok = true;
    if (places == NULL) {
        return err_memory(err);
    }
    for (size_t i = 1; i < n && ok; i++) {
        struct tree_node node = tree_node(from, (uint32_t)i);
        uint32_t name;
        ok = tree_name(to, node.name, &name, err) &&
             tree_child(to, places[node.parent], name, &places[i], err);
        if (ok && node.self != 0) {
            tree_add(to, places[i], scale(node.self, by, of));
        }
    }
    free(places);
    return ok;
}

/* Adds a profile that may be the merge of several, scaled to the value of the last of them. */
static bool add_last(struct gathering *g, const struct store_body *body,
                     const struct store_series *series, int64_t last)
{
    const struct query_stacks all = {.as_recorded = ask_as_recorded(g->x->request)};
    int64_t sum = 0;
    struct tree *tree = tree_new(g->x->bytes_max / 4, g->err);
    struct stacks *stacks =
        tree == NULL ? NULL : stacks_new(tree, &all, g->x->bytes_max / 4, g->err);
    bool ok = stacks != NULL && add_series(stacks, body, &series, 1, &sum, g->err) &&
              add_tree(g->tree, tree, last, sum, g->err);
    stacks_free(stacks);
    tree_free(tree);
    return ok;
}

static bool count_last(struct gathering *g, const struct store_body *body,
                       const struct store_series *series)
{
    bool fits = false;
    if (!passes(g->question, series, body->id, &fits, g->err)) {
        return false;
    }
    int64_t *last = fits ? map_remove(g->last, key_of(&series)) : NULL;
    bool ok = last == NULL || add_last(g, body, series, *last);
    g->bodies += last != NULL;
    free(last);
    return ok;
}

/* Adds the newest profile of each series. Bodies come newest first. The scan ends when every series
 * was found. */
static bool deepflow_on_last_body(void *arg, const struct store_body *body)
{
    struct gathering *g = arg;
    g->ok = !exchange_is_over(g->x, g->err);
    for (size_t i = 0; i < body->n_series && g->ok; i++) {
        g->ok = count_last(g, body, body->series[i]);
        (void)excuse(g);
    }
    return g->ok && map_count(g->last) > 0;
}

/* ---- trees ----------------------------------------------------------------------------------- */

static bool gather_states(struct gathering *g, const struct store_scan *scan)
{
    g->last = map_new();
    if (g->last == NULL) {
        return err_memory(g->err);
    }
    bool ok =
        store_each_point(g->x->options->served->store, &scan->range, deepflow_on_point, g,
                         g->err) &&
        g->ok &&
        store_each_body(g->x->options->served->store, scan, deepflow_on_last_body, g, g->err) &&
        g->ok;
    map_free(g->last, free);
    return ok;
}

static bool gather(struct gathering *g)
{
    struct selector *s = make_selector(g->question, g->event, g->err);
    struct store_scan scan = {
        .range = {.from_ns = g->question->from_ns,
                  .until_ns = g->question->until_ns,
                  .selector = s,
                  .partial = g->x->partial,
                  .peers = ask_peers(g->x, g->x->deadline_ms)},
        .with_data = true,
        .newest_first = g->event->is_state,
    };
    bool ok = s != NULL;
    g->bodies = 0;
    if (ok && g->event->is_state) {
        ok = gather_states(g, &scan);
    } else if (ok) {
        ok = store_each_body(g->x->options->served->store, &scan, deepflow_on_body, g, g->err) &&
             g->ok;
    }
    selector_free(s);
    return ok;
}

/* Divides the values of a tree. Returns a new tree and frees the old one. */
static struct tree *divide(struct tree *tree, int64_t divisor, size_t bytes_max, struct err *err)
{
    struct tree *divided = tree_new(bytes_max, err);
    if (divided != NULL && !add_tree(divided, tree, 1, divisor, err)) {
        divided = tree_free(divided);
    }
    tree_free(tree);
    return divided;
}

struct tree *deepflow_tree(const struct exchange *x, const struct deepflow_question *q,
                           struct err *err)
{
    const struct query_stacks all = {.as_recorded = ask_as_recorded(x->request)};
    struct gathering g = {
        .x = x, .question = q, .event = find_event(q->event), .err = err, .ok = true};
    size_t share = x->bytes_max / 4;
    g.tree = tree_new(share, err);
    g.stacks = g.tree == NULL ? NULL : stacks_new(g.tree, &all, share, err);
    bool ok = g.stacks != NULL && gather(&g);
    if (ok && g.bodies == 0 && g.event->otherwise != NULL) {
        g.event = g.event->otherwise;
        ok = gather(&g);
    }
    stacks_free(g.stacks);
    if (!ok) {
        return tree_free(g.tree);
    }
    return g.event->divisor > 1 ? divide(g.tree, g.event->divisor, share, err) : g.tree;
}
