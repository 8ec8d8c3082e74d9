#include "record/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Memory for the texts of a rule. */
#define TEXTS_MAX ((size_t)4 * 1024 * 1024)
/* The most bytes of the labels of a series. */
#define SERIES_TEXT_MAX ((size_t)64 * 1024)
#define COMPUTED_MAX 7
#define NO_SERVICE "unknown_service"

/* The latest value of one label set of profiles. */
struct instance {
    struct labels *labels; /* a reference */
    record_sum value;
    int64_t until_ns;
    int64_t last_ms; /* monotonic: when its latest profile came */
    int64_t gap_ms;  /* time between its last two profiles */
};

/* ---- series ---------------------------------------------------------------------------------- */

static void free_instance(void *value)
{
    struct instance *i = value;
    labels_unref(i->labels);
    free(i);
}

static void free_series(void *value)
{
    struct rule_series *s = value;
    map_free(s->instances, free_instance);
    free(s->labels);
    free(s);
}

/* ---- making and freeing ---------------------------------------------------------------------- */

struct rule *rule_ref(struct rule *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

struct rule *rule_unref(struct rule *r)
{
    if (r != NULL && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1) {
        map_free(r->series, free_series);
        selector_free(r->selector);
        arena_free(r->arena);
        free(r);
    }
    return NULL;
}

static enum record_unit unit_of(struct sv unit)
{
    if (sv_eq_str(unit, "nanoseconds")) {
        return RECORD_UNIT_SECONDS;
    }
    return sv_eq_str(unit, "bytes") ? RECORD_UNIT_BYTES : RECORD_UNIT_NONE;
}

static bool ends_with(struct sv v, struct sv end)
{
    return v.n > end.n && memcmp(v.p + v.n - end.n, end.p, end.n) == 0;
}

/* Makes the name of the family: without "_total", and with the unit. */
static const char *family_of(const struct rule *r, const char *metric_name)
{
    static const char *const suffixes[] = {[RECORD_UNIT_NONE] = "",
                                           [RECORD_UNIT_SECONDS] = "_seconds",
                                           [RECORD_UNIT_BYTES] = "_bytes"};
    struct sv name = sv_from(metric_name);
    const char *suffix = suffixes[r->unit];
    if (r->is_counter && ends_with(name, SV("_total"))) {
        name.n -= sizeof("_total") - 1;
    }
    bool has_unit = ends_with(name, sv_from(suffix));
    return arena_printf(r->arena, "%.*s%s", SV_ARG(name), has_unit ? "" : suffix);
}

static const char *help_of(const struct rule *r)
{
    struct record_type t = r->type;
    return arena_printf(
        r->arena, "%s profiles of the type %.*s:%.*s:%.*s:%.*s:%.*s%s%.*s.",
        r->is_counter ? "Counted from" : "Latest sum of", SV_ARG(t.name), SV_ARG(t.type),
        SV_ARG(t.unit), SV_ARG(t.period_type), SV_ARG(t.period_unit),
        r->function.n > 0 ? ": samples with the function " : "", SV_ARG(r->function));
}

static bool copy_text(struct rule *r, struct sv text, struct sv *ret)
{
    const char *p = arena_strndup(r->arena, text.p, text.n);
    *ret = (struct sv){p, text.n};
    return p != NULL;
}

static bool copy_labels(struct rule *r, const struct record_rule *from)
{
    struct sv *group_by = arena_array(r->arena, from->n_group_by + 1, sizeof(*group_by));
    struct label *external = arena_array(r->arena, from->n_external + 1, sizeof(*external));
    bool ok = group_by != NULL && external != NULL;
    for (size_t i = 0; ok && i < from->n_group_by; i++) {
        ok = copy_text(r, sv_from(from->group_by[i]), &group_by[i]);
    }
    for (size_t i = 0; ok && i < from->n_external; i++) {
        ok = copy_text(r, from->external[i].name, &external[i].name) &&
             copy_text(r, from->external[i].value, &external[i].value);
    }
    r->group_by = group_by;
    r->n_group_by = from->n_group_by;
    r->external = external;
    r->n_external = from->n_external;
    return ok;
}

/* Makes the key: all members, each with its length in front. */
static bool make_key(struct rule *r, const struct record_rule *from)
{
    struct buf b;
    buf_init(&b, TEXTS_MAX / 2);
    buf_printf(&b, "%s %zu %s %zu %zu %zu;", from->id, strlen(from->metric_name), from->metric_name,
               from->n_matchers, from->n_group_by, from->n_external);
    for (size_t i = 0; i < from->n_matchers; i++) {
        buf_printf(&b, "%zu %s", strlen(from->matchers[i]), from->matchers[i]);
    }
    for (size_t i = 0; i < from->n_group_by; i++) {
        buf_printf(&b, "%zu %s", strlen(from->group_by[i]), from->group_by[i]);
    }
    for (size_t i = 0; i < from->n_external; i++) {
        buf_printf(&b, "%zu %s%zu ", from->external[i].name.n, from->external[i].name.p,
                   from->external[i].value.n);
        buf_append(&b, from->external[i].value.p, from->external[i].value.n);
    }
    buf_append(&b, r->function.p, r->function.n);
    r->key_size = b.len;
    r->key = buf_ok(&b) ? arena_strndup(r->arena, b.data, b.len) : NULL;
    buf_done(&b);
    return r->key != NULL;
}

static bool compile(struct rule *r, const struct record_rule *from, struct err *err)
{
    r->selector = selector_new(err);
    if (r->selector == NULL) {
        return false;
    }
    for (size_t i = 0; i < from->n_matchers; i++) {
        if (!selector_add_parsed(r->selector, sv_from(from->matchers[i]), err)) {
            return false;
        }
    }
    const struct sv *type = selector_equal(r->selector, RECORD_TYPE_LABEL);
    if (type == NULL || !record_type_split(*type, &r->type)) {
        return err_set(err, ERR_INPUT, "a rule without a profile type");
    }
    r->is_counter = record_type_is_counter(&r->type);
    r->unit = unit_of(r->type.unit);
    r->series = map_new();
    bool ok = r->series != NULL &&
              copy_text(r, sv_from(from->function != NULL ? from->function : ""), &r->function) &&
              copy_labels(r, from) && make_key(r, from);
    r->family = ok ? family_of(r, from->metric_name) : NULL;
    r->help = ok ? help_of(r) : NULL;
    return (r->family != NULL && r->help != NULL) || err_memory(err);
}

struct rule *rule_new(const struct record_rule *from, struct err *err)
{
    struct rule *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        err_memory(err);
        return NULL;
    }
    atomic_init(&r->refs, 1);
    memcpy(r->id, from->id, sizeof(r->id));
    r->arena = arena_new(TEXTS_MAX);
    if (r->arena == NULL) {
        err_memory(err);
        return rule_unref(r);
    }
    return compile(r, from, err) ? r : rule_unref(r);
}

