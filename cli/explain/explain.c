#include "cli/explain/explain.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sharing/sharding.h"
#include "base/map.h"
#include "cli/explain/annotations.h"
#include "cli/explain/words.h"
#include "scraper/targets/ports.h"

#define POD "__meta_kubernetes_pod_"
#define TEXT_MAX ((size_t)64 * 1024 * 1024)
#define KEY_MAX 512

/* A pod as one job has discovered it. */
struct pod {
    struct pod *next;
    size_t job;
    char *source;
    struct label_set *sets;
    size_t n;
};

struct explain {
    struct explain_options options;
    struct relabel_scratch *scratch;
    struct labels_builder *builder;
    struct pod *current; /* the pod whose verdicts are arriving */
    struct pod *matched; /* the pods that match the pattern */
    bool looked_up;      /* the API server has been asked for the pod */
    struct pod_found found;
    struct map *reasons; /* "reason" -> size_t, the number of pods */
    size_t pods, scraped, scrapes;
    struct buf forbidden; /* sentences about missing permissions */
    bool no_memory;
};

/* ---- life ------------------------------------------------------------------------------------ */

static void pod_free(struct pod *s)
{
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        labels_unref(s->sets[i].discovered);
        labels_unref(s->sets[i].v.relabelled);
        target_unref(s->sets[i].v.target);
        free(s->sets[i].error);
    }
    free(s->sets);
    free(s->source);
    free(s);
}

struct explain *explain_new(const struct explain_options *options)
{
    struct explain *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return NULL;
    }
    e->options = *options;
    buf_init(&e->forbidden, TEXT_MAX);
    e->scratch = relabel_scratch_new();
    e->builder = labels_builder_new(options->intern);
    e->reasons = map_new();
    if (e->scratch == NULL || e->builder == NULL || e->reasons == NULL) {
        return explain_free(e);
    }
    return e;
}

struct explain *explain_free(struct explain *e)
{
    if (e == NULL) {
        return NULL;
    }
    pod_free(e->current);
    while (e->matched != NULL) {
        struct pod *next = e->matched->next;
        pod_free(e->matched);
        e->matched = next;
    }
    labels_unref(e->found.labels);
    map_free(e->reasons, free);
    buf_done(&e->forbidden);
    relabel_scratch_free(e->scratch);
    labels_builder_free(e->builder);
    free(e);
    return NULL;
}

/* ---- which pods ------------------------------------------------------------------------------ */

static void put_name(const struct labels *labels, struct buf *out)
{
    buf_printf(out, "%.*s/%.*s", SV_ARG(labels_get(labels, SV("__meta_kubernetes_namespace"))),
               SV_ARG(labels_get(labels, SV(POD "name"))));
}

static bool matches(const struct explain *e, const struct labels *labels)
{
    const char *pattern = e->options.pattern;
    const char *slash = strchr(pattern, '/');
    struct sv name = labels_get(labels, SV(POD "name"));
    if (slash == NULL) {
        return fnmatch(pattern, name.p, 0) == 0 || strstr(name.p, pattern) != NULL;
    }
    struct buf full;
    buf_init(&full, KEY_MAX);
    put_name(labels, &full);
    bool yes = buf_ok(&full) && fnmatch(pattern, full.data, 0) == 0;
    buf_done(&full);
    return yes;
}

/* ---- reasons, for the summary ---------------------------------------------------------------- */

/* Ranks label sets: the one that came furthest represents the pod. A target comes first, then a
 * label set without a port, then one that was refused, then the one that the latest rule has
 * dropped. */
static size_t rank(const struct label_set *p)
{
    if (p->v.target != NULL) {
        return SIZE_MAX;
    }
    if (p->v.set_aside) {
        return SIZE_MAX - 1;
    }
    return p->v.outcome == RELABEL_FAILED ? SIZE_MAX - 2 : p->v.rule;
}

static const struct label_set *furthest(const struct pod *s)
{
    const struct label_set *best = &s->sets[0];
    for (size_t i = 1; i < s->n; i++) {
        if (rank(&s->sets[i]) > rank(best)) {
            best = &s->sets[i];
        }
    }
    return best;
}

