#include "cli/explain/words.h"

#include <stdio.h>
#include <string.h>

#include "cli/explain/annotations.h"
#include "scraper/targets/ports.h"

#define POD ANNOTATION_POD

static struct sv get(const struct labels *labels, const char *name)
{
    return labels_get(labels, sv_from(name));
}

/* ---- rules ----------------------------------------------------------------------------------- */

enum rule_about words_about(const struct config_rule *rule)
{
    size_t annotated = 0;
    for (size_t i = 0; i < rule->source_labels.n; i++) {
        const char *name = rule->source_labels.at[i];
        if (strcmp(name, POD "phase") == 0) {
            return ABOUT_PHASE;
        }
        if (strcmp(name, POD "container_init") == 0) {
            return ABOUT_INIT;
        }
        annotated += strncmp(name, ANNOTATION_PREFIX, strlen(ANNOTATION_PREFIX)) == 0;
    }
    return annotated > 0 && annotated == rule->source_labels.n ? ABOUT_ANNOTATION : ABOUT_OTHER;
}

void words_rule(const struct config_job *job, size_t rule, struct buf *out)
{
    const struct config_pos *pos = &job->relabel.at[rule - 1].pos;
    buf_printf(out, "rule %zu (%s:%d)", rule, pos->file, pos->line);
}

/* A label by the name that users know: the annotation, the pod's label, or the label's own name. */
static void put_label(struct sv name, struct buf *out)
{
    if (sv_starts_with(name, SV(ANNOTATION_PREFIX))) {
        buf_puts(out, "the annotation ");
        annotation_put_name(sv_skip(name, strlen(ANNOTATION_PREFIX)), out);
    } else if (sv_starts_with(name, SV(POD "label_"))) {
        buf_printf(out, "the pod's label %.*s", SV_ARG(sv_skip(name, strlen(POD "label_"))));
    } else {
        buf_append(out, name.p, name.n);
    }
}

/* Labels of the pod that look like one that the rule reads. */
static void say_near(const struct config_rule *rule, const struct labels *discovered,
                     struct buf *out)
{
    for (size_t i = 0; i < labels_count(discovered); i++) {
        struct label l = labels_at(discovered, i);
        bool asked = sv_in(l.name, rule->source_labels.at, rule->source_labels.n);
        const char *near = suggest(l.name, rule->source_labels.at, rule->source_labels.n);
        if (!asked && near != NULL && get(discovered, near).n == 0 &&
            sv_starts_with(l.name, SV(POD))) {
            buf_puts(out, " The pod has ");
            put_label(l.name, out);
            buf_puts(out, ", which looks like ");
            put_label(sv_from(near), out);
            buf_puts(out, ".");
        }
    }
}

static bool asks_for_family(const struct config_rule *rule)
{
    for (size_t i = 0; i < rule->source_labels.n; i++) {
        struct sv name = sv_from(rule->source_labels.at[i]);
        if (sv_starts_with(name, SV(ANNOTATION_PREFIX "profiles_grafana_com_")) ||
            sv_starts_with(name, SV(ANNOTATION_PREFIX "pyroscope_io_"))) {
            return true;
        }
    }
    return false;
}

static void say_annotation_rule(const struct config_rule *rule, const struct labels *discovered,
                                struct buf *out)
{
    bool keeps = rule->has_action && rule->action == ACTION_KEEP;
    if (!keeps || !asks_for_family(rule)) {
        return;
    }
    buf_puts(out, ": no annotation of the pod asks for it.");
    size_t before = out->len;
    annotations_explain(discovered, out);
    if (out->len == before) {
        buf_puts(out, " Add profiles.grafana.com/cpu.scrape: \"true\" and "
                      "profiles.grafana.com/cpu.port: \"PORT\" (where the program serves "
                      "/debug/pprof) to the annotations of the pod, in a Deployment and the like "
                      "to spec.template.metadata.annotations.");
    }
}