bool rule_fits(const struct rule *a, const struct rule *b)
{
    return strcmp(a->family, b->family) != 0 ||
           (a->is_counter == b->is_counter && a->unit == b->unit);
}

/* ---- matching -------------------------------------------------------------------------------- */

struct label_list {
    struct label at[LABELS_MAX + COMPUTED_MAX];
    size_t n;
};

/* Inserts a label in order of names; a label of this name is replaced. */
static void put(struct label_list *l, const char *name, struct sv value)
{
    struct sv key = sv_from(name);
    size_t at = l->n;
    while (at > 0 && sv_cmp(l->at[at - 1].name, key) > 0) {
        at--;
    }
    if (at > 0 && sv_eq(l->at[at - 1].name, key)) {
        l->at[at - 1].value = value;
        return;
    }
    memmove(&l->at[at + 1], &l->at[at], (l->n - at) * sizeof(l->at[0]));
    l->at[at] = (struct label){key, value};
    l->n++;
}

bool rule_matches(const struct rule *r, const struct labels *labels)
{
    if (!sv_eq(labels_get(labels, SV(LABEL_NAME)), r->type.name)) {
        return false;
    }
    struct label_list *l = malloc(sizeof(*l));
    if (l == NULL) {
        return false;
    }
    l->n = labels_count(labels);
    for (size_t i = 0; i < l->n; i++) {
        l->at[i] = labels_at(labels, i);
    }
    struct sv service = labels_get(labels, SV(LABEL_SERVICE_NAME));
    service = service.n > 0 ? service : SV(NO_SERVICE);
    put(l, "__type__", r->type.type);
    put(l, "__unit__", r->type.unit);
    put(l, "__period_type__", r->type.period_type);
    put(l, "__period_unit__", r->type.period_unit);
    put(l, RECORD_TYPE_LABEL, *selector_equal(r->selector, RECORD_TYPE_LABEL));
    put(l, "__service_name__", service);
    put(l, LABEL_SERVICE_NAME, service);
    bool matches = selector_matches(r->selector, l->at, l->n);
    free(l);
    return matches;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Appends the inside of a quoted value of the text format. */
static void escape(struct buf *out, struct sv value)
{
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        if (c == '\n') {
            buf_puts(out, "\\n");
        } else {
            buf_puts(out, c == '"' || c == '\\' ? "\\" : "");
            buf_putc(out, c);
        }
    }
}

