/* The components pyroscope.scrape, pyroscope.relabel and pyroscope.write. */
#include <stdio.h>
#include <string.h>

#include "alloy/profiles.h"

#define ROWS(table) .attrs = (table), .n_attrs = sizeof(table) / sizeof((table)[0])
#define BLOCKS(table) .blocks = (table), .n_blocks = sizeof(table) / sizeof((table)[0])
#define NS_PER_SECOND INT64_C(1000000000)
/* The duration that Alloy treats as "not given". */
#define DELTA_DEFAULT_SECONDS 14

/* ---- receivers ------------------------------------------------------------------------------- */

bool alloy_read_receivers(struct alloy_load *l, struct config_place place, const char *path,
                          const struct alloy_value *v, struct alloy_receivers *ret_receivers)
{
    const struct alloy_value *array;
    bool ok = true;
    *ret_receivers = (struct alloy_receivers){0};
    l->ev.path = path;
    if (v->kind == VALUE_HANDLE && v->handle != NULL && !v->opaque) {
        (void)alloy_fail(&l->ev, place, "expected a list, got a receiver; did you mean \"[%s]\"?",
                         alloy_text(l, "%s.receiver", ((const struct alloy_node *)v->handle)->id));
        return false;
    }
    if (!alloy_as_array(&l->ev, place, v, &array)) {
        return false;
    }
    ret_receivers->at = arena_array(l->arena, array->n_members + 1, sizeof(void *));
    if (ret_receivers->at == NULL) {
        alloy_no_memory(l);
        return false;
    }
    for (size_t i = 0; i < array->n_members; i++) {
        const struct alloy_member *m = &array->members[i];
        struct config_place at = m->place.line > 0 ? m->place : place;
        const char *p = alloy_text(l, "%s[%zu]", path, i);
        l->ev.path = p;
        if (m->value->opaque) {
            config_tell(l->warnings, at, p, "%s; this way is left out", m->value->what);
        } else if (m->value->kind == VALUE_HANDLE && m->value->handle != NULL) {
            /* Casting const away is safe: this room made the node as a mutable one. */
            ret_receivers->at[ret_receivers->n++] =
                (struct alloy_node *)(uintptr_t)m->value->handle;
        } else if (m->value->kind != VALUE_NULL) {
            (void)alloy_mismatch(&l->ev, at, "a receiver", m->value);
            ok = false;
        }
    }
    l->ev.path = path;
    return ok;
}

