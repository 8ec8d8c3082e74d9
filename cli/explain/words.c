#include "cli/explain/words.h"

#include <stdio.h>
#include <string.h>

#include "cli/explain/annotations.h"
#include "model/masking.h"
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

/* Appends a label by the name that users know: the annotation, the label of the pod, or the label's
 * own name. */
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

/* Returns the label that a label of the pod was probably meant to be: one that the rule reads, that
 * the pod lacks, and whose name is similar; NULL if there is none. If annotations_explain() has
 * reported the annotations that it would rename, explained are its rules, and these annotations are
 * skipped; else NULL. */
static const char *meant_to_be(const struct config_rule *rule, const struct labels *discovered,
                               const struct rule_reader *explained, struct sv label)
{
    if (!sv_starts_with(label, SV(POD)) ||
        sv_in(label, rule->source_labels.at, rule->source_labels.n)) {
        return NULL;
    }
    if (explained != NULL && sv_starts_with(label, SV(ANNOTATION_PREFIX)) &&
        annotation_is_renamed(explained, sv_skip(label, strlen(ANNOTATION_PREFIX)))) {
        return NULL;
    }
    const char *near = suggest(label, rule->source_labels.at, rule->source_labels.n);
    return near != NULL && get(discovered, near).n == 0 ? near : NULL;
}

static void say_near(const struct config_rule *rule, const struct labels *discovered,
                     const struct rule_reader *explained, struct buf *out)
{
    for (size_t i = 0; i < labels_count(discovered); i++) {
        struct sv name = labels_at(discovered, i).name;
        const char *near = meant_to_be(rule, discovered, explained, name);
        if (near != NULL) {
            buf_puts(out, " The pod has ");
            put_label(name, out);
            buf_puts(out, ", which looks like ");
            put_label(sv_from(near), out);
            buf_puts(out, ".");
        }
    }
}

/* Returns the annotation that a rule reads, without ANNOTATION_PREFIX. If there are several,
 * returns the one that switches on CPU profiles, else the first one. */
static struct sv annotation_of(const struct config_rule *rule)
{
    const char *usual = ANNOTATION_PREFIX "profiles_grafana_com_cpu_scrape";
    const char *first = rule->source_labels.at[0];
    bool has = sv_in(sv_from(usual), rule->source_labels.at, rule->source_labels.n);
    return sv_skip(sv_from(has ? usual : first), strlen(ANNOTATION_PREFIX));
}

/* Appends " and profiles.grafana.com/cpu.port: "PORT" (...)", if the rules read the annotation for
 * the port that belongs to a switch. */
static void say_port(const struct rule_reader *rules, struct sv label, struct buf *out)
{
    static const char *const switches[] = {"_scrape", "_enable", "_enabled"};
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        char port[128];
        if (!sv_ends_with(label, sv_from(switches[i]))) {
            continue;
        }
        int n = snprintf(port, sizeof(port), "%.*s_port", (int)(label.n - strlen(switches[i])),
                         label.p);
        if (n > 0 && (size_t)n < sizeof(port) && annotation_is_read(rules, sv_from(port))) {
            buf_puts(out, " and ");
            annotation_put_name(sv_from(port), out);
            buf_puts(out, ": \"PORT\" (where the program serves /debug/pprof)");
        }
    }
}

/* Appends the value that a rule asks for: its regex, if the regex has no special characters. */
static void say_value(const struct config_rule *rule, struct buf *out)
{
    const char *regex = rule->regex == NULL ? "(.*)" : rule->regex;
    if (regex[strcspn(regex, ".*+?()[]{}|^$\\")] == '\0') {
        buf_printf(out, ": \"%s\"", regex);
        /* the rule of the built-in configuration */
    } else if (strcmp(regex, "(.*;)?true(;.*)?") == 0) {
        buf_puts(out, ": \"true\"");
    } else {
        buf_printf(out, ", with a value that fits the rule's regex \"%s\",", regex);
    }
}

static void say_annotation_rule(const struct config_rule *rule, const struct rule_reader *rules,
                                const struct labels *discovered, struct buf *out)
{
    if (!rule->has_action || rule->action != ACTION_KEEP) {
        return;
    }
    buf_puts(out, ": no annotation of the pod asks for it.");
    size_t before = out->len;
    annotations_explain(rules, discovered, out);
    say_near(rule, discovered, rules, out);
    if (out->len == before || rule->source_labels.n == 1) {
        struct sv label = annotation_of(rule);
        buf_puts(out, " Add ");
        annotation_put_name(label, out);
        say_value(rule, out);
        say_port(rules, label, out);
        buf_puts(out, " to the annotations of the pod, in a Deployment and the like to "
                      "spec.template.metadata.annotations.");
    }
}

/* Appends `here "VALUE"`. */
static void put_value(const struct rule_reader *rules, const struct labels *labels,
                      const char *name, struct buf *out)
{
    struct sv value = get(labels, name);
    value = mask_label(sv_from(name), rules->mask_all) ? SV(MASK) : value;
    buf_printf(out, "here \"%.*s\"", annotation_shown(value), value.p);
}