/* Appends a label of the text format. Prometheus refuses a whole scrape for one byte that is not
 * UTF-8, so such bytes become U+FFFD. */
static void put_label(struct buf *out, struct sv name, struct sv value)
{
    struct buf valid;
    if (value.n == 0) {
        return;
    }
    buf_init(&valid, SERIES_TEXT_MAX);
    if (!utf8_valid(value) && utf8_repair(value, &valid)) {
        value = (struct sv){valid.data, valid.len};
    }
    buf_puts(out, out->len > 0 ? "," : "");
    buf_append(out, name.p, name.n);
    buf_puts(out, "=\"");
    escape(out, value);
    buf_putc(out, '"');
    buf_done(&valid);
}

static struct sv value_of(const struct labels *labels, struct sv name)
{
    struct sv value = labels_get(labels, name);
    bool unnamed = value.n == 0 && sv_eq_str(name, LABEL_SERVICE_NAME);
    return unnamed ? SV(NO_SERVICE) : value;
}

static bool series_text(const struct rule *r, const struct labels *labels, struct buf *out)
{
    put_label(out, SV(RECORD_ID_LABEL), sv_from(r->id));
    for (size_t i = 0; i < r->n_external; i++) {
        put_label(out, r->external[i].name, r->external[i].value);
    }
    for (size_t i = 0; i < r->n_group_by; i++) {
        put_label(out, r->group_by[i], value_of(labels, r->group_by[i]));
    }
    return buf_ok(out);
}

/* Removes a counter that was idle for long. Returns false if there is none. */
static bool make_room(struct rule *r, int64_t now_ms)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    bool removed = false;
    int64_t oldest_ms = now_ms;
    if (now_ms < r->no_idle_before_ms) {
        return false;
    }
    while (map_next(r->series, &cursor, &key, &value)) {
        struct rule_series *s = value;
        if (!removed && now_ms - s->last_ms >= RECORD_IDLE_MS) {
            map_remove_at(r->series, cursor);
            free_series(s);
            removed = true;
        } else if (s->last_ms < oldest_ms) {
            oldest_ms = s->last_ms;
        }
    }
    r->no_idle_before_ms = oldest_ms + RECORD_IDLE_MS;
    return removed;
}

static struct rule_series *series_new(struct rule *r, const struct buf *text)
{
    struct rule_series *s = calloc(1, sizeof(*s));
    bool ok = s != NULL;
    if (ok) {
        s->labels = strdup(text->data);
        s->instances = r->is_counter ? NULL : map_new();
        ok = s->labels != NULL && (r->is_counter || s->instances != NULL) &&
             map_put(r->series, (struct sv){text->data, text->len}, s, NULL);
    }
    if (!ok && s != NULL) {
        free_series(s);
        s = NULL;
    }
    return s;
}