/* What the rule does and the values that it saw. */
static void say_values(const struct config_rule *rule, const struct labels *at_rule,
                       struct buf *out)
{
    const char *regex = rule->regex == NULL ? "(.*)" : rule->regex;
    buf_printf(out, ", which is \"%s\"", config_action_name(rule->action));
    for (size_t i = 0; i < rule->source_labels.n; i++) {
        struct sv value = get(at_rule, rule->source_labels.at[i]);
        buf_puts(out, i == 0 ? " and looks at " : ", ");
        put_label(sv_from(rule->source_labels.at[i]), out);
        if (value.n == 0) {
            buf_puts(out, " (missing here)");
        } else {
            buf_printf(out, " (here \"%.*s\")", annotation_shown(value), value.p);
        }
    }
    if (rule->action == ACTION_KEEPEQUAL || rule->action == ACTION_DROPEQUAL) {
        const char *target = rule->target_label == NULL ? "" : rule->target_label;
        struct sv value = get(at_rule, target);
        buf_printf(out, "; it compares with %s (here \"%.*s\").", target, annotation_shown(value),
                   value.p);
    } else {
        buf_printf(out, "; its regex is \"%s\".", regex);
    }
}

void words_dropped(const struct config_job *job, size_t rule, const struct labels *discovered,
                   const struct labels *at_rule, struct buf *out)
{
    const struct config_rule *r = &job->relabel.at[rule - 1];
    struct sv phase = get(discovered, POD "phase");
    buf_puts(out, " It was dropped by ");
    words_rule(job, rule, out);
    size_t before = out->len;
    if (words_about(r) == ABOUT_PHASE) {
        buf_printf(out, ": its phase is %.*s. ", SV_ARG(phase));
        buf_puts(out, sv_eq_str(phase, "Pending")
                          ? "It becomes a target when its containers run; `kubectl describe pod` "
                            "says what it waits for."
                          : "It has ended, and so there is nothing to profile any more.");
    } else if (words_about(r) == ABOUT_INIT) {
        buf_puts(out, ": all that it declares belongs to init containers, which have ended.");
    } else if (words_about(r) == ABOUT_ANNOTATION) {
        say_annotation_rule(r, discovered, out);
    }
    if (out->len == before) {
        say_values(r, at_rule, out);
        say_near(r, discovered, out);
    }
}

/* ---- scrapes and ports ----------------------------------------------------------------------- */

void words_scrapes(const struct target *target, struct buf *out)
{
    for (size_t i = 0; i < target_scrape_count(target); i++) {
        buf_printf(out, "%s%s at ",
                   i == 0                                ? ""
                   : i + 1 < target_scrape_count(target) ? ", "
                                                         : " and ",
                   target_scrape_type(target, i)->key);
        target_scrape_url(target, i, out);
    }
}

/* The declared ports: "8080 ("http", container main)", or that there are none. */
static void put_ports(const struct label_set *sets, size_t n, struct buf *out)
{
    const char *before = "";
    for (size_t i = 0; i < n; i++) {
        struct sv number = get(sets[i].discovered, POD "container_port_number");
        struct sv name = get(sets[i].discovered, POD "container_port_name");
        struct sv container = get(sets[i].discovered, POD "container_name");
        if (sets[i].v.relabelled == NULL || number.n == 0) {
            continue;
        }
        buf_printf(out, "%s%.*s (", before, SV_ARG(number));
        before = ", ";
        if (name.n > 0) {
            buf_printf(out, "\"%.*s\", ", SV_ARG(name));
        }
        buf_printf(out, "container %.*s)", SV_ARG(container));
    }
    if (before[0] == '\0') {
        buf_puts(out, "none");
    }
}

void words_no_port(const struct config_type *type, const struct labels *relabelled,
                   const struct label_set *sets, size_t n, struct buf *out)
{
    const struct config_builtin_type *builtin = config_builtin_type_find(sv_from(type->key));
    struct sv name = ports_wanted_name(relabelled, type->key);
    struct sv by_type = SV("");
    char label[128];
    int length = snprintf(label, sizeof(label), "__profile_%s_port_name__", type->key);
    if (length > 0 && (size_t)length < sizeof(label)) {
        by_type = get(relabelled, label);
    }
    buf_printf(out, " The profile type %s is asked for and not scraped: ", type->key);
    if (by_type.n > 0) {
        buf_printf(out,
                   "its port is to be the one named \"%.*s\", and no container has declared a "
                   "port under this name. Declared are: ",
                   annotation_shown(name), name.p);
    } else {
        buf_printf(out,
                   "no annotation names its port, and no container has declared a port named "
                   "\"%.*s\". Declared are: ",
                   annotation_shown(name), name.p);
    }
    put_ports(sets, n, out);
    buf_printf(out,
               ". Correct it, or add profiles.grafana.com/%s.port: \"PORT\"; the port need not "
               "be declared.",
               builtin == NULL ? type->key : builtin->annotation);
}

