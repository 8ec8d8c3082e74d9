/* Families are in a list, and cells in a list of their family, both in order of creation. Nothing
 * is removed before the registry is freed, so pointers to families and cells stay valid. Cells that
 * nobody uses are hidden. The registry's lists have a lock and each family's list has another;
 * values are atomic and need neither. */
#include "base/metrics.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/str.h"
#include "base/utf8.h"

/* The limit of all label values of a cell; beyond it, the cell "other" counts. */
#define CELL_KEY_MAX ((size_t)16 * 1024)

struct metric_cell {
    struct metric *family;
    STAILQ_ENTRY(metric_cell) link;
    char *labels;               /* a="b",c="d" as the text format has it; "" without labels */
    size_t n_first;             /* bytes of the first label in them: a="b" */
    bool hidden;                /* under the family's lock */
    _Atomic uint64_t value;     /* counter; gauge in two's complement */
    _Atomic double sum;         /* histogram */
    _Atomic uint64_t buckets[]; /* histogram: not cumulative; one more than the family has bounds */
};

struct metric {
    STAILQ_ENTRY(metric) link;
    struct metric_desc desc;
    size_t n_labels;
    pthread_mutex_t lock; /* guards the rest */
    struct map *by_key;   /* cells by their label values, each followed by a NUL */
    STAILQ_HEAD(metric_cells, metric_cell) cells;
    /* counts everything beyond the limits; NULL until it is needed */
    struct metric_cell *other;
    size_t n_hidden;
};

/* The number of uses of a label value: see metrics_use(). */
struct use {
    size_t n;
};

struct collector {
    STAILQ_ENTRY(collector) link;
    void (*fn)(struct metrics_out *o, void *arg);
    void *arg;
};

struct metrics {
    pthread_mutex_t lock; /* guards the lists; taken before a family's */
    STAILQ_HEAD(metric_list, metric) families;
    STAILQ_HEAD(collector_list, collector) collectors;
    struct map *uses; /* struct use, by the text of the label: job="x" */
    size_t n_unused;  /* label values in `uses` that nobody uses any more */
};

struct metrics_out {
    struct buf *buf;
    const char *name; /* name of the family that was named last */
};

struct metrics *metrics_new(void)
{
    struct metrics *m = calloc(1, sizeof(*m));
    if (m != NULL) {
        pthread_mutex_init(&m->lock, NULL);
        STAILQ_INIT(&m->families);
        STAILQ_INIT(&m->collectors);
        m->uses = map_new();
    }
    return m;
}

static void cell_free(struct metric_cell *c)
{
    if (c != NULL) {
        free(c->labels);
        free(c);
    }
}

