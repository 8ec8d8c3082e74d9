/* Any YAML as a file of another program: a tree that prints as YAML again, or errors; no crash, no
 * unbounded work. */
#include "config/migrate.h"
#include "config/print.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_MAX ((size_t)64 * 1024 * 1024)
#define TEXT_MAX ((size_t)64 * 1024 * 1024)
/* A text so small that its expansion stays below the limits of a file. */
#define SMALL 10000

static void check_reads(struct sv text)
{
    struct arena *arena = arena_new(ARENA_MAX);
    const struct yaml_node *root;
    struct yaml_place place;
    struct err err = ERR_INIT;
    REQUIRE(arena != NULL && (yaml_parse(text, arena, &root, &place, &err) || text.n >= SMALL));
    arena_free(arena);
}

FUZZ(text)
{
    struct arena *arena = arena_new(ARENA_MAX);
    const struct config_messages messages = {
        .errors = config_errors_new(),
        .warnings = config_errors_new(),
        .notes = config_errors_new(),
        .for_text = true,
    };
    const struct yaml_node *root = NULL;
    struct yaml_place place;
    struct err err = ERR_INIT;
    struct buf out;
    buf_init(&out, TEXT_MAX);
    REQUIRE(arena != NULL);
    (void)migrate_is_yaml("a", text);
    if (yaml_parse(text, arena, &root, &place, &err) && root != NULL) {
        const struct yaml_node *tree = migrate_tree(root, arena, &messages);
        if (tree != NULL && config_print_tree(tree, &messages, &out)) {
            check_reads((struct sv){out.data, out.len});
        }
    }
    buf_done(&out);
    config_errors_free(messages.errors);
    config_errors_free(messages.warnings);
    config_errors_free(messages.notes);
    arena_free(arena);
}
