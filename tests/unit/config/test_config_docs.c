/* docs/configuration.md and the schemas name the same keys, and the docs the built-in types. */
#include "tests/unit/lib/testing.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "config/parts.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

#define DOC "docs/configuration.md"
#define PATHS_MAX 256
#define PATH_LEN 96

/* Paths of keys: "retry.min_backoff", "selectors[].role". */
struct paths {
    char at[PATHS_MAX][PATH_LEN];
    size_t n;
};

/* A heading of the docs and the schema whose keys the tables below it list. */
struct section {
    const char *heading;
    const struct schema *schema;
};

static void add(struct paths *paths, const char *prefix, struct sv key)
{
    assert_in_range(paths->n, 0, PATHS_MAX - 1);
    (void)snprintf(paths->at[paths->n++], PATH_LEN, "%s%.*s", prefix, (int)key.n, key.p);
}

static bool has(const struct paths *paths, const char *path)
{
    for (size_t i = 0; i < paths->n; i++) {
        if (strcmp(paths->at[i], path) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- keys of the schemas --------------------------------------------------------------------- */

static const struct field *find(const struct schema *s, const char *key)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->fields[i].key != NULL && strcmp(s->fields[i].key, key) == 0) {
            return &s->fields[i];
        }
    }
    fail_msg("no key \"%s\"", key);
    return NULL;
}

static const struct schema *nested(const struct schema *s, const char *key)
{
    return find(s, key)->arg;
}

#define SECTIONS 18
static void list_sections(struct section sections[SECTIONS])
{
    const struct section all[SECTIONS] = {
        {"## `global`", nested(&schema_root, "global")},
        {"## `server`", nested(&schema_root, "server")},
        {"## `query`", nested(&schema_root, "query")},
        {"### TLS and credentials", &schema_access},
        {"## `log`", nested(&schema_root, "log")},
        {"## `scrape_configs`", &schema_job},
        {"### `static_configs`", nested(&schema_sources, "static_configs")},
        {"### `file_sd_configs`", nested(&schema_sources, "file_sd_configs")},
        {"### `http_sd_configs`", nested(&schema_sources, "http_sd_configs")},
        {"### `kubernetes_sd_configs`", nested(&schema_sources, "kubernetes_sd_configs")},
        {"### `relabel_configs`", &schema_rule},
        {"## `write`", &schema_endpoint},
        {"### `label_limits`", &schema_label_limits},
        {"## `sharding`", &schema_sharding},
        {"## `receive`", &schema_receive},
        {"## `symbols`", &schema_symbols},
        {"## `record`", &schema_record},
        {"## HTTP client keys", &schema_http},
    };
    memcpy(sections, all, sizeof(all));
}

static bool has_section(const struct schema *s)
{
    struct section sections[SECTIONS];
    list_sections(sections);
    /* The same keys, with another default. */
    s = s == &schema_target_http ? &schema_http : s;
    for (size_t i = 0; i < SECTIONS; i++) {
        if (sections[i].schema == s) {
            return true;
        }
    }
    return false;
}

/* All paths of a schema except nested ones with a section of their own. The docs describe
 * oauth2.tls_config by the keys of tls_config, and store.archive.s3 by those of s3. */
static void list_schema(struct paths *paths, const struct schema *s, const char *prefix)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct field *f = &s->fields[i];
        char path[PATH_LEN];
        (void)snprintf(path, sizeof(path), "%s%s", prefix, f->key == NULL ? "" : f->key);
        if (f->key != NULL) {
            add(paths, "", sv_from(path));
        }
        if (f->kind->nests && !has_section(f->arg) && strcmp(path, "oauth2.tls_config") != 0 &&
            strcmp(path, "store.archive.s3") != 0) {
            char inner[PATH_LEN + 4];
            (void)snprintf(inner, sizeof(inner), "%s%s", path,
                           f->key == NULL          ? ""
                           : f->kind == &kind_list ? "[]."
                                                   : ".");
            list_schema(paths, f->arg, inner);
        }
    }
}

