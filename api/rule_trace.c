#include "api/rule_trace.h"

#include <stdlib.h>

static void rule_trace_on_rule(void *arg, size_t rule, const struct labels_builder *b,
                               enum relabel_outcome outcome)
{
    struct rule_trace *t = arg;
    if (t->failed || t->n == relabel_count(t->rules)) {
        return;
    }
    labels_builder_reset(t->copy, NULL);
    for (size_t i = 0; i < labels_builder_count(b); i++) {
        struct label l = labels_builder_at(b, i);
        labels_builder_set(t->copy, l.name, l.value);
    }
    struct labels *labels = labels_builder_build(t->copy);
    t->failed = labels == NULL;
    if (t->failed) {
        return;
    }
    /* Most rules change nothing; then one label set is used for before and after. */
    struct labels *before = t->n > 0 ? t->steps[t->n - 1].labels : NULL;
    if (before != NULL && labels_equal(before, labels)) {
        labels_unref(labels);
        labels = labels_ref(before);
    }
    t->steps[t->n++] = (struct rule_trace_step){.rule = rule, .outcome = outcome, .labels = labels};
}

static bool apply(struct rule_trace *t, const struct labels *discovered, struct err *err)
{
    struct relabel_scratch *scratch = relabel_scratch_new();
    struct labels_builder *b = labels_builder_new(t->intern);
    bool ok = scratch != NULL && b != NULL;
    if (ok) {
        labels_builder_reset(b, discovered);
        t->verdict = relabel_apply(t->rules, scratch, b, rule_trace_on_rule, t);
        ok = !t->failed;
    }
    labels_builder_free(b);
    relabel_scratch_free(scratch);
    return ok || err_memory(err);
}

bool rule_trace_run(struct rule_trace *t, const struct config_rules *rules,
                    const struct labels *discovered, struct err *err)
{
    *t = (struct rule_trace){.rules = relabel_new(rules, err)};
    if (t->rules == NULL) {
        return false;
    }
    t->intern = intern_new();
    t->copy = t->intern == NULL ? NULL : labels_builder_new(t->intern);
    t->steps = calloc(relabel_count(t->rules) + 1, sizeof(*t->steps));
    if (t->copy == NULL || t->steps == NULL) {
        return err_memory(err);
    }
    return apply(t, discovered, err);
}

void rule_trace_done(struct rule_trace *t)
{
    for (size_t i = 0; i < t->n; i++) {
        labels_unref(t->steps[i].labels);
    }
    free(t->steps);
    labels_builder_free(t->copy);
    intern_free(t->intern);
    relabel_free(t->rules);
}