/* Appends what the rule does, and the values that it has seen. */
static void say_values(const struct config_rule *rule, const struct rule_reader *rules,
                       const struct labels *at_rule, struct buf *out)
{
    const char *regex = rule->regex == NULL ? "(.*)" : rule->regex;
    buf_printf(out, ", which is \"%s\"", config_action_name(rule->action));
    for (size_t i = 0; i < rule->source_labels.n; i++) {
        const char *name = rule->source_labels.at[i];
        buf_puts(out, i == 0 ? " and reads " : ", ");
        put_label(sv_from(name), out);
        if (get(at_rule, name).n == 0) {
            buf_puts(out, " (missing here)");
        } else {
            buf_puts(out, " (");
            put_value(rules, at_rule, name, out);
            buf_putc(out, ')');
        }
    }
    if (rule->action == ACTION_KEEPEQUAL || rule->action == ACTION_DROPEQUAL) {
        const char *target = rule->target_label == NULL ? "" : rule->target_label;
        buf_printf(out, "; it compares with %s (", target);
        put_value(rules, at_rule, target, out);
        buf_puts(out, ").");
    } else {
        buf_printf(out, "; its regex is \"%s\".", regex);
    }
}

void words_dropped(const struct config_job *job, size_t rule, const struct rule_reader *rules,
                   const struct labels *discovered, const struct labels *at_rule, struct buf *out)
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
        say_annotation_rule(r, rules, discovered, out);
    }
    if (out->len == before) {
        say_values(r, rules, at_rule, out);
        say_near(r, discovered, NULL, out);
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
        target_shown_url(target, i, out);
    }
}

/* Appends the declared ports, such as "8080 ("http", container main)", or that there are none. */
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

/* Appends which annotation, or else which label, sets the port of a type. */
static void say_add_port(const struct config_type *type, const struct rule_reader *rules,
                         struct buf *out)
{
    const struct config_builtin_type *builtin = config_builtin_type_find(sv_from(type->key));
    char annotation[128];
    snprintf(annotation, sizeof(annotation), "profiles_grafana_com_%s_port",
             builtin == NULL ? type->key : builtin->annotation);
    buf_puts(out, ". Correct it, or ");
    if (annotation_is_read(rules, sv_from(annotation))) {
        buf_printf(out, "add profiles.grafana.com/%s.port: \"PORT\"",
                   builtin == NULL ? type->key : builtin->annotation);
    } else {
        buf_printf(out, "set the label __profile_%s_port__ by a rule", type->key);
    }
    buf_puts(out, "; the port need not be declared.");
}

/* Returns true if a container is chosen, but the rules keep no container of this name. */
static bool lacks_container(struct sv container, const struct label_set *sets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sets[i].v.relabelled != NULL &&
            sv_eq(get(sets[i].discovered, POD "container_name"), container)) {
            return false;
        }
    }
    return container.n > 0;
}

void words_no_port(const struct config_type *type, const struct rule_reader *rules,
                   const struct labels *relabelled, const struct label_set *sets, size_t n,
                   struct buf *out)
{
    struct sv name = ports_wanted_name(relabelled, type->key);
    struct sv container = ports_wanted_container(relabelled, type->key);
    struct sv by_type = SV("");
    char label[128];
    int length = snprintf(label, sizeof(label), "__profile_%s_port_name__", type->key);
    if (length > 0 && (size_t)length < sizeof(label)) {
        by_type = get(relabelled, label);
    }
    buf_printf(out, " The profile type %s is asked for and not scraped: ", type->key);
    if (lacks_container(container, sets, n)) {
        buf_printf(out, "the pod has no container \"%.*s\" that the rules keep.",
                   annotation_shown(container), container.p);
        return;
    }
    bool chosen = container.n > 0;
    if (by_type.n > 0) {
        buf_printf(out, "its port is to be the one named \"%.*s\", and ", annotation_shown(name),
                   name.p);
    } else {
        buf_puts(out, "no annotation names its port, and ");
    }
    buf_printf(out, "%s%.*s has %sdeclared a port ", chosen ? "container " : "no container",
               annotation_shown(container), container.p, chosen ? "not " : "");
    if (by_type.n > 0) {
        buf_puts(out, "under this name");
    } else {
        buf_printf(out, "named \"%.*s\"", annotation_shown(name), name.p);
    }
    buf_puts(out, ". Declared are: ");
    put_ports(sets, n, out);
    say_add_port(type, rules, out);
}

/* ---- what sources leave out ------------------------------------------------------------------ */

static bool watches_namespace(const struct config_kubernetes *k, struct sv namespace)
{
    /* The namespace of the source itself is unknown here. */
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

/* Evaluates one term of a field selector: field=value, field==value or field!=value. Returns true
 * if it excludes the pod; then *ret_field is the field, and *ret_value its value in the pod. */
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