static void put_reason(const struct config_job *job, const struct label_set *p, struct buf *out)
{
    static const char *const words[] = {
        [ABOUT_PHASE] = "the phase is ",
        [ABOUT_INIT] = "only init containers: ",
        [ABOUT_ANNOTATION] = "the annotations do not ask for it: ",
        [ABOUT_OTHER] = "dropped by ",
    };
    if (p->v.set_aside) {
        buf_puts(out, "the port that is asked for is none of the pod's, or no profile type is "
                      "switched on");
        return;
    }
    if (p->v.outcome == RELABEL_FAILED) {
        buf_puts(out, "the target was refused; the log lines say why");
        return;
    }
    enum rule_about about = words_about(&job->relabel.at[p->v.rule - 1]);
    buf_puts(out, words[about]);
    if (about == ABOUT_PHASE) {
        buf_printf(out, "%.*s: ", SV_ARG(labels_get(p->discovered, SV(POD "phase"))));
    }
    words_rule(job, p->v.rule, out);
    buf_printf(out, " of job \"%s\"", job->name);
}

static void add_reason(struct explain *e, struct sv text)
{
    size_t *pods = map_get(e->reasons, text);
    if (pods == NULL) {
        pods = calloc(1, sizeof(*pods));
        if (pods == NULL || !map_put(e->reasons, text, pods, NULL)) {
            free(pods);
            e->no_memory = true;
            return;
        }
    }
    ++*pods;
}

static void count(struct explain *e, const struct pod *s)
{
    const struct label_set *p = furthest(s);
    e->pods++;
    if (p->v.target != NULL) {
        e->scraped++;
        for (size_t i = 0; i < s->n; i++) {
            e->scrapes +=
                s->sets[i].v.target == NULL ? 0 : target_scrape_count(s->sets[i].v.target);
        }
        return;
    }
    struct buf reason;
    buf_init(&reason, TEXT_MAX);
    put_reason(&e->options.config->jobs[s->job], p, &reason);
    e->no_memory = e->no_memory || !buf_ok(&reason);
    add_reason(e, (struct sv){.p = reason.data, .n = reason.len});
    buf_done(&reason);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* Adds a pod to the list, where it replaces its earlier verdicts. */
static void keep(struct explain *e, struct pod *s)
{
    struct pod **at = &e->matched;
    while (*at != NULL && ((*at)->job != s->job || strcmp((*at)->source, s->source) != 0)) {
        at = &(*at)->next;
    }
    struct pod *old = *at;
    s->next = old == NULL ? NULL : old->next;
    *at = s;
    pod_free(old);
}

static struct pod *pod_new(const struct target_group *group)
{
    struct pod *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->job = group->job;
    s->source = strdup(group->source);
    s->sets = calloc(group->n_targets, sizeof(*s->sets));
    if (s->source == NULL || s->sets == NULL) {
        pod_free(s);
        return NULL;
    }
    return s;
}

/* Takes a verdict. The verdicts of one pod arrive one after the other. */
void explain_verdict(struct explain *e, const struct pipeline_verdict *v)
{
    const struct target_group *group = v->group;
    const char *pattern = e->options.pattern;
    if (e->no_memory || group->kind != GROUP_POD ||
        (pattern != NULL && !matches(e, v->discovered))) {
        return;
    }
    struct pod *s = e->current == NULL ? pod_new(group) : e->current;
    e->current = s;
    if (s == NULL) {
        e->no_memory = true;
        return;
    }
    struct label_set *p = &s->sets[s->n];
    p->v = *v;
    p->discovered = labels_ref(group->targets[s->n]);
    if (v->relabelled != NULL) {
        labels_ref(v->relabelled);
    }
    if (v->target != NULL) {
        target_ref(v->target);
    }
    p->error = v->err == NULL ? NULL : strdup(v->err->msg);
    if (++s->n < group->n_targets) {
        return;
    }
    e->current = NULL;
    if (pattern != NULL) {
        keep(e, s);
    } else {
        count(e, s);
        pod_free(s);
    }
}

void explain_forbidden(struct explain *e, const struct discovery_forbidden *what)
{
    bool whole = what->namespace == NULL;
    const char *namespace = whole ? "" : what->namespace;
    if (e->options.person != NULL) {
        buf_printf(&e->forbidden,
                   "%s may not %s %s in %s%s, so profpull cannot see them. Ask for a %s with the "
                   "verbs list and watch on %s. `kubectl auth can-i %s %s %s%s` asks the same.\n",
                   e->options.person->name, what->verb, what->resource,
                   whole ? "the whole cluster" : "the namespace ", namespace,
                   whole ? "ClusterRole" : "Role", what->resource, what->verb, what->resource,
                   whole ? "--all-namespaces" : "-n ", namespace);
        return;
    }
    buf_printf(
        &e->forbidden,
        "profpull is not allowed to %s %s in %s%s, so it cannot see them. Give its "
        "service account a %s with the verbs list and watch on %s%s. `kubectl auth can-i "
        "%s %s %s%s --as=system:serviceaccount:NAMESPACE:ACCOUNT` shows whether it "
        "has the right.\n",
        what->verb, what->resource, whole ? "the whole cluster" : "the namespace ", namespace,
        whole ? "ClusterRole (manifests/cluster/clusterrole.yaml)" : "Role", what->resource,
        whole ? "" : " in that namespace, and a RoleBinding (manifests/namespaced/role.yaml)",
        what->verb, what->resource, whole ? "--all-namespaces" : "-n ", namespace);
}

bool explain_found(const struct explain *e)
{
    return e->matched != NULL;
}

bool explain_scraped(const struct explain *e)
{
    for (const struct pod *s = e->matched; s != NULL; s = s->next) {
        if (furthest(s)->v.target != NULL) {
            return true;
        }
    }
    return false;
}

void explain_looked_up(struct explain *e, const struct pod_found *found)
{
    labels_unref(e->found.labels);
    e->looked_up = true;
    e->found = *found;
    e->found.labels = found->labels == NULL ? NULL : labels_ref(found->labels);
}

/* ---- paragraphs ------------------------------------------------------------------------------ */

static void put_scraped(const struct config_job *job, const struct pod *s, struct buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct target *t = s->sets[i].v.target;
        if (t == NULL) {
            continue;
        }
        const struct labels *labels = target_labels(t);
        buf_puts(out, n++ == 0 ? " is scraped by job \"" : " Also by job \"");
        buf_printf(out, "%s\": ", job->name);
        words_scrapes(t, out);
        buf_printf(out, "; container %.*s, service_name \"%.*s\".",
                   SV_ARG(labels_get(s->sets[i].discovered, SV(POD "container_name"))),
                   SV_ARG(labels_get(labels, SV(LABEL_SERVICE_NAME))));
    }
}