const struct alloy_value *alloy_receiver_of(struct alloy_load *l, struct alloy_node *n)
{
    struct alloy_value *v = alloy_value_new(l->arena, VALUE_HANDLE);
    if (v == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    v->handle = n;
    v->what = "a receiver";
    return alloy_export(l, "receiver", v);
}

/* ---- types ----------------------------------------------------------------------------------- */

static const char *const builtin_types[] = {
    "memory",           "block",  "goroutine",          "mutex",
    "process_cpu",      "fgprof", "godeltaprof_memory", "godeltaprof_mutex",
    "godeltaprof_block"};
#define N_BUILTIN (sizeof(builtin_types) / sizeof(builtin_types[0]))

static const char *const block_names[] = {"profile.memory",
                                          "profile.block",
                                          "profile.goroutine",
                                          "profile.mutex",
                                          "profile.process_cpu",
                                          "profile.fgprof",
                                          "profile.godeltaprof_memory",
                                          "profile.godeltaprof_mutex",
                                          "profile.godeltaprof_block",
                                          "profile.custom",
                                          NULL};

static const struct alloy_attr type_attrs[] = {
    {.name = "enabled", .type = ATTR_BOOL, .key = "enabled"},
    {.name = "path", .type = ATTR_STRING, .key = "path", .not_null = true},
    {.name = "delta", .type = ATTR_BOOL},
};
static const struct alloy_schema type_schema = {ROWS(type_attrs)};
static const struct alloy_attr custom_attrs[] = {
    {.name = "enabled", .type = ATTR_BOOL, .key = "enabled", .required = true},
    {.name = "path", .type = ATTR_STRING, .key = "path", .required = true, .not_null = true},
    {.name = "delta", .type = ATTR_BOOL},
};
static const struct alloy_schema custom_schema = {ROWS(custom_attrs)};

/* The types of one scrape as they are read. */
struct types {
    struct alloy_load *l;
    struct yaml_node *profiles;
    const struct yaml_node *seconds; /* from delta_profiling_duration; NULL if it is not given */
};

/* Adds the missing slash in front of a path, as Alloy does in its requests. */
static void repair_path(struct alloy_load *l, const char *path, struct yaml_node *type)
{
    const struct yaml_node *n = yaml_get(type, "path");
    if (n == NULL) {
        return;
    }
    struct config_place place = {n->line, n->column, n->file};
    l->ev.path = alloy_path(l->arena, path, SV("path"));
    if (n->text.n == 0) {
        (void)alloy_fail(&l->ev, place, "expected a path such as \"/debug/pprof/heap\", got \"\"");
        tree_remove(type, "path");
    } else if (memchr(n->text.p, '?', n->text.n) != NULL) {
        (void)alloy_fail(&l->ev, place,
                         "expected a path without \"?\"; parameters belong to the "
                         "attribute params");
        tree_remove(type, "path");
    } else if (n->text.p[0] != '/') {
        const char *form = n->form.p != NULL ? alloy_text(l, "/%.*s", SV_ARG(n->form)) : NULL;
        tree_put(&l->tree, type, "path",
                 tree_text(&l->tree, place, l->ev.path,
                           sv_from(alloy_text(l, "/%.*s", SV_ARG(n->text))),
                           (struct sv){form, form != NULL ? strlen(form) : 0}));
    }
}

static void put_seconds(struct types *t, struct yaml_node *type)
{
    tree_put(&t->l->tree, type, "seconds", t->seconds);
}

/* Converts `delta`, which in Alloy means that the request gets seconds=N. Alloy computes no deltas
 * itself. */
static void builtin_delta(struct types *t, struct sv name, bool given, bool delta,
                          struct config_place place, const char *path, struct yaml_node *type)
{
    struct alloy_load *l = t->l;
    bool sampling = sv_eq_str(name, "process_cpu") || sv_eq_str(name, "fgprof");
    bool contention = sv_eq_str(name, "mutex") || sv_eq_str(name, "block");
    if (sampling) {
        put_seconds(t, type);
    }
    if (!given || delta == sampling) {
        return;
    }
    if (contention) {
        tree_put(&l->tree, type, "delta", tree_word(&l->tree, place, NULL, "server"));
        put_seconds(t, type);
        config_tell(
            l->notes, place, path,
            "Alloy asks for seconds and subtracts the last profile as well, which gives wrong "
            "numbers; here only the server subtracts");
    } else if (sampling) {
        config_tell(l->notes, place, path,
                    "Alloy asks without seconds, which times out; here it is sampled as usual");
    } else {
        config_tell(l->notes, place, path, "has no effect here: deltas are made without it");
    }
}

static void read_builtin(struct types *t, const struct alloy_stmt *s, const char *path,
                         struct sv name, const struct alloy_schema *schema)
{
    struct alloy_load *l = t->l;
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, NULL);
    const struct alloy_stmt *stmt = s;
    bool delta = false;
    struct yaml_node *type = tree_mapping(&l->tree, s->place, path);
    alloy_read_block(&r, schema, s, path, type, &given);
    const struct alloy_value *v = alloy_given(&given, "delta", &stmt);
    if (v != NULL) {
        l->ev.path = alloy_path(l->arena, path, SV("delta"));
        (void)alloy_as_bool(&l->ev, stmt->value->place, v, &delta);
    }
    repair_path(l, path, type);
    builtin_delta(t, name, v != NULL, delta, stmt->place, path, type);
    tree_put_text(&l->tree, t->profiles, name, type);
}

