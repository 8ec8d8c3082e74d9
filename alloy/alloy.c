#include "alloy/alloy.h"

#include <stdlib.h>
#include <string.h>

#include "alloy/profiles.h"

bool alloy_are_sources(const char *path, const struct alloy_sources *sources)
{
    return sources->n != 1 || sv_ends_with(sv_from(path), SV(".alloy")) ||
           sv_ends_with(sv_from(sources->at[0].name), SV(".alloy")) ||
           alloy_is_text(sources->at[0].text);
}

static const char *get_environment(void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

/* The syntax of all files; the graph of a file with syntax errors would give follow-up errors. */
static struct alloy_body *parse_all(const struct alloy_sources *sources, struct arena *arena,
                                    struct config_errors *errors)
{
    struct alloy_body *bodies = arena_array(arena, sources->n + 1, sizeof(*bodies));
    bool ok = bodies != NULL;
    if (!ok) {
        config_errors_add(errors, 0, 0, "", "not enough memory for this file");
    }
    for (size_t i = 0; bodies != NULL && i < sources->n; i++) {
        ok = alloy_parse(i == 0 ? NULL : sources->at[i].name, sources->at[i].text, arena, errors,
                         &bodies[i]) &&
             ok;
    }
    return ok ? bodies : NULL;
}

static const struct yaml_node *build(struct alloy_load *l, const struct alloy_sources *sources,
                                     const struct alloy_body *bodies)
{
    struct alloy_place start = {1, 1, NULL};
    l->root = tree_mapping(&l->tree, start, NULL);
    if (l->root == NULL) {
        alloy_no_memory(l);
        return NULL;
    }
    alloy_graph_run(l, bodies, sources->n, sources->directory);
    if (l->n_modules > 0 && !l->ev.exhausted) {
        alloy_enter(l, l->modules[0]);
        alloy_flatten(l, l->modules[0]);
    }
    const struct yaml_node *root = l->root;
    if (config_errors_count(l->errors) > 0 && !l->ev.exhausted && !l->tree.full) {
        root = alloy_parts(l);
    }
    if (l->tree.full) {
        alloy_no_memory(l);
    }
    alloy_graph_done(l);
    return l->ev.exhausted || l->tree.full ? NULL : root;
}

const struct yaml_node *alloy_read(const struct alloy_sources *sources,
                                   const struct config_options *options, struct arena *arena,
                                   const struct alloy_messages *messages)
{
    const struct alloy_body *bodies = parse_all(sources, arena, messages->errors);
    struct alloy_load *l = bodies != NULL ? calloc(1, sizeof(*l)) : NULL;
    if (l == NULL) {
        return NULL;
    }
    l->arena = arena;
    l->tree.arena = arena;
    l->tree.errors = messages->errors;
    l->file = sources->at[0].name;
    l->errors = messages->errors;
    l->warnings = messages->warnings;
    l->notes = messages->notes;
    l->options = options;
    l->for_text = messages->for_text;
    l->on_import = messages->on_import;
    l->import_arg = messages->arg;
    l->ev = (struct alloy_eval){
        .arena = arena,
        .errors = messages->errors,
        .env = options != NULL && options->env != NULL ? options->env : get_environment,
        .env_arg = options != NULL ? options->env_arg : NULL,
    };
    const struct yaml_node *root = build(l, sources, bodies);
    free(l);
    return root;
}
