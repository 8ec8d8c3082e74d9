/* Any text as an Alloy file: errors in order, or a tree. The YAML that is printed of a tree is read
 * by the YAML reader as the same tree, whatever is in texts, keys and comments; and the reader of
 * configurations takes it or reports errors. */
#include <string.h>

#include "alloy/alloy.h"
#include "config/print.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/lib/protocols.h"

#define ARENA_MAX ((size_t)64 * 1024 * 1024)
#define TEXT_MAX ((size_t)64 * 1024 * 1024)

static const char *env(void *arg, const char *name)
{
    (void)arg;
    return name[0] == 'A' ? "value" : NULL;
}

static const struct config_language *const languages[] = {&alloy_language, NULL};
static const struct config_options options = {
    .env = env, .languages = languages, .protocols = testing_protocols};

/* The text that YAML must have for this node: "${" is doubled unless the node has a form of its
 * own. */
static bool says(const struct yaml_node *n, struct sv text)
{
    size_t at = 0;
    if (n->form.p != NULL) {
        return sv_eq(n->form, text);
    }
    for (size_t i = 0; i < n->text.n; i++) {
        bool variable = n->text.p[i] == '$' && i + 1 < n->text.n && n->text.p[i + 1] == '{';
        for (int k = 0; k <= variable; k++) {
            if (at == text.n || text.p[at++] != n->text.p[i]) {
                return false;
            }
        }
    }
    return at == text.n;
}

/* The pair of a key: the printer puts jobs and endpoints last. */
static const struct yaml_item *find(const struct yaml_node *mapping, const struct yaml_node *key)
{
    size_t i = 0;
    while (i < mapping->n_items && !says(key, mapping->items[i].key->text)) {
        i++;
    }
    return i < mapping->n_items && !yaml_is_null(mapping->items[i].key) ? &mapping->items[i] : NULL;
}

/* Lists and mappings without anything are left out of the comparison: YAML has no kind for them. */
static void compare(const struct yaml_node *made, const struct yaml_node *read)
{
    REQUIRE(made->problem == NULL && read->problem == NULL);
    if (made->kind == YAML_SCALAR) {
        REQUIRE(read->kind == YAML_SCALAR && says(made, read->text));
        return;
    }
    REQUIRE(made->n_items == 0 || (made->kind == read->kind && made->n_items == read->n_items));
    for (size_t i = 0; i < made->n_items; i++) {
        const struct yaml_node *key = made->items[i].key;
        const struct yaml_item *item = key != NULL ? find(read, key) : &read->items[i];
        REQUIRE(item != NULL && item->duplicate_of == NULL);
        compare(made->items[i].value, item->value);
    }
}

static void check_yaml(const struct yaml_node *root, struct sv yaml, struct arena *arena)
{
    const struct yaml_node *read;
    struct yaml_place place;
    struct err err = ERR_INIT;
    if (!yaml_parse(yaml, arena, &read, &place, &err)) {
        REQUIRE(yaml.n > CONFIG_FILE_MAX || err.kind != ERR_INPUT || place.line == 0);
        return; /* beyond a limit of YAML files */
    }
    if (root->n_items > 0) {
        REQUIRE(read != NULL);
        compare(root, read);
    }
    struct config_errors *errors = config_errors_new();
    REQUIRE(errors != NULL);
    struct config *c = config_parse("printed.yaml", yaml, &options, errors);
    REQUIRE((c == NULL) == (config_errors_count(errors) > 0));
    config_unref(c);
    config_errors_free(errors);
}

static void check_order(const struct config_errors *errors)
{
    for (size_t i = 1; i < config_errors_count(errors); i++) {
        const struct config_pos *a = &config_errors_at(errors, i - 1)->pos;
        const struct config_pos *z = &config_errors_at(errors, i)->pos;
        bool same = strcmp(a->file, z->file) == 0;
        REQUIRE(!same || a->line < z->line || (a->line == z->line && a->column <= z->column));
    }
}

FUZZ(in)
{
    const struct config_text source = {"fuzz.alloy", {in.p, in.n}};
    const struct config_texts sources = {.at = &source, .n = 1, .directory = "/nonexistent"};
    struct arena *arena = arena_new(ARENA_MAX);
    const struct config_messages messages = {.errors = config_errors_new(),
                                             .warnings = config_errors_new(),
                                             .notes = config_errors_new(),
                                             .for_text = true};
    struct buf yaml;
    REQUIRE(arena != NULL && messages.errors != NULL && messages.warnings != NULL &&
            messages.notes != NULL);
    buf_init(&yaml, TEXT_MAX);
    const struct yaml_node *root = alloy_read(&sources, &options, arena, &messages);
    bool whole = root != NULL && !root->incomplete;
    REQUIRE(!whole == (config_errors_count(messages.errors) > 0));
    check_order(messages.errors);
    if (whole) {
        REQUIRE(config_print_tree(root, &messages, &yaml));
        check_yaml(root, (struct sv){yaml.data, yaml.len}, arena);
    }
    buf_done(&yaml);
    arena_free(arena);
    config_errors_free(messages.errors);
    config_errors_free(messages.warnings);
    config_errors_free(messages.notes);
}