/* Appends which replica scrapes the pod. */
static void put_owner(const struct explain *e, const struct label_set *p, struct buf *out)
{
    if (e->options.sharding != NULL) {
        buf_puts(out, " With sharding it is ");
        sharding_explain(e->options.sharding, p->v.key, out);
        buf_putc(out, '.');
    }
}

static bool is_scraped_as(const struct pod *s, const struct config_type *type)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct target *t = s->sets[i].v.target;
        for (size_t j = 0; t != NULL && j < target_scrape_count(t); j++) {
            if (target_scrape_type(t, j) == type) {
                return true;
            }
        }
    }
    return false;
}

/* Appends mistakes in the settings of single types. With the built-in rules, labels that name no
 * type come from unknown annotations, which annotations_explain() reports. */
static void put_problems(const struct pod *s, bool built_in, struct buf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct target *t = s->sets[i].v.target;
        for (size_t j = 0; t != NULL && j < target_problem_count(t); j++) {
            const char *type;
            const char *sentence = target_problem(t, j, &type);
            if (!built_in || strcmp(type, "unknown") != 0) {
                buf_printf(out, " Not scraped: %s.", sentence);
            }
        }
    }
}

/* Appends that some label sets were refused while others are scraped: the first one, and their
 * number. */
static void put_refused(const struct pod *s, struct buf *out)
{
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->sets[i].v.outcome == RELABEL_FAILED && s->sets[i].error != NULL) {
            first = first == NULL ? s->sets[i].error : first;
            n++;
        }
    }
    if (n > 0) {
        buf_printf(out, " %zu of its %zu ports %s refused: %s.", n, s->n, n == 1 ? "was" : "were",
                   first);
    }
}

/* The rules of a job, for finding which labels they read. */
struct job_rules {
    const struct relabel *rules;
    struct relabel_scratch *scratch;
};

static bool explain_reads(void *arg, struct sv label)
{
    const struct job_rules *j = arg;
    return relabel_reads(j->rules, j->scratch, label);
}