/* Adds a type to the list `custom`. It replaces an earlier one of the same name. */
static void put_custom(struct types *t, struct sv name, struct yaml_node *type)
{
    struct yaml_node *list = tree_submapping(&t->l->tree, t->profiles, "custom");
    if (list == NULL) {
        return;
    }
    list->kind = YAML_LIST;
    for (size_t i = 0; i < list->n_items; i++) {
        const struct yaml_node *other = yaml_get(list->items[i].value, "name");
        if (other != NULL && sv_eq(other->text, name)) {
            list->items[i].value = type;
            return;
        }
    }
    tree_append(&t->l->tree, list, type);
}

static void read_custom(struct types *t, const struct alloy_stmt *s, const char *path)
{
    struct alloy_load *l = t->l;
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, NULL);
    const struct alloy_stmt *stmt;
    bool delta = false;
    bool heap = sv_eq_str(s->label, "heap");
    struct yaml_node *type = tree_mapping(&l->tree, s->place, path);
    struct sv own = heap ? SV("heap_") : s->label;
    tree_put(&l->tree, type, "name",
             tree_text(&l->tree, s->place, path, own, (struct sv){.p = NULL}));
    if (heap) { /* profpull has a built-in type of this name, with another series */
        tree_put(&l->tree, type, "series",
                 tree_text(&l->tree, s->place, path, s->label, (struct sv){.p = NULL}));
    }
    alloy_read_block(&r, &custom_schema, s, path, type, &given);
    const struct alloy_value *v = alloy_given(&given, "delta", &stmt);
    if (v != NULL) {
        l->ev.path = alloy_path(l->arena, path, SV("delta"));
        (void)alloy_as_bool(&l->ev, stmt->value->place, v, &delta);
    }
    if (delta) {
        tree_put(&l->tree, type, "sampling", tree_word(&l->tree, stmt->value->place, path, "true"));
        put_seconds(t, type);
    }
    repair_path(l, path, type);
    put_custom(t, heap ? SV("heap_") : s->label, type);
}

static bool take_type(void *arg, const struct alloy_stmt *s, const char *path)
{
    struct types *t = arg;
    struct sv name = s->name;
    if (!sv_starts_with(name, SV("profile."))) {
        return false;
    }
    name = sv_skip(name, sizeof("profile.") - 1);
    bool custom = sv_eq_str(name, "custom");
    if (!custom && !sv_in(name, builtin_types, N_BUILTIN)) {
        return false;
    }
    t->l->ev.path = path;
    if (custom && s->label.n == 0) {
        (void)alloy_fail(&t->l->ev, s->place, "needs a label: the name of the type");
    } else if (!custom) {
        if (s->label_place.line > 0) {
            (void)alloy_fail(&t->l->ev, s->label_place, "has no label");
        }
        read_builtin(t, s, path, name, &type_schema);
    } else if (sv_in(s->label, builtin_types, N_BUILTIN) || sv_eq_str(s->label, "threadcreate")) {
        /* Alloy has one table for all names, so the custom type replaces the built-in one. */
        read_builtin(t, s, path, s->label, &custom_schema);
    } else {
        read_custom(t, s, path);
    }
    return true;
}

static const struct alloy_attr profiling_attrs[] = {
    {.name = "path_prefix", .type = ATTR_STRING, .key = "path_prefix"},
};
static const struct alloy_schema profiling = {ROWS(profiling_attrs), .other = take_type,
                                              .other_names = block_names};

/* ---- pyroscope.scrape ------------------------------------------------------------------------ */

static const struct alloy_attr clustering_attrs[] = {
    {.name = "enabled", .type = ATTR_BOOL, .key = "sharding", .required = true},
};
static const struct alloy_schema clustering = {ROWS(clustering_attrs)};

static const struct alloy_attr scrape_attrs[] = {
    {.name = "targets", .type = ATTR_VALUE, .required = true},
    {.name = "forward_to", .type = ATTR_VALUE, .required = true},
    {.name = "job_name", .type = ATTR_STRING, .key = "job_label"},
    {.name = "params", .type = ATTR_LISTS_MAP, .key = "params"},
    {.name = "scrape_interval", .type = ATTR_DURATION, .key = "scrape_interval", .not_null = true},
    {.name = "scrape_timeout", .type = ATTR_DURATION, .key = "scrape_timeout", .not_null = true},
    {.name = "delta_profiling_duration", .type = ATTR_VALUE},
    {.name = "scheme", .type = ATTR_STRING, .key = "scheme"},
};