static void metric_free(struct metric *m)
{
    while (!STAILQ_EMPTY(&m->cells)) {
        struct metric_cell *c = STAILQ_FIRST(&m->cells);
        STAILQ_REMOVE_HEAD(&m->cells, link);
        cell_free(c);
    }
    map_free(m->by_key, NULL);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

struct metrics *metrics_free(struct metrics *m)
{
    if (m == NULL) {
        return NULL;
    }
    while (!STAILQ_EMPTY(&m->families)) {
        struct metric *family = STAILQ_FIRST(&m->families);
        STAILQ_REMOVE_HEAD(&m->families, link);
        metric_free(family);
    }
    while (!STAILQ_EMPTY(&m->collectors)) {
        struct collector *c = STAILQ_FIRST(&m->collectors);
        STAILQ_REMOVE_HEAD(&m->collectors, link);
        free(c);
    }
    if (m->uses != NULL) {
        map_free(m->uses, free);
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
    return NULL;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Appends v with backslash and newline escaped, and the quote in label values. Invalid UTF-8 is
 * repaired: a reader may refuse the whole page for one such byte. */
static void put_escaped(struct buf *out, struct sv v, bool quote)
{
    while (v.n > 0) {
        uint32_t rune;
        size_t len = utf8_decode(v, &rune);
        if (len == 0) {
            buf_puts(out, UTF8_REPLACEMENT);
            len = 1;
        } else if (rune == '\n') {
            buf_puts(out, "\\n");
        } else {
            if (rune == '\\' || (quote && rune == '"')) {
                buf_putc(out, '\\');
            }
            buf_append(out, v.p, len);
        }
        v = sv_skip(v, len);
    }
}

static void put_label(struct buf *out, bool first, const char *name, const char *value)
{
    buf_printf(out, "%s%s=\"", first ? "" : ",", name);
    put_escaped(out, sv_from(value), true);
    buf_putc(out, '"');
}

/* Appends what precedes a value: name, suffix, labels, and the bound if there is one. */
static void put_name(struct buf *out, const char *name, const char *suffix, const char *labels,
                     const char *le)
{
    buf_puts(out, name);
    buf_puts(out, suffix);
    if (labels[0] != '\0' || le != NULL) {
        buf_printf(out, "{%s", labels);
        if (le != NULL) {
            buf_printf(out, "%sle=\"%s\"", labels[0] == '\0' ? "" : ",", le);
        }
        buf_putc(out, '}');
    }
    buf_putc(out, ' ');
}

static void put_double(struct buf *out, double value)
{
    char text[NUM_TEXT_MAX];
    num_format(value, text);
    buf_puts(out, text);
    buf_putc(out, '\n');
}

static void put_family(struct buf *out, const char *name, const char *help, enum metric_type type)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    buf_printf(out, "# HELP %s ", name);
    put_escaped(out, sv_from(help), false);
    buf_printf(out, "\n# TYPE %s %s\n", name, types[type]);
}

/* ---- families and cells ---------------------------------------------------------------------- */

static struct metric *metric_new(const struct metric_desc *desc)
{
    struct metric *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    m->desc = *desc;
    while (m->n_labels < METRIC_LABELS_MAX && desc->labels[m->n_labels] != NULL) {
        m->n_labels++;
    }
    pthread_mutex_init(&m->lock, NULL);
    STAILQ_INIT(&m->cells);
    m->by_key = map_new();
    if (m->by_key == NULL) {
        metric_free(m);
        return NULL;
    }
    return m;
}

static struct metric *find_family(const struct metrics *m, const char *name)
{
    struct metric *family = STAILQ_FIRST(&m->families);
    while (family != NULL && strcmp(family->desc.name, name) != 0) {
        family = STAILQ_NEXT(family, link);
    }
    return family;
}

struct metric *metrics_register(struct metrics *m, const struct metric_desc *desc)
{
    if (m == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&m->lock);
    struct metric *family = find_family(m, desc->name);
    if (family == NULL && (family = metric_new(desc)) != NULL) {
        STAILQ_INSERT_TAIL(&m->families, family, link);
    }
    pthread_mutex_unlock(&m->lock);
    if (family != NULL && family->n_labels == 0) {
        (void)metric_only(family); /* appears as 0 from the start */
    }
    return family;
}

struct metric *metrics_family(struct metrics *m, enum metric_type type, const char *name,
                              const char *help, const char *label1, const char *label2)
{
    const struct metric_desc desc = {
        .name = name, .help = help, .type = type, .labels = {label1, label2}};
    return metrics_register(m, &desc);
}

struct metric_cell *metrics_single(struct metrics *m, enum metric_type type, const char *name,
                                   const char *help)
{
    return metric_only(metrics_family(m, type, name, help, NULL, NULL));
}

static bool set_labels(struct metric_cell *c, const char *const *values)
{
    const struct metric *m = c->family;
    struct buf text;
    buf_init(&text, 8 * CELL_KEY_MAX); /* escaping at most triples the values */
    for (size_t i = 0; i < m->n_labels; i++) {
        put_label(&text, i == 0, m->desc.labels[i], values[i]);
        c->n_first = i == 0 ? text.len : c->n_first;
    }
    c->labels = buf_take(&text, NULL);
    buf_done(&text);
    return c->labels != NULL;
}

/* Makes a cell. The caller holds the family's lock. */
static struct metric_cell *add_cell(struct metric *m, struct sv key, const char *const *values)
{
    size_t n_buckets = m->desc.type == METRIC_HISTOGRAM ? m->desc.n_buckets + 1 : 0;
    struct metric_cell *c = calloc(1, sizeof(*c) + n_buckets * sizeof(c->buckets[0]));
    if (c == NULL) {
        return NULL;
    }
    c->family = m;
    if (!set_labels(c, values) || !map_put(m->by_key, key, c, NULL)) {
        cell_free(c);
        return NULL;
    }
    STAILQ_INSERT_TAIL(&m->cells, c, link);
    return c;
}

/* Returns the cell of these label values; makes it if the family then shows at most max cells. The
 * caller holds the family's lock. */
static struct metric_cell *find_or_add(struct metric *m, const char *const *values, size_t left)
{
    struct metric_cell *c = NULL;
    struct buf text;
    buf_init(&text, CELL_KEY_MAX);
    for (size_t i = 0; i < m->n_labels; i++) {
        buf_append(&text, values[i], strlen(values[i]) + 1);
    }
    if (buf_ok(&text)) {
        struct sv key = {.p = text.data, .n = text.len};
        c = map_get(m->by_key, key);
        size_t n = map_count(m->by_key);
        bool room = n - m->n_hidden + left < METRIC_CELLS_MAX && n + left < METRIC_CELLS_EVER_MAX;
        c = c == NULL && room ? add_cell(m, key, values) : c;
    }
    buf_done(&text);
    return c;
}

struct metric_cell *metric_cell(struct metric *m, const char *const *values)
{
    static const char *const other[METRIC_LABELS_MAX] = {"other", "other", "other", "other"};
    if (m == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&m->lock);
    struct metric_cell *c = find_or_add(m, values, 1);
    if (c == NULL && m->other == NULL) {
        m->other = find_or_add(m, other, 0);
    }
    c = c == NULL ? m->other : c;
    pthread_mutex_unlock(&m->lock);
    return c;
}

struct metric_cell *metric_cell_of(struct metric *m, const char *value)
{
    return metric_cell(m, &value);
}

struct metric_cell *metric_only(struct metric *m)
{
    return m == NULL || m->n_labels > 0 ? NULL : metric_cell(m, NULL);
}

/* ---- what exists ----------------------------------------------------------------------------- */

/* Under the registry's lock. */
static void hide_unused(const struct metrics *m, struct metric *family)
{
    struct metric_cell *c = NULL;
    pthread_mutex_lock(&family->lock);
    family->n_hidden = 0;
    STAILQ_FOREACH(c, &family->cells, link)
    {
        const struct use *use = map_get(m->uses, (struct sv){c->labels, c->n_first});
        c->hidden = use != NULL && use->n == 0 && c != family->other;
        family->n_hidden += c->hidden;
    }
    pthread_mutex_unlock(&family->lock);
}

static struct use *make_use(struct metrics *m, struct sv key)
{
    struct use *use = calloc(1, sizeof(*use));
    if (use == NULL || !map_put(m->uses, key, use, NULL)) {
        free(use);
        return NULL;
    }
    m->n_unused++;
    return use;
}

/* Under the registry's lock. */
static void count_use(struct metrics *m, struct sv key, bool more)
{
    struct use *use = map_get(m->uses, key);
    use = use == NULL && more ? make_use(m, key) : use;
    if (use == NULL || (!more && use->n == 0)) {
        return;
    }
    bool was = use->n > 0;
    use->n = more ? use->n + 1 : use->n - 1;
    if (was == (use->n > 0)) {
        return;
    }
    m->n_unused = was ? m->n_unused + 1 : m->n_unused - 1;
    struct metric *family = NULL;
    STAILQ_FOREACH(family, &m->families, link)
    {
        hide_unused(m, family);
    }
}

static void change_use(struct metrics *m, const char *label, const char *value, bool more)
{
    struct buf key;
    buf_init(&key, CELL_KEY_MAX);
    put_label(&key, true, label, value);
    if (m != NULL && m->uses != NULL && buf_ok(&key)) {
        pthread_mutex_lock(&m->lock);
        count_use(m, (struct sv){key.data, key.len}, more);
        pthread_mutex_unlock(&m->lock);
    }
    buf_done(&key);
}

void metrics_use(struct metrics *m, const char *label, const char *value)
{
    change_use(m, label, value, true);
}

void metrics_release(struct metrics *m, const char *label, const char *value)
{
    change_use(m, label, value, false);
}

/* ---- values ---------------------------------------------------------------------------------- */

void metric_add(struct metric_cell *c, uint64_t n)
{
    if (c != NULL) {
        atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
    }
}

void metric_inc(struct metric_cell *c)
{
    metric_add(c, 1);
}

void metric_set(struct metric_cell *c, int64_t value)
{
    if (c != NULL) {
        atomic_store_explicit(&c->value, (uint64_t)value, memory_order_relaxed);
    }
}

void metric_gauge_add(struct metric_cell *c, int64_t delta)
{
    metric_add(c, (uint64_t)delta);
}

void metric_observe(struct metric_cell *c, double value)
{
    /* A single NaN would spoil the sum forever. */
    if (c == NULL || c->family->desc.type != METRIC_HISTOGRAM || isnan(value)) {
        return;
    }
    const struct metric_desc *d = &c->family->desc;
    size_t i = 0;
    while (i < d->n_buckets && value > d->buckets[i]) {
        i++;
    }
    atomic_fetch_add_explicit(&c->buckets[i], 1, memory_order_relaxed);
    double sum = atomic_load_explicit(&c->sum, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&c->sum, &sum, sum + value, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

uint64_t metric_value(const struct metric_cell *c)
{
    return c == NULL ? 0 : atomic_load_explicit(&c->value, memory_order_relaxed);
}

/* ---- rendering ------------------------------------------------------------------------------- */

static void render_histogram(const struct metric_cell *c, struct buf *out)
{
    const struct metric_desc *d = &c->family->desc;
    uint64_t count = 0;
    for (size_t i = 0; i <= d->n_buckets; i++) {
        char le[NUM_TEXT_MAX];
        num_format(i < d->n_buckets ? d->buckets[i] : (double)INFINITY, le);
        count += atomic_load_explicit(&c->buckets[i], memory_order_relaxed);
        put_name(out, d->name, "_bucket", c->labels, le);
        buf_printf(out, "%llu\n", (unsigned long long)count);
    }
    put_name(out, d->name, "_sum", c->labels, NULL);
    put_double(out, atomic_load_explicit(&c->sum, memory_order_relaxed));
    /* The count equals the last bucket by construction, even if values are observed meanwhile. */
    put_name(out, d->name, "_count", c->labels, NULL);
    buf_printf(out, "%llu\n", (unsigned long long)count);
}

static void render_cell(const struct metric_cell *c, struct buf *out)
{
    const struct metric_desc *d = &c->family->desc;
    if (d->type == METRIC_HISTOGRAM) {
        render_histogram(c, out);
        return;
    }
    put_name(out, d->name, "", c->labels, NULL);
    uint64_t value = metric_value(c);
    if (d->type == METRIC_GAUGE) {
        buf_printf(out, "%lld\n", (long long)value);
    } else {
        buf_printf(out, "%llu\n", (unsigned long long)value);
    }
}

static void render_family(struct metric *m, struct buf *out)
{
    pthread_mutex_lock(&m->lock);
    const struct metric_cell *c = NULL;
    bool any = false;
    STAILQ_FOREACH(c, &m->cells, link)
    {
        if (c->hidden) {
            continue;
        }
        if (!any) {
            put_family(out, m->desc.name, m->desc.help, m->desc.type);
        }
        any = true;
        render_cell(c, out);
    }
    pthread_mutex_unlock(&m->lock);
}

void metrics_out_family(struct metrics_out *o, const char *name, const char *help,
                        enum metric_type type)
{
    o->name = name;
    put_family(o->buf, name, help, type);
}

void metrics_out_sample(struct metrics_out *o, const char *const (*labels)[2], size_t n,
                        double value)
{
    buf_puts(o->buf, o->name);
    for (size_t i = 0; i < n; i++) {
        buf_puts(o->buf, i == 0 ? "{" : "");
        put_label(o->buf, i == 0, labels[i][0], labels[i][1]);
    }
    buf_puts(o->buf, n == 0 ? " " : "} ");
    put_double(o->buf, value);
}

bool metrics_collector(struct metrics *m, void (*fn)(struct metrics_out *o, void *arg), void *arg)
{
    struct collector *c = m == NULL ? NULL : calloc(1, sizeof(*c));
    if (c == NULL) {
        return false;
    }
    c->fn = fn;
    c->arg = arg;
    pthread_mutex_lock(&m->lock);
    STAILQ_INSERT_TAIL(&m->collectors, c, link);
    pthread_mutex_unlock(&m->lock);
    return true;
}

/* Returns the collector after c, or the first one if c is NULL. The lock is not held while a
 * collector runs. */
static struct collector *next_collector(struct metrics *m, const struct collector *c)
{
    pthread_mutex_lock(&m->lock);
    struct collector *next = c == NULL ? STAILQ_FIRST(&m->collectors) : STAILQ_NEXT(c, link);
    pthread_mutex_unlock(&m->lock);
    return next;
}

bool metrics_render(struct metrics *m, struct buf *out)
{
    if (m == NULL) {
        return buf_ok(out);
    }
    pthread_mutex_lock(&m->lock);
    struct metric *family = NULL;
    STAILQ_FOREACH(family, &m->families, link)
    {
        if (m->n_unused > 0) {
            hide_unused(m, family); /* hides cells that were made since the last rendering */
        }
        render_family(family, out);
    }
    pthread_mutex_unlock(&m->lock);
    struct metrics_out o = {.buf = out};
    for (struct collector *c = next_collector(m, NULL); c != NULL; c = next_collector(m, c)) {
        c->fn(&o, c->arg);
    }
    return buf_ok(out);
}