static struct rule_reader rules_of(const struct explain *e, size_t job, struct job_rules *storage)
{
    storage->rules = pipeline_rules(e->options.pipeline, job);
    storage->scratch = e->scratch;
    return (struct rule_reader){.reads = explain_reads,
                                .arg = storage,
                                .mask_all = e->options.config->global.mask_all_params};
}

/* Appends the enabled types whose port name no container declares. */
static bool put_missing_ports(struct explain *e, const struct pod *s, struct buf *out)
{
    const struct config_job *job = &e->options.config->jobs[s->job];
    struct job_rules storage;
    const struct rule_reader rules = rules_of(e, s->job, &storage);
    size_t before = out->len;
    size_t kept = 0;
    while (kept < s->n && s->sets[kept].v.relabelled == NULL) {
        kept++;
    }
    for (size_t t = 0; kept < s->n && t < job->n_types; t++) {
        const struct config_type *type = &job->types[t];
        const struct labels *labels = s->sets[kept].v.relabelled;
        if (ports_wanted(labels, type) && !is_scraped_as(s, type) &&
            ports_wanted_name(labels, type->key).n > 0) {
            words_no_port(type, &rules, labels, s->sets, s->n, out);
        }
    }
    return out->len > before;
}

/* Runs the rules again up to the one that dropped the label set, to find the labels that this rule
 * has seen. */
static void put_dropped(struct explain *e, const struct pod *s, const struct label_set *p,
                        struct buf *out)
{
    const struct relabel *rules = pipeline_rules(e->options.pipeline, s->job);
    labels_builder_reset(e->builder, p->discovered);
    relabel_apply(rules, e->scratch, e->builder, NULL, NULL);
    struct labels *at_rule = labels_builder_build(e->builder);
    if (at_rule != NULL) {
        struct job_rules storage;
        const struct rule_reader reader = rules_of(e, s->job, &storage);
        words_dropped(&e->options.config->jobs[s->job], p->v.rule, &reader, p->discovered, at_rule,
                      out);
    }
    labels_unref(at_rule);
}

static void put_not_scraped(struct explain *e, const struct pod *s, struct buf *out)
{
    const struct config_job *job = &e->options.config->jobs[s->job];
    const struct label_set *p = furthest(s);
    buf_printf(out, " is not scraped by job \"%s\".", job->name);
    if (p->v.outcome == RELABEL_FAILED) {
        buf_printf(out, " It was refused: %s.", p->error == NULL ? "out of memory" : p->error);
    } else if (!p->v.set_aside) {
        put_dropped(e, s, p, out);
    } else if (!put_missing_ports(e, s, out)) {
        buf_puts(out, " No profile type is switched on.");
    }
}

static void put_pod(struct explain *e, const struct pod *s, struct buf *out)
{
    const struct config_job *job = &e->options.config->jobs[s->job];
    const struct label_set *p = furthest(s);
    /* Only the built-in rules are known to understand the well-known annotations. */
    bool built_in = strcmp(job->pos.file, CONFIG_BUILTIN_NAME) == 0;
    buf_puts(out, "Pod ");
    put_name(s->sets[0].discovered, out);
    if (p->v.target == NULL) {
        put_not_scraped(e, s, out);
    } else {
        put_scraped(job, s, out);
        put_owner(e, p, out);
        put_problems(s, built_in, out);
        put_refused(s, out);
        put_missing_ports(e, s, out);
    }
    /* If a rule has dropped the label set, the annotations are explained together with the rule. */
    if (built_in && (p->v.target != NULL || p->v.set_aside || p->v.outcome != RELABEL_DROPPED)) {
        struct job_rules storage;
        const struct rule_reader rules = rules_of(e, s->job, &storage);
        annotations_explain(&rules, s->sets[0].discovered, out);
    }
    buf_putc(out, '\n');
}

static bool looks_at_pods(const struct config *config)
{
    struct pod_source_cursor at = {0};
    return pod_source_next(config, &at) != NULL;
}