/* Only remembers profiling_config, which is read last because the types depend on
 * delta_profiling_duration. */
static bool take_profiling(void *arg, const struct alloy_stmt *s, const char *path)
{
    (void)path;
    const struct alloy_stmt **ret_profiling = arg;
    if (!sv_eq_str(s->name, "profiling_config") || *ret_profiling != NULL) {
        return false;
    }
    *ret_profiling = s;
    return true;
}

static const char *const scrape_names[] = {"profiling_config", NULL};
static const struct alloy_inner scrape_blocks[] = {
    {.name = "clustering", .schema = &clustering, .key = "clustering"},
};
static const struct alloy_schema scrape = {ROWS(scrape_attrs), BLOCKS(scrape_blocks),
                                           .base = &alloy_http_client, .other = take_profiling,
                                           .other_names = scrape_names};

/* Returns delta_profiling_duration in whole seconds; NULL if it is not given. */
static const struct yaml_node *read_seconds(struct alloy_load *l, const char *path,
                                            const struct alloy_given *given)
{
    const struct alloy_stmt *stmt;
    int64_t ns;
    const char *name = alloy_path(l->arena, path, SV("delta_profiling_duration"));
    const struct alloy_value *v = alloy_given(given, "delta_profiling_duration", &stmt);
    l->ev.path = name;
    if (v == NULL || !alloy_as_duration(&l->ev, stmt->value->place, v, &ns)) {
        return NULL;
    }
    int64_t seconds = ns / NS_PER_SECOND;
    if (seconds < 1) {
        (void)alloy_fail(&l->ev, stmt->value->place, "expected at least 1s");
        return NULL;
    }
    if (seconds == DELTA_DEFAULT_SECONDS) {
        config_tell(l->notes, stmt->place, name,
                    "Alloy takes 14s for its default and goes by the interval; here it is 14s");
    }
    char text[32];
    snprintf(text, sizeof(text), "%llds", (long long)seconds);
    return tree_word(&l->tree, stmt->value->place, name, text);
}

static void read_types(struct alloy_load *l, const struct alloy_stmt *block, const char *path,
                       const struct yaml_node *seconds, struct yaml_node *settings)
{
    struct alloy_given given;
    struct types t = {.l = l, .seconds = seconds};
    struct alloy_reading r = alloy_reading(l, &t);
    if (block == NULL && seconds == NULL) {
        return;
    }
    t.profiles = tree_submapping(&l->tree, settings, "profiles");
    if (block != NULL) {
        const struct sv name = SV("profiling_config");
        const char *p = alloy_path(l->arena, path, name);
        if (block->label_place.line > 0) {
            l->ev.path = p;
            (void)alloy_fail(&l->ev, block->label_place, "has no label");
        }
        alloy_read_block(&r, &profiling, block, p, t.profiles, &given);
    }
    if (seconds != NULL && t.profiles != NULL && yaml_get(t.profiles, "process_cpu") == NULL) {
        put_seconds(&t, tree_submapping(&l->tree, t.profiles, "process_cpu"));
    }
}

/* Sets job_label to "" if there is no job_name: Alloy sets no label `job` then. */
static void default_label(struct alloy_load *l, const struct alloy_node *n,
                          struct yaml_node *settings)
{
    if (yaml_get(settings, "job_label") == NULL) {
        const struct sv none = {.p = NULL};
        const struct sv empty = SV("");
        tree_put(&l->tree, settings, "job_label",
                 tree_text(&l->tree, n->stmt->place, n->path, empty, none));
    }
}

static void drop_seconds(struct alloy_load *l, const char *path, struct yaml_node *settings)
{
    const struct yaml_node *params = yaml_get(settings, "params");
    const struct yaml_node *seconds = params != NULL ? yaml_get(params, "seconds") : NULL;
    if (seconds == NULL) {
        return;
    }
    struct config_place place = {seconds->line, seconds->column, seconds->file};
    config_tell(l->notes, place, path, "params.seconds is left out: sampling types have their own");
    tree_remove(tree_submapping(&l->tree, settings, "params"), "seconds");
}

