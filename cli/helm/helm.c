#include "cli/helm/helm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/helm/table.h"

#define TREE_MAX (UINT64_C(64) * 1024 * 1024)
#define REPORT_MAX ((size_t)16 * 1024 * 1024)
#define PATH_MAX_BYTES 512

struct helm {
    const char *name;
    struct helm_result *result;
    struct helm_workload workload;
    bool only_profiles; /* a chart of several signals: only its known values are reported */
};

struct helm_workload *helm_workload(struct helm *h)
{
    return &h->workload;
}

void helm_say(struct helm *h, const struct yaml_node *n, const char *verb, const char *path,
              const char *text)
{
    h->result->ignored += strcmp(verb, "ignored") == 0;
    buf_printf(&h->result->report, "%s:%d:%d: %s: %s: %s\n", h->name, n->line, n->column, verb,
               path, text);
}

/* ---- values ---------------------------------------------------------------------------------- */

static json_t *scalar(const struct yaml_node *n)
{
    char *end;
    if (yaml_is_null(n)) {
        return json_null();
    }
    if (n->plain && (sv_eq_str(n->text, "true") || sv_eq_str(n->text, "false"))) {
        return json_boolean(sv_eq_str(n->text, "true"));
    }
    long long number = n->plain && n->text.n < 16 ? strtoll(n->text.p, &end, 10) : 0;
    char back[32];
    snprintf(back, sizeof(back), "%lld", number);
    if (n->plain && sv_eq_str(n->text, back)) {
        return json_integer(number);
    }
    return json_stringn(n->text.p, n->text.n);
}

json_t *helm_json(const struct yaml_node *n)
{
    if (n == NULL || n->kind == YAML_SCALAR) {
        return n == NULL ? json_null() : scalar(n);
    }
    json_t *to = n->kind == YAML_LIST ? json_array() : json_object();
    for (size_t i = 0; i < n->n_items; i++) {
        json_t *value = helm_json(n->items[i].value);
        if (n->kind == YAML_LIST) {
            json_array_append_new(to, value);
        } else {
            json_object_set_new(to, n->items[i].key->text.p, value);
        }
    }
    return to;
}

/* Returns the object that has the last member of a path; its name goes to *ret_name. */
static json_t *parent_of(json_t *values, const char *path, bool make, const char **ret_name)
{
    json_t *at = values;
    const char *dot;
    while (at != NULL && (dot = strchr(path, '.')) != NULL) {
        char name[PATH_MAX_BYTES];
        snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
        json_t *next = json_object_get(at, name);
        if (next == NULL && make) {
            next = json_object();
            json_object_set_new(at, name, next);
        }
        at = next;
        path = dot + 1;
    }
    *ret_name = path;
    return at;
}

void helm_set(struct helm *h, const char *path, json_t *value)
{
    const char *name;
    json_t *at = parent_of(h->result->values, path, true, &name);
    json_object_set_new(at, name, value);
}

json_t *helm_get(struct helm *h, const char *path)
{
    const char *name;
    json_t *at = parent_of(h->result->values, path, false, &name);
    return json_object_get(at, name);
}

void helm_set_config(struct helm *h, const struct yaml_node *n)
{
    free(h->result->config);
    h->result->config = n->kind == YAML_SCALAR ? strdup(n->text.p) : NULL;
}

/* ---- walking --------------------------------------------------------------------------------- */

static bool is_empty(const struct yaml_node *n)
{
    return n->kind == YAML_SCALAR ? n->text.n == 0 || yaml_is_null(n) : n->n_items == 0;
}

static void take(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    char text[PATH_MAX_BYTES];
    if (row->take != NULL) {
        row->take(h, row, n);
        return;
    }
    if (row->to == NULL) {
        helm_say(h, n, "ignored", row->path, row->why);
        return;
    }
    helm_set(h, row->to, helm_json(n));
    snprintf(text, sizeof(text), "%s%s%s", row->to, row->why == NULL ? "" : "; ",
             row->why == NULL ? "" : row->why);
    helm_say(h, n, strcmp(row->path, row->to) == 0 ? "unchanged" : "mapped", row->path, text);
}

