#include "write/sample_labels.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/sample_labels.h"
#include "write/series_marks.h"

/* The most working memory that is kept for the next profile. */
#define SCRATCH_KEPT ((size_t)4 * 1024 * 1024)

struct sample_labels {
    struct scratch *scratch;
    struct series_marks *marks; /* NULL: no profile has needed them yet */
    struct metric_cell *changes[SAMPLE_LABEL_CHANGES];
};

/* The changes that are wanted of the names in one profile. */
struct wanted {
    const struct config_endpoint *endpoint;
    bool repairs;
};

struct sample_labels *sample_labels_new(struct metrics *m, const char *endpoint)
{
    struct sample_labels *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    struct metric *family = metrics_family(
        m, METRIC_COUNTER, "profpull_write_sample_label_changes_total",
        "Labels of samples that were dropped or rewritten for the endpoint.", "endpoint", "change");
    for (size_t i = 0; i < SAMPLE_LABEL_CHANGES; i++) {
        const char *const values[] = {endpoint,
                                      sample_label_change_name((enum sample_label_change)i)};
        s->changes[i] = metric_cell(family, values);
    }
    return s;
}

struct sample_labels *sample_labels_free(struct sample_labels *s)
{
    if (s != NULL) {
        scratch_free(s->scratch);
        series_marks_free(s->marks);
        free(s);
    }
    return NULL;
}

static bool is_listed(const struct config_strings *list, struct sv name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (sv_eq_str(name, list->at[i])) {
            return true;
        }
    }
    return false;
}

static struct sv renamed(const struct config_endpoint *e, struct sv name)
{
    for (size_t i = 0; i < e->sample_rename.n; i++) {
        if (sv_eq_str(name, e->sample_rename.at[i].name)) {
            return sv_from(e->sample_rename.at[i].value);
        }
    }
    return name;
}

/* Appends the name to send. A label whose name becomes empty or too long is dropped. */
static enum sample_label_change sample_labels_name(void *arg, struct sv name, struct buf *out)
{
    const struct wanted *w = arg;
    const struct config_endpoint *e = w->endpoint;
    if (is_listed(&e->sample_drop, name) ||
        (e->sample_keep.n > 0 && !is_listed(&e->sample_keep, name))) {
        return SAMPLE_LABEL_DROPPED;
    }
    struct sv to = renamed(e, name);
    enum sample_label_change change = sv_eq(to, name) ? SAMPLE_LABEL_CHANGES : SAMPLE_LABEL_RENAMED;
    if (!w->repairs) {
        buf_append(out, to.p, to.n);
        return change;
    }
    if (to.n > 0 && to.n <= e->label_limits.max_name_length) {
        series_put_name(protocol_of(e)->labels.names, to, out);
    }
    bool same = out->len == to.n && memcmp(out->data, to.p, to.n) == 0;
    return same ? change : SAMPLE_LABEL_REPAIRED;
}

/* Returns true if the endpoint chooses or renames labels, whether texts or numbers. */
static bool chooses(const struct config_endpoint *e)
{
    return e->sample_drop.n > 0 || e->sample_keep.n > 0 || e->sample_rename.n > 0;
}

static bool rewrite(struct sample_labels *s, struct wanted *w, const struct profile *p,
                    struct sample_labels_result *ret)
{
    const struct config_endpoint *e = w->endpoint;
    const struct sample_label_rules rules = {
        .name = sample_labels_name,
        .arg = w,
        .numbers = chooses(e),
        .repair = w->repairs,
        .names_max = e->sample_names_max > 0 ? e->sample_names_max : SIZE_MAX,
        .value_max = e->label_limits.max_value_length,
    };
    struct sv body = {.p = p->data, .n = p->size};
    s->scratch = s->scratch != NULL ? s->scratch : scratch_new();
    return s->scratch != NULL &&
           sample_labels_rewrite(s->scratch, body, SAMPLE_LABELS_PROFILE_MAX, &rules, ret, NULL);
}

static bool is_wanted(const struct wanted *w, const struct profile *p)
{
    const struct config_endpoint *e = w->endpoint;
    bool of_texts = w->repairs || e->sample_names_max > 0;
    /* A profile that is too large before it is inflated is not inflated. */
    return p->format == PROFILE_PPROF && p->size <= SAMPLE_LABELS_PROFILE_MAX &&
           (chooses(e) || (of_texts && !p->no_sample_texts));
}

/* Returns true if a profile may pass without being read as long as its series had no labels: only
 * the server restricts them, and it says so when it refuses a profile. */
static bool may_skip(struct sample_labels *s, const struct wanted *w)
{
    const struct config_endpoint *e = w->endpoint;
    bool may = w->repairs && e->protocol->tells_refusals && !chooses(e) && !e->sample_names_given;
    if (may && s->marks == NULL) {
        s->marks = series_marks_new();
    }
    return may && s->marks != NULL;
}

static void count(struct sample_labels *s, const struct sample_labels_result *r)
{
    for (size_t i = 0; i < SAMPLE_LABEL_CHANGES; i++) {
        metric_add(s->changes[i], r->changes[i]);
    }
}

/* Does the work of sample_labels_apply() for a profile that is to be read. */
static struct profile *look(struct sample_labels *s, struct wanted *w, struct profile *p,
                            bool counts, struct sample_labels_look *ret_look)
{
    struct sample_labels_result r = {.data = NULL};
    struct profile *other = NULL;
    ret_look->clean = rewrite(s, w, p, &r) && r.data == NULL;
    if (r.data != NULL) {
        other = profile_with(p, r.data, r.size);
    }
    if (other != NULL && counts) {
        count(s, &r);
    }
    if (s->scratch != NULL && scratch_bytes(s->scratch) > SCRATCH_KEPT) {
        s->scratch = scratch_free(s->scratch);
    } else if (ret_look->clean) {
        ret_look->plain = r.plain;
    }
    ret_look->labelled = r.labelled;
    return other != NULL ? other : profile_ref(p);
}

struct profile *sample_labels_apply(struct sample_labels *s, const struct config_endpoint *e,
                                    struct profile *p, struct sample_labels_wish wish,
                                    struct sample_labels_look *ret_look)
{
    *ret_look = (struct sample_labels_look){.plain = SV("")};
    struct wanted w = {.endpoint = e,
                       .repairs = e->sample_repair && e->protocol->reads_sample_labels};
    if (!is_wanted(&w, p)) {
        return profile_ref(p);
    }
    bool may = may_skip(s, &w);
    uint64_t hash = may ? labels_hash(p->labels) : 0;
    if (may && !wish.must_look && series_marks_get(s->marks, hash) == SERIES_CLEAN) {
        ret_look->skipped = true;
        return profile_ref(p);
    }
    struct profile *out = look(s, &w, p, wish.counts, ret_look);
    if (may && (ret_look->clean || ret_look->labelled)) {
        series_marks_set(s->marks, hash, ret_look->labelled ? SERIES_LABELLED : SERIES_CLEAN);
    }
    return out;
}