/* Converts `clustering`, which is a setting of each scrape in Alloy, and of the whole process
 * here. */
static void read_clustering(struct alloy_load *l, const struct alloy_node *n,
                            struct yaml_node *settings)
{
    const struct yaml_node *block = yaml_get(settings, "clustering");
    const struct yaml_node *enabled = block != NULL ? yaml_get(block, "sharding") : NULL;
    bool on = enabled != NULL && sv_eq_str(enabled->text, "true");
    bool shares = l->options != NULL && l->options->sharding_service != NULL;
    struct config_place place = n->stmt->place;
    tree_remove(settings, "clustering");
    if (on && !shares) {
        place = (struct config_place){enabled->line, enabled->column, enabled->file};
        config_tell(
            l->notes, place, n->path,
            "clustering: scraped by this process alone; to share targets among replicas give "
            "--sharding.service");
    } else if (!on && shares) {
        tree_put(&l->tree, settings, "sharding", tree_word(&l->tree, place, n->path, "false"));
    }
}

const struct alloy_value *alloy_pyroscope_scrape(struct alloy_load *l, struct alloy_node *n)
{
    struct alloy_given given;
    const struct alloy_stmt *types = NULL;
    const struct alloy_stmt *stmt;
    struct alloy_reading r = alloy_reading(l, &types);
    struct alloy_scrape *s = arena_alloc(l->arena, sizeof(*s));
    if (s == NULL) {
        alloy_no_memory(l);
        return NULL;
    }
    s->settings = tree_mapping(&l->tree, n->stmt->place, n->path);
    alloy_read_block(&r, &scrape, n->stmt, n->path, s->settings, &given);
    if (s->settings == NULL) {
        return NULL;
    }
    n->data = s;
    default_label(l, n, s->settings);
    drop_seconds(l, n->path, s->settings);
    read_clustering(l, n, s->settings);
    read_types(l, types, n->path, read_seconds(l, n->path, &given), s->settings);
    const struct alloy_value *targets = alloy_given(&given, "targets", &stmt);
    s->complete =
        targets != NULL && targets->kind != VALUE_UNKNOWN &&
        alloy_read_targets(l, stmt->value->place, alloy_path(l->arena, n->path, SV("targets")),
                           targets, &s->targets);
    const struct alloy_value *forward = alloy_given(&given, "forward_to", &stmt);
    if (forward == NULL || forward->kind == VALUE_UNKNOWN) {
        s->complete = false;
        return NULL;
    }
    s->place = stmt->value->place;
    s->complete =
        alloy_read_receivers(l, stmt->value->place, alloy_path(l->arena, n->path, SV("forward_to")),
                             forward, &s->receivers) &&
        s->complete;
    return NULL;
}

/* ---- pyroscope.relabel ----------------------------------------------------------------------- */

static const struct alloy_attr relabel_attrs[] = {
    {.name = "forward_to", .type = ATTR_VALUE, .required = true},
    {.name = "max_cache_size", .type = ATTR_INT, .ignored = true},
};
static const struct alloy_schema relabel = {
    ROWS(relabel_attrs), .blocks = (const struct alloy_inner[]){{.name = NULL}}, .n_blocks = 0};

static bool is_old_name(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i > 0 && c >= '0' && c <= '9')) {
            return false;
        }
    }
    return true;
}

/* Removes rules whose target_label Alloy silently does not set. */
static void drop_without_effect(struct alloy_load *l, struct yaml_node *rules)
{
    size_t kept = 0;
    for (size_t i = 0; i < rules->n_items; i++) {
        const struct yaml_node *rule = rules->items[i].value;
        const struct yaml_node *label = yaml_get(rule, "target_label");
        if (label != NULL && memchr(label->text.p, '$', label->text.n) == NULL &&
            !is_old_name(label->text)) {
            struct config_place place = {label->line, label->column, label->file};
            config_tell(l->warnings, place, label->path,
                        "\"%.*s\" is no name that pyroscope.relabel sets; rule left out",
                        SV_ARG(label->text));
        } else {
            rules->items[kept++] = rules->items[i];
        }
    }
    rules->n_items = kept;
}