/* Returns true if a row is about a value below a path. */
static bool has_rows_below(const char *path)
{
    const struct helm_row *row;
    size_t n = strlen(path);
    for (size_t i = 0; (row = helm_row_at(i)) != NULL; i++) {
        if (strncmp(row->path, path, n) == 0 && row->path[n] == '.') {
            return true;
        }
    }
    return false;
}

/* Says that a value without a row is ignored: for the reason of what is around, if it has one. */
static void ignore(struct helm *h, const struct yaml_node *n, const char *path,
                   const struct helm_row *inherited)
{
    if (inherited != NULL && inherited->why != NULL && inherited->take == NULL) {
        helm_say(h, n, "ignored", path, inherited->why);
    } else if (!h->only_profiles || strchr(path, '.') != NULL) {
        helm_say(h, n, "ignored", path, "no counterpart is known");
    }
}

/* Visits the values below a mapping. inherited: the row of what is around, for values without one
 * of their own. */
static void walk(struct helm *h, const struct yaml_node *n, const char *path,
                 const struct helm_row *inherited)
{
    for (size_t i = 0; n->kind == YAML_MAPPING && i < n->n_items; i++) {
        const struct yaml_node *value = n->items[i].value;
        char below[PATH_MAX_BYTES];
        snprintf(below, sizeof(below), "%s%s%.200s", path, path[0] == '\0' ? "" : ".",
                 n->items[i].key->text.p);
        const struct helm_row *row = helm_row(below);
        if (is_empty(value)) {
            continue;
        }
        if (value->kind == YAML_MAPPING && has_rows_below(below)) {
            walk(h, value, below, row != NULL ? row : inherited);
        } else if (row != NULL) {
            take(h, row, value);
        } else {
            ignore(h, value, below, inherited);
        }
    }
}

/* Decides which workload the values mean. */
static void set_kind(struct helm *h)
{
    const struct helm_workload *w = &h->workload;
    const char *type = w->type;
    const char *kind = NULL;
    bool stateful = w->clustering || (type != NULL && strcmp(type, "statefulset") == 0);
    if (stateful) {
        kind = "StatefulSet";
    } else if (type != NULL && strcmp(type, "deployment") == 0) {
        kind = "Deployment";
    } else if (type != NULL || h->result->config != NULL ||
               helm_get(h, "config.existing.name") != NULL) {
        kind = "DaemonSet";
    }
    if (kind == NULL) {
        return;
    }
    helm_set(h, "kind", json_string(kind));
    buf_printf(&h->result->report, "%s: mapped: controller.type: kind: %s%s\n", h->name, kind,
               w->clustering ? ", whose replicas share the targets (alloy.clustering)" : "");
    if (stateful) {
        helm_set(h, "replicas", w->replicas == NULL ? json_integer(1) : helm_json(w->replicas));
    }
}

/* Returns the values of Alloy within those of a chart around it: Pyroscope's has them below
 * `alloy`. */
static const struct yaml_node *find_alloy(struct helm *h, const struct yaml_node *root)
{
    const struct yaml_node *alloy = yaml_get(root, "alloy");
    const struct yaml_node *inner = yaml_get(alloy, "alloy");
    if (inner != NULL || yaml_get(alloy, "controller") != NULL) {
        helm_say(h, alloy, "mapped", "alloy",
                 "the values of Alloy's chart within another chart; the rest of the file is about "
                 "other programs");
        return alloy;
    }
    return root;
}

/* k8s-monitoring has a chart of Alloy for each purpose: that of the profiles counts. */
static void walk_collectors(struct helm *h, const struct yaml_node *root)
{
    static const char *const names[] = {"alloy-profiles"};
    const struct yaml_node *all = yaml_get(root, "collectors");
    const struct yaml_node *one = yaml_get(all == NULL ? root : all, names[0]);
    const struct yaml_node *presets = yaml_get(one, "presets");
    h->only_profiles = true;
    if (one == NULL) {
        return;
    }
    if (presets != NULL) {
        helm_say(h, presets, "ignored", "collectors.alloy-profiles.presets",
                 "profpull needs neither "
                 "privileges nor a pod on "
                 "each node");
    }
    for (size_t i = 0; one->kind == YAML_MAPPING && i < one->n_items; i++) {
        const struct yaml_node *value = one->items[i].value;
        if (value->kind == YAML_MAPPING) {
            walk(h, value, one->items[i].key->text.p, NULL);
        }
    }
}

