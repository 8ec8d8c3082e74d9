#include "config/migrate.h"

#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "config/foreign.h"
#include "config/parts.h"
#include "config/tree.h"

#define PATH_MAX_LEN 1024
#define KEY_SHOWN_MAX ((size_t)64)
/* Parca's default interval, and the time that it adds to the interval for the timeout. */
#define PARCA_INTERVAL "10s"
#define PARCA_INTERVAL_MS 10000

struct migration {
    struct tree tree;
    const struct config_messages *messages;
    /* the file is in the style of Prometheus, whose intervals have other defaults than Parca's */
    bool has_global;
    bool any_profiling;
};

static struct config_place place_of(const struct yaml_node *n)
{
    return (struct config_place){.file = n->file, .line = n->line, .column = n->column};
}

static void note(const struct migration *m, const struct yaml_node *n, const char *path,
                 const char *text)
{
    config_tell(m->messages->notes, place_of(n), path, "%s", text);
}

static void warn(const struct migration *m, const struct yaml_node *n, const char *path,
                 const char *text)
{
    config_tell(m->messages->warnings, place_of(n), path, "%s", text);
}

/* Returns the path of a key. The key is escaped, because the path is printed in a comment. */
static const char *child_path(struct migration *m, const char *path, struct sv key)
{
    struct buf text;
    buf_init(&text, PATH_MAX_LEN);
    buf_printf(&text, "%s%s", path, path[0] != '\0' ? "." : "");
    json_escape((struct sv){key.p, key.n < KEY_SHOWN_MAX ? key.n : KEY_SHOWN_MAX}, &text);
    const char *copy =
        buf_ok(&text) ? arena_strndup(m->tree.arena, text.data, text.len) : path; /* too long */
    buf_done(&text);
    m->tree.full = m->tree.full || copy == NULL;
    return copy != NULL ? copy : "";
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Returns true for a text that needs no quotes anywhere in a line. */
static bool is_safe(struct sv v)
{
    bool safe = v.n > 0;
    for (size_t i = 0; safe && i < v.n; i++) {
        safe = ascii_is_alnum(v.p[i]) || v.p[i] == '_' || v.p[i] == '.';
    }
    return safe;
}

/* Copies a node for printing: variables stay variables, and the quotes of a text do not depend on
 * the nodes around it. */
static struct yaml_node *copy(struct migration *m, const struct yaml_node *n)
{
    struct yaml_node *c = arena_alloc(m->tree.arena, sizeof(*c));
    struct yaml_item *items =
        n->n_items > 0 ? arena_array(m->tree.arena, n->n_items, sizeof(*items)) : NULL;
    if (c == NULL || (n->n_items > 0 && items == NULL)) {
        m->tree.full = true;
        return NULL;
    }
    *c = *n;
    c->items = items;
    if (yaml_is_null(n)) {
        c->text = SV("null");
    } else if (n->kind == YAML_SCALAR) {
        c->plain = n->plain && is_safe(n->text);
        c->form = n->text;
    }
    for (size_t i = 0; i < n->n_items; i++) {
        items[i] = n->items[i];
        items[i].value = copy(m, n->items[i].value);
        if (items[i].value == NULL) {
            return NULL;
        }
    }
    return c;
}

static void put_copy(struct migration *m, struct yaml_node *to, const char *key,
                     const struct yaml_node *value)
{
    struct yaml_node *c = copy(m, value);
    if (c != NULL) {
        tree_put(&m->tree, to, key, c);
    }
}

static void put_word(struct migration *m, struct yaml_node *to, const char *key,
                     const struct yaml_node *at, const char *word)
{
    tree_put(&m->tree, to, key, tree_word(&m->tree, place_of(at), NULL, word));
}

static void put_duration(struct migration *m, struct yaml_node *to, const char *key,
                         const struct yaml_node *at, int64_t ms)
{
    char text[32];
    format_duration_ms(ms, text, sizeof(text));
    put_word(m, to, key, at, text);
}

static bool has_key(const struct schema *schema, const struct yaml_item *item)
{
    struct yaml_item copy_of = *item;
    const struct yaml_node one = {.kind = YAML_MAPPING, .items = &copy_of, .n_items = 1};
    return schema_has_key(schema, &one);
}

/* Says that a key is left out; mapping: where it stands in a file of ours. */
static void leave_out(struct migration *m, const struct place *mapping,
                      const struct yaml_item *item, const char *path)
{
    const char *advice = foreign_key(mapping, item->key->text);
    config_tell(m->messages->warnings, place_of(item->key), child_path(m, path, item->key->text),
                "left out: %s", advice != NULL ? advice : "there is no such key here");
}

static bool is_true(const struct yaml_node *mapping, const char *key)
{
    const struct yaml_node *n = yaml_get(mapping, key);
    return n != NULL && n->kind == YAML_SCALAR && sv_eq_str(n->text, "true");
}

/* ---- types ----------------------------------------------------------------------------------- */

/* Copies the path of a type, or the prefix, and adds a missing slash in front, as Go does. */
static void put_path(struct migration *m, struct yaml_node *to, const char *key,
                     const struct yaml_node *value)
{
    struct sv v = value->text;
    if (v.n == 0) { /* an error, which the reader reports */
        put_copy(m, to, key, value);
        return;
    }
    while (strcmp(key, "path_prefix") == 0 && v.n > 0 && v.p[v.n - 1] == '/') {
        v.n--;
    }
    char *path = arena_alloc(m->tree.arena, v.n + 2);
    if (path == NULL) {
        m->tree.full = true;
        return;
    }
    bool slash = v.n > 0 && v.p[0] != '/' && v.p[0] != '$';
    path[0] = '/';
    memcpy(path + slash, v.p, v.n);
    struct sv text = {path, v.n + slash};
    struct yaml_node *n = tree_text(&m->tree, place_of(value), NULL, text, text);
    if (n != NULL) {
        n->literal = false; /* variables are expanded */
        tree_put(&m->tree, to, key, n);
    }
}

/* delta: true adds the parameter seconds in Parca. */
static void put_delta(struct migration *m, struct yaml_node *to, const struct yaml_node *value,
                      const struct config_type *type, const char *path)
{
    if (type->sampling || type->is_delta) {
        return; /* these types have the parameter, or are deltas, in any case */
    }
    if (!type->cumulative) {
        warn(m, value, path, "left out: this type is a snapshot, there is nothing to subtract");
    } else if (strcmp(type->name, "memory") == 0) {
        warn(m, value, path,
             "left out: Go would subtract inuse_* too; profpull subtracts alloc_* itself");
    } else {
        put_word(m, to, "delta", value, "server");
    }
}

static void migrate_type_keys(struct migration *m, const struct yaml_node *from,
                              struct yaml_node *to, const struct config_type *builtin,
                              const char *path)
{
    for (size_t i = 0; i < from->n_items; i++) {
        const struct yaml_node *value = from->items[i].value;
        struct sv key = from->items[i].key->text;
        const char *name = child_path(m, path, key);
        if (sv_eq_str(key, "path")) {
            put_path(m, to, "path", value);
        } else if (sv_eq_str(key, "enabled")) {
            put_copy(m, to, "enabled", value);
        } else if (sv_eq_str(key, "params")) {
            put_copy(m, to, "params", value);
        } else if (sv_eq_str(key, "delta")) {
            if (builtin != NULL && is_true(from, "delta")) {
                put_delta(m, to, value, builtin, name);
            }
        } else if (sv_eq_str(key, "keep_sample_type")) {
            warn(m, value, name, "left out: profiles are sent with all their sample types");
        } else {
            warn(m, value, name, "left out: there is no such key here");
        }
    }
}

/* Converts a type that is not built in. Parca scrapes such a type only if it is enabled and has a
 * path. */
static void migrate_custom(struct migration *m, const struct yaml_item *item,
                           struct yaml_node *profiles, const char *path)
{
    const struct yaml_node *from = item->value;
    if (yaml_get(from, "path") == NULL) {
        warn(m, item->key, path, "left out: it has no path");
        return;
    }
    struct yaml_node *list = (struct yaml_node *)(uintptr_t)yaml_get(profiles, "custom");
    struct yaml_node *to = tree_mapping(&m->tree, place_of(item->key), NULL);
    if (list == NULL) {
        list = tree_list(&m->tree, place_of(item->key), NULL);
        tree_put(&m->tree, profiles, "custom", list);
    }
    if (to == NULL || list == NULL) {
        return;
    }
    put_copy(m, to, "name", item->key);
    migrate_type_keys(m, from, to, NULL, path);
    if (yaml_get(from, "enabled") == NULL) {
        put_word(m, to, "enabled", from, "false");
    }
    if (is_true(from, "delta")) {
        put_word(m, to, "sampling", from, "true");
    }
    tree_append(&m->tree, list, to);
}

static void migrate_type(struct migration *m, const struct yaml_item *item,
                         struct yaml_node *profiles, const char *path)
{
    const struct config_builtin_type *builtin = config_builtin_type_find(item->key->text);
    const char *name = child_path(m, path, item->key->text);
    if (item->value->kind != YAML_MAPPING) {
        if (!yaml_is_null(item->value)) {
            warn(m, item->value, name, "left out: expected a mapping");
        }
    } else if (builtin == NULL) {
        migrate_custom(m, item, profiles, name);
    } else {
        struct yaml_node *to = tree_submapping(&m->tree, profiles, builtin->type.key);
        if (to != NULL) {
            migrate_type_keys(m, item->value, to, &builtin->type, name);
        }
    }
}

static void migrate_types(struct migration *m, const struct yaml_node *from,
                          struct yaml_node *profiles, const char *path)
{
    for (size_t i = 0; i < from->n_items; i++) {
        if (from->kind == YAML_MAPPING) {
            migrate_type(m, &from->items[i], profiles, path);
        }
    }
}

static void migrate_profiling(struct migration *m, const struct yaml_item *item,
                              struct yaml_node *job, const char *path)
{
    const struct yaml_node *from = item->value;
    const char *name = child_path(m, path, item->key->text);
    struct yaml_node *profiles = tree_submapping(&m->tree, job, "profiles");
    m->any_profiling = true;
    for (size_t i = 0; profiles != NULL && i < from->n_items && from->kind == YAML_MAPPING; i++) {
        const struct yaml_item *part = &from->items[i];
        const char *part_name = child_path(m, name, part->key->text);
        if (sv_eq_str(part->key->text, "path_prefix")) {
            put_path(m, profiles, "path_prefix", part->value);
        } else if (sv_eq_str(part->key->text, "pprof_config")) {
            migrate_types(m, part->value, profiles, part_name);
        } else {
            warn(m, part->key, part_name, "left out: there is no such key here");
        }
    }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static int64_t duration_of(const struct yaml_node *mapping, const char *key, int64_t otherwise)
{
    const struct yaml_node *n = yaml_get(mapping, key);
    struct err err = ERR_INIT;
    int64_t ms = 0;
    bool ok = n != NULL && n->kind == YAML_SCALAR && parse_duration_ms(n->text, &ms, &err);
    return ok ? ms : otherwise;
}

/* Converts a timeout: Parca's includes the time of sampling, which is the interval; ours does
 * not. */
static void migrate_timeout(struct migration *m, const struct yaml_node *from,
                            const struct yaml_node *value, struct yaml_node *job, const char *path)
{
    int64_t interval = duration_of(from, "scrape_interval", PARCA_INTERVAL_MS);
    int64_t timeout = duration_of(from, "scrape_timeout", 0);
    if (m->has_global || timeout <= interval) {
        put_copy(m, job, "scrape_timeout", value);
        return;
    }
    put_duration(m, job, "scrape_timeout", value, timeout - interval);
    note(m, value, child_path(m, path, SV("scrape_timeout")),
         "Parca's timeout includes the sampling time; here the sampling time is added to it");
}

static void migrate_job_key(struct migration *m, const struct yaml_node *from,
                            const struct yaml_item *item, struct yaml_node *job, const char *path)
{
    static const struct place root = {.key = NULL};
    static const struct place jobs = {.parent = &root, .key = "scrape_configs"};
    static const struct place in_job = {.parent = &jobs};
    struct sv key = item->key->text;
    if (sv_eq_str(key, "profiling_config")) {
        migrate_profiling(m, item, job, path);
    } else if (sv_eq_str(key, "scrape_timeout")) {
        migrate_timeout(m, from, item->value, job, path);
    } else if (has_key(&schema_job, item)) {
        put_copy(m, job, key.p, item->value);
    } else {
        leave_out(m, &in_job, item, path);
    }
}

static void migrate_jobs(struct migration *m, const struct yaml_node *from, struct yaml_node *root)
{
    struct yaml_node *list = tree_list(&m->tree, place_of(from), NULL);
    tree_put(&m->tree, root, "scrape_configs", list);
    for (size_t i = 0; list != NULL && i < from->n_items; i++) {
        const struct yaml_node *one = from->items[i].value;
        char index[48];
        snprintf(index, sizeof(index), "scrape_configs[%zu]", i);
        const char *path = child_path(m, "", sv_from(index));
        struct yaml_node *job = tree_mapping(&m->tree, place_of(one), NULL);
        for (size_t k = 0; job != NULL && one->kind == YAML_MAPPING && k < one->n_items; k++) {
            migrate_job_key(m, one, &one->items[k], job, path);
        }
        if (job != NULL && !m->has_global && yaml_get(one, "scrape_interval") == NULL) {
            put_word(m, job, "scrape_interval", one, PARCA_INTERVAL);
        }
        if (job != NULL) {
            job->path = path;
        }
        tree_append(&m->tree, list, job);
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

static const struct place in_root = {.key = NULL};

static void migrate_global(struct migration *m, const struct yaml_node *from,
                           struct yaml_node *root)
{
    static const struct place in_global = {.parent = &in_root, .key = "global"};
    static const char *const kept[] = {"scrape_interval", "scrape_timeout", "external_labels"};
    struct yaml_node *global = tree_submapping(&m->tree, root, "global");
    for (size_t i = 0; global != NULL && i < from->n_items && from->kind == YAML_MAPPING; i++) {
        struct sv key = from->items[i].key->text;
        if (sv_in(key, kept, sizeof(kept) / sizeof(kept[0]))) {
            put_copy(m, global, key.p, from->items[i].value);
        } else {
            leave_out(m, &in_global, &from->items[i], "global");
        }
    }
    if (global != NULL && yaml_get(global, "scrape_interval") == NULL) {
        put_word(m, global, "scrape_interval", from, "1m");
    }
}

/* Converts `client`, the only endpoint of the Pyroscope agent. */
static void migrate_client(struct migration *m, const struct yaml_node *from,
                           struct yaml_node *root)
{
    static const struct place list_place = {.parent = &in_root, .key = "write"};
    static const struct place in_write = {.parent = &list_place};
    struct yaml_node *list = tree_list(&m->tree, place_of(from), NULL);
    struct yaml_node *endpoint = tree_mapping(&m->tree, place_of(from), "write[0]");
    for (size_t i = 0; endpoint != NULL && from->kind == YAML_MAPPING && i < from->n_items; i++) {
        if (has_key(&schema_endpoint, &from->items[i])) {
            put_copy(m, endpoint, from->items[i].key->text.p, from->items[i].value);
        } else {
            leave_out(m, &in_write, &from->items[i], "write[0]");
        }
    }
    if (list != NULL && endpoint != NULL) {
        tree_append(&m->tree, list, endpoint);
        tree_put(&m->tree, root, "write", list);
    }
}

static void add_endpoint(struct migration *m, const struct yaml_node *from, struct yaml_node *root)
{
    struct yaml_node *list = tree_list(&m->tree, place_of(from), NULL);
    struct yaml_node *endpoint = tree_mapping(&m->tree, place_of(from), "write[0]");
    if (list == NULL || endpoint == NULL) {
        return;
    }
    struct yaml_node *url =
        tree_text(&m->tree, place_of(from), NULL, SV(MIGRATE_URL), SV(MIGRATE_URL));
    if (url != NULL) {
        url->literal = false;
        tree_put(&m->tree, endpoint, "url", url);
        tree_append(&m->tree, list, endpoint);
        tree_put(&m->tree, root, "write", list);
        warn(m, from, "write[0]",
             "the file names no server for profiles: write its URL here, or set PYROSCOPE_URL");
    }
}

static void migrate_root_key(struct migration *m, const struct yaml_item *item,
                             struct yaml_node *root)
{
    static const char *const ours[] = {"write", "sharding", "log"};
    struct sv key = item->key->text;
    if (sv_eq_str(key, "scrape_configs")) {
        migrate_jobs(m, item->value, root);
    } else if (sv_eq_str(key, "global")) {
        migrate_global(m, item->value, root);
    } else if (sv_eq_str(key, "client")) {
        migrate_client(m, item->value, root);
    } else if (sv_in(key, ours, sizeof(ours) / sizeof(ours[0]))) {
        put_copy(m, root, key.p, item->value);
    } else if (sv_eq_str(key, "server")) {
        warn(m, item->key, "server", "left out: profpull's own server has another address, listen");
    } else {
        leave_out(m, &in_root, item, "");
    }
}

/* Adds notes about differences that concern the file as a whole. */
static void add_notes(struct migration *m, const struct yaml_node *from)
{
    if (m->any_profiling || !m->has_global) {
        note(m, from, "",
             "process_cpu is sampled for 1s less than the interval; continuous: true samples all "
             "the time, as Parca does");
        note(m, from, "",
             "memory, block and mutex are sent as increases since the last scrape, not since the "
             "start of the process as Parca stores them; delta: off in a type sends them so");
    } else {
        warn(m, from, "",
             "no job has profiling_config: these jobs scraped metrics, and each target is now "
             "asked for profiles");
    }
}

static bool can_migrate(const struct migration *m, const struct yaml_node *root)
{
    const char *problem = NULL;
    const struct yaml_node *at = root;
    if (root->kind != YAML_MAPPING) {
        problem = "expected a mapping with the key scrape_configs";
    } else if (yaml_get(root, "scrape-configs") != NULL) {
        at = yaml_get(root, "scrape-configs");
        problem = "a file of Pyroscope before 1.0 (keys with dashes) cannot be converted: "
                  "docs/migrating.md says what its keys are called here";
    } else if (yaml_get(root, "scrape_configs") == NULL) {
        problem = "missing required key \"scrape_configs\": only scrape_configs can be converted";
    } else if (yaml_get(root, "scrape_configs")->kind != YAML_LIST) {
        at = yaml_get(root, "scrape_configs");
        problem = "expected a list of jobs";
    }
    if (problem != NULL) {
        config_tell(m->messages->errors, place_of(at), "", "%s", problem);
    }
    return problem == NULL;
}

const struct yaml_node *migrate_tree(const struct yaml_node *root, struct arena *arena,
                                     const struct config_messages *messages)
{
    struct migration m = {.tree = {.arena = arena}, .messages = messages};
    if (!can_migrate(&m, root)) {
        return NULL;
    }
    m.has_global = yaml_get(root, "global") != NULL;
    struct yaml_node *out = tree_mapping(&m.tree, place_of(root), NULL);
    for (size_t i = 0; out != NULL && i < root->n_items; i++) {
        migrate_root_key(&m, &root->items[i], out);
    }
    if (out != NULL && yaml_get(out, "write") == NULL) {
        add_endpoint(&m, root, out);
    }
    add_notes(&m, root);
    return m.tree.full ? NULL : out;
}

/* ---- kinds of files -------------------------------------------------------------------------- */

/* Returns the first line that is neither empty nor a comment of Alloy's language. */
static struct sv first_line(struct sv text)
{
    size_t i = 0;
    while (i < text.n) {
        size_t end = i;
        while (end < text.n && text.p[end] != '\n') {
            end++;
        }
        struct sv line = sv_trim((struct sv){text.p + i, end - i});
        if (line.n > 0 && !sv_starts_with(line, SV("//"))) {
            return line;
        }
        i = end + 1;
    }
    return SV("");
}

bool migrate_is_yaml(const char *name, struct sv text)
{
    struct sv v = sv_from(name);
    if (sv_ends_with(v, SV(".yaml")) || sv_ends_with(v, SV(".yml")) ||
        sv_ends_with(v, SV(".json"))) {
        return true;
    }
    struct sv line = first_line(text);
    size_t i = 0;
    while (i < line.n && (ascii_is_alnum(line.p[i]) || line.p[i] == '_' || line.p[i] == '-')) {
        i++;
    }
    bool key = i > 0 && i < line.n && line.p[i] == ':';
    return !sv_ends_with(v, SV(".alloy")) &&
           (key || sv_starts_with(line, SV("#")) || sv_starts_with(line, SV("---")) ||
            sv_starts_with(line, SV("{")));
}