/* ---- keys of the docs ------------------------------------------------------------------------ */

static bool next_line(struct sv *text, struct sv *ret_line)
{
    if (text->n == 0) {
        return false;
    }
    if (!sv_cut(*text, '\n', ret_line, text)) {
        *ret_line = *text;
        text->n = 0;
    }
    return true;
}

/* Each `word` of the first cell. */
static void list_cell(struct paths *paths, struct sv line)
{
    struct sv cell;
    struct sv rest;
    struct sv word;
    assert_true(sv_cut(sv_skip(line, 1), '|', &cell, &rest));
    while (sv_cut(cell, '`', &word, &cell)) {
        assert_true(sv_cut(cell, '`', &word, &cell));
        add(paths, "", word);
    }
}

/* The keys in the tables between a heading and the next one; number: only that table, from 0. */
static void list_docs(struct paths *paths, struct sv doc, const char *heading, int number)
{
    bool inside = false;
    bool in_table = false;
    int table = -1;
    for (struct sv line; next_line(&doc, &line);) {
        if (sv_starts_with(line, SV("##"))) {
            inside = sv_eq_str(line, heading);
        } else if (inside && sv_starts_with(line, SV("| key |"))) {
            in_table = true;
            table++;
        } else if (!sv_starts_with(line, SV("|"))) {
            in_table = false;
        } else if (inside && in_table && !sv_starts_with(line, SV("|---")) &&
                   (number < 0 || number == table)) {
            list_cell(paths, line);
        }
    }
    assert_true(paths->n > 0);
}

/* A mapping that has no row of its own is described by its keys. */
static bool has_keys(const struct paths *paths, const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < paths->n; i++) {
        if (strncmp(paths->at[i], path, n) == 0 && paths->at[i][n] == '.') {
            return true;
        }
    }
    return false;
}