/* ---- what sources leave out ------------------------------------------------------------------ */

static bool watches_namespace(const struct config_kubernetes *k, struct sv namespace)
{
    /* Its own namespace is not known here. */
    return k->own_namespace || k->namespaces.n == 0 ||
           sv_in(namespace, k->namespaces.at, k->namespaces.n);
}

static void say_namespaces(const struct config_kubernetes *k, struct sv namespace, struct buf *out)
{
    buf_printf(out, " It watches only the namespace%s ", k->namespaces.n == 1 ? "" : "s");
    for (size_t i = 0; i < k->namespaces.n; i++) {
        buf_printf(out, "%s%s", i == 0 ? "" : ", ", k->namespaces.at[i]);
    }
    buf_printf(out, ": add %.*s to namespaces.names, and a Role with list and watch on pods there.",
               SV_ARG(namespace));
}

static const char *field_label(struct sv field)
{
    static const struct {
        const char *field;
        const char *label;
    } fields[] = {
        {"spec.nodeName", POD "node_name"},
        {"status.phase", POD "phase"},
        {"status.podIP", POD "ip"},
        {"metadata.name", POD "name"},
        {"metadata.namespace", "__meta_kubernetes_namespace"},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (sv_eq_str(field, fields[i].field)) {
            return fields[i].label;
        }
    }
    return NULL;
}

/* One term of a field selector: field=value, field==value or field!=value. True if it excludes the
 * pod; ret_*: its field and what the pod has there. */
static bool excludes(struct sv term, const struct labels *labels, struct sv *ret_field,
                     struct sv *ret_value)
{
    struct sv value;
    if (!sv_cut(term, '=', ret_field, &value)) {
        return false;
    }
    bool negative = ret_field->n > 0 && ret_field->p[ret_field->n - 1] == '!';
    ret_field->n -= negative ? 1 : 0;
    if (value.n > 0 && value.p[0] == '=') {
        value = sv_skip(value, 1);
    }
    const char *label = field_label(sv_trim(*ret_field));
    *ret_value = label == NULL ? SV("") : get(labels, label);
    return label != NULL && sv_eq(sv_trim(value), *ret_value) == negative;
}

static bool say_fields(const struct config_selector *s, const struct labels *labels,
                       struct buf *out)
{
    for (const char *at = s->field; *at != '\0';) {
        struct sv term = {.p = at, .n = strcspn(at, ",")};
        struct sv field;
        struct sv value;
        at += term.n + (at[term.n] == ',');
        if (excludes(term, labels, &field, &value)) {
            buf_printf(out,
                       " Its field selector \"%s\" leaves the pod out, whose %.*s is \"%.*s\".",
                       s->field, SV_ARG(field), annotation_shown(value), value.p);
            if (sv_eq_str(field, "spec.nodeName")) {
                buf_puts(out, " The profpull on that node scrapes it.");
            } else if (sv_eq_str(field, "status.phase")) {
                buf_puts(out, " There is nothing to profile unless it runs.");
            }
            return true;
        }
    }
    return false;
}

bool words_left_out(const struct config_kubernetes *k, struct sv namespace,
                    const struct labels *labels, struct buf *out)
{
    if (!watches_namespace(k, namespace)) {
        say_namespaces(k, namespace, out);
        return true;
    }
    bool labelled = false;
    for (size_t i = 0; labels != NULL && i < k->n_selectors; i++) {
        const struct config_selector *s = &k->selectors[i];
        if (s->role != ROLE_POD) {
            continue;
        }
        if (say_fields(s, labels, out)) {
            return true;
        }
        if (s->label[0] != '\0') {
            buf_printf(out, " Its label selector \"%s\" does not choose the pod.", s->label);
            labelled = true;
        }
    }
    if (!labelled && k->own_namespace) {
        buf_printf(out, " It watches only the namespace that profpull runs in, which is not %.*s.",
                   SV_ARG(namespace));
        return true;
    }
    return labelled;
}