/* Finds or makes a series. Returns NULL if the rule has no room, or out of memory. */
static struct rule_series *series_of(struct rule *r, const struct rule_value *v, bool *ret_full)
{
    struct buf text;
    buf_init(&text, SERIES_TEXT_MAX);
    *ret_full = false;
    struct rule_series *s = NULL;
    if (series_text(r, v->labels, &text)) {
        s = map_get(r->series, (struct sv){text.data, text.len});
        *ret_full = s == NULL && map_count(r->series) >= v->max_series && !make_room(r, v->now_ms);
        if (s == NULL && !*ret_full) {
            s = series_new(r, &text);
        }
    } else {
        *ret_full = buf_too_big(&text);
    }
    buf_done(&text);
    return s;
}

/* Returns the key of an instance. Label sets with equal content have equal marks. */
static struct sv mark_key(const uint64_t *mark)
{
    return (struct sv){(const char *)mark, sizeof(*mark)};
}

static struct instance *instance_of(struct rule *r, struct rule_series *s, struct labels *labels,
                                    bool *ret_full)
{
    uint64_t mark = labels_mark(labels);
    struct instance *i = map_get(s->instances, mark_key(&mark));
    *ret_full = i == NULL && r->n_instances >= RECORD_INSTANCES_MAX;
    if (i != NULL || *ret_full) {
        return i;
    }
    i = calloc(1, sizeof(*i));
    if (i == NULL || !map_put(s->instances, mark_key(&mark), i, NULL)) {
        free(i);
        return NULL;
    }
    i->labels = labels_ref(labels);
    i->until_ns = INT64_MIN;
    r->n_instances++;
    return i;
}

/* Replaces the latest value of an instance, unless that is of a later profile. */
static enum rule_counted set_latest(struct rule *r, struct rule_series *s,
                                    const struct rule_value *v)
{
    bool full = false;
    struct instance *i = instance_of(r, s, v->labels, &full);
    if (i == NULL) {
        return full ? RULE_NO_SERIES : RULE_NO_MEMORY;
    }
    if (v->until_ns < i->until_ns) {
        return RULE_OLD;
    }
    s->sum = s->sum - i->value + v->sum;
    i->gap_ms = i->last_ms != 0 ? v->now_ms - i->last_ms : 0;
    i->value = v->sum;
    i->until_ns = v->until_ns;
    i->last_ms = v->now_ms;
    return RULE_COUNTED;
}

enum rule_counted rule_count(struct rule *r, const struct rule_value *v)
{
    bool full = false;
    struct rule_series *s = series_of(r, v, &full);
    if (s == NULL) {
        return full ? RULE_NO_SERIES : RULE_NO_MEMORY;
    }
    s->last_ms = v->now_ms;
    if (!r->is_counter) {
        return set_latest(r, s, v);
    }
    s->sum += v->sum;
    return RULE_COUNTED;
}

/* ---- expiry ---------------------------------------------------------------------------------- */

static void expire_instances(struct rule *r, struct rule_series *s, int64_t now_ms,
                             int64_t stale_ms)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(s->instances, &cursor, &key, &value)) {
        struct instance *i = value;
        int64_t limit = 2 * i->gap_ms > stale_ms ? 2 * i->gap_ms : stale_ms;
        if (now_ms - i->last_ms > limit) {
            s->sum -= i->value;
            map_remove_at(s->instances, cursor);
            free_instance(i);
            r->n_instances--;
        }
    }
}

void rule_expire(struct rule *r, int64_t now_ms, int64_t stale_ms)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (!r->is_counter && map_next(r->series, &cursor, &key, &value)) {
        struct rule_series *s = value;
        expire_instances(r, s, now_ms, stale_ms);
        if (map_count(s->instances) == 0) {
            map_remove_at(r->series, cursor);
            free_series(s);
        }
    }
}