/* Appends which source of the jobs excludes the pod, and by what. Returns false if none does. */
static bool put_left_out(const struct explain *e, struct sv namespace, struct buf *out)
{
    const struct config *config = e->options.config;
    const struct config_source *source;
    struct pod_source_cursor at = {0};
    size_t before = out->len;
    while ((source = pod_source_next(config, &at)) != NULL) {
        struct buf why;
        buf_init(&why, TEXT_MAX);
        if (words_left_out(&source->kubernetes, namespace, e->found.labels, &why)) {
            buf_printf(out, " Job \"%s\" (%s:%d):%s", config->jobs[at.job].name, source->pos.file,
                       source->pos.line, why.data);
        }
        buf_done(&why);
    }
    return out->len > before;
}

/* Appends that a pod which exists cannot be scraped before it has an address. */
static void put_without_address(const struct explain *e, struct buf *out)
{
    buf_printf(out,
               "Pod %s is not scraped: it exists and has no IP address yet, %s. A pod can be "
               "scraped once it has one; `kubectl describe pod` shows what it waits for.",
               e->options.pattern, e->found.state);
}

/* Appends that no reason is known why no job has discovered the pod. */
static void put_nothing_known(const struct explain *e, bool exact, struct sv namespace,
                              struct buf *out)
{
    if (exact && e->looked_up && !e->found.exists) {
        buf_printf(out, " There is none: `kubectl get pods -n %.*s` lists them.",
                   SV_ARG(namespace));
    } else {
        buf_puts(out,
                 " Either there is none (`kubectl get pods -n NAMESPACE` lists them), or it has "
                 "no IP address yet: a pod can be scraped once it has one.");
    }
}

/* Appends why no job has discovered the pod. */
static void put_absent(const struct explain *e, struct buf *out)
{
    const char *pattern = e->options.pattern;
    struct sv namespace;
    struct sv name;
    bool exact = pod_name_split(pattern, &namespace, &name);
    if (e->found.exists && !e->found.has_address) {
        put_without_address(e, out);
        (void)put_left_out(e, namespace, out);
        buf_putc(out, '\n');
        return;
    }
    buf_printf(out,
               e->found.exists ? "Pod %s exists, and no job watches it."
                               : "No pod that is watched has the name %s.",
               pattern);
    if (!looks_at_pods(e->options.config)) {
        buf_puts(out, " No job has kubernetes_sd_configs with the role pod.");
    } else if (!exact || !put_left_out(e, namespace, out)) {
        put_nothing_known(e, exact, namespace, out);
    }
    buf_putc(out, '\n');
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends one line for each reason. */
static void put_reasons(struct explain *e, struct buf *out)
{
    size_t n = 0;
    size_t cursor = 0;
    struct sv key;
    void *value;
    char **lines = calloc(map_count(e->reasons) + 1, sizeof(*lines));
    while (lines != NULL && map_next(e->reasons, &cursor, &key, &value)) {
        const size_t *pods = value;
        if (asprintf(&lines[n], "%8zu  %.*s\n", *pods, SV_ARG(key)) < 0) {
            e->no_memory = true;
            break;
        }
        n++;
    }
    e->no_memory = e->no_memory || lines == NULL;
    if (n > 0) {
        qsort(lines, n, sizeof(*lines), by_text);
    }
    for (size_t i = n; i > 0; i--) { /* in order of the count, the largest first */
        buf_puts(out, lines[i - 1]);
        free(lines[i - 1]);
    }
    free(lines);
}

static void put_summary(struct explain *e, struct buf *out)
{
    if (!looks_at_pods(e->options.config)) {
        return;
    }
    buf_printf(out, "%zu pod%s seen: %zu scraped (%zu profile types in all), %zu not%s\n", e->pods,
               e->pods == 1 ? "" : "s", e->scraped, e->scrapes, e->pods - e->scraped,
               e->pods == e->scraped ? "." : ", because");
    put_reasons(e, out);
    if (e->pods > 0) {
        buf_puts(out, "`profpull explain pod/NAMESPACE/NAME` says more of one.\n");
    }
}

bool explain_report(struct explain *e, struct buf *out)
{
    buf_append(out, e->forbidden.data, e->forbidden.len);
    if (e->options.pattern == NULL) {
        put_summary(e, out);
    } else if (e->matched == NULL && e->forbidden.len == 0) {
        put_absent(e, out);
    }
    for (const struct pod *s = e->matched; s != NULL; s = s->next) {
        put_pod(e, s, out);
    }
    return buf_ok(out) && !e->no_memory;
}