const struct alloy_value *alloy_pyroscope_relabel(struct alloy_load *l, struct alloy_node *n)
{
    struct alloy_given given;
    const struct alloy_stmt *stmt;
    struct alloy_reading r = alloy_reading(l, NULL);
    const struct alloy_inner blocks[] = {
        {.name = "rule", .schema = alloy_rule_schema(), .key = "rule", .repeats = true}};
    struct alloy_schema schema = relabel;
    schema.blocks = blocks;
    schema.n_blocks = 1;
    struct alloy_profile_relabel *p = arena_alloc(l->arena, sizeof(*p));
    struct yaml_node *out = tree_mapping(&l->tree, n->stmt->place, n->path);
    if (p == NULL || out == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    n->data = p;
    alloy_read_block(&r, &schema, n->stmt, n->path, out, &given);
    if (yaml_get(out, "rule") != NULL) {
        drop_without_effect(l, tree_submapping(&l->tree, out, "rule"));
        p->rules = yaml_get(out, "rule");
    }
    const struct alloy_value *forward = alloy_given(&given, "forward_to", &stmt);
    if (forward != NULL && forward->kind != VALUE_UNKNOWN) {
        (void)alloy_read_receivers(l, stmt->value->place,
                                   alloy_path(l->arena, n->path, SV("forward_to")), forward,
                                   &p->receivers);
    }
    return alloy_receiver_of(l, n);
}

/* ---- pyroscope.write ------------------------------------------------------------------------- */

static const struct alloy_attr endpoint_attrs[] = {
    {.name = "url", .type = ATTR_STRING, .key = "url", .required = true, .not_null = true},
    {.name = "name", .type = ATTR_STRING, .key = "name"},
    {.name = "remote_timeout", .type = ATTR_DURATION, .key = "remote_timeout"},
    {.name = "headers", .type = ATTR_STRING_MAP, .key = "headers"},
    {.name = "min_backoff_period", .type = ATTR_DURATION, .key = "retry.min_backoff"},
    {.name = "max_backoff_period", .type = ATTR_DURATION, .key = "retry.max_backoff"},
    {.name = "max_backoff_retries", .type = ATTR_INT, .key = "retry.max_attempts"},
    {.name = "retry_on_http_429", .type = ATTR_BOOL, .key = "retry.on_429"},
    {.name = "debug_info_upload_timeout", .type = ATTR_DURATION, .ignored = true},
};
static const struct alloy_schema endpoint = {ROWS(endpoint_attrs), .base = &alloy_http_client};
static const struct alloy_attr write_attrs[] = {
    {.name = "external_labels", .type = ATTR_STRING_MAP, .key = "external_labels"},
};
static const struct alloy_schema nothing = {.n_attrs = 0};
static const struct alloy_inner write_blocks[] = {
    {.name = "endpoint", .schema = &endpoint, .key = "endpoint", .repeats = true},
    {.name = "tracing", .schema = &nothing, .ignored = true},
};
static const struct alloy_schema write_schema = {ROWS(write_attrs), BLOCKS(write_blocks)};

const struct alloy_value *alloy_pyroscope_write(struct alloy_load *l, struct alloy_node *n)
{
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, NULL);
    struct alloy_write *w = arena_alloc(l->arena, sizeof(*w));
    struct yaml_node *out = tree_mapping(&l->tree, n->stmt->place, n->path);
    if (w == NULL || out == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    n->data = w;
    alloy_read_block(&r, &write_schema, n->stmt, n->path, out, &given);
    w->endpoints = yaml_get(out, "endpoint");
    w->external_labels = yaml_get(out, "external_labels");
    if (w->endpoints == NULL) {
        config_tell(l->warnings, n->stmt->place, n->path, "has no endpoint: nothing is sent");
    }
    return alloy_receiver_of(l, n);
}