static void convert(struct helm *h, const struct yaml_node *root)
{
    bool monitoring = yaml_get(root, "destinations") != NULL;
    if (monitoring) {
        walk_collectors(h, root);
    }
    const struct yaml_node *values = monitoring ? root : find_alloy(h, root);
    walk(h, values, "", NULL);
    set_kind(h);
    if (h->result->config != NULL) {
        helm_set(h, "config.format", json_string("alloy"));
    } else if (helm_get(h, "config.existing.name") == NULL) {
        buf_printf(&h->result->report,
                   "%s: note: it has no configuration (alloy.configMap): the built-in jobs scrape "
                   "annotated pods, and pyroscope.url is where profiles go\n",
                   h->name);
    }
}

bool helm_convert(const char *name, struct sv text, struct helm_result *ret, struct err *err)
{
    const struct yaml_node *root = NULL;
    struct yaml_place place;
    struct helm h = {.name = name, .result = ret};
    struct arena *arena = arena_new(TREE_MAX);
    *ret = (struct helm_result){.values = json_object()};
    buf_init(&ret->report, REPORT_MAX);
    bool ok = (arena != NULL && ret->values != NULL) || err_memory(err);
    if (ok && !yaml_parse(text, arena, &root, &place, err)) {
        ok = err_wrap(err, "%s:%d:%d", name, place.line, place.column);
    }
    /* A file of comments only means the defaults of the chart. */
    bool none = ok && (root == NULL || yaml_is_null(root));
    static const struct yaml_node nothing = {.kind = YAML_MAPPING};
    root = none ? &nothing : root;
    if (ok && root->kind != YAML_MAPPING) {
        ok = err_set(err, ERR_INPUT, "%s: expected a mapping, the values of a Helm chart", name);
    }
    if (ok) {
        convert(&h, root);
        ok = buf_ok(&ret->report) || err_memory(err);
    }
    arena_free(arena);
    return ok;
}

void helm_done(struct helm_result *r)
{
    json_decref(r->values);
    free(r->config);
    buf_done(&r->report);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Appends the configuration as a block; its own indentation stays. */
static void put_block(const char *text, struct buf *out)
{
    for (const char *at = text; *at != '\0';) {
        size_t n = strcspn(at, "\n");
        buf_printf(out, "%s%.*s\n", n > 0 ? "    " : "", (int)n, at);
        at += n + (at[n] == '\n');
    }
}

static bool put_config(const struct helm_result *r, const json_t *config, struct buf *out)
{
    json_t *rest = json_copy((json_t *)(uintptr_t)config);
    const char *name;
    json_t *value;
    buf_puts(out, "config:\n");
    json_object_foreach(rest, name, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        buf_printf(out, "  %s: %s\n", name, text == NULL ? "" : text);
        free(text);
    }
    /* The indentation is said, because the text may begin with spaces. */
    buf_puts(out, r->config == NULL ? "" : "  inline: |2\n");
    if (r->config != NULL) {
        put_block(r->config, out);
    }
    json_decref(rest);
    return buf_ok(out);
}

bool helm_write(const struct helm_result *r, const char *name, struct buf *out)
{
    const char *key;
    json_t *value;
    buf_printf(out,
               "# Values of profpull's chart, made from %s by profpull convert --helm-values.\n",
               name);
    json_object_foreach(r->values, key, value)
    {
        if (strcmp(key, "config") == 0) {
            put_config(r, value, out);
            continue;
        }
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        buf_printf(out, "%s: %s\n", key, text == NULL ? "" : text);
        free(text);
    }
    return buf_ok(out);
}