static void compare(const struct paths *schema, const struct paths *docs, const char *where)
{
    for (size_t i = 0; i < schema->n; i++) {
        CHECK(has(docs, schema->at[i]) || has_keys(schema, schema->at[i]),
              "%s does not describe %s under \"%s\"", DOC, schema->at[i], where);
    }
    for (size_t i = 0; i < docs->n; i++) {
        CHECK(has(schema, docs->at[i]), "%s describes %s under \"%s\", which is no key", DOC,
              docs->at[i], where);
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(every_key_is_described_and_every_described_key_exists)
{
    struct section sections[SECTIONS];
    list_sections(sections);
    SCOPED(buf) doc = testing_read_file(DOC);
    for (size_t i = 0; i < SECTIONS; i++) {
        struct paths schema = {.n = 0};
        struct paths docs = {.n = 0};
        list_schema(&schema, sections[i].schema, "");
        list_docs(&docs, (struct sv){doc.data, doc.len}, sections[i].heading, -1);
        compare(&schema, &docs, sections[i].heading);
    }
}

TEST(every_top_level_key_has_a_section)
{
    for (size_t i = 0; i < schema_root.n; i++) {
        assert_true(has_section(schema_root.fields[i].arg));
    }
}

TEST(the_keys_of_types_are_described)
{
    static const char heading[] = "### `profiles`";
    SCOPED(buf) doc = testing_read_file(DOC);
    const struct sv text = {doc.data, doc.len};
    struct paths builtin = {.n = 0};
    struct paths type = {.n = 0};
    struct paths custom = {.n = 0};
    struct paths docs[4] = {{.n = 0}};
    for (int i = 0; i < 4; i++) {
        list_docs(&docs[i], text, heading, i);
    }
    for (size_t i = 0; i < CONFIG_BUILTIN_TYPES; i++) {
        add(&builtin, "", sv_from(config_builtin_type(i)->type.key));
    }
    list_schema(&type, &schema_type, "");
    list_schema(&custom, &schema_custom_type, "");
    assert_true(has(&docs[0], "path_prefix") && has(&docs[0], "custom"));
    compare(&builtin, &docs[1], "built-in types");
    compare(&type, &docs[2], "each type");
    for (size_t i = 0; i < type.n; i++) { /* the keys of each type are not listed again */
        add(&docs[3], "", sv_from(type.at[i]));
    }
    compare(&custom, &docs[3], "custom types");
}

TEST(built_in_types_are_described_as_they_are)
{
    SCOPED(buf) doc = testing_read_file(DOC);
    for (size_t i = 0; i < CONFIG_BUILTIN_TYPES; i++) {
        const struct config_type *t = &config_builtin_type(i)->type;
        char row[256];
        (void)snprintf(row, sizeof(row), "\n| `%s` | `%s` | `%s` | `%s` |", t->key, t->name,
                       t->path, t->enabled ? "true" : "false");
        CHECK_CONTAINS(doc.data, row, t->key);
    }
    assert_null(config_builtin_type(CONFIG_BUILTIN_TYPES));
}

/* The built-in configuration keeps pods that ask for any of the types. */
TEST(every_built_in_type_can_be_asked_for_by_annotation)
{
    const struct sv text = config_builtin();
    SCOPED_MEMORY char *copy = strndup(text.p, text.n);
    assert_non_null(copy);
    for (size_t i = 0; i < CONFIG_BUILTIN_TYPES; i++) {
        char line[128];
        (void)snprintf(line, sizeof(line), "annotation_profiles_grafana_com_%s_scrape\n",
                       config_builtin_type(i)->annotation);
        CHECK_CONTAINS(copy, line, config_builtin_type(i)->type.key);
    }
}

/* ---- recipes --------------------------------------------------------------------------------- */

/* Checks that a configuration of three parts is accepted. */
static void check_loads(const char *head, struct sv example, const char *tail)
{
    static const struct config_options options = {.protocols = testing_protocols};
    SCOPED(config_errors) *errors = config_errors_new();
    SCOPED(buf) whole = testing_buf(1 << 16);
    SCOPED(buf) problems = testing_buf(1 << 16);
    buf_printf(&whole, "%s%.*s%s", head, (int)example.n, example.p, tail);
    SCOPED(config) *c = config_parse("f", sv_from(whole.data), &options, errors);
    config_errors_format(errors, &problems);
    CHECK_STR(problems.data, "", whole.data);
}

/* The next example after `at` that begins with `begin`; an empty view at the end of the page. */
static struct sv next_example(const char *at, const char *begin)
{
    char fence[64];
    (void)snprintf(fence, sizeof(fence), "```yaml\n%s", begin);
    at = strstr(at, fence);
    if (at == NULL) {
        return SV("");
    }
    at += strlen("```yaml\n");
    return (struct sv){.p = at, .n = (size_t)(strstr(at, "```") - at)};
}

TEST(every_recipe_loads)
{
    SCOPED(buf) page = testing_read_file("docs/recipes.md");
    size_t n = 0;
    struct sv example = next_example(page.data, "");
    for (; example.n > 0; example = next_example(example.p, "")) {
        check_loads("", example, "write: [{url: 'file:///x'}]\n");
        n++;
    }
    assert_true(n >= 5);
}

/* Each example that begins with `write:` can be used as it is shown. */
TEST(every_destination_loads)
{
    static const char *const pages[] = {"docs/writing.md", "docs/destinations.md", "docs/spool.md",
                                        "docs/store.md"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        SCOPED(buf) page = testing_read_file(pages[i]);
        struct sv example = next_example(page.data, "write:\n");
        for (; example.n > 0; example = next_example(example.p, "write:\n")) {
            check_loads("scrape_configs: [{job_name: j, static_configs: [{targets: ['h:1']}]}]\n",
                        example, "");
            n++;
        }
    }
    assert_true(n >= 8);
}
